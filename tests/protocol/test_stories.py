"""The protocol told step by step on the in-memory Kafka."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from eos_sink.errors import (
    BatchFailedError,
    CommitFailedError,
    OperatorNeededError,
    OutcomeUnknownError,
    SupersededError,
    UnfinishedError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Killed, Moment
from tests.protocol.actor import Actor
from tests.protocol.driver import STREAM, Driver, lose_last
from tests.protocol.world import TOPIC, World, late_attempt, log, open_ids


@pytest.fixture
def driver(world: World) -> Driver:
    return Driver(world)


# --- the common path


def test_a_batch_is_invisible_until_it_is_decided_and_visible_after_commit(
    world: World, driver: Driver
) -> None:
    plan = driver.planner.plan()
    reports = driver.write(plan, 0, [b"a", b"b"], [b"c"])
    assert world.visible() == []
    assert len(open_ids(world)) == 2
    driver.committer.commit(reports)
    assert world.visible() == [b"a", b"b", b"c"]
    decision = log(world)[-1].decision
    assert decision is not None
    assert (decision.batch, decision.partitions, decision.total.rows) == (BatchId(STREAM, 0), 2, 3)


def test_batches_take_turns_with_the_slots(world: World, driver: Driver) -> None:
    for batch in range(4):
        driver.run(batch, [b"%d" % batch])
    slots = [r.decision.slot for r in log(world) if r.decision]
    assert slots == [0, 1, 0, 1]
    assert [record.seq for record in log(world)] == [1, 2, 3, 4, 5]


def test_a_partition_without_rows_opens_nothing_and_a_batch_without_rows_writes_no_record(
    world: World, driver: Driver
) -> None:
    reports = driver.run(0, [b"a"], [])
    assert reports[1].prepared is None
    before = log(world)
    driver.run(1, [], [])
    assert log(world) == before
    assert open_ids(world) == []


def test_the_witness_is_a_record_of_the_transaction(world: World, driver: Driver) -> None:
    driver.run(0, [b"a"])
    report = driver.run(1, [b"b", b"c"])[0]
    assert report.prepared is not None
    witness = report.prepared.witness
    entries = {
        (e.offset): e for e in world.cluster.topics[TOPIC].partitions[witness.partition].committed()
    }
    assert entries[witness.offset].value == b"b"


# --- replays


def test_a_replay_of_a_settled_batch_writes_nothing(world: World, driver: Driver) -> None:
    driver.run(0, [b"a"], [b"b"])
    again = Driver(world)
    plan = again.planner.plan()
    records = log(world)
    reports = again.write(plan, 0, [b"b"], [b"a"])
    assert [report.prepared for report in reports] == [None, None]
    again.committer.commit(reports)
    assert log(world) == records
    assert world.visible() == [b"a", b"b"]


def test_a_replay_with_other_rows_stops(world: World, driver: Driver) -> None:
    driver.run(0, [b"a"], [b"b"])
    again = Driver(world)
    with pytest.raises(OperatorNeededError) as stop:
        again.run(0, [b"a"], [b"b", b"c"])
    assert stop.value.data == {"batch": 0, "partitions": [1], "rows": 2}
    assert world.visible() == [b"a", b"b"]


def test_a_checkpoint_restored_one_batch_back_stops(world: World, driver: Driver) -> None:
    for batch in range(2):
        driver.run(batch, [b"%d" % batch])
    with pytest.raises(OperatorNeededError) as stop:
        Driver(world).run(0, [b"0"])
    assert stop.value.data == {"batch": 0, "partitions": [0], "rows": 1, "decided": 1}
    assert world.visible() == [b"0", b"1"]


def test_a_deleted_checkpoint_starts_a_new_stream_from_its_first_batch_with_a_warning(
    world: World, driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    for batch in range(2):
        driver.run(batch, [b"%d" % batch])
    assert caplog.messages == []
    successor = Driver(world, stream="stream-2")
    for batch in range(2):
        successor.run(batch, [b"new %d" % batch])
    (warning,) = caplog.messages
    assert "a new checkpoint begins with batch 0" in warning
    assert world.visible() == [b"0", b"1", b"new 0", b"new 1"]


# --- decided, then lost or not


def test_a_late_attempt_after_the_decision_loses_a_partition_which_is_written_again(
    world: World,
) -> None:
    lose_last(world)
    assert world.visible() == [b"a"]
    again = Driver(world)
    plan = again.planner.plan()
    assert plan.lost == {1}
    reports = again.write(plan, 0, [b"a"], [b"b"])
    assert [bool(report.prepared) for report in reports] == [False, True]
    again.committer.commit(reports)
    assert world.visible() == [b"a", b"b"]
    Driver(world).run(0, [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_lost_partitions_are_not_rewritten_from_rows_that_moved(world: World) -> None:
    lose_last(world)
    with pytest.raises(UnfinishedError) as stop:
        Driver(world).run(0, [b"b"], [b"a"])
    assert stop.value.data["partitions"] == [1]
    assert world.visible() == [b"a"]


def test_a_query_does_not_go_past_lost_partitions(world: World) -> None:
    lose_last(world, [b"a"])
    with pytest.raises(OperatorNeededError) as stop:
        Driver(world, stream="stream-2").run(0, [b"new"])
    assert stop.value.data == {"batch": 0, "partitions": [0], "rows": 1}


def test_a_committed_transaction_that_answers_fenced_is_known_by_its_witness(
    world: World, driver: Driver
) -> None:
    driver.run(0, [b"a"], [b"b"])
    late_attempt(world, 0, 0)
    again = Driver(world)
    assert again.planner.plan().lost == frozenset()
    again.run(0, [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_a_forgotten_id_is_known_by_its_witness(world: World, driver: Driver) -> None:
    driver.run(0, [b"a"])
    world.cluster.coordinator.forget(world.options.names.task(0, 0))
    assert Driver(world).planner.plan().lost == frozenset()


def test_a_witness_that_was_deleted_leaves_a_fenced_transaction_in_doubt(
    world: World, driver: Driver
) -> None:
    driver.run(0, [b"a"])
    late_attempt(world, 0, 0)
    for partition in world.cluster.topics[TOPIC].partitions:
        partition.delete_before(partition.end)
    again = Driver(world)
    plan = again.planner.plan()
    assert plan.doubtful == {0}
    with pytest.raises(OperatorNeededError) as stop:
        again.write(plan, 0, [b"a"])
    assert stop.value.data == {"batch": 0, "partitions": [0], "rows": 1}


def test_a_decision_whose_answer_was_lost_is_read_back_and_not_sent_twice(
    world: World, driver: Driver
) -> None:
    """The first write after an open compares the end of the log again, so this is a later one."""

    def lose() -> None:
        raise OutcomeUnknownError("lost", remedy="")

    driver.run(0, [b"a"])
    reports = driver.write(driver.planner.plan(), 1, [b"b"])
    At(driver.commits.process, "log_producer.commit", Moment.AFTER, lose)
    driver.committer.commit(reports)
    assert [record.seq for record in log(world)] == [1, 2, 3]
    assert world.visible() == [b"a", b"b"]


# --- never decided


def test_a_late_attempt_before_the_vote_fails_the_batch(world: World, driver: Driver) -> None:
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    late_attempt(world, 0, 1)
    with pytest.raises(CommitFailedError) as failed:
        driver.committer.commit(reports)
    assert failed.value.data == {}
    driver.committer.abort(reports)
    assert world.visible() == []
    assert open_ids(world) == []
    assert all(record.decision is None for record in log(world))


def test_a_batch_too_near_its_time_out_is_not_decided(world: World) -> None:
    driver = Driver(world, clock=world.cluster.clock)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    world.cluster.clock.advance(55)
    with pytest.raises(BatchFailedError) as failed:
        driver.committer.commit(reports)
    assert failed.value.data == {"left_ms": 5_000}
    assert all(record.decision is None for record in log(world))


def test_abort_ends_what_was_prepared_and_the_replay_is_visible_once(
    world: World, driver: Driver
) -> None:
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    driver.committer.abort(reports[:1])
    assert open_ids(world) == []
    driver.run(0, [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_abort_after_the_decision_settles_instead(world: World, driver: Driver) -> None:
    reports = driver.dies_after_the_decision(0, [b"a"], [b"b"])
    assert world.visible() == []
    Driver(world).committer.abort(reports)
    assert world.visible() == [b"a", b"b"]


def test_a_commit_that_wakes_up_after_abort_decides_nothing(world: World, driver: Driver) -> None:
    """Wherever it slept: EndTxn(abort) leaves the epoch, so that only the fence stops it."""
    for batch, call in enumerate(("log_producer.init", "control.describe", "log_producer.begin")):
        run = Driver(world, stream=f"stream-{batch}")
        reports = run.write(run.planner.plan(), 0, [b"a"], [b"b"])
        other = Driver(world)
        At(
            run.commits.process,
            call,
            Moment.BEFORE,
            lambda other=other, reports=reports: other.committer.abort(reports),  # type: ignore[misc]
        )
        with pytest.raises((SupersededError, BatchFailedError)):
            run.committer.commit(reports)
        assert world.visible() == []
        assert all(record.decision is None for record in log(world))


def test_the_next_plan_ends_what_an_abort_that_died_after_its_fence_left_open(
    world: World, driver: Driver
) -> None:
    """The planner's process outlives that, and sees a log that has moved without a new decision."""
    driver.run(0, [b"a"], [b"b"])
    reports = driver.write(driver.planner.plan(), 1, [b"c"], [b"d"])
    process = driver.commits.process
    At(process, "control.end", Moment.BEFORE, process.kill)
    # What was decided is settled, so that the first EndTxn is the abort's.
    with pytest.raises(Killed):
        driver.committer.abort(reports)
    assert len(open_ids(world)) == 2
    driver.planner.plan()
    assert open_ids(world) == []


