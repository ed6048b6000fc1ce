"""Batch writes on the in-memory Kafka: versions, frames of foreachBatch, and single writes."""

from __future__ import annotations

import pytest

from eos_sink.decision_log import DecisionRegister
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import (
    ConfigurationError,
    SupersededError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, Numbering, Plan
from eos_sink.protocol.values import MemberState
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Moment
from tests.protocol.driver import FRAMES, LOADS, OTHERS, Job, once
from tests.protocol.world import World, batch_options, late_attempt, log, open_ids


@pytest.fixture
def world() -> World:
    return World([], options=batch_options())


@pytest.fixture
def job(world: World) -> Job:
    return Job(world)


# --- versions


def test_a_version_that_is_written_again_is_written_once(world: World, job: Job) -> None:
    job.run(LOADS(3), [b"a"], [b"b"])
    job.run(LOADS(3), [b"b", b"a"])
    Job(world).run(LOADS(3), [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


# --- single writes


def test_an_abort_without_reports_ends_what_the_tasks_have_left_open(
    world: World, job: Job
) -> None:
    plan = job.planner.plan()
    job.write(plan, once("1"), [b"a"], [b"b"])
    assert len(open_ids(world)) == 2
    job.committer.abort([], plan.token)
    assert open_ids(world) == []
    job.run(once("2"), [b"c"])
    assert world.visible() == [b"c"]


def test_of_two_writes_at_the_same_time_the_older_one_needs_its_own_id(
    world: World, job: Job
) -> None:
    plan = job.planner.plan()
    Job(world).run(once("2"), [b"b"])
    with pytest.raises(SupersededError, match="txnAppId"):
        job.write(plan, once("1"), [b"a"])
    assert world.visible() == [b"b"]


@pytest.mark.parametrize(
    "batch", [once("newer"), LOADS(2), FRAMES(2)], ids=["once", "version", "frame"]
)
def test_of_two_writes_of_one_session_at_the_same_time_the_older_one_is_refused(
    batch: BatchId, world: World, job: Job
) -> None:
    """Spark keeps the planner process of the older one, which has written nothing so far."""
    older, newer = job.planner.plan(), job.planner.plan()
    with pytest.raises(SupersededError):
        job.write(older, once("older"), [b"older"], spark_run="r1")
    reports = job.write(newer, batch, [b"new"], [b"er"], spark_run="r2")
    Committer(FakeKafka(world.cluster), world.options).abort([], older.token)
    job.committer.commit(reports)
    assert world.visible() == [b"er", b"new"]
    assert open_ids(world) == []


def test_a_task_that_goes_on_after_its_job_has_failed_leaves_nothing_open(
    world: World, job: Job
) -> None:
    """Spark aborts a failed job while its other tasks run."""
    plan = job.planner.plan()
    given_up = job.committer.abort([], plan.token)
    assert given_up is not None
    job.planner.refuse_tasks(given_up)
    with pytest.raises(SupersededError):
        job.write(plan, once("failed"), [b"late"])
    assert open_ids(world) == []
    job.run(once("next"), [b"next"])
    assert world.visible() == [b"next"]


@pytest.mark.parametrize("newer", ["other", "same"])
def test_a_plan_that_comes_while_a_failed_write_is_aborted_is_not_replaced(
    world: World, job: Job, newer: str
) -> None:
    """A plan of another session, or of another thread of this one."""
    given_up = job.committer.abort([], job.planner.plan().token)
    assert given_up is not None
    next_one = job if newer == "same" else Job(world)
    plan = next_one.planner.plan()
    aborting = Planner(FakeKafka(world.cluster), world.options, job.identity)
    aborting.refuse_tasks(given_up)
    next_one.committer.commit(next_one.write(plan, once("newer"), [b"a"]))
    assert world.visible() == [b"a"]


def test_the_note_of_a_write_does_not_give_up_the_next_one_of_its_session(
    world: World, job: Job
) -> None:
    """A thread that plans between the decision of another one's write and its note."""
    plans: list[Plan] = []
    job.planner.plan()
    At(
        job.commits.process,
        "control.end",
        Moment.BEFORE,
        lambda: plans.append(job.planner.plan()),
    )
    job.run(once("one"), [b"one"])
    job.committer.commit(job.write(plans[0], once("two"), [b"two"]))
    assert world.visible() == [b"one", b"two"]


def test_two_sessions_that_write_in_turns_do_not_disturb_each_other(world: World, job: Job) -> None:
    other = Job(world)
    for number in range(3):
        job.run(once(f"a{number}"), [b"a%d" % number])
        other.run(once(f"b{number}"), [b"b%d" % number])
    assert world.visible() == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


def test_a_session_that_has_not_yet_heard_of_another_ones_write_joins_again(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats are seconds apart."""
    job.run(once("1"), [b"a"])
    Job(world).run(once("2"), [b"b"])
    assert job.planner._session._member is not None
    monkeypatch.setattr(job.planner._session._member, "state", lambda: MemberState.CURRENT)
    job.run(once("3"), [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


# --- foreachBatch


def test_a_frame_that_spark_replays_is_not_written_again(world: World, job: Job) -> None:
    job.run(FRAMES(0), [b"a"], spark_run="1")
    Job(world).run(FRAMES(0), [b"a"], spark_run="2")
    Job(world).run(FRAMES(1), [b"b"], spark_run="2")
    assert world.visible() == [b"a", b"b"]


@pytest.mark.parametrize("rows", [b"a", b"b"])
def test_a_second_frame_under_one_identity_is_refused_also_if_it_has_the_same_rows(
    world: World, job: Job, rows: bytes
) -> None:
    job.run(FRAMES(0), [b"a"], spark_run="1")
    with pytest.raises(ConfigurationError) as stop:
        job.run(FRAMES(0), [rows], spark_run="1")
    assert stop.value.data == {"batch": 0}
    assert world.visible() == [b"a"]


@pytest.mark.parametrize("rows", [b"a", b"b"])
def test_a_second_frame_is_refused_in_a_run_that_has_replayed_the_first(
    world: World, job: Job, rows: bytes
) -> None:
    job.run(FRAMES(0), [b"a"], spark_run="1")
    again = Job(world)
    again.run(FRAMES(0), [b"a"], spark_run="2")
    with pytest.raises(ConfigurationError) as failed:
        again.run(FRAMES(0), [rows], spark_run="2")
    assert failed.value.data == {"batch": 0}


def test_a_second_frame_is_refused_in_a_run_that_has_rewritten_the_first(
    world: World, job: Job
) -> None:
    job.dies_after_the_decision(FRAMES(0), [b"a"], [b"b"], spark_run="1")
    late_attempt(world, 0, 1)
    again = Job(world)
    again.run(FRAMES(0), [b"a"], [b"b"], spark_run="2")
    with pytest.raises(ConfigurationError) as failed:
        again.run(FRAMES(0), [b"a"], [b"b"], spark_run="2")
    assert failed.value.data == {"batch": 0}
    assert world.visible() == [b"a", b"b"]


@pytest.mark.parametrize("frames", [([], [b"a"]), ([b"a"], [])], ids=["before", "after"])
def test_a_frame_without_rows_is_none(
    world: World, job: Job, frames: tuple[list[bytes], list[bytes]]
) -> None:
    for spark_run in ("1", "2"):
        for rows in frames:
            job.run(FRAMES(0), rows, [], spark_run=spark_run)
    assert world.visible() == [b"a"]


def test_one_query_too_many_under_an_identity_is_refused_before_anything_is_decided(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eos_sink.protocol.rules.MAX_STREAMS", 1)
    job.run(FRAMES(0), [b"a"], spark_run="1")
    job.run(OTHERS(0), [b"b"], spark_run="9")
    plan = job.planner.plan()
    before = log(world)
    third = BatchId.numbered_by(Numbering.FOREACH, "query-3", 0)
    reports = job.write(plan, third, [b"c"])
    with pytest.raises(ConfigurationError):
        job.committer.commit(reports)
    assert log(world) == before
    job.committer.abort(reports, plan.token)
    job.run(OTHERS(1), [b"d"], spark_run="9")
    assert world.visible() == [b"a", b"b", b"d"]


def test_the_run_is_kept_when_a_record_is_written_again(world: World, job: Job) -> None:
    job.run(FRAMES(0), [b"a"], spark_run="1")
    Job(world).planner.plan()
    latest = DecisionRegister(FakeKafka(world.cluster), world.options.names).read(Deadline(1))
    assert latest.decision is not None
    assert (latest.decision.batch, latest.decision.spark_run) == (FRAMES(0), "1")
