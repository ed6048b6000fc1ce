"""Writes without a number: what their errors say is true, and stays true when it is followed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import (
    Action,
    ClusterError,
    CommitFailedError,
    OperatorNeededError,
    OutcomeUnknownError,
    SupersededError,
    UnfinishedError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.explain import Known, find_batch
from eos_sink.ops.history import History, Written
from eos_sink.ops.resolve import Choice
from eos_sink.protocol.model import BatchId, Numbering
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


# --- rows that are lost after the decision


def test_a_write_that_is_lost_as_a_whole_after_its_decision_is_dropped_and_run_again(
    world: World, job: Job
) -> None:
    after_decision(job, lambda: lose(world, 0, 1))
    with pytest.raises(CommitFailedError) as error:
        job.run(once("1"), [b"a"], [b"b"])
    assert error.value.action is Action.RUN_AGAIN
    assert log(world)[-1].decision is None
    job.run(once("2"), [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_a_lost_write_whose_decision_cannot_be_dropped_has_to_be_acknowledged(
    world: World, job: Job
) -> None:
    """Another session has taken over meanwhile. Its user may write the lost rows again first."""

    def taken_over() -> None:
        lose(world, 0, 1)
        with pytest.raises(OperatorNeededError):
            Job(world).planner.plan()

    after_decision(job, taken_over)
    with pytest.raises(OperatorNeededError) as error:
        job.run(once("1"), [b"a"], [b"b"])
    assert error.value.data["visible_rows"] == 0
    assert f"--accept --take-over --stream {once('1').stream}" in error.value.remedy
    Operator(world).chooses(Choice.ACCEPT, stream=once("1").stream)
    Job(world).run(once("2"), [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_a_write_that_loses_a_part_after_its_decision_says_what_is_visible(
    world: World, job: Job
) -> None:
    after_decision(job, lambda: lose(world, 1))
    with pytest.raises(OperatorNeededError) as error:
        job.run(once("1"), [b"a"], [b"b", b"c"])
    data = error.value.data
    assert (data["partitions"], data["rows"], data["visible_rows"]) == ([1], 2, 1)
    assert world.visible() == [b"a"]
    assert log(world)[-1].decision is not None


def test_a_write_of_which_the_driver_wrote_a_part_is_not_dropped() -> None:
    world = World([], options=batch_options(**{"eos.inline.bytes": "60"}))
    job = Job(world)
    after_decision(job, lambda: lose(world, 0))
    with pytest.raises(OperatorNeededError) as error:
        job.run(once("1"), [b"a" * 100], [b"b"])
    assert error.value.data["visible_rows"] == 1
    assert world.visible() == [b"b"]


@pytest.mark.parametrize("lost", [(0, 1), (1,)], ids=["all", "part"])
def test_a_lost_write_stops_the_next_one_by_name(
    world: World, job: Job, lost: tuple[int, ...]
) -> None:
    job.dies_after_the_decision(once("former"), [b"a"], [b"b"])
    lose(world, *lost)
    for batch in (once("next"), LOADS(3)):
        with pytest.raises(OperatorNeededError) as error:
            Job(world).run(batch, [b"c"])
        data = error.value.data
        assert data["former"] == once("former").stream
        assert (data["partitions"], data["rows"]) == ([*lost], len(lost))
        assert str(job.planner._run) in error.value.message
        assert error.value.action is Action.RESOLVE
    assert open_ids(world) == []
    before = world.visible()
    Operator(world).chooses(Choice.ACCEPT, stream=once("former").stream)
    Job(world).run(once("next"), [b"c"])
    assert world.visible() == sorted([*before, b"c"])


def test_an_open_write_is_finished_by_the_next_one(world: World, job: Job) -> None:
    job.dies_after_the_decision(once("former"), [b"a"], [b"b"])
    Job(world).run(once("next"), [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_whatever_fails_after_the_decision_the_write_is_not_run_again(
    world: World, job: Job
) -> None:
    def fails() -> None:
        raise ClusterError("A permission is missing.", remedy="Grant it.")

    after_decision(job, fails)
    with pytest.raises(UnfinishedError) as error:
        job.run(once("1"), [b"a"])
    assert error.value.remedy == "Grant it."
    Job(world).run(once("2"), [])
    assert world.visible() == [b"a"]


@pytest.mark.parametrize("batch", [LOADS(3)], ids=["version"])
def test_a_write_with_a_number_keeps_the_error_that_names_the_cause(
    world: World, job: Job, batch: BatchId
) -> None:
    def fails() -> None:
        raise ClusterError("A permission is missing.", remedy="Grant it.")

    after_decision(job, fails)
    with pytest.raises(ClusterError):
        job.run(batch, [b"a"])
    Job(world).run(batch, [b"a"])
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
def test_a_commit_without_an_answer_succeeds_though_others_have_followed(
    inline: str, others: int
) -> None:
    world = World([], options=batch_options(**{"eos.inline.bytes": inline}))
    job, other = Job(world), Job(world)
    reports = job.write(job.planner.plan(), once("1"), [b"a"], [b"b"])

    def follow() -> None:
        for number in range(others):
            other.run(once(f"other {number}"), [b"other %d" % number])

    loses_answer(job, follow)
    job.committer.commit(reports)
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
    job.run(once("3"), [b"a"])
    assert world.visible() == [b"a", b"b"]


def test_a_commit_whose_record_is_compacted_has_an_unknown_outcome() -> None:
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
    Job(world).run(once("2"), [])
    assert world.visible() == [b"a"]


@pytest.mark.parametrize("call", ["log_producer.init", "log_producer.send_offset"])
def test_an_error_before_the_commit_says_that_nothing_is_decided(call: str) -> None:
    job = Job(World([], options=batch_options(**{"eos.step.timeout.ms": "1000"})))
    reports = job.write(job.planner.plan(), once("1"), [b"a"])

    def silent(name: str, moment: Moment) -> None:
        if name == call and moment is Moment.BEFORE:
            raise OutcomeUnknownError("No answer.", remedy="")

    job.commits.process.hook = silent
    with pytest.raises(OutcomeUnknownError) as error:
        job.committer.commit(reports)
    assert error.value.data["decided"] is False


def test_a_stream_whose_commit_had_no_answer_does_not_say_that_nothing_is_visible() -> None:
    world = World([])
    first, second = Driver(world), Driver(world)
    reports = first.write(first.planner.plan(), 0, [b"a"], [b"b"])

    def follow() -> None:
        second.run(0, [b"a"], [b"b"])
        second.run(1, [b"c"])
        raise OutcomeUnknownError("No answer.", remedy="")

    At(first.commits.process, "log_producer.commit", Moment.AFTER, follow)
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
    with pytest.raises(SupersededError):
        job.planner.plan()
    job.run(once("1"), [b"a"])
    assert world.visible() == [b"a", b"b"]


def test_a_write_whose_commit_process_died_after_the_decision_is_not_to_be_run_again(
    world: World, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark aborts it in another process, and its own error does not say that."""
    reports = job.dies_after_the_decision(once("1"), [b"a"])
    Committer(FakeKafka(world.cluster), world.options).abort(reports, reports[0].token)
    assert world.visible() == [b"a"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


# --- what `eos-sink explain` says of a write by its number


def history(world: World, *gone: int) -> History:
    names = world.options.names
    kept = [record for record in log(world) if record.seq not in gone]
    position = Job(world).committer._register.read(Deadline(1)).position
    return History(names.shown, tuple(Written(names.shown, each, position, 0) for each in kept))


def test_a_write_without_a_number_is_found_by_the_number_of_its_record(
    world: World, job: Job
) -> None:
    mine = BatchId.numbered_by(Numbering.ONCE, "mine", 2)
    other = BatchId.numbered_by(Numbering.ONCE, "other", 2)
    later = BatchId.numbered_by(Numbering.ONCE, "later", 9)
    job.run(mine, [b"a"])
    records = history(world)
    assert find_batch(records, 2, mine.stream).known is Known.LATEST
    assert find_batch(records, 2, other.stream).known is Known.NOT_DECIDED
    assert find_batch(records, 9, later.stream).known is Known.NOT_YET
    assert find_batch(history(world, 2), 2, other.stream).known is Known.UNKNOWN


def test_the_register_reads_all_records_of_its_query(world: World, job: Job) -> None:
    job.run(once("1"), [b"a"])
    assert [each.seq for each in job.committer._register.records(Deadline(1))] == [1, 2, 3]