def test_the_next_plan_ends_what_an_abort_without_any_report_left_open(
    world: World, driver: Driver
) -> None:
    driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    driver.committer.abort([])
    assert len(open_ids(world)) == 2
    driver.planner.plan()
    assert open_ids(world) == []


def test_half_a_task_that_goes_on_after_an_abort_is_never_decided(
    world: World, driver: Driver
) -> None:
    """The coordinator opens a new transaction under the same epoch: its first half is gone."""
    plan = driver.planner.plan()
    other = driver.task(plan, 0, 1, [b"other"])
    tasks = FakeKafka(world.cluster)
    writer = TaskWriter(tasks, world.options, plan)
    data = [pa.RecordBatch.from_pydict({"value": [row]}) for row in (b"first", b"second")]
    aborter = Driver(world).committer
    At(tasks.process, "producer.send_offset", Moment.AFTER, lambda: aborter.abort([other]))
    half = writer.write(BatchId(STREAM, 0), 0, data)
    with pytest.raises(SupersededError):
        driver.committer.commit([half, other])
    assert world.visible() == []


# --- two drivers


def test_a_stale_driver_is_refused_in_tasks_which_free_readers_at_once(world: World) -> None:
    old, new = Driver(world), Driver(world)
    plan = old.planner.plan()
    new.planner.plan()
    with pytest.raises(SupersededError) as refused:
        old.write(plan, 0, [b"zombie"])
    assert refused.value.data.keys() == {"by"}
    assert open_ids(world) == []
    new.run(0, [b"a"])
    assert world.visible() == [b"a"]


