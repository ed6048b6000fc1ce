"""Small partitions, whose rows are in the transaction of the decision."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eos_sink.errors import FailureKind, OperatorNeededError, ProduceFailedError, UnfinishedError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.inline import inline_share
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    Inlined,
    Plan,
    PlanToken,
    RowDigest,
)
from eos_sink.protocol.values import Position
from tests import seeds
from tests.fakes.process import At, Moment
from tests.protocol.driver import Driver
from tests.protocol.explore import FAULTS, STEPS, Story, find_wrong, play, with_excess
from tests.protocol.scene import Fault, Gate, Strike
from tests.protocol.world import TOPIC, Batch, World, late_attempt, log, open_ids, options

INLINE = "65536"
# A single row comes in one Arrow batch, two rows in two: the first task opens a transaction.
MIXED: list[Batch] = [[[b"a", b"b"], [b"c"]], [[b"d"], [b"e"]]]
SMALL: list[Batch] = [[[b"a"], [b"b"]], [[b"c"], []]]


@pytest.fixture
def world() -> World:
    return World([], options=options(**{"eos.inline.bytes": INLINE}))


@pytest.fixture
def driver(world: World) -> Driver:
    return Driver(world)


def calls(driver: Driver) -> list[str]:
    """What the committer asks of Kafka in the next batch."""
    seen: list[str] = []

    def note(name: str, moment: Moment) -> None:
        if moment is Moment.BEFORE:
            seen.append(name)

    driver.commits.process.hook = note
    return seen


def lose_first_partition(driver: Driver, *parts: list[bytes]) -> None:
    """Commit batch 0, of which a late attempt aborts partition 0 between decision and EndTxn."""
    reports = driver.write(driver.planner.plan(), 0, *parts)
    At(
        driver.commits.process,
        "control.end",
        Moment.BEFORE,
        lambda: late_attempt(driver.world, reports[0].slot, 0),
    )
    with pytest.raises(UnfinishedError):
        driver.committer.commit(reports)


def decisions(world: World) -> list[Decision]:
    return [record.decision for record in log(world) if record.decision]


def test_a_batch_of_small_partitions_opens_no_transaction_but_the_decisions(
    world: World, driver: Driver
) -> None:
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [], [b"b"])
    assert open_ids(world) == []
    assert world.visible() == []
    driver.committer.commit(reports)
    assert world.visible() == [b"a", b"b"]
    ids = {txn.identity.transactional_id for txn in world.cluster.coordinator.history}
    assert ids == {world.options.names.driver}


def test_such_a_batch_is_neither_voted_nor_settled_nor_noted(world: World, driver: Driver) -> None:
    driver.run(0, [b"a"], [b"b"])
    driver.committer.prepare()
    driver.committer._register.connect(Deadline(10))
    seen = calls(driver)
    driver.run(1, [b"c"], [b"d"])
    assert not {"log_producer.init", "control.describe", "control.end", "read_back.visibility"} & {
        *seen
    }
    assert [record.settled for record in log(world) if record.decision] == [True, True]


def test_a_batch_may_have_small_and_large_partitions(world: World, driver: Driver) -> None:
    reports = driver.run(0, [b"a", b"b"], [b"c"], [])
    assert [report.prepared is not None for report in reports] == [True, False, False]
    decision = decisions(world)[-1]
    assert [entry.partition for entry in decision.prepared] == [0]
    written = log(world)[-1].producer
    assert written is not None
    assert decision.inlined == (Inlined(1, reports[1].digest, written),)
    assert decision.topics.keys() == {"out"}
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_partition_above_the_limit_has_a_transaction(world: World) -> None:
    world = World([], options=options(**{"eos.inline.bytes": "20"}))
    driver = Driver(world)
    reports = driver.run(0, [b"x" * 30], [b"y"])
    assert [report.prepared is not None for report in reports] == [True, False]
    assert world.visible() == [b"x" * 30, b"y"]


MOST_BYTES, LEAST_ROOM = 16 * 1024 * 1024, 256 * 1024


def plan_after(tasks: int, given_up: int = 0, room: int = MOST_BYTES) -> Plan:
    """A plan after a batch of so many tasks; 0: nothing is decided yet."""
    token = PlanToken(QueryNames("p", "q"), 1, Position("log", 0, 1), b"")
    decision = Decision(BatchId("s", 0), 0, tasks, RowDigest(), ()) if tasks else None
    return Plan(token, decision, given_up=given_up, room=room)


@given(
    st.integers(0, 2 * MOST_BYTES),
    st.integers(0, 20_000),
    st.integers(0, 20_000),
    st.integers(LEAST_ROOM, MOST_BYTES),
)
@example(65536, 1, 400, MOST_BYTES)
def test_the_rows_of_all_tasks_fit_into_the_driver_whatever_was_expected(
    most: int, expected: int, tasks: int, room: int
) -> None:
    plan = plan_after(expected, room=room)
    shares = [inline_share(most, partition, plan) for partition in range(tasks)]
    assert sum(share for share in shares if share > 0) <= room


def test_the_room_for_rows_is_kept_in_the_log(world: World) -> None:
    driver, parts = Driver(world), [[b"x" * 60_000] for _ in range(20)]
    reports = driver.write(driver.planner.plan(), 0, *parts)
    sent = sum(len(each.inline) for each in reports)
    driver.committer.abort(reports)
    assert log(world)[-1].room == sent // 4
    again = Driver(world)
    again.run(0, *parts)
    assert 0 < log(world)[-1].room - sent // 4 < sent // 4


def test_a_batch_that_fails_again_and_again_is_written_by_its_tasks(world: World) -> None:
    """For example because Spark takes no results of that size. The driver is started each time."""
    row = b"x" * 3_000
    Driver(world).run(0, [row])
    for _ in range(2):
        failing = Driver(world)
        reports = failing.write(failing.planner.plan(), 1, [row])
        assert reports[0].prepared is None
        failing.committer.abort(reports)
    failing = Driver(world)
    reports = failing.write(failing.planner.plan(), 1, [row])
    assert reports[0].prepared is not None
    failing.committer.commit(reports)
    assert world.visible() == [row, row]
    # What was decided ends it.
    assert failing.run(2, [row])[0].inline


def test_a_start_after_a_good_batch_costs_no_share(world: World) -> None:
    for batch in range(6):
        report = Driver(world).run(batch, [b"x" * 3_000])[0]
        assert report.inline
        assert log(world)[-1].given_up == 0


def test_a_replay_is_counted_in_whichever_partitions(world: World, driver: Driver) -> None:
    driver.run(0, [b"a"], [b"b"])
    again = Driver(world)
    again.run(0, [], [b"b"], [b"a"])
    assert world.visible() == [b"a", b"b"]
    with pytest.raises(OperatorNeededError):
        Driver(world).run(0, [b"a"], [b"other"])


def test_a_lost_partition_is_written_again_by_the_driver(world: World) -> None:
    before = Driver(World([], options=options(), cluster=world.cluster))
    lose_first_partition(before, [b"a"], [b"b"])
    again = Driver(world)
    again.run(0, [b"a"], [b"b"])
    decision = decisions(world)[-1]
    assert [entry.partition for entry in decision.prepared] == [1]
    assert [entry.partition for entry in decision.inlined] == [0]
    assert world.visible() == [b"a", b"b"]
    again.run(1, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_rewrite_keeps_what_the_driver_has_written(world: World) -> None:
    lose_first_partition(Driver(world), [b"a", b"b"], [b"c"])
    assert world.visible() == [b"c"]
    Driver(world).run(0, [b"a", b"b"], [b"c"])
    decision = decisions(world)[-1]
    assert [entry.partition for entry in decision.prepared] == [0]
    assert [entry.partition for entry in decision.inlined] == [1]
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_row_that_kafka_refuses_gives_the_same_error_as_in_a_task(world: World) -> None:
    errors = []
    for inline in ("0", INLINE):
        chosen = options(**{"eos.inline.bytes": inline, "eos.id": inline})
        driver = Driver(World([], options=chosen, cluster=world.cluster))
        plan = driver.planner.plan()
        topic = world.cluster.topics.pop(TOPIC)
        with pytest.raises(ProduceFailedError) as raised:
            driver.committer.commit(driver.write(plan, 0, [b"x"]))
        world.cluster.topics[TOPIC] = topic
        errors.append((raised.value.data, raised.value.remedy))
        assert open_ids(world) == []
    assert errors[0] == errors[1]
    assert errors[0][0] == {"kind": FailureKind.MESSAGE_REJECTED.value}
    assert world.visible() == []


def playing(batches: list[Batch], *strikes: Strike, same_jvm: bool = False) -> Story:
    return play(batches, *strikes, same_jvm=same_jvm, eos_inline_bytes=INLINE)


SIZES = pytest.mark.parametrize("batches", [SMALL, MIXED], ids=["small", "mixed"])


@pytest.mark.sampled(len(FAULTS))
@pytest.mark.parametrize("step", STEPS)
@SIZES
@pytest.mark.parametrize("same_jvm", [False, True], ids=["new JVM", "same JVM"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_single_fault_at_each_gate_loses_and_doubles_nothing(
    fault: Fault, same_jvm: bool, batches: list[Batch], step: int
) -> None:
    gates, stories = playing(batches).gates, partial(playing, batches, same_jvm=same_jvm)
    assert find_wrong(fault, gates, step, stories, with_excess) == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("step", STEPS)
@SIZES
@pytest.mark.parametrize("fault", [Fault.LEAVE_CALL, Fault.LEAVE_RUN])
def test_a_zombie_that_wakes_around_a_decision_changes_nothing(
    fault: Fault, batches: list[Batch], step: int
) -> None:
    for until in (
        Gate("log_producer.send_offset", Moment.AFTER),
        Gate("log_producer.commit", Moment.AFTER),
    ):
        for at in seeds.every(step, range(len(playing(batches).gates)), fault, until):
            assert playing(batches, Strike(fault, at, until=until)).verdict == [], (at, until)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", range(2))
def test_several_faults_at_random_gates_lose_and_double_nothing(number: int) -> None:
    chance, last = seeds.chance("inline", number), len(playing(MIXED).gates) * 3 // 2
    for _ in range(50):
        chosen = [
            Strike(chance.choice(FAULTS), chance.randrange(last), chance.randrange(1, last))
            for _ in range(chance.choice([2, 3, 5]))
        ]
        same_jvm = chance.random() < 0.5
        assert playing(MIXED, *chosen, same_jvm=same_jvm).verdict == [], (chosen, same_jvm)
