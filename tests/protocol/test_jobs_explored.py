"""Users of jobs do as errors say, whatever happens: each row is visible once at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from eos_sink.decision_log import DecisionRegister
from eos_sink.driver.planner import Planner
from eos_sink.protocol.model import Numbering
from eos_sink.spark import remedies
from tests.protocol.explore_jobs import smallest
from tests.protocol.jobs import Blow, Plot, Trouble
from tests.protocol.users import PROCESS_DIED, JobStory, Pair

STORIES = 150
SHORT = (Trouble.LOSE_ANSWER,)
TROUBLES = [t if t in SHORT else pytest.param(t, marks=pytest.mark.long) for t in Trouble]
REACHED = {
    ("CommitFailedError", "ONCE", "run again"),
    ("OperatorNeededError", "ONCE", "resolve"),
    ("OutcomeUnknownError", "ONCE", "run again"),
    ("ProduceFailedError", "ONCE", "run again"),
    ("SupersededError", "ONCE", "run again"),
    ("UnfinishedError", "ONCE", "leave"),
    ("UnfinishedError", "VERSION", "run again"),
    (PROCESS_DIED, "ONCE", "look"),
    (PROCESS_DIED, "VERSION", "look"),
}


def failures(plots: Iterator[Plot]) -> Iterator[JobStory]:
    return (story for story in map(play, plots) if story.violations)


def play(plot: Plot) -> JobStory:
    return JobStory(plot).play()


def at_each_gate(*troubles: Trouble) -> Iterator[Plot]:
    """The troubles at neighbouring gates of the first writes of two sessions."""
    plain = Plot(writes=1)
    for at in range(len(play(plain).scene.gates)):
        yield Plot(tuple(Blow(each, at + n) for n, each in enumerate(troubles)), writes=1)


def test_without_trouble_no_user_meets_an_error() -> None:
    for kinds in ((Numbering.ONCE,) * 2, (Numbering.ONCE, Numbering.VERSION)):
        story = play(Plot(kinds=kinds))
        assert (story.violations, story.pairs) == ([], Counter())


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_trouble_at_each_gate_loses_and_doubles_no_row(trouble: Trouble) -> None:
    assert [(s.plot, s.violations) for s in failures(at_each_gate(trouble))] == []


@pytest.mark.parametrize("first", [0, pytest.param(10**6, marks=pytest.mark.long)])
def test_users_who_obey_lose_and_double_no_row_and_meet_every_error(first: int) -> None:
    pairs: Counter[Pair] = Counter()
    for seed in range(first, first + (STORIES if first == 0 else 20 * STORIES)):
        story = play(Plot.of(seed))
        pairs += story.pairs
        assert story.violations == [], (seed, story.plot)
    assert REACHED - pairs.keys() == set() if first else len(pairs) > len(REACHED) // 2


def forget_a_lost_write(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    monkeypatch.setattr(Planner, "_check_former_write", lambda *_: None)
    return at_each_gate(Trouble.MUTE)


def blame_the_next_write(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    monkeypatch.setattr(
        remedies, "_after_plan", lambda error: remedies._after_commit(error, None, None)
    )
    return at_each_gate(Trouble.KILL, Trouble.MUTE)


def trust_the_latest_record(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    monkeypatch.setattr(DecisionRegister, "_find_own", lambda *_: None)
    return at_each_gate(Trouble.LOSE_ANSWER, Trouble.RIVAL)


@pytest.mark.parametrize(
    "without", [forget_a_lost_write, blame_the_next_write, trust_the_latest_record]
)
def test_an_instruction_that_loses_or_doubles_rows_is_found(
    without: Callable[[pytest.MonkeyPatch], Iterator[Plot]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plots = without(monkeypatch)
    found = next(failures(plots), None)
    assert found is not None
    assert smallest(found).violations
    monkeypatch.undo()
    assert play(found.plot).violations == []
