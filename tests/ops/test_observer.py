"""Snapshots of a cluster, on the in-memory Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from eos_sink.driver.evidence import ask_all
from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Resource
from eos_sink.ops.alerts import AlertKind, find_alerts
from eos_sink.ops.history import History, Written, find_names
from eos_sink.ops.status import Driver as Driving
from eos_sink.ops.status import group_by_query
from eos_sink.protocol.model import BatchId, LogRecord
from eos_sink.protocol.outcome import Outcome
from eos_sink.protocol.values import (
    FirstOpen,
    Position,
    Transaction,
    TransactionState,
    TransactionStatus,
)
from tests.fakes.kafka import FakeControl, FakeKafka
from tests.fakes.producer import FakeProducer
from tests.ops.operator import Eye
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import TOPIC, World, hold_up_the_log, late_attempt, options

NAMES = QueryNames("eos-sink-", "orders-0123456789")
OPEN = TransactionStatus.ONGOING


@pytest.mark.parametrize(
    ("transactional_id", "query"),
    [
        ("eos-sink-orders-0123456789-0-12", "orders-0123456789"),
        ("eos-sink-orders-0123456789-driver", "orders-0123456789"),
        ("team.orders-0123456789-1-0", "team.orders-0123456789"),
        ("eos-sink-late_orders-0123456789-0-0", "late_orders-0123456789"),
        ("other-orders-0123456789-0-0", None),
        ("eos-sink-orders-0123456789-2-0", None),
        ("eos-sink-orders-0123456789-0-01", None),
        ("eos-sink-orders-0123456789", None),
        ("orders-9999999999-0-0", None),
        ("connect-cluster-7", None),
    ],
)
def test_an_id_is_placed_by_its_group(transactional_id: str, query: str | None) -> None:
    state = TransactionState(Transaction(transactional_id, 1, 0), OPEN, 0, 1)
    known = [
        QueryNames(DEFAULT_PREFIX, "orders-0123456789"),
        QueryNames(DEFAULT_PREFIX, "late_orders-0123456789"),
        QueryNames("team.", "orders-0123456789"),
    ]
    assert group_by_query([state], {each.shown: each for each in known}) == {query: [state]}


# --- stories


@pytest.mark.parametrize("emptied", [False, True])
def test_a_log_that_is_gone_is_known_by_what_was_committed(world: World, emptied: bool) -> None:
    Driver(world).run(0, [b"a"])
    eye, log = Eye(world), world.options.log_topic
    assert eye.snapshot().unrecorded == ()
    if emptied:
        for partition in world.cluster.topics[log].partitions:
            partition.delete_before(partition.end)
    else:
        del world.cluster.topics[log]
    found = Eye(world).snapshot()
    names = world.options.names
    assert found.unrecorded == (names.task(0, 0), names.driver)
    assert [each.kind for each in find_alerts(found)] == [AlertKind.NO_LOG]
    assert Eye(world, prefix="other-").snapshot().unrecorded == ()


def test_a_later_look_asks_only_for_what_may_have_changed(world: World) -> None:
    driver, eye = Driver(world), Eye(world)
    driver.run(0, [b"a"])
    first = eye.snapshot()
    assert [written.record.seq for written in first.records] == [1, 2]
    calls: list[str] = []
    eye.admin.process.hook = lambda name, moment: calls.append(name)
    again = eye.snapshot()
    # Of transactions only which are open, and by ids of its own whether each coordinator answers.
    asked = ["control.list_transactions", "control.describe"]
    asked += ["kafka.describe_groups", "kafka.describe_topics", "kafka.list_offsets"]
    assert (again.records, calls[::2]) == ((), asked)
    assert again.queries[0].outcome is first.queries[0].outcome is Outcome.COMMITTED
    driver.run(1, [b"b"])
    third = eye.snapshot()
    assert [written.record.seq for written in third.records] == [3]
    assert third.queries[0].batch == BatchId("stream-1", 1)
    assert "control.describe" in calls


def test_a_log_that_was_made_again_replaces_what_was_read(world: World) -> None:
    driver, eye = Driver(world), Eye(world)
    driver.run(0, [b"a"])
    assert eye.snapshot().queries
    del world.cluster.topics[world.options.log_topic]
    world.cluster.create_topic(world.options.log_topic)
    assert eye.snapshot().queries == ()


def test_the_prefix_is_that_of_the_record_or_of_the_key_of_an_unreadable_one() -> None:
    for prefix in (DEFAULT_PREFIX, "team-", "team"):
        names = QueryNames(prefix, NAMES.query)
        record = LogRecord(1, None, "w", prefix=prefix)
        written = Written(names.shown, record, Position("log", 0, 0), 0)
        assert find_names(History(names.shown, (written,)), "given-") == names
        assert find_names(History(names.shown, ()), prefix) == names
    unreadable = History(f"team-{NAMES.query}", ())
    assert find_names(unreadable, "given-") == QueryNames("team-", NAMES.query)


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (Resource.TOPIC, "Read on topic __eos_sink_log"),
        (
            Resource.TRANSACTIONAL_ID,
            "Describe on every transactional id that starts with eos-sink-",
        ),
        (Resource.GROUP, "Describe on group eos-sink-story-"),
    ],
)
def test_what_may_not_be_seen_is_named_and_the_rest_is_shown(
    world: World, kind: Resource, missing: str
) -> None:
    decide_and_die(world)
    eye = Eye(world)
    eye.admin.denied.add(kind)
    found = eye.snapshot()
    (problem,) = found.problems
    assert problem.missing[0].startswith(missing)
    assert found.log
    if kind is Resource.TOPIC:
        assert len(found.unknown or ()) == 2
        return
    (status,) = found.queries
    assert (status.outcome, status.driver, *status.counts) == (
        (Outcome.OPEN, Driving.UNKNOWN, 2, 0)
        if kind is Resource.GROUP
        else (Outcome.UNKNOWN, Driving.LIVE, None, None)
    )


def test_who_may_see_one_prefix_only_sees_that(world: World) -> None:
    decide_and_die(world)
    eye = Eye(world)
    eye.admin.denied.add(Resource.TRANSACTIONAL_ID)
    eye.admin.allowed = "eos-sink-"
    found = eye.snapshot()
    assert found.problems == ()
    assert len(found.queries[0].open or ()) == 2
    other = Eye(world, prefix="team-")
    other.admin.denied.add(Resource.TRANSACTIONAL_ID)
    other.admin.allowed = "team-"
    assert other.snapshot().queries[0].open is None


def test_that_another_prefix_may_not_be_seen_is_said_where_all_else_is_good(world: World) -> None:
    world.options = options(**{"eos.inline.bytes": "65536"})
    Driver(world).run(0, [b"a"])
    eye = Eye(world, prefix="team-")
    assert eye.snapshot().problems == ()
    eye.admin.denied.add(Resource.TRANSACTIONAL_ID)
    eye.admin.allowed = "team-"
    (problem,) = eye.snapshot().problems
    assert problem.missing


@pytest.mark.parametrize("late", [False, True])
def test_a_topic_that_was_made_again_has_the_outcome_that_the_next_start_finds(
    world: World, late: bool
) -> None:
    decide_and_die(world)
    if late:
        late_attempt(world, 0, 0)
    del world.cluster.topics[TOPIC]
    world.cluster.create_topic(TOPIC, 2)
    (status,) = Eye(world).snapshot().queries
    assert status.evidence == ask_all(FakeKafka(world.cluster), status.evidence, Deadline(30))


def test_a_member_beside_a_dead_process_may_be_a_newer_run(world: World) -> None:
    """A new run joins before its first record; the one that wrote last may be dead by then."""
    Driver(world).run(0, [b"a"])
    status = replace(Eye(world).sees(), dead=True)
    assert (status.driver, status.last_run_ended) == (Driving.ENDED, True)
    assert replace(status, hosts=None).driver is Driving.UNKNOWN
    assert replace(status, hosts=()).driver is Driving.GONE


def test_a_witness_that_another_producer_s_transaction_hides_is_known_by_its_marker(
    world: World,
) -> None:
    coordinator = world.cluster.coordinator
    other = coordinator.open("other", coordinator.init("other", 900_000))
    for log in world.cluster.topics[TOPIC].partitions:
        log.append(other, None, b"x", (), 0)
    Driver(world).run(0, [b"a"])
    late_attempt(world, 0, 0)
    calls: list[str] = []
    eye = Eye(world)
    eye.admin.process.hook = lambda name, moment: calls.append(name)
    assert [eye.sees().outcome for _ in range(2)] == [Outcome.COMMITTED] * 2
    assert calls.count("read_back.visibility") == 2  # Before and after one call.


# --- the topics that queries write to


def test_a_topic_that_cannot_be_seen_has_no_delay(world: World) -> None:
    Driver(world).run(0, [b"a"])
    status = Eye(world).sees()
    assert [replace(status, ends=ends).readers_behind for ends in ({}, {TOPIC: ()})] == [None, None]


def test_clients_are_made_again_after_a_part_of_the_cluster_was_silent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka's do not always find a group's coordinator again."""
    Driver(world).run(0, [b"a"])
    eye, renewed = Eye(world), list[str]()
    monkeypatch.setattr(eye.admin, "renew", lambda: renewed.append("renewed"))
    eye.admin.denied = {Resource.GROUP}  # This is an answer.
    eye.snapshot()
    eye.admin.denied = set()
    eye.admin.silent = {"describe_groups"}
    assert eye.sees().driver is Driving.UNKNOWN
    assert renewed == []
    eye.admin.silent = set()
    assert eye.sees().driver is Driving.LIVE
    assert renewed == ["renewed"]
    monkeypatch.setattr(eye.admin, "read_log", no_broker)
    for _ in range(2):
        with pytest.raises(ClusterError):
            eye.snapshot()
    assert renewed == ["renewed"] * 2


