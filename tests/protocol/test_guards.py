"""Guards that no other story needs: each test here fails when one line of the sink is taken away.

`make guards` takes the lines away, docs/internals/guards.md has the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from eos_sink.errors import (
    BatchFailedError,
    SupersededError,
)
from eos_sink.protocol.model import BatchId, Plan
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Killed, Moment
from tests.protocol.actor import Actor
from tests.protocol.driver import STREAM, Driver
from tests.protocol.world import TOPIC, World, log, open_ids


@pytest.fixture
def driver(world: World) -> Driver:
    return Driver(world)


def decisions(world: World) -> int:
    return sum(record.decision is not None for record in log(world))


def hide_from_the_next_list(world: World) -> None:
    """Transaction coordinators that are moving know of nothing open when they are asked."""
    coordinator = world.cluster.coordinator
    listed = coordinator.list_open

    def none(prefix: str) -> list[str]:
        coordinator.list_open = listed  # type: ignore[method-assign]
        return []

    coordinator.list_open = none  # type: ignore[method-assign]


# --- list, fence, abort


def test_half_a_task_that_goes_on_after_the_next_plan_is_never_decided(
    world: World, driver: Driver
) -> None:
    """Its abort() got no report and could not fence; the planner's member is the same."""
    tasks = FakeKafka(world.cluster)
    writer = TaskWriter(tasks, world.options, driver.planner.plan())
    At(tasks.process, "producer.send_offset", Moment.AFTER, lambda: plan_again(driver))
    half = writer.write(BatchId(STREAM, 0), 0, Rows(b"first", b"second"))
    with pytest.raises(SupersededError):
        driver.committer.commit([half])
    assert decisions(world) == 0


def plan_again(driver: Driver) -> None:
    driver.committer.abort([])
    driver.planner.plan()


@pytest.mark.parametrize("by", ["abort", "plan"])
@pytest.mark.parametrize("when", Moment)
def test_a_commit_that_wakes_up_while_its_transactions_are_aborted_decides_nothing(
    world: World, driver: Driver, by: str, when: Moment
) -> None:
    """Just before it they are still open, so that only the fence stops the commit."""
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    commit = Actor(partial(driver.committer.commit, reports))
    At(driver.commits.process, "log_producer.begin", Moment.BEFORE, commit.park)
    assert not commit.go()
    other = Driver(world)
    kafka = other.commits if by == "abort" else driver.plans
    At(kafka.process, "control.end", when, commit.finish)
    if by == "abort":
        other.committer.abort(reports)
    else:
        driver.planner.plan()
    assert isinstance(commit.error, SupersededError)
    assert decisions(world) == 0


def test_a_late_attempt_under_a_decided_id_is_aborted_at_once(world: World, driver: Driver) -> None:
    plan = driver.planner.plan()
    driver.run(0, [b"a"])
    driver.task(plan, 0, 0, [b"late"])
    began = world.cluster.clock()
    Driver(world).planner.plan()
    assert open_ids(world) == []
    assert world.cluster.clock() == began, "it waited for the timeout"


def test_a_recovery_lists_again_while_a_transaction_is_pending(
    world: World, driver: Driver
) -> None:
    driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    began = world.cluster.clock()
    hide_from_the_next_list(world)
    Driver(world).planner.plan()
    assert open_ids(world) == []
    assert world.cluster.clock() - began < 30, "it waited for the timeout"


def test_the_next_plan_ends_what_an_abort_of_a_decided_batch_left_open(
    world: World, driver: Driver
) -> None:
    """A new decision has come, and a fence: the abort that fenced died before it aborted."""
    plan = driver.planner.plan()
    reports = driver.write(plan, 0, [b"a"], [b"b"])
    driver.task(plan, 0, 5, [b"of a late attempt"])
    driver.dies_committing(reports)
    aborting = Driver(world)
    process = aborting.commits.process
    At(process, "log_producer.commit", Moment.AFTER, process.kill)
    with pytest.raises(Killed):
        aborting.committer.abort(reports)
    assert len(open_ids(world)) == 1
    driver.planner.plan()
    assert open_ids(world) == []


def test_a_plan_from_before_a_recovery_is_refused_also_if_that_has_listed_nothing(
    world: World, driver: Driver
) -> None:
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    new = Driver(world)
    hide_from_the_next_list(world)
    refusals: list[BaseException] = []

    def commit() -> None:
        with pytest.raises(SupersededError) as refused:
            driver.committer.commit(reports)
        refusals.append(refused.value)

    At(new.plans.process, "member.wait_stable", Moment.BEFORE, commit)
    new.planner.plan()
    assert refusals
    assert decisions(world) == 0


# --- nothing that is decided is aborted


def test_what_is_decided_again_is_settled_again(world: World, driver: Driver) -> None:
    """Lost partitions were decided under the same batch number; the planner lives on."""
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    driver.loses(reports, 1)
    plan = driver.planner.plan()
    assert plan.lost == {1}
    reports = driver.write(plan, 0, [b"a"], [b"b"])
    driver.dies_committing(reports)
    assert driver.planner.plan().lost == frozenset()
    assert world.visible() == [b"a", b"b"]


