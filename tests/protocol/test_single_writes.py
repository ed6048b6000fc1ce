"""Batch writes by their numbers: each is written once, in any order, however often it is run."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from eos_sink.driver.planner import Planner
from eos_sink.errors import (
    Action,
    ClusterError,
    OperatorNeededError,
    OutcomeUnknownError,
    SupersededError,
    UnfinishedError,
)
from eos_sink.ops.resolve import Choice
from eos_sink.protocol.model import BatchId
from eos_sink.protocol.written import WrittenNumbers
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Moment
from tests.ops.operator import Operator
from tests.protocol.driver import LOADS, Driver, Job, once
from tests.protocol.world import World, batch_options, late_attempt, log, open_ids

INLINE = "65536"


@pytest.fixture
def world() -> World:
    return World([], options=batch_options())


@pytest.fixture
def job(world: World) -> Job:
    return Job(world)


def after_decision(job: Job, deed: Callable[[], None]) -> None:
    """Do something between the next decision of the job and its first EndTxn."""
    At(job.commits.process, "control.end", Moment.BEFORE, deed)


def lose(world: World, *partitions: int) -> None:
    for partition in partitions:
        late_attempt(world, 0, partition)


# --- numbers in any order


def test_a_lower_version_that_was_never_written_is_written(world: World, job: Job) -> None:
    job.planner.plan()  # of version 24, which fails before its decision
    Job(world).run(LOADS(25), [b"25"])
    for _ in range(2):
        Job(world).run(LOADS(24), [b"24"])
        Job(world).run(LOADS(25), [b"25"])
    assert world.visible() == [b"24", b"25"]


def test_a_version_that_was_written_before_is_skipped_whatever_rows_it_has(
    world: World, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    job.run(LOADS(2), [b"a"])
    job.run(LOADS(3), [b"b"])
    with caplog.at_level(logging.WARNING):
        job.run(LOADS(2), [b"other"], [b"rows"])
    assert world.visible() == [b"a", b"b"]
    assert "version 2 of txnAppId 'loads' is skipped" in caplog.text
    assert "2 rows" in caplog.text


@pytest.mark.parametrize("batch", [once("1"), LOADS(1)], ids=["once", "version"])
def test_a_write_whose_decision_was_dropped_is_written_again(
    world: World, job: Job, batch: BatchId
) -> None:
    job.run(batch, [b"a"])
    Operator(world).chooses(Choice.FORGET)
    Job(world).run(LOADS(2), [b"b"])
    Job(world).run(batch, [b"a"])
    assert world.visible() == [b"a", b"a", b"b"]


def test_numbers_survive_fences_and_notes(world: World, job: Job) -> None:
    for number in (5, 3, 4):
        job.run(LOADS(number), [b"%d" % number])
    Job(world).planner.plan()
    assert log(world)[-1].written == WrittenNumbers(((3, 3), (5, 5)))
    Job(world).run(LOADS(1), [b"1"])
    assert log(world)[-1].written == WrittenNumbers(((3, 5),))


# --- rows that are lost after the decision


@pytest.mark.parametrize("inline", ["0", "60"], ids=["tasks", "a part inlined"])
@pytest.mark.parametrize("lost", [(0,), (0, 1)], ids=["part", "all"])
def test_lost_rows_come_back_when_the_write_is_run_again(
    lost: tuple[int, ...], inline: str
) -> None:
    world = World([], options=batch_options(**{"eos.inline.bytes": inline}))
    job = Job(world)
    after_decision(job, lambda: lose(world, *lost))
    with pytest.raises(UnfinishedError):
        job.run(once("1"), [b"a" * 100], [b"b"])
    job.run(once("1"), [b"a" * 100], [b"b"])
    assert world.visible() == [b"a" * 100, b"b"]


def test_another_write_stops_before_it_writes_while_rows_are_lost(world: World, job: Job) -> None:
    job.dies_after_the_decision(once("1"), [b"a"], [b"b"])
    lose(world, 1)
    with pytest.raises(OperatorNeededError) as stop:
        Job(world).run(once("2"), [b"c"])
    assert f'.option("eos.write.id", "{once("1").batch}")' in stop.value.remedy
    assert (stop.value.data["partitions"], stop.value.data["rows"]) == ([1], 1)
    assert open_ids(world) == []
    Job(world).run(once("1"), [b"a"], [b"b"])
    Job(world).run(once("2"), [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_write_whose_process_died_after_the_decision_is_finished_by_the_next_one(
    world: World, job: Job
) -> None:
    job.dies_after_the_decision(once("1"), [b"a"], [b"b"])
    Job(world).run(once("2"), [b"c"])
    Job(world).run(once("1"), [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_an_error_after_the_decision_keeps_the_cause_and_the_write_is_run_again(
    world: World, job: Job
) -> None:
    def fails() -> None:
        raise ClusterError("A permission is missing.", remedy="Grant it.")

    after_decision(job, fails)
    with pytest.raises(ClusterError):
        job.run(once("1"), [b"a"])
    Job(world).run(once("1"), [b"a"])
    assert world.visible() == [b"a"]


# --- a commit without an answer


def loses_answer(job: Job, deed: Callable[[], None]) -> None:
    """The next commit of the driver is carried out, then something happens, and no answer comes."""

    def unanswered() -> None:
        deed()
        raise OutcomeUnknownError("No answer.", remedy="")

    job.commits.process.hook = None
    At(job.commits.process, "log_producer.commit", Moment.AFTER, unanswered)


@pytest.mark.parametrize("inline", ["0", INLINE])
@pytest.mark.parametrize("others", [1, 3])
def test_a_commit_without_an_answer_that_others_have_followed_is_found_by_its_number(
    inline: str, others: int
) -> None:
    world = World([], options=batch_options(**{"eos.inline.bytes": inline}))
    job, other = Job(world), Job(world)
    reports = job.write(job.planner.plan(), once("1"), [b"a"], [b"b"])

    def follow() -> None:
        for number in range(others):
            other.run(once(f"other {number}"), [b"other %d" % number])

    loses_answer(job, follow)
    with pytest.raises(OutcomeUnknownError):
        job.committer.commit(reports)
    job.committer.abort(reports)
    other.run(once("1"), [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b", *(b"other %d" % n for n in range(others))]
    assert open_ids(world) == []
    other.run(once("last"), [b"last"])
    assert world.judge.violations == []


def test_a_write_that_was_replaced_before_its_commit_is_superseded(world: World, job: Job) -> None:
    reports = job.write(job.planner.plan(), once("1"), [b"a"])

    def replaced() -> None:
        Job(world).run(once("2"), [b"b"])
        raise OutcomeUnknownError("No answer.", remedy="")

    At(job.commits.process, "log_producer.commit", Moment.BEFORE, replaced)
    with pytest.raises(SupersededError) as error:
        job.committer.commit(reports)
    assert error.value.action is Action.RUN_AGAIN
    job.committer.abort(reports, reports[0].token)
    job.run(once("1"), [b"a"])
    assert world.visible() == [b"a", b"b"]


def test_a_commit_whose_record_is_compacted_is_known_by_its_number() -> None:
    world = World([], options=batch_options(**{"eos.inline.bytes": INLINE}))
    job = Job(world)
    reports = job.write(job.planner.plan(), once("1"), [b"a"])

    def follow() -> None:
        Job(world).run(once("2"), [b"b"])
        for partition in world.cluster.topics[world.options.log_topic].partitions:
            partition.compact()

    loses_answer(job, follow)
    with pytest.raises(OutcomeUnknownError):
        job.committer.commit(reports)
    job.run(once("1"), [b"a"])
    assert world.visible() == [b"a", b"b"]


def test_a_log_that_cannot_be_read_after_a_commit_leaves_the_outcome_unknown() -> None:
    world = World([], options=batch_options(**{"eos.inline.bytes": INLINE}))
    job = Job(world)
    reports = job.write(job.planner.plan(), once("1"), [b"a"])

    def gone(name: str, moment: Moment) -> None:
        if name.startswith("log.") and moment is Moment.BEFORE:
            raise ClusterError("A permission is missing.", remedy="Grant it.")

    loses_answer(job, lambda: setattr(job.commits.process, "hook", gone))
    with pytest.raises(OutcomeUnknownError):
        job.committer.commit(reports)
    job.commits.process.hook = None
    Job(world).run(once("1"), [b"a"])
    assert world.visible() == [b"a"]


def test_a_stream_whose_commit_had_no_answer_does_not_say_that_nothing_is_visible() -> None:
    world = World([])
    first, second = Driver(world), Driver(world)
    reports = first.write(first.planner.plan(), 0, [b"a"], [b"b"])

    def follow() -> None:
        second.run(0, [b"a"], [b"b"])
        second.run(1, [b"c"])
        raise OutcomeUnknownError("No answer.", remedy="")

    At(first.commits.process, "log_producer.commit", Moment.AFTER, follow)
    with pytest.raises(OutcomeUnknownError, match="it may be written"):
        first.committer.commit(reports)
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_recovery_whose_record_others_have_followed_makes_no_plan(world: World, job: Job) -> None:
    """Its tasks would take the ids of the newer run's."""

    def follow() -> None:
        Job(world).run(once("2"), [b"b"])
        raise OutcomeUnknownError("No answer.", remedy="")

    plans = FakeKafka(world.cluster)
    job.planner = Planner(plans, world.options)
    At(plans.process, "log_producer.commit", Moment.AFTER, follow)
    with pytest.raises(OutcomeUnknownError):
        job.planner.plan()
    job.run(once("1"), [b"a"])
    assert world.visible() == [b"a", b"b"]