def no_broker(*_: object) -> None:
    raise ClusterError("No broker answers.", remedy="")


def kinds(eye: Eye) -> list[AlertKind]:
    return [each.kind for each in find_alerts(eye.snapshot())]


def test_a_topic_that_is_gone_is_no_healthy_one(world: World) -> None:
    Driver(world).run(0, [b"a"])
    assert kinds(Eye(world)) == []
    del world.cluster.topics[TOPIC]
    assert kinds(Eye(world)) == [AlertKind.TOPIC_GONE]


def foreign_transaction(world: World, name: str = "other") -> FakeProducer:
    """Begin one that has written a row to the topic."""
    producer = FakeKafka(world.cluster).producer(name, 60_000)
    producer.init(Deadline(5))
    producer.begin()
    producer.produce(TOPIC, b"foreign", partition=0)
    producer.flush(Deadline(5))
    return producer


def test_a_foreign_transaction_that_lasts_holds_up_readers(world: World) -> None:
    Driver(world).run(0, [b"a"])
    eye = Eye(world)
    foreign = foreign_transaction(world)
    assert kinds(eye) == []
    world.cluster.clock.advance(50)
    (alert,) = find_alerts(eye.snapshot())
    assert (alert.kind, alert.query) == (AlertKind.HELD, "")
    assert f"{TOPIC}[0]" in alert.text
    assert " other," in alert.text
    foreign.abort(Deadline(5))
    assert kinds(eye) == []