def test_an_abort_whose_fence_is_refused_aborts_nothing(world: World, driver: Driver) -> None:
    """What it has listed was decided meanwhile, by the commit that it was to undo."""
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    other = Driver(world)

    def decide() -> None:
        driver.dies_committing(reports)

    At(other.commits.process, "control.list_transactions", Moment.AFTER, decide)
    other.committer.abort(reports)
    assert decisions(world) == 1
    assert world.judge.violations == []


# --- two checkpoints


# --- the vote


# --- tasks


class Rows:
    """The rows of a task, and how many of them it has taken."""

    def __init__(self, *rows: bytes) -> None:
        self._rows = rows
        self.taken = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for row in self._rows:
            self.taken += 1
            yield pa.RecordBatch.from_pydict({"value": [row]})


def write(world: World, plan: Plan, rows: Rows) -> None:
    TaskWriter(FakeKafka(world.cluster), world.options, plan).write(BatchId(STREAM, 0), 0, rows)


def test_a_stale_drivers_task_is_refused_before_it_has_read_on(
    world: World, driver: Driver
) -> None:
    plan = driver.planner.plan()
    Driver(world).planner.plan()
    rows = Rows(b"a", b"b", b"c")
    with pytest.raises(SupersededError) as refused:
        write(world, plan, rows)
    assert refused.value.data.keys() == {"by"}
    # The second part tells that there is more to come; of it nothing is written.
    assert rows.taken == 2
    assert open_ids(world) == []


def test_a_stale_drivers_task_with_few_rows_is_refused(world: World, driver: Driver) -> None:
    plan = driver.planner.plan()
    Driver(world).planner.plan()
    with pytest.raises(SupersededError) as refused:
        write(world, plan, Rows(b"a"))
    assert refused.value.data.keys() == {"by"}
    assert open_ids(world) == []


def test_a_stale_task_that_goes_on_after_it_was_aborted_frees_readers(
    world: World, driver: Driver
) -> None:
    """Its next record opens a transaction under the same epoch, which was not listed."""
    plan = driver.planner.plan()
    kafka = FakeKafka(world.cluster)
    At(kafka.process, "producer.send_offset", Moment.AFTER, lambda: recover(world))
    task = TaskWriter(kafka, world.options, plan)
    with pytest.raises(SupersededError) as refused:
        task.write(BatchId(STREAM, 0), 0, Rows(b"first", b"second"))
    assert refused.value.data.keys() == {"by"}
    assert open_ids(world) == []


def recover(world: World) -> None:
    Driver(world).planner.plan()


def test_a_task_whose_last_record_does_not_arrive_is_not_prepared(
    world: World, driver: Driver
) -> None:
    plan = driver.planner.plan()
    kafka = FakeKafka(world.cluster)
    deleted = world.cluster.topics[TOPIC]

    def delete() -> None:
        del world.cluster.topics[TOPIC]

    At(kafka.process, "producer.send_offset", Moment.AFTER, delete)
    task = TaskWriter(kafka, world.options, plan)
    with pytest.raises(BatchFailedError):
        task.write(BatchId(STREAM, 0), 0, Rows(b"a", b"b"))
    world.cluster.topics[TOPIC] = deleted
    assert open_ids(world) == []


def test_a_partition_that_wrote_before_and_has_no_rows_leaves_nothing_open(
    world: World, driver: Driver
) -> None:
    """Its producer is opened beforehand, and is not needed."""
    driver.committer.commit(driver.write(driver.planner.plan(), 0, [b"a"], [b"b"]))
    report = driver.task(driver.planner.plan(), 1, 0, [])
    assert report.prepared is None
    assert open_ids(world) == []


def test_rows_that_fail_to_come_leave_nothing_open(world: World, driver: Driver) -> None:
    driver.committer.commit(driver.write(driver.planner.plan(), 0, [b"a"], [b"b"]))
    task = TaskWriter(FakeKafka(world.cluster), world.options, driver.planner.plan())

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"value": [b"a"]})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        task.write(BatchId(STREAM, 1), 0, rows())
    assert open_ids(world) == []


def test_a_partition_of_empty_arrow_batches_opens_nothing(world: World, driver: Driver) -> None:
    task = TaskWriter(FakeKafka(world.cluster), world.options, driver.planner.plan())
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.binary())], ["value"])
    report = task.write(BatchId(STREAM, 0), 0, [empty, empty])
    assert report.prepared is None
    assert open_ids(world) == []


# --- the group's session


def test_a_plan_outlives_its_process_for_the_longest_session(world: World, driver: Driver) -> None:
    plan = driver.planner.plan()
    driver.planner.close()
    world.cluster.clock.advance(world.cluster.max_session_ms / 1000 - 1)
    report = driver.task(plan, 0, 0, [b"late"])
    assert report.prepared is not None


def test_a_plan_is_made_also_if_the_longest_session_is_unknown(
    world: World, driver: Driver
) -> None:
    world.cluster.tells_settings = False
    world.cluster.max_session_ms = 120_000
    assert driver.planner.plan().token.session_ms == 120_000
