"""The driver's transaction ends while a partition of its rows has no leader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos_sink.errors import Action, ClusterError, EosSinkError, OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
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
