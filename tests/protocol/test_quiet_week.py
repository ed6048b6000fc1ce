"""Batches a week apart: by then coordinators have forgotten the ids, and topics the witnesses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos_sink.decision_log.codec import decode, encode
from eos_sink.errors import FailureKind, OperatorNeededError
from eos_sink.ops.resolve import Choice
from eos_sink.ops.status import Snapshot
from eos_sink.protocol.model import BatchId, LogRecord
from eos_sink.protocol.outcome import Outcome
from eos_sink.protocol.values import ProduceFailed
from tests.fakes.process import At, Moment
from tests.ops.operator import Eye, Operator
from tests.protocol.driver import FRAMES, LOADS, Driver, Job, decide_and_die, once
from tests.protocol.world import (
    World,
    batch_options,
    late_attempt,
    log,
    open_ids,
)


def test_a_weekly_stream_needs_no_operator(world: World) -> None:
    for week in range(3):
        Driver(world).run(week, [b"%d" % week], [b"x"])
        assert b"%d" % week in world.visible()
        world.a_week_passes()


@pytest.mark.parametrize("made", [LOADS, FRAMES, lambda week: once(str(week))])
def test_a_weekly_batch_write_needs_no_operator(made: Callable[[int], BatchId]) -> None:
    world = World([], options=batch_options())
    for week in range(3):
        Job(world).run(made(week), [b"%d" % week], [b"x"], spark_run=str(week))
        assert b"%d" % week in world.visible()
        world.a_week_passes()


@pytest.mark.parametrize("made", [LOADS, lambda number: once(str(number))], ids=["version", "once"])
def test_a_write_that_its_abort_has_finished_is_not_in_doubt_a_week_later(
    made: Callable[[int], BatchId],
) -> None:
    """The process of its commit was killed after the decision."""
    world = World([], options=batch_options())
    job = Job(world)
    reports = job.dies_after_the_decision(made(1), [b"a"])
    Driver(world, run=job.identity).committer.abort(reports, reports[0].token)
    assert world.visible() == [b"a"]
    world.a_week_passes()
    Job(world).run(made(2), [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_frames_of_one_query_pay_for_no_second_record() -> None:
    world = World([], options=batch_options())
    Job(world).run(FRAMES(0), [b"a"], spark_run="1")
    assert [record.settled for record in log(world)] == [False, False]


def test_a_version_that_was_settled_may_be_written_again_after_the_week() -> None:
    world = World([], options=batch_options())
    Job(world).run(LOADS(3), [b"a"])
    world.a_week_passes()
    Job(world).run(LOADS(3), [b"a"])
    assert world.visible() == [b"a"]


def test_a_batch_in_doubt_that_is_replayed_stops(world: World) -> None:
    decide_and_die(world, [b"a"], [b"b"])
    world.a_week_passes()
    again = Driver(world)
    plan = again.planner.plan()
    assert plan.doubtful == {0, 1}
    with pytest.raises(OperatorNeededError) as stop:
        again.write(plan, 0, [b"a"], [b"b"])
    assert stop.value.data == {"batch": 0, "partitions": [0, 1], "rows": 2}


@pytest.mark.parametrize(
    ("decided", "now", "stops"),
    [
        (FRAMES(3), FRAMES(4), False),
        (FRAMES(3), FRAMES(3), True),
        (LOADS(3), LOADS(4), True),
        (LOADS(3), LOADS(3), True),
        (LOADS(3), LOADS(2), True),
        (once("a"), once("b"), True),
    ],
)
def test_only_a_later_batch_of_a_query_proves_that_a_doubtful_one_was_committed(
    decided: BatchId, now: BatchId, stops: bool
) -> None:
    world = World([], options=batch_options())
    Job(world).dies_after_the_decision(decided, [b"a"], spark_run="1")
    world.a_week_passes()
    if stops:
        with pytest.raises(OperatorNeededError):
            Job(world).run(now, [b"b"], spark_run="2")
        assert world.visible() == []
    else:
        Job(world).run(now, [b"b"], spark_run="2")


def test_another_stream_does_not_prove_it(world: World) -> None:
    decide_and_die(world, [b"a"])
    world.a_week_passes()
    with pytest.raises(OperatorNeededError):
        Driver(world, stream="stream-2").run(0, [b"b"])
    with pytest.raises(OperatorNeededError):
        Driver(world, stream="stream-2").run(1, [b"b"])
    Driver(world).run(1, [b"c"])
    assert world.visible() == [b"c"]


def test_an_abort_goes_on_in_spite_of_a_doubt(world: World) -> None:
    decide_and_die(world, [b"a"])
    world.a_week_passes()
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 1, [b"b"])
    driver.committer.abort(reports)
    assert open_ids(world) == []


def test_a_recovery_goes_on_in_spite_of_a_doubt(world: World) -> None:
    decide_and_die(world, [b"a"])
    world.a_week_passes()
    driver = Driver(world)
    driver.write(driver.planner.plan(), 1, [b"b"])
    assert open_ids(world)
    Driver(world).planner.plan()
    assert open_ids(world) == []


def test_what_a_recovery_has_seen_settled_is_kept_in_the_log(world: World) -> None:
    Driver(world).run(0, [b"a"], [b"b"])
    Driver(world).planner.plan()
    assert [record.settled for record in log(world)] == [False, False, True]
    world.a_week_passes()
    calls: list[str] = []
    driver = Driver(world)
    driver.plans.process.hook = lambda name, moment: calls.append(name)
    plan = driver.planner.plan()
    assert (plan.lost, plan.doubtful) == (frozenset(), frozenset())
    assert not {"control.end", "read_back.visibility", "read_back.markers"} & set(calls)
    Driver(world).run(0, [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_what_was_lost_is_not_kept_as_settled(world: World) -> None:
    decide_and_die(world, [b"a"], [b"b"])
    late_attempt(world, 0, 1)
    Driver(world).planner.plan()
    Driver(world).planner.plan()
    assert not any(record.settled for record in log(world))
    Driver(world).run(0, [b"a"], [b"b"])
    assert not log(world)[-1].settled
    assert world.visible() == [b"a", b"b"]


def test_a_new_decision_is_settled_again(world: World) -> None:
    Driver(world).run(0, [b"a"])
    decide_and_die(world, [b"b"], batch=1)
    assert [record.settled for record in log(world)][-2:] == [True, False]
    Driver(world).planner.plan()
    assert world.visible() == [b"a", b"b"]


def test_what_a_ruling_calls_visible_is_not_kept_as_seen(world: World) -> None:
    decide_and_die(world, [b"a"])
    world.a_week_passes()
    Operator(world).chooses(Choice.VISIBLE)
    assert Driver(world).planner.plan().doubtful == frozenset()
    assert not log(world)[-1].settled
    Operator(world).chooses(Choice.LOST, 0)
    assert Driver(world).planner.plan().lost == {0}


def test_a_batch_write_is_kept_as_settled_at_once() -> None:
    world = World([], options=batch_options())
    Job(world).run(LOADS(3), [b"a"])
    assert [record.settled for record in log(world)] == [False, False, True]
    for record in log(world)[1:]:
        assert record.decision == log(world)[1].decision
        assert record.stats.decided_ms == log(world)[1].stats.decided_ms


def test_a_stream_pays_for_no_second_record(world: World) -> None:
    Driver(world).run(0, [b"a"])
    assert [record.settled for record in log(world)] == [False, False]


def test_a_write_whose_second_record_fails_has_succeeded() -> None:
    world = World([], options=batch_options())
    job = Job(world)
    plan = job.planner.plan()
    reports = job.write(plan, LOADS(3), [b"a"])
    process = job.commits.process

    def refuse() -> None:
        raise ProduceFailed("no", FailureKind.MESSAGE_REJECTED)

    def settled() -> None:
        # The next write of the log is that of the second record.
        At(process, "log_producer.commit", Moment.BEFORE, refuse)

    At(process, "control.end", Moment.AFTER, settled)
    job.committer.commit(reports)
    assert world.visible() == [b"a"]
    assert not log(world)[-1].settled
    Job(world).run(LOADS(4), [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_status_shows_a_doubt_and_does_not_stop(world: World) -> None:
    decide_and_die(world, [b"a"])
    world.a_week_passes()
    found: Snapshot = Eye(world).snapshot()
    assert found.queries[0].outcome is Outcome.IN_DOUBT
    assert found.problems == ()


def test_status_does_not_ask_for_what_the_log_calls_settled() -> None:
    world = World([], options=batch_options())
    Job(world).run(LOADS(3), [b"a"])
    world.a_week_passes()
    eye = Eye(world)
    calls: list[str] = []
    eye.admin.process.hook = lambda name, moment: calls.append(name)
    assert eye.sees().outcome is Outcome.COMMITTED
    assert "read_back.visibility" not in calls


def test_a_record_says_that_its_decision_is_settled() -> None:
    record = LogRecord(3, None, "w", settled=True)
    assert decode(encode(record), "") == record
    assert b"settled" not in encode(LogRecord(3, None, "w"))
