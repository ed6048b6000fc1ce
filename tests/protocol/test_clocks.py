"""The age of a transaction is a matter of the brokers' clocks: the driver's own may be wrong."""

from __future__ import annotations

import pytest

from eos_sink.driver.committer import Committer
from eos_sink.errors import CommitFailedError, OutcomeUnknownError, SupersededError
from eos_sink.kafka.deadline import Deadline
from tests.fakes.process import At, Moment
from tests.fakes.producer import FakeProducer
from tests.protocol.driver import Driver
from tests.protocol.world import World, log, open_ids, options

HOUR_MS = 3_600_000


def wrong(world: World, off_ms: int) -> Driver:
    """A driver whose machine's clock is off."""
    driver = Driver(world)
    clock = world.cluster.clock
    driver.committer = Committer(
        driver.commits, world.options, now_ms=lambda: clock.ms + off_ms, clock=clock
    )
    return driver


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_a_driver_with_a_wrong_clock_decides(world: World, off_ms: int) -> None:
    wrong(world, off_ms).run(0, [b"a"])
    assert world.visible() == [b"a"]


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_a_driver_with_a_wrong_clock_decides_nothing_near_a_time_out(
    world: World, off_ms: int
) -> None:
    driver = wrong(world, off_ms)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    world.cluster.clock.advance(55)
    with pytest.raises(CommitFailedError) as error:
        driver.committer.commit(reports)
    assert error.value.data == {"left_ms": 5_000}
    driver.committer.abort(reports)
    assert world.visible() == []


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
@pytest.mark.parametrize("whose", ["task", "driver"])
def test_coordinators_whose_clocks_differ_cost_no_batch(
    world: World, whose: str, off_ms: int
) -> None:
    names = world.options.names
    off = {names.task(0, 0) if whose == "task" else names.driver: off_ms}
    world.cluster.coordinator.off_ms = off
    Driver(world).run(0, [b"a"])
    assert world.visible() == [b"a"]


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_with_coordinators_whose_clocks_differ_the_time_since_the_plan_counts(
    world: World, off_ms: int
) -> None:
    world.cluster.coordinator.off_ms = {world.options.names.task(0, 0): off_ms}
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    world.cluster.clock.advance(55)
    with pytest.raises(CommitFailedError) as error:
        driver.committer.commit(reports)
    assert error.value.data == {"left_ms": 5_000}


def open_log(driver: Driver) -> None:
    """Only the vote describes transactions after that."""
    driver.committer._register.open(Deadline(10))


def test_a_driver_that_was_fenced_before_its_vote_learns_that_it_is_stale(world: World) -> None:
    stale, successor = Driver(world), Driver(world)
    reports = stale.write(stale.planner.plan(), 0, [b"a"])

    def succeed() -> None:
        successor.run(0, [b"a"])

    open_log(stale)
    At(stale.commits.process, "control.describe", Moment.BEFORE, succeed)
    with pytest.raises(SupersededError):
        stale.committer.commit(reports)
    assert world.visible() == [b"a"]


def test_a_vote_without_an_answer_leaves_nothing_open_on_the_log(world: World) -> None:
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    silence = OutcomeUnknownError("No answer.", remedy="")

    def raise_it() -> None:
        raise silence

    open_log(driver)
    At(driver.commits.process, "control.describe", Moment.BEFORE, raise_it)
    with pytest.raises(OutcomeUnknownError) as raised:
        driver.committer.commit(reports)
    assert raised.value is silence
    assert world.options.names.driver not in open_ids(world)
    assert all(record.decision is None for record in log(world))


def test_a_decision_that_is_written_again_is_voted_on_again(world: World) -> None:
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    coordinator, names = world.cluster.coordinator, world.options.names

    def fence() -> None:
        """The write is lost, and so is the task's transaction."""
        coordinator.init(names.driver, 60_000)
        coordinator.init(names.task(0, 0), 60_000)

    At(driver.commits.process, "log_producer.commit", Moment.BEFORE, fence)
    with pytest.raises(CommitFailedError):
        driver.committer.commit(reports)
    assert all(record.decision is None for record in log(world))


# --- Time that passes while the driver's transaction is open.


@pytest.fixture
def mixed() -> World:
    """A partition of one row is the driver's, one of two rows has a transaction of 60 s."""
    return World([], options=options(**{"eos.inline.bytes": "65536"}))


def timed(world: World) -> Driver:
    """A driver whose own clock goes as the brokers' does, in its second batch."""
    driver, clock = Driver(world), world.cluster.clock
    driver.committer = Committer(
        driver.commits, world.options, now_ms=lambda: clock.ms, clock=clock
    )
    driver.run(0, [b"a", b"b"], [b"c"])
    return driver


@pytest.mark.parametrize(
    ("call", "moment"),
    [
        pytest.param("log_producer.flush", Moment.BEFORE, id="rows that wait for their partition"),
        pytest.param("control.describe", Moment.AFTER, id="a vote whose answer comes late"),
    ],
)
def test_time_that_passes_in_the_drivers_transaction_counts_in_the_vote(
    mixed: World, call: str, moment: Moment
) -> None:
    driver = timed(mixed)
    reports = driver.write(driver.planner.plan(), 1, [b"d", b"e"], [b"f"])
    mixed.cluster.clock.advance(35)
    open_log(driver)
    At(driver.commits.process, call, moment, lambda: mixed.cluster.clock.advance(20))
    with pytest.raises(CommitFailedError) as error:
        driver.committer.commit(reports)
    assert error.value.data == {"left_ms": 5_000}
    assert mixed.visible() == [b"a", b"b", b"c"]


def test_rows_that_wait_keep_nothing_in_the_log_that_queries_share(mixed: World) -> None:
    driver = timed(mixed)
    reports = driver.write(driver.planner.plan(), 1, [b"d", b"e"], [b"f"])
    (shared,) = mixed.cluster.topics[mixed.options.log_topic].partitions
    names, seen = mixed.options.names, list[tuple[bool, bool]]()

    def look() -> None:
        seen.append((names.driver in open_ids(mixed), shared.last_stable == shared.end))

    At(driver.commits.process, "log_producer.flush", Moment.BEFORE, look)
    driver.committer.commit(reports)
    assert seen == [(True, True)]


def test_a_decision_is_committed_before_the_first_transaction_times_out_or_not_at_all(
    mixed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, allowed = timed(mixed), list[float]()
    commit = FakeProducer.commit

    def watched(producer: FakeProducer, deadline: Deadline) -> None:
        allowed.append(deadline.seconds)
        commit(producer, deadline)

    reports = driver.write(driver.planner.plan(), 1, [b"d", b"e"], [b"f"])
    mixed.cluster.clock.advance(50)
    monkeypatch.setattr(FakeProducer, "commit", watched)
    driver.committer.commit(reports)
    assert len(allowed) == 1
    assert allowed[0] <= 10
