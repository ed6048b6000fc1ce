"""Processes that wake up after their successors have gone on change nothing that a reader sees.

A zombie is a real process that has stopped itself at a fault point and is woken by the test.
"""

from __future__ import annotations

import pytest

from eos_sink.errors import BatchFailedError, SupersededError
from eos_sink_lab.testing.faults import FaultPoint
from integration.minispark import ConcurrentRunError
from integration.query import Query

pytestmark = pytest.mark.sampled(5, of="zombies")

BEFORE_THE_DECISION = pytest.mark.parametrize(
    "point",
    [
        FaultPoint.COMMITTER_VOTE_BEFORE,
        FaultPoint.COMMITTER_VOTE_AFTER,
        FaultPoint.COMMITTER_WRITE_BEFORE,
    ],
)
OF_A_COMMIT = pytest.mark.parametrize(
    "point", [FaultPoint.COMMITTER_OPEN_BEFORE, FaultPoint.COMMITTER_VOTE_AFTER]
)


@pytest.mark.kafka("4.3.0", "3.9.1")
@pytest.mark.parametrize(
    "point",
    [FaultPoint.TASK_INIT_BEFORE, FaultPoint.TASK_INIT_AFTER, FaultPoint.TASK_OFFSET_BEFORE],
)
def test_a_stale_drivers_task_is_refused_at_once(query: Query, point: FaultPoint) -> None:
    stale = query.run_paused_at(point, partition=1)
    query.finish()
    query.refuses(stale, SupersededError, BatchFailedError)
    assert stale.written(1) is None, "the task was not refused"
    query.check()


@BEFORE_THE_DECISION
def test_a_stale_driver_decides_nothing(query: Query, point: FaultPoint) -> None:
    stale = query.run_paused_at(point)
    query.finish()
    query.refuses(stale, SupersededError)
    query.check()


def test_a_driver_whose_member_is_replaced_decides_nothing(query: Query) -> None:
    stale = query.run_paused_at(FaultPoint.TASK_PREPARED_AFTER)
    newer = query.run_paused_at(FaultPoint.PLANNER_JOIN_AFTER, partition=-1)
    assert "joined" in query.refuses(stale, SupersededError)["text"]
    newer.wake()
    newer.finished()
    query.check()


@BEFORE_THE_DECISION
def test_a_commit_that_wakes_up_after_its_abort_is_refused(query: Query, point: FaultPoint) -> None:
    interrupted = query.run_paused_at(point)
    query.call("abort", interrupted.reports(1)).finished()
    query.check(batches=1)
    query.finish()
    query.refuses(interrupted, SupersededError)
    query.check()


@OF_A_COMMIT
def test_a_commit_is_refused_also_when_no_newer_driver_has_joined(
    query: Query, point: FaultPoint
) -> None:
    """One planner lives on in a session, so that its member says nothing about what is stale."""
    reports = query.write(0)
    interrupted = query.call_paused_at("commit", reports, point)
    query.call("abort", reports).finished()
    query.refuses(interrupted, SupersededError)
    query.check(batches=0)
    query.finish()
    query.check()


@OF_A_COMMIT
def test_a_commit_wakes_up_after_its_session_has_gone_two_batches_on(
    query: Query, point: FaultPoint
) -> None:
    given_up = query.write(0)
    interrupted = query.call_paused_at("commit", given_up, point)
    query.call("abort", given_up).finished()
    for batch in range(2):
        query.call("commit", query.write(batch)).finished()
        query.commit_log(batch)
    query.refuses(interrupted, SupersededError)
    query.finish()
    query.check()


@pytest.mark.parametrize(
    "point", [FaultPoint.COMMITTER_WRITE_AFTER, FaultPoint.COMMITTER_SETTLE_AMID]
)
def test_a_decided_batch_is_not_aborted_while_its_commit_sleeps(
    query: Query, point: FaultPoint
) -> None:
    interrupted = query.run_paused_at(point)
    query.call("abort", interrupted.reports(1)).finished()
    query.check(batches=2)
    assert query.finish().written(1) == []
    interrupted.wake()
    interrupted.stopped(ConcurrentRunError)
    query.check()


@pytest.mark.parametrize(
    "point", [FaultPoint.COMMITTER_WRITE_AFTER, FaultPoint.COMMITTER_ABORT_BEFORE]
)
def test_an_abort_that_wakes_up_late_aborts_only_what_it_has_listed(
    query: Query, point: FaultPoint
) -> None:
    given_up = query.write(0)
    late = query.call_paused_at("abort", given_up, point)
    commit = query.call_paused_at("commit", query.write(0), FaultPoint.COMMITTER_WRITE_AFTER)
    late.wake()
    late.finished()
    commit.wake()
    commit.finished()
    query.check(batches=1)
    assert query.finish().written(0) == []
    query.check()


def test_an_abort_that_wakes_up_late_before_its_fence_gives_way(query: Query) -> None:
    late = query.call_paused_at("abort", query.write(0), FaultPoint.COMMITTER_LIST_AFTER)
    commit = query.call_paused_at("commit", query.write(0), FaultPoint.COMMITTER_WRITE_AFTER)
    before = query.log()
    late.wake()
    late.finished()
    assert query.log() == before
    commit.wake()
    commit.finished()
    assert query.finish().written(0) == []
    query.check()


@pytest.mark.parametrize("point", [FaultPoint.PLANNER_WRITE_AFTER, FaultPoint.PLANNER_ABORT_BEFORE])
def test_a_recovery_that_wakes_up_late_aborts_only_what_it_has_listed(
    query: Query, point: FaultPoint
) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_VOTE_BEFORE)
    late = query.run_paused_at(point, partition=-1)
    newer = query.run_paused_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.refuses(late, SupersededError)
    newer.wake()
    newer.finished()
    assert newer.written(1) == [0, 1, 2]
    query.check()


def test_a_batch_is_not_decided_after_a_late_task_has_taken_an_id(query: Query) -> None:
    voting = query.run_paused_at(FaultPoint.COMMITTER_VOTE_BEFORE)
    # The log cannot be read here: it ends in the open transaction of this decision.
    query.take_id(slot=1, partition=1)
    voting.wake()
    voting.stopped(BatchFailedError)
    assert query.decided() == 0
    # The abort that followed has freed the readers of the other partitions.
    query.check(batches=1)
    query.finish()
    query.check()
