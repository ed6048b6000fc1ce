"""The decision log as a compare-and-swap register."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from eos_sink.errors import (
    CommitFailedError,
    OperatorNeededError,
    OutcomeUnknownError,
    SupersededError,
)
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import Change, PlanToken
from eos_sink.protocol.values import (
    EndOutcome,
    Position,
    ProducerIdentity,
    TransactionState,
    TransactionStatus,
)
from eos_sink_lab.testing.waiting import wait_until
from tests.decision_log.writer import NAMES, Writer, append, decision
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeControl, FakeLogReader
from tests.fakes.process import At, Moment
from tests.fakes.producer import FakeProducer


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def test_a_register_starts_at_zero_and_counts_its_writes(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    assert writer.register.open(writer.deadline).seq == 0
    for seq in range(3):
        assert writer.write(member, seq, batch=seq).seq == seq + 1
    latest = Writer(cluster).register.read(writer.deadline)
    assert (latest.seq, latest.decision) == (3, decision(2))


def test_a_write_from_an_old_plan_is_superseded(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)
    with pytest.raises(SupersededError) as refused:
        other.write(member, 0)
    assert refused.value.data == {"seq": 1, "planned": 0}
    assert other.write(member, 1).seq == 2


def test_a_log_that_was_opened_before_another_write_is_opened_again(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)
    one.register.open(one.deadline)
    other.write(member, 1)
    assert one.write(member, 2).seq == 3


def test_an_open_log_that_was_fenced_is_opened_and_compared_again(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)
    one.register.open(one.deadline)
    other.register.open(other.deadline)
    assert one.write(member, 1).seq == 2
    other.write(member, 2)
    with pytest.raises(SupersededError):
        one.write(member, 2)


def test_each_write_has_an_epoch_of_its_own(cluster: FakeCluster) -> None:
    """What arrives late of the write before has an older epoch, and is refused."""
    writer = Writer(cluster)
    member = writer.join()
    for seq in range(4):
        writer.write(member, seq)
        if seq % 2:
            writer.register.prepare(writer.deadline)
    written = [each.identity for each in cluster.coordinator.history]
    assert len(written) == 4

    def is_prepared() -> bool:
        return cluster.coordinator.describe(NAMES.driver).transaction.epoch > written[-1].epoch

    wait_until(is_prepared, Deadline(5), "the next write has its epoch, in the background")
    assert [each.epoch for each in written] == sorted({each.epoch for each in written})
    assert {cluster.coordinator.end(each, commit=True) for each in written} == {EndOutcome.REFUSED}


def test_an_id_is_initialised_when_its_last_transaction_has_ended(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka repeats an init that comes too early only after half a second."""
    writer, ending = Writer(cluster), [True, True, False]
    asked: list[bool] = []
    describe = cluster.coordinator.describe

    def with_markers_under_way(name: str) -> TransactionState:
        asked.append(ending.pop(0) if ending else False)
        status = TransactionStatus.PREPARE_COMMIT if asked[-1] else TransactionStatus.EMPTY
        return replace(describe(name), status=status)

    def initialise() -> None:
        assert asked == [True, True, False]

    monkeypatch.setattr(cluster.coordinator, "describe", with_markers_under_way)
    At(writer.kafka.process, "log_producer.init", Moment.BEFORE, initialise)
    writer.register.open(writer.deadline)
    assert len(asked) == 4