def test_a_holder_that_no_coordinator_names_is_not_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Driver(world).run(0, [b"a"])
    eye = Eye(world)
    foreign_transaction(world)
    unnamed = FirstOpen(
        Transaction("", 77, 0), world.cluster.topics[TOPIC].partitions[0].last_stable
    )
    monkeypatch.setattr(FakeControl, "find_holders", lambda *_: {(TOPIC, 0): unnamed})
    (alert,) = find_alerts(eye.snapshot())
    assert alert.kind is AlertKind.UNSEEN
    assert "producer id 77" in alert.text


def test_a_transaction_that_ends_between_two_questions_holds_up_no_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Driver(world).run(0, [b"a"])
    eye = Eye(world)
    foreign = foreign_transaction(world)
    describe = FakeControl.describe

    def end(
        control: FakeControl, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        ids = list(ids)
        if "other" in ids:
            foreign.commit(deadline)
        return describe(control, ids, deadline, anew=anew)

    monkeypatch.setattr(FakeControl, "describe", end)
    assert kinds(eye) == []
    assert world.visible() == [b"a", b"foreign"]


def test_a_transaction_that_hangs_in_the_log_holds_up_every_query_there(world: World) -> None:
    """Kafka 4 may forget to end one; a start of the query waits for it."""
    Driver(world).run(0, [b"a"])
    hold_up_the_log(world, 60_000)
    assert kinds(Eye(world)) == []
    world.cluster.clock.advance(59)
    eye = Eye(world)
    assert kinds(eye) == [AlertKind.HELD]
    (alert,) = find_alerts(eye.snapshot())
    assert f"{world.options.log_topic}[0]" in alert.text


def test_a_partition_of_the_log_without_a_leader_is_not_seen_and_nothing_is_known_lost(
    world: World,
) -> None:
    Driver(world).run(0, [b"a"])
    (partition,) = world.cluster.topics[world.options.log_topic].partitions
    partition.has_leader = False
    eye = Eye(world)
    found = eye.snapshot()
    assert (found.is_whole, found.unrecorded, found.queries) == (False, None, ())
    assert [each.kind for each in find_alerts(found)] == [AlertKind.UNSEEN]
    partition.has_leader = True
    assert (eye.snapshot().is_whole, kinds(eye)) == (True, [])


def test_a_coordinator_without_an_answer_is_a_problem_and_hides_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is open there is in no list: nothing open is not what was seen."""

    def fail(*_: object) -> None:
        raise OutcomeUnknownError("No broker answers.", remedy="Wait.")

    Driver(world).run(0, [b"a"])
    eye = Eye(world)
    monkeypatch.setattr("eos_sink.kafka.hanging.check_coordinators", fail)
    seen = eye.snapshot()
    (problem,) = seen.problems
    assert problem.what.startswith("No broker answers.")
    assert seen.silent
    (status,) = seen.queries
    assert (status.outcome, status.driver) == (Outcome.COMMITTED, Driving.LIVE)
