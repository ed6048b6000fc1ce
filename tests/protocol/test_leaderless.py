"""The driver's transaction ends while a partition of its rows has no leader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from eos_sink.errors import (
    Action,
    ClusterError,
    EosSinkError,
    FailureKind,
    OutcomeUnknownError,
    ProduceFailedError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import (
    Hanging,
    HangingLook,
    Transaction,
    TransactionState,
    TransactionStatus,
)
from tests.fakes.kafka import FakeControl
from tests.fakes.log import PartitionLog
from tests.fakes.process import At, Killed, Moment
from tests.fakes.producer import FakeProducer
from tests.protocol.driver import Driver
from tests.protocol.world import TOPIC, World, log, open_ids, options

# Two rows in a transaction of their task, and one of the driver's.
PARTS = [b"a", b"b"], [b"c"]
DRIVERS = 3


@pytest.fixture
def world() -> World:
    """Rows without a key go to one partition after the other, the driver's last."""
    return World([], options=options(**{"eos.inline.bytes": "65536"}), partitions=4)


@pytest.fixture
def fragile(world: World) -> PartitionLog:
    return world.cluster.topics[TOPIC].partitions[DRIVERS]


def lose_leader(driver: Driver, fragile: PartitionLog, moment: Moment) -> list[object]:
    """Write batch 0; the driver is killed around its commit, and the partition has no leader from
    before the commit."""
    reports = driver.write(driver.planner.plan(), 0, *PARTS)

    def strike(name: str, now: Moment) -> None:
        if name == "log_producer.commit":
            fragile.has_leader = False
            if now is moment:
                raise Killed(name)

    driver.commits.process.hook = strike
    with pytest.raises(Killed):
        driver.committer.commit(reports)
    return list(reports)


def stopped(call: Callable[[], object]) -> OutcomeUnknownError:
    with pytest.raises(OutcomeUnknownError) as raised:
        call()
    assert raised.value.data["partitions"] == [f"{TOPIC}[{DRIVERS}]"]
    assert raised.value.action is Action.RUN_AGAIN
    return raised.value


@pytest.mark.parametrize("step", ["plan", "abort"])
def test_what_is_decided_is_settled_before_the_drivers_id_is_free(
    world: World, fragile: PartitionLog, step: str
) -> None:
    reports = lose_leader(Driver(world), fragile, Moment.AFTER)
    assert world.visible() == []
    again = Driver(world)
    call = again.planner.plan if step == "plan" else lambda: again.committer.abort(reports)  # type: ignore[arg-type]
    assert stopped(call).data["status"] == "PrepareCommit"
    assert world.visible() == [b"a", b"b"]
    fragile.has_leader = True
    Driver(world).run(0, *PARTS)
    assert world.visible() == [b"a", b"b", b"c"]


def test_what_is_decided_is_settled_before_a_plan_waits_for_a_partition_to_look_at() -> None:
    soon = {"eos.inline.bytes": "65536", "eos.step.timeout.ms": "1000"}
    world = World([], options=options(**soon), partitions=4)
    fragile = world.cluster.topics[TOPIC].partitions[DRIVERS]
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, *PARTS)

    def die() -> None:
        fragile.has_leader = False
        raise Killed("the decision is written")

    At(driver.commits.process, "log_producer.commit", Moment.AFTER, die)
    with pytest.raises(Killed):
        driver.committer.commit(reports)
    world.cluster.coordinator.write_markers()
    assert world.visible() == [b"c"]
    with pytest.raises(OutcomeUnknownError) as raised:
        Driver(world).planner.plan()
    assert raised.value.data["partitions"] == [f"{TOPIC}[{DRIVERS}]"]
    assert world.visible() == [b"a", b"b", b"c"]
    fragile.has_leader = True
    Driver(world).run(0, *PARTS)
    assert world.visible() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("step", ["plan", "abort"])
def test_an_aborted_transaction_that_waits_for_a_partition_names_it(
    world: World, fragile: PartitionLog, step: str
) -> None:
    reports = lose_leader(Driver(world), fragile, Moment.BEFORE)
    again = Driver(world)
    call = again.planner.plan if step == "plan" else lambda: again.committer.abort(reports)  # type: ignore[arg-type]
    assert stopped(call).data["status"] == "PrepareAbort"
    assert all(record.decision is None for record in log(world))
    fragile.has_leader = True
    Driver(world).run(0, *PARTS)
    assert world.visible() == [b"a", b"b", b"c"]
    assert open_ids(world) == []