def test_a_stale_driver_is_refused_in_the_decision(world: World) -> None:
    old, new = Driver(world), Driver(world)
    reports = old.write(old.planner.plan(), 0, [b"zombie"])
    new.run(0, [b"a"])
    with pytest.raises(SupersededError) as refused:
        old.committer.commit(reports)
    assert (refused.value.data["planned"], refused.value.data["seq"]) == (1, 3)
    old.committer.abort(reports)
    assert world.visible() == [b"a"]


def test_a_driver_that_was_replaced_decides_nothing_even_before_its_successor_has_fenced(
    world: World,
) -> None:
    old = Driver(world)
    reports = old.write(old.planner.plan(), 0, [b"zombie"])
    names = world.options.names
    FakeKafka(world.cluster).member(names.group, names.driver, 60_000).join(Deadline(1))
    with pytest.raises(SupersededError) as refused:
        old.committer.commit(reports)
    assert refused.value.data.keys() == {"by"}
    assert all(record.decision is None for record in log(world))


@pytest.mark.parametrize("stale", ["plan", "abort"])
def test_a_zombie_that_has_fenced_aborts_nothing_that_began_after_its_fence(
    world: World, stale: str
) -> None:
    """It wakes up between the decision and the commit of its successor."""
    old = Driver(world)
    reports = [] if stale == "plan" else old.write(old.planner.plan(), 0, [b"old"])
    work = old.planner.plan if stale == "plan" else partial(old.committer.abort, reports)
    sleeper = Actor(work)
    process = old.plans.process if stale == "plan" else old.commits.process
    At(process, "log_producer.commit", Moment.AFTER, sleeper.park)
    assert not sleeper.go()
    new = Driver(world)
    reports = new.write(new.planner.plan(), 0, [b"a"], [b"b"])
    At(new.commits.process, "control.end", Moment.BEFORE, sleeper.finish)
    new.committer.commit(reports)
    assert world.visible() == [b"a", b"b"]


