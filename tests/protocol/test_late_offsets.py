"""With asynchronous progress tracking Spark writes a batch's offsets while it runs, and a batch
without them is not decided, whatever ends in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from eos_sink.driver.checkpoint_files import await_begun, await_own
from eos_sink.errors import CommitFailedError, ConfigurationError, SupersededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId
from tests.fakes.process import Moment
from tests.protocol.checkpoint import Checkpoint
from tests.protocol.driver import Driver
from tests.protocol.explore_source import ASYNCHRONOUS, SourcePlot, SourceStory
from tests.protocol.scene import Fault, Gate, Strike
from tests.protocol.world import World, options

SOON = Deadline(0.05)
BATCH = BatchId("stream-1", 3)
# One file of seven never comes, each time another batch's.
LATE = SourcePlot(late=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1_000.0))
# Of the start, of the run, and of its first batch.
_RECORDS = 2
KILLED = Strike(Fault.KILL_RUN, 0)
# When the next run has written its offsets, and plans.
LEFT = Strike(Fault.LEAVE_RUN, 0, until=Gate("control.check_brokers", Moment.BEFORE))
UNGROUPED = replace(LATE, ungrouped=True)


def files(*ends: int, commits: int | None = None, constructed_ms: int = 5) -> Checkpoint:
    return Checkpoint(
        ends={each: {0: each} for each in ends},
        times=dict.fromkeys(ends, constructed_ms),
        commits=set() if commits is None else {commits},
    )


def test_a_batch_has_its_offsets_when_they_were_constructed_before_its_plan() -> None:
    await_own(files(2, 3, constructed_ms=5), BATCH, (5, 5), SOON)


def test_offsets_that_do_not_come_are_an_error_that_names_the_file() -> None:
    with pytest.raises(CommitFailedError, match=r"no file /checkpoint/offsets/3\.") as missing:
        await_own(files(2), BATCH, (0, 5), SOON)
    assert missing.value.data == {"batch": 3, "file": "/checkpoint/offsets/3"}


@pytest.mark.parametrize("constructed_ms", [3, 6])
def test_offsets_that_were_constructed_after_the_plan_or_before_the_last_are_another_runs(
    constructed_ms: int,
) -> None:
    with pytest.raises(SupersededError, match="/checkpoint/offsets/3 was written by another run"):
        await_own(files(3, constructed_ms=constructed_ms), BATCH, (4, 5), SOON)


def test_offsets_of_a_run_that_hung_while_the_checkpoint_was_replaced_are_noticed() -> None:
    """It writes them below the same path, for another batch of this number."""
    strikes = Strike(Fault.LEAVE_RUN, 219, 200), Strike(Fault.SOURCE_AGAIN, 222)
    assert SourceStory(SourcePlot(strikes, late=(0.0, 1.0, 0.0))).play().violations == []


def test_the_offsets_of_another_query_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="is that of query stream-1"):
        await_own(files(3), replace(BATCH, stream="stream-2"), (0, 5), SOON)


@pytest.mark.parametrize("begun", [files(0), files(2, 3, commits=2), files(0, commits=2)])
def test_a_run_begins_with_the_batch_that_has_no_commit(begun: Checkpoint) -> None:
    await_begun(begun, SOON)


@pytest.mark.parametrize(("before", "number"), [(files(), 0), (files(2, commits=2), 3)])
def test_a_run_whose_first_batch_has_no_offsets_stops(before: Checkpoint, number: int) -> None:
    with pytest.raises(CommitFailedError, match=f"no file /checkpoint/offsets/{number}"):
        await_begun(before, SOON)


def test_a_batch_without_tasks_waits_for_nothing() -> None:
    world = World([], options=options(checkpointLocation="/checkpoint", **ASYNCHRONOUS))
    driver = Driver(world, files=files())
    driver.planner.plan()
    driver.committer.commit([])
    assert world.judge.decisions() == []


def test_offsets_that_are_late_stop_nobody() -> None:
    story = SourceStory(SourcePlot(late=(0.1,))).play()
    assert (story.violations, story.met) == ([], Counter())


@pytest.mark.parametrize("step", [250, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("plain", [LATE, UNGROUPED], ids=["group", "no group"])
@pytest.mark.parametrize("strike", [KILLED, LEFT, Strike(Fault.LEAVE_RUN, 0, 200)])
def test_whatever_ends_a_run_nobody_is_needed(strike: Strike, plain: SourcePlot, step: int) -> None:
    assert stopped(strike, plain, step) == []


def stopped(strike: Strike, plain: SourcePlot, step: int) -> list[object]:
    """Stories with the fault at every `step`th gate that end badly, or need an operator."""
    gates = SourceStory(plain).play().scene.gates
    # Before its first batch is decided the log does not know who has begun it.
    recorded = Gate("log_producer.commit", Moment.AFTER)
    first = [at for at, gate in enumerate(gates) if gate == recorded][_RECORDS]
    numbers = range(first, len(gates), step)
    plots = (replace(plain, strikes=(replace(strike, at=at),)) for at in numbers)
    stories = (SourceStory(plot).play() for plot in plots)
    return [
        (story.plot, story.violations, story.met)
        for story in stories
        if story.violations or story.met.keys() - {"CommitFailedError", "SupersededError"}
    ]
