"""A query that Spark starts again whatever the error, until it has come to the end of its input."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from eos_sink.errors import OperatorNeededError, SupersededError
from tests.protocol.actor import Actor
from tests.protocol.checkpoint import AnotherRun
from tests.protocol.scene import KILLS, Fault, Gate, Scene, Strike, is_felt, time_of
from tests.protocol.spark import FAILURES, Session, SessionDied
from tests.protocol.world import Batch, World, options
from tests.seeds import every

MOST_RUNS = 8
# Two rows in one transaction, one in another, and a partition without rows.
BATCHES: list[Batch] = [[[b"a", b"b"], [b"c"]], [[b"d"], []]]
SAMPLES = int(os.environ.get("EOS_FAULT_SAMPLES", "90"))
# Of the gates at which a fault is tried: `make test` draws every thirtieth one.
STEPS = [30, pytest.param(1, marks=pytest.mark.long)]
# After these a query goes on by itself, without a user who does something about them.
FAULTS = (
    Fault.KILL_RUN,
    Fault.KILL_PROCESS,
    Fault.LEAVE_CALL,
    Fault.LEAVE_RUN,
    Fault.LOSE_ANSWER,
    Fault.LATE_REQUEST,
    Fault.TIME_OUT,
    Fault.END_SESSION,
)

Act = Callable[[World], None]


@dataclass
class Story:
    """A query, played until it has come to the end of its input.

    Attributes:
        same_jvm: a run after one that failed uses its worker processes again.
        acts: what happens each time that the query has come to the end of its input, before it
            goes on.
        obey: what a user does about an error before the query is started again.
        errors: how each run that failed had ended.
        groundless: errors of runs that met no fault and started while nothing else was alive.
    """

    world: World
    strikes: Sequence[Strike] = ()
    same_jvm: bool = False
    acts: Sequence[Act] = ()
    obey: Callable[[World, BaseException], None] | None = None
    errors: list[BaseException] = field(default_factory=list)
    groundless: list[BaseException] = field(default_factory=list)

    def play(self) -> Story:
        self._began = self.world.cluster.clock()
        self._scene = Scene(self.world, self.strikes)
        with time_of(self.world), contextlib.closing(self._scene):
            self._run_on()
            for act in self.acts:
                if not self.world.done:
                    break
                act(self.world)
                self._run_on()
            self._scene.wake()
            # Whatever the zombies did at last: one more batch, and nothing stands in its way.
            self.world.batches.append([[b"last"]])
            self._run_on()
        self.world.judge.at_the_end()
        return self

    @property
    def gates(self) -> list[Gate]:
        """Every gate passed, by all runs."""
        return self._scene.gates

    @property
    def waited(self) -> float:
        """Seconds of waiting for timeouts, over all runs."""
        return self.world.cluster.clock() - self._began

    @property
    def verdict(self) -> list[str]:
        """All that went wrong."""
        found = list(self.world.judge.violations)
        found += [f"without a cause: {error!r}" for error in self.groundless]
        if not self.world.done:
            found.append(f"{MOST_RUNS} runs did not come to an end: {self.errors[-1]!r}")
        return found

    @property
    def excess(self) -> list[str]:
        """What a single kill must not lead to: it needs one restart, and no timeout."""
        found = [repr(each) for each in self.errors if isinstance(each, OperatorNeededError)]
        if len(self.errors) > 1:
            found.append(f"stopped {len(self.errors)} times: {self.errors}")
        return [*found, f"waited {self.waited} s"] if self.waited else found

    def _run_on(self) -> None:
        session: Session | None = None
        for _ in range(MOST_RUNS):
            if self.world.done:
                return
            alone, strikes = not self._scene.zombies, len(self._scene.left)
            if session is None or not self.same_jvm:
                session = Session(self._scene)
            run = session.run = Actor(partial(session.run_query, self.world.checkpoint))
            run.go()
            error = run.error
            if not isinstance(error, (*FAILURES, AnotherRun)):
                session = None
                if error is not None and not isinstance(error, SessionDied):
                    raise error
                continue
            self.errors.append(error)
            # A kept planner has to learn that a zombie took its place: one stop.
            kept = self.same_jvm and isinstance(error, SupersededError)
            if alone and len(self._scene.left) == strikes and not kept:
                self.groundless.append(error)
            if self.obey is not None:
                self.obey(self.world, error)


def find_wrong(
    fault: Fault,
    gates: Sequence[Gate],
    step: int,
    play: Callable[[Strike], Story],
    judge: Callable[[Story], list[str]] = lambda story: story.verdict,
) -> dict[tuple[int, Gate], list[str]]:
    """Play a story with a fault at every `step`th gate at which it is felt, the first of which is
    drawn; return what went wrong, by gate.

    Args:
        gates: of the story without a fault.
        judge: says what went wrong.
    """
    wrong = {}
    felt = [number for number, gate in enumerate(gates) if is_felt(fault, gate)]
    for at in every(step, felt, fault):
        story = play(Strike(fault, at))
        if found := judge(story):
            wrong[at, story.gates[at]] = found
    return wrong


def with_excess(story: Story) -> list[str]:
    """What went wrong, and what a single kill must not lead to."""
    killed = any(strike.fault in KILLS for strike in story.strikes)
    return story.verdict + (story.excess if killed else [])


def play(batches: Sequence[Batch], *strikes: Strike, same_jvm: bool = False, **given: str) -> Story:
    """`given`: options, `_` for a dot."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    return Story(World(list(batches), options=options(**named)), strikes, same_jvm).play()