@pytest.mark.parametrize("error", [OutcomeUnknownError, ClusterError])
def test_a_write_that_is_repeated_names_the_partition_that_it_waits_for(
    world: World,
    fragile: PartitionLog,
    error: type[EosSinkError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka reports CONCURRENT_TRANSACTIONS, or a timeout."""
    init = FakeProducer.init

    def reported(producer: FakeProducer, deadline: Deadline) -> None:
        try:
            init(producer, deadline)
        except OutcomeUnknownError:
            raise error("It could not be initialized.", remedy="") from None

    monkeypatch.setattr(FakeProducer, "init", reported)
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, *PARTS)

    def time_out() -> None:
        fragile.has_leader = False
        world.cluster.coordinator.time_out(world.options.names.driver)

    At(driver.commits.process, "log_producer.commit", Moment.BEFORE, time_out)
    stopped(lambda: driver.committer.commit(reports))
    fragile.has_leader = True
    driver.committer.abort(reports)
    driver.run(0, *PARTS)
    assert world.visible() == [b"a", b"b", b"c"]


class Kafka4:
    """Forgets to end the transaction of the driver's first attempt in a partition that has no
    leader then (KAFKA-20734).

    Attributes:
        answers: whether the partition has a leader again.
        ended: what was ended there, how, and how many rows were in the topic by then.
    """

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers = True
        self.ended: list[tuple[Transaction, bool, int]] = []
        self._world = world
        self._left: Hanging | None = None
        monkeypatch.setattr(FakeControl, "find_hanging", lambda *_: self._look())
        monkeypatch.setattr(FakeControl, "end_hanging", lambda _, *given: self._end(*given))

    def forget(self) -> None:
        """The driver's transaction that is open now."""
        state = self._state()
        self._left = Hanging(state.transaction, TOPIC, DRIVERS, 0, -1, state)

    @property
    def rows(self) -> int:
        partitions = self._world.cluster.topics[TOPIC].partitions
        return sum(not each.marker for log in partitions for each in log.all_from(0))

    def _state(self) -> TransactionState:
        return self._world.cluster.coordinator.describe(self._world.options.names.driver)

    def _look(self) -> HangingLook:
        if self._left is None:
            return HangingLook([], frozenset())
        if not self.answers:
            return HangingLook([], frozenset({(TOPIC, DRIVERS)}))
        return HangingLook([self._left], frozenset())

    def _end(self, hanging: Hanging, commit: bool, _: Deadline) -> bool:
        self.ended.append((hanging.transaction, commit, self.rows))
        self._left = None
        return True


@pytest.mark.parametrize("how", ["it timed out", "its answer was lost"])
def test_rows_are_not_written_beside_those_that_an_attempt_has_left_open_but_by_a_replay(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka, driver = Kafka4(world, monkeypatch), Driver(world)
    reports = driver.write(driver.planner.plan(), 0, *PARTS)
    left: list[tuple[Transaction, bool, int]] = []

    def fail() -> None:
        kafka.forget()
        state = world.cluster.coordinator.describe(world.options.names.driver)
        left.append((state.transaction, False, kafka.rows))
        if how == "it timed out":
            world.cluster.coordinator.time_out(world.options.names.driver)
        else:
            raise OutcomeUnknownError("There was no answer.", remedy="")

    At(driver.commits.process, "log_producer.commit", Moment.BEFORE, fail)
    with pytest.raises(ProduceFailedError):
        driver.committer.commit(reports)
    assert kafka.ended == []
    driver.committer.abort(reports)
    Driver(world).run(0, *PARTS)
    assert kafka.ended == left
    assert world.visible() == [b"a", b"b", b"c"]


def test_rows_are_not_written_again_while_an_attempt_may_be_open_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    soon = {"eos.inline.bytes": "65536", "eos.step.timeout.ms": "1000"}
    world = World([], options=options(**soon), partitions=4)
    kafka, driver = Kafka4(world, monkeypatch), Driver(world)
    reports = driver.write(driver.planner.plan(), 0, *PARTS)

    def fail() -> None:
        kafka.forget()
        kafka.answers = False
        world.cluster.coordinator.time_out(world.options.names.driver)

    At(driver.commits.process, "log_producer.send_offset", Moment.AFTER, fail)
    with pytest.raises(ProduceFailedError) as refused:
        driver.committer.commit(reports)
    assert refused.value.data["kind"] == FailureKind.DELIVERY_FAILED.value
    assert world.visible() == []
    kafka.answers = True
    driver.committer.abort(reports)
    Driver(world).run(0, *PARTS)
    assert world.visible() == [b"a", b"b", b"c"]


IN_THE_LOG = [
    (TransactionStatus.COMPLETE_COMMIT, 0, True),
    (TransactionStatus.COMPLETE_ABORT, 0, False),
    (TransactionStatus.COMPLETE_ABORT, 1, False),
    (TransactionStatus.EMPTY, 1, None),
]


@pytest.mark.parametrize(("status", "epochs", "commit"), IN_THE_LOG)
def test_what_hangs_in_the_log_is_ended_before_the_drivers_id_is_initialised(
    world: World,
    status: TransactionStatus,
    epochs: int,
    commit: bool | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No one can read past it, and the state of the id tells how it has ended."""
    names = world.options.names
    home = Driver(world).planner.plan().token.position
    transaction = world.cluster.coordinator.describe(names.driver).transaction
    now = replace(transaction, epoch=transaction.epoch + epochs)
    state = TransactionState(now, status, -1, 30_000)
    left = Hanging(transaction, home.topic, home.partition, 0, -1, state)
    deeds: list[object] = []

    def look(_: object, topics: Iterable[str], *__: object) -> HangingLook:
        return HangingLook([left] * (home.topic in topics), frozenset())

    def end(_: object, hanging: Hanging, commits: bool, __: Deadline) -> bool:
        deeds.append(commits)
        return True

    monkeypatch.setattr(FakeControl, "find_hanging", look)
    monkeypatch.setattr(FakeControl, "end_hanging", end)
    again = Driver(world)
    At(again.plans.process, "log_producer.init", Moment.BEFORE, lambda: deeds.append("init"))
    again.planner.plan()
    assert deeds == [commit, "init"][commit is None :]


def test_the_drivers_id_is_not_initialised_while_its_partition_of_the_log_has_no_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That would end what is open there, and take away the trace of how it has ended."""
    world = World([], options=options(**{"eos.step.timeout.ms": "1000"}))
    home = Driver(world).planner.plan().token.position
    unknown = frozenset({(home.topic, home.partition)})
    monkeypatch.setattr(FakeControl, "find_hanging", lambda *_: HangingLook([], unknown))
    before = world.cluster.coordinator.describe(world.options.names.driver)
    with pytest.raises(OutcomeUnknownError):
        Driver(world).planner.plan()
    assert world.cluster.coordinator.describe(world.options.names.driver) == before