def test_a_stale_planner_does_not_join_again(world: World) -> None:
    old, new = Driver(world), Driver(world)
    old.run(0, [b"a"])
    new.planner.plan()
    with pytest.raises(SupersededError) as refused:
        old.planner.plan()
    assert refused.value.data.keys() == {"by"}
    new.run(1, [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_a_planner_whose_session_has_ended_recovers_and_goes_on(
    world: World, driver: Driver
) -> None:
    driver.run(0, [b"a"])
    world.cluster.groups.end_session(world.options.names.group)
    driver.run(1, [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_a_zombie_tasks_transaction_is_aborted_by_the_next_recovery(
    world: World, driver: Driver
) -> None:
    plan = driver.planner.plan()
    driver.run(0, [b"a"])
    driver.task(plan, 0, 0, [b"zombie"])
    driver.task(plan, 0, 5, [b"zombie"])
    assert len(open_ids(world)) == 2
    Driver(world).planner.plan()
    assert open_ids(world) == []
    assert world.visible() == [b"a"]


def test_a_plan_spares_what_another_query_has_open(world: World, driver: Driver) -> None:
    driver.run(0, [b"a"])
    names = replace(world.options.names, query="another-0123456789")
    stranger = FakeKafka(world.cluster).producer(names.task(0, 0), 60_000)
    coordinator = world.cluster.coordinator
    identity = coordinator.init(names.task(0, 0), 60_000)
    coordinator.open(names.task(0, 0), identity)
    Driver(world).planner.plan()
    assert coordinator.list_open(names.group) == [names.task(0, 0)]
    stranger.close()


def test_a_log_that_has_moved_supersedes_a_replay_too(world: World, driver: Driver) -> None:
    """The committer still holds the log as it was when it decided the batch."""
    driver.run(0, [b"a"])
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    Driver(world).planner.plan()
    with pytest.raises(SupersededError):
        driver.committer.commit(reports)
    assert world.visible() == [b"a"]