def test_a_write_takes_what_was_opened_in_the_background(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    writer.write(member, 0)
    writer.register.prepare(writer.deadline)
    writer.register.prepare(writer.deadline)
    writer.register.connect(writer.deadline)
    before = cluster.coordinator.describe(NAMES.driver).transaction
    assert writer.write(member, 1).seq == 2
    assert cluster.coordinator.history[-1].identity == before


def test_what_fails_in_the_background_is_tried_again_by_the_write(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    writer.write(member, 0)

    def fail() -> None:
        raise OutcomeUnknownError("No answer.", remedy="")

    At(writer.kafka.process, "log_producer.init", Moment.BEFORE, fail)
    writer.register.prepare(writer.deadline)
    assert writer.write(member, 1).seq == 2


def test_a_write_does_not_wait_for_the_background_longer_than_for_kafka(
    cluster: FakeCluster,
) -> None:
    """What the thread opens later fences the next write, which opens again."""
    writer = Writer(cluster)
    member = writer.join()
    writer.write(member, 0)
    goes_on = _hold_init(writer)
    writer.register.connect(Deadline(0))
    assert writer.write(member, 1).seq == 2
    opening = [each for each in threading.enumerate() if each.name == "eos-sink-open"]
    writer.register.open(writer.deadline)
    goes_on.set()
    for each in opening:
        each.join(10)
    assert writer.write(member, 2).seq == 3


def test_a_closed_register_closes_what_is_opened_in_the_background(cluster: FakeCluster) -> None:
    writer, closed = Writer(cluster), threading.Event()
    member = writer.join()
    writer.write(member, 0)
    goes_on = _hold_init(writer)
    writer.register.close()
    At(writer.kafka.process, "log_producer.close", Moment.AFTER, closed.set)
    goes_on.set()
    assert closed.wait(10)


def _hold_init(writer: Writer) -> threading.Event:
    """Let the background begin to open; it goes on when the event is set."""
    inside, goes_on = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        goes_on.wait()

    At(writer.kafka.process, "log_producer.init", Moment.BEFORE, hold)
    writer.register.prepare(writer.deadline)
    assert inside.wait(30)
    return goes_on


def test_opening_fences_before_it_reads(cluster: FakeCluster) -> None:
    """The other order misses what is written in between, and decides over it."""
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()

    def write_meanwhile(name: str, moment: Moment) -> None:
        if (name, moment) == ("log_producer.init", Moment.BEFORE):
            one.kafka.process.hook = None
            other.write(member, 0)

    one.kafka.process.hook = write_meanwhile
    assert one.register.open(one.deadline).seq == 1


def test_a_replaced_members_write_is_superseded_and_leaves_nothing_open(
    cluster: FakeCluster,
) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    other.join()
    with pytest.raises(SupersededError) as refused:
        one.write(member, 0)
    assert refused.value.data == {}
    assert cluster.coordinator.list_open(NAMES.group) == []
    assert other.register.read(other.deadline).seq == 0


def test_an_expired_members_write_fails_the_batch_and_leaves_nothing_open(
    cluster: FakeCluster,
) -> None:
    writer = Writer(cluster)
    member = writer.join()
    cluster.groups.end_session(NAMES.group)
    with pytest.raises(CommitFailedError) as failed:
        writer.write(member, 0)
    assert failed.value.data == {"session_ms": 0}
    assert cluster.coordinator.list_open(NAMES.group) == []


def test_queries_share_the_log_and_not_their_records(cluster: FakeCluster) -> None:
    one = Writer(cluster)
    other = Writer(cluster, QueryNames("p-", "r-0123456789"))
    for writer in (one, other):
        writer.write(writer.join(), 0)
    one.write(one.join(), 1, batch=7)
    assert other.register.read(other.deadline).decision == decision(0)
    assert one.register.read(one.deadline).decision == decision(7)


def test_a_log_that_has_lost_what_was_read_is_not_read_on(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    for seq in range(2):
        writer.write(member, seq)
    log = cluster.topics.pop("__eos_sink_log")
    cluster.create_topic("__eos_sink_log")
    with pytest.raises(OperatorNeededError) as lost:
        writer.register.read(writer.deadline)
    assert (lost.value.data["known"], lost.value.data["seq"]) == (2, 0)
    other = Writer(cluster)
    other_member = other.join()
    for seq in range(2):
        other.write(other_member, seq)
        with pytest.raises(OperatorNeededError) as lost:
            writer.register.read(writer.deadline)
        assert "--forget" in lost.value.remedy
        assert (lost.value.data["known"], lost.value.data["seq"]) == (2, seq + 1)
    cluster.topics["__eos_sink_log"] = log
    assert writer.register.read(writer.deadline).seq == 2


def test_a_plan_is_refused_by_a_log_that_has_lost_its_record(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    token = PlanToken(NAMES, 5, Position("__eos_sink_log", 0, 40), member)
    for seq in range(5):
        with pytest.raises(OperatorNeededError) as lost:
            Writer(cluster).register.require_current(token, writer.deadline)
        assert (lost.value.data["known"], lost.value.data["seq"]) == (5, seq)
        writer.write(member, seq)
    with pytest.raises(OperatorNeededError) as lost:
        Writer(cluster).register.append(token, Change(None), writer.deadline)
    assert (lost.value.data["known"], lost.value.data["seq"]) == (5, 5)
    assert writer.register.read(writer.deadline).seq == 5


JUNK = [b"junk", b"\xff", b"[" * 100_000, b"[]", b"1", b"{}"]
FORMATS = [b'"x"', b"true", b"1", b"0"]


@pytest.mark.parametrize("value", [*JUNK, *(b'{"format": %s}' % each for each in FORMATS)])
def test_what_another_program_wrote_under_a_query_s_name_stops_that_query_alone(
    cluster: FakeCluster, value: bytes
) -> None:
    writer, victim = Writer(cluster), QueryNames("eos-sink-", "other-0123456789")
    append(writer, victim.log_key, value)
    other = Writer(cluster, victim)
    with pytest.raises(OperatorNeededError):
        other.register.read(other.deadline)


def test_an_error_that_needs_no_explanation_is_not_its_own_cause(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)
    other.write(member, 1)
    with pytest.raises(SupersededError) as refused:
        one.write(member, 1)
    assert refused.value.__cause__ is not refused.value


def test_a_record_behind_the_end_of_a_replaced_leader_is_not_overwritten(
    cluster: FakeCluster,
) -> None:
    """The new process reads an old end, while its producer finds the new leader."""
    one, other = Writer(cluster), Writer(cluster)
    one.write(one.join(), 0, batch=7)
    reader = other.register.connect(other.deadline)
    assert isinstance(reader, FakeLogReader)
    reader.stale_end = 0
    with pytest.raises(SupersededError):
        other.write(other.join(), 0, batch=8)
    assert cluster.coordinator.list_open(NAMES.group) == []
    assert Writer(cluster).register.read(one.deadline).decision == decision(7)


@pytest.mark.parametrize("step", ["expect", "write", "read"])
def test_an_older_end_than_the_plan_was_made_from_is_asked_for_again(
    cluster: FakeCluster, step: str
) -> None:
    """Nothing is lost: a deposed leader tells it to a process that has not read so far."""
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    for seq in range(2):
        entry = one.write(member, seq)
    reader = other.register.connect(other.deadline)
    assert isinstance(reader, FakeLogReader)
    reader.stale_end = entry.position.offset
    token = PlanToken(NAMES, entry.seq, entry.position, member)
    if step == "expect":
        assert other.register.require_current(token, other.deadline) == entry
    elif step == "write":
        assert other.register.append(token, Change(None), other.deadline).seq == entry.seq + 1
    else:
        assert other.register.read(other.deadline, token) == entry


def test_an_older_end_than_was_read_before_is_asked_for_again(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    entry = one.write(one.join(), 0)
    reader = other.register.connect(other.deadline)
    assert isinstance(reader, FakeLogReader)
    assert other.register.read(other.deadline) == entry
    reader.stale_end = 0
    assert other.register.read(other.deadline) == entry


@pytest.mark.parametrize("knew_it", [True, False])
def test_a_coordinator_that_was_replaced_does_not_name_the_producer(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, knew_it: bool
) -> None:
    """Cut off from the others it answers as before the init."""
    one, other = Writer(cluster), Writer(cluster)
    if knew_it:
        one.write(one.join(), 0)
    old, describe = cluster.coordinator.describe(NAMES.driver), FakeControl.describe

    def cut_off(
        self: FakeControl, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        return describe(self, ids, deadline) if anew and found else {NAMES.driver: old}

    monkeypatch.setattr(FakeControl, "describe", cut_off)
    found, seq = True, int(knew_it)
    entry = other.write(other.join(), seq)
    written = cluster.coordinator.history[-1].identity
    assert entry.record.producer == ProducerIdentity(written.producer_id, written.epoch)
    found = False
    other.deadline = Deadline(0.1)
    with pytest.raises(OutcomeUnknownError, match="o transaction coordinator tells"):
        Writer.write(other, other.join(), seq + 1)


def test_a_record_that_was_aborted_behind_a_stale_end_is_passed_over(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    with pytest.raises(SupersededError):
        one.write(stale_member(one), 0)
    reader = other.register.connect(other.deadline)
    assert isinstance(reader, FakeLogReader)
    reader.stale_end = 0
    assert other.write(other.join(), 0, batch=8).seq == 1


def stale_member(writer: Writer) -> bytes:
    member = writer.join()
    writer.join()
    return member


def test_what_others_write_behind_the_end_that_was_read_is_passed_over(
    cluster: FakeCluster,
) -> None:
    one, other = Writer(cluster), Writer(cluster, QueryNames("p-", "r-0123456789"))
    member = one.join()
    inits: list[str] = []

    def write_meanwhile(name: str, moment: Moment) -> None:
        if (name, moment) == ("log_producer.begin", Moment.BEFORE):
            other.write(other.join(), 0)
        inits.extend([name] if name == "log_producer.init" and moment is Moment.BEFORE else [])

    one.kafka.process.hook = write_meanwhile
    assert one.write(member, 0).seq == 1
    assert inits == ["log_producer.init"]


def test_a_write_that_is_given_up_does_not_outlast_its_step(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator that has not answered until the deadline has to answer the abort too."""
    writer, allowed = Writer(cluster), list[float]()
    abort = FakeProducer.abort

    def watched(producer: FakeProducer, deadline: Deadline) -> None:
        allowed.append(deadline.seconds)
        abort(producer, deadline)

    def silent(_: float) -> float:
        raise OutcomeUnknownError("No answer from the transaction coordinator.", remedy="")

    monkeypatch.setattr(FakeProducer, "abort", watched)
    member, start = writer.join(), writer.register.open(writer.deadline).position
    token = PlanToken(NAMES, 0, start, member)
    with pytest.raises(OutcomeUnknownError):
        writer.register.append(token, Change(None), writer.deadline, vote=silent)
    assert [seconds < 10 for seconds in allowed] == [True]


def test_a_write_whose_answer_was_lost_is_in_doubt_behind_the_record_of_another_driver(
    cluster: FakeCluster,
) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)

    def lose() -> None:
        other.write(member, 2, batch=2)
        raise OutcomeUnknownError("No answer from the transaction coordinator.", remedy="")

    At(one.kafka.process, "log_producer.commit", Moment.AFTER, lose)
    with pytest.raises(OutcomeUnknownError, match="others have written since"):
        one.write(member, 1, batch=1)
    records = one.register.records(one.deadline)
    assert [each.decision for each in records][1:] == [decision(1), decision(2)]


def test_a_write_whose_answer_was_lost_is_not_in_doubt_if_another_one_has_its_number(
    cluster: FakeCluster,
) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)

    def lose() -> None:
        other.register.open(other.deadline)
        other.write(member, 1, batch=2)
        other.write(member, 2, batch=3)
        raise OutcomeUnknownError("No answer from the transaction coordinator.", remedy="")

    At(one.kafka.process, "log_producer.commit", Moment.BEFORE, lose)
    with pytest.raises(SupersededError):
        one.write(member, 1, batch=1)


def test_a_comparison_shows_that_an_attempt_without_an_answer_was_not_committed(
    cluster: FakeCluster,
) -> None:
    writer, commits = Writer(cluster), 0
    member = writer.join()
    writer.write(member, 0)

    def lose(name: str, moment: Moment) -> None:
        nonlocal commits
        if (name, moment) == ("log_producer.commit", Moment.BEFORE):
            commits += 1
            writer.join()  # Another one.
            raise OutcomeUnknownError("No answer from the transaction coordinator.", remedy="")

    writer.kafka.process.hook = lose
    with pytest.raises(SupersededError):
        writer.write(member, 1, batch=1)
    assert commits == 1


def test_a_record_whose_offset_the_client_does_not_tell_is_written_again(
    cluster: FakeCluster,
) -> None:
    writer = Writer(cluster)
    member = writer.join()
    writer.write(member, 0)
    writer.register.open(writer.deadline)
    opened = writer.register._opened
    producer = opened and opened.producer
    assert isinstance(producer, FakeProducer)
    produce = producer.produce

    def without_offset(*given: Any, **named: Any) -> None:
        produce(*given, **{**named, "on_offset": None})

    producer.produce = without_offset  # type: ignore[method-assign]
    assert writer.write(member, 1, batch=1).seq == 2
    latest = Writer(cluster).register.read(writer.deadline)
    assert (latest.seq, latest.decision) == (2, decision(1))
    assert keys(cluster).count(NAMES.log_key) == 2


# --- other queries


def keys(cluster: FakeCluster) -> list[str]:
    entries = cluster.read_committed("__eos_sink_log")
    return [(entry.key or b"").decode() for entry in entries]


def test_a_query_of_another_prefix_is_another_query(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster, QueryNames("team-", NAMES.query))
    one.write(one.join(), 0, batch=4)
    assert not other.register.has_record(other.deadline)
    assert other.write(other.join(), 0).seq == 1
    claims = [f"{each.group} claims stream s." for each in (NAMES, other.names)]
    assert keys(cluster) == [claims[0], NAMES.log_key, claims[1], other.names.log_key]
