"""An operator ends single transactions, on the in-memory Kafka."""

from __future__ import annotations

import pytest

from eos_sink.errors import SupersededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops import RefusedChoice
from eos_sink.ops.transactions import abort_undecided, commit_decided
from eos_sink.protocol.values import EndOutcome, Transaction, TransactionStatus
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Killed, Moment
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import World, late_attempt, log, open_ids


class Operator:
    """Uses `eos-sink transactions`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.kafka = FakeKafka(world.cluster)

    def sees(self, partition: int = 0, slot: int = 0) -> Transaction:
        name = self.world.options.names.task(slot, partition)
        return self.world.cluster.coordinator.describe(name).transaction

    def aborts(self, *transactions: Transaction, seq: int | None = None) -> list[EndOutcome]:
        seq = log(self.world)[-1].seq if seq is None else seq
        names = self.world.options.names
        _, found = abort_undecided(self.kafka, names, seq, transactions, Deadline(30))
        return [found[each] for each in transactions]

    def commits(self, *transactions: Transaction) -> list[EndOutcome]:
        names = self.world.options.names
        found = commit_decided(self.kafka, names, transactions, Deadline(30))
        return [found[each] for each in transactions]


@pytest.fixture
def ops(world: World) -> Operator:
    return Operator(world)


def test_undecided_transactions_are_aborted_after_a_fence(world: World, ops: Operator) -> None:
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    assert ops.aborts(ops.sees(0)) == [EndOutcome.DONE]
    assert open_ids(world) == [world.options.names.task(0, 1)]
    record = log(world)[-1]
    assert (record.seq, record.decision) == (2, None)
    assert record.run is not None
    assert record.run.tool == "eos-sink transactions"
    # The run that had it open can no longer decide; its error says why.
    with pytest.raises(SupersededError, match="eos-sink transactions"):
        driver.committer.commit(reports)
    Driver(world).run(0, [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]
    assert world.judge.violations == []


def test_the_latest_decision_stays_when_something_is_aborted(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    decision = log(world)[-1].decision
    driver.write(driver.planner.plan(), 1, [b"b"])
    ops.aborts(ops.sees(slot=1))
    assert log(world)[-1].decision == decision
    Driver(world).run(1, [b"b"])
    assert world.visible() == [b"a", b"b"]
    assert world.judge.violations == []


def test_a_decided_transaction_is_never_aborted(world: World, ops: Operator) -> None:
    decide_and_die(world)
    before = log(world)
    with pytest.raises(RefusedChoice, match="eos-sink transactions commit"):
        ops.aborts(ops.sees(0))
    assert (len(open_ids(world)), log(world)) == (2, before)


def test_a_decided_transaction_is_committed_and_no_run_is_fenced(
    world: World, ops: Operator
) -> None:
    decide_and_die(world)
    before = log(world)
    assert ops.commits(ops.sees(0), ops.sees(1)) == [EndOutcome.DONE] * 2
    assert ops.commits(ops.sees(0)) == [EndOutcome.DONE]
    assert (world.visible(), log(world)) == ([b"a", b"b"], before)
    assert world.judge.violations == []


@pytest.mark.parametrize("later", [False, True])
def test_without_a_decision_nothing_is_committed(world: World, ops: Operator, later: bool) -> None:
    """Identified by id, producer id and epoch: another epoch is another transaction."""
    if later:
        Driver(world).run(0, [b"a"])
        late_attempt(world, 0, 0)
    else:
        driver = Driver(world)
        driver.write(driver.planner.plan(), 0, [b"a"])
    with pytest.raises(RefusedChoice, match=world.options.names.task(0, 0)):
        ops.commits(ops.sees(0))
    assert world.judge.violations == []


def test_a_log_that_has_moved_since_the_look_stops_it(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    reports = driver.write(driver.planner.plan(), 1, [b"b"])
    with pytest.raises(RefusedChoice, match="seq 1 to 2"):
        ops.aborts(ops.sees(slot=1), seq=1)
    driver.committer.commit(reports)  # No run was fenced.
    assert world.visible() == [b"a", b"b"]


def test_a_log_that_moves_before_the_fence_stops_it(world: World, ops: Operator) -> None:
    """A new run that wrote meanwhile keeps what it has open."""
    driver = Driver(world)
    driver.write(driver.planner.plan(), 0, [b"a"])
    newer = Driver(world)

    def begin() -> None:
        newer.write(newer.planner.plan(), 0, [b"b"])

    seen = ops.sees(0)
    At(ops.kafka.process, "member.join", Moment.BEFORE, begin)
    with pytest.raises(RefusedChoice, match="seq 1 to 2"):
        ops.aborts(seen)
    assert ops.sees(0) != seen
    assert open_ids(world) == [world.options.names.task(0, 0)]


def test_a_transaction_that_has_moved_since_the_look_stops_it(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.write(driver.planner.plan(), 0, [b"a"])
    seen = ops.sees(0)
    late_attempt(world, 0, 0)
    before = log(world)
    with pytest.raises(RefusedChoice, match=TransactionStatus.EMPTY.value):
        ops.aborts(seen)
    assert log(world) == before


def test_the_driver_s_own_transaction_is_left_to_its_time_out(world: World, ops: Operator) -> None:
    Driver(world).planner.plan()
    driver = world.cluster.coordinator.describe(world.options.names.driver).transaction
    with pytest.raises(RefusedChoice, match=world.options.names.driver):
        ops.aborts(driver)


def test_a_log_that_has_lost_its_records_gets_no_new_one(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    driver.write(driver.planner.plan(), 1, [b"b"])
    log_topic = world.options.log_topic
    del world.cluster.topics[log_topic]
    with pytest.raises(RefusedChoice, match="--log-topic"):
        ops.aborts(ops.sees(slot=1), seq=0)
    assert log_topic not in world.cluster.topics
    world.cluster.create_topic(log_topic)
    with pytest.raises(RefusedChoice, match="eos-sink resolve"):
        ops.aborts(ops.sees(slot=1), seq=0)
    assert log(world) == []


@pytest.mark.parametrize("call", ["member.join", "log_producer.commit", "control.end"])
@pytest.mark.parametrize("moment", Moment)
def test_a_tool_that_dies_anywhere_leaves_what_the_next_start_mends(
    world: World, ops: Operator, call: str, moment: Moment
) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    driver.write(driver.planner.plan(), 1, [b"b"], [b"c"])
    At(ops.kafka.process, call, moment, ops.kafka.process.kill)
    with pytest.raises(Killed):
        ops.aborts(ops.sees(0, slot=1))
    Driver(world).run(1, [b"b"], [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]
    assert world.judge.violations == []
