"""Faults at chosen port calls, and what becomes of the query when Spark starts it again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pytest

from eos_sink.errors import OutcomeUnknownError, SupersededError
from tests.fakes.process import Killed, Moment, Process
from tests.protocol.actor import Actor
from tests.protocol.spark import Gate, QueryFailed, Run
from tests.protocol.world import Batch, World, options

MOST_RUNS = 8
# Two rows in one transaction, one in another, and a partition without rows.
BATCHES: list[Batch] = [[[b"a", b"b"], [b"c"]], [[b"d"], []]]
SAMPLES = int(os.environ.get("EOS_FAULT_SAMPLES", "150"))
# Of the gates at which a fault is tried: `make test` has every third one.
STEPS = [3, pytest.param(1, marks=pytest.mark.long)]


class Fault(Enum):
    KILL_RUN = "the application dies with all its processes"
    KILL_PROCESS = "the process of this call dies"
    LEAVE_CALL = "this call hangs, Spark goes on without it, and it wakes up later"
    LEAVE_RUN = "the whole application hangs, another one is started, and it wakes up later"
    LOSE_ANSWER = "the call takes effect and its answer is lost"
    TIME_OUT = "every open transaction times out"
    END_SESSION = "the session of the group's member ends"


ZOMBIES = (Fault.LEAVE_CALL, Fault.LEAVE_RUN)
# Calls that wait for no broker: they have no answer to lose.
_LOCAL = {"close", "begin", "produce", "state", "identity"}


@dataclass(frozen=True)
class Strike:
    """A fault at a gate, counted over all runs; gates come before and after each port call.

    Attributes:
        wake: gates until the zombie that it makes wakes up; -1: not before the end.
        until: it wakes up when another process next passes this gate, and `wake` does not count.
    """

    fault: Fault
    at: int
    wake: int = -1
    until: Gate | None = None


Act = Callable[[World], None]


@dataclass(frozen=True)
class Scenario:
    """What happens to a query.

    Attributes:
        same_jvm: a run after one that failed uses its worker processes again.
        acts: what happens each time that the query has come to the end of its input, before it
            goes on.
        obey: what a user does about an error before the query is started again.
    """

    strikes: tuple[Strike, ...] = ()
    same_jvm: bool = False
    acts: tuple[Act, ...] = ()
    obey: Callable[[World, BaseException], None] | None = None


@dataclass
class Story:
    """A scenario, played until the query has come to the end of its input.

    Attributes:
        gates: every gate passed, by all runs.
        errors: how each run that failed had ended.
        groundless: errors of runs that met no fault and started while nothing else was alive.
    """

    world: World
    scenario: Scenario
    gates: list[Gate] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    groundless: list[BaseException] = field(default_factory=list)

    def play(self) -> Story:
        self._began = self.world.cluster.clock()
        self._left = sorted(self.scenario.strikes, key=lambda strike: strike.at)
        self._zombies: list[_Zombie] = []
        self._run_on()
        for act in self.scenario.acts:
            if not self.world.done:
                break
            act(self.world)
            self._run_on()
        self._wake(None)
        # Whatever the zombies did at last: one more batch, and nothing stands in its way.
        self.world.batches.append([[b"last"]])
        self._run_on()
        self.world.judge.at_the_end()
        return self

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

    def _run_on(self) -> None:
        before: Run | None = None
        for _ in range(MOST_RUNS):
            if self.world.done:
                return
            alone, strikes = not self._zombies, len(self._left)
            run = Run(self.world, self._step, before if self.scenario.same_jvm else None)
            ended = run.actor.go()
            error = run.actor.error
            before = run if isinstance(error, QueryFailed) else None
            if ended and error is not None and not isinstance(error, QueryFailed | Killed):
                raise error
            if isinstance(error, QueryFailed):
                self.errors.append(error.error)
                # A kept planner has to learn that a zombie took its place: one stop.
                kept = self.scenario.same_jvm and isinstance(error.error, SupersededError)
                if alone and len(self._left) == strikes and not kept:
                    self.groundless.append(error.error)
                if self.scenario.obey is not None:
                    self.scenario.obey(self.world, error.error)

    def _step(self, run: Run, gate: Gate, process: Process) -> None:
        number = len(self.gates)
        self.gates.append(gate)
        self._wake(gate)
        while self._left and self._left[0].at <= number:
            self._strike(run, self._left.pop(0), gate, process)

    def _strike(self, run: Run, strike: Strike, gate: Gate, process: Process) -> None:
        fault = strike.fault
        if fault is Fault.KILL_RUN:
            run.kill()
        elif fault is Fault.KILL_PROCESS:
            raise Killed(gate.call)
        elif fault in ZOMBIES:
            actor = run.leave(process, whole=fault is Fault.LEAVE_RUN)
            due = strike.at + strike.wake if strike.wake >= 0 else None
            self._zombies.append(_Zombie(actor, strike.until or due))
            actor.park()
        elif fault is Fault.LOSE_ANSWER:
            if gate.moment is Moment.AFTER and gate.call.partition(".")[2] not in _LOCAL:
                raise OutcomeUnknownError(f"The answer to {gate.call} is lost.", remedy="")
        elif fault is Fault.TIME_OUT:
            self.world.cluster.coordinator.time_out()
        elif fault is Fault.END_SESSION:
            self.world.cluster.groups.end_session(self.world.options.names.group)

    def _wake(self, gate: Gate | None) -> None:
        """Let each zombie whose time has come run to its end; at the end of all, every one."""
        while True:
            number = len(self.gates) - 1
            due = [z for z in self._zombies if gate is None or z.due(gate, number)]
            if not due:
                return
            self._zombies.remove(due[0])
            due[0].actor.go()


@dataclass(frozen=True)
class _Zombie:
    actor: Actor
    wake: Gate | int | None

    def due(self, gate: Gate, number: int) -> bool:
        if isinstance(self.wake, int):
            return self.wake <= number
        return self.wake == gate


def play(batches: Sequence[Batch], *strikes: Strike, same_jvm: bool = False, **given: str) -> Story:
    """`given`: options, `_` for a dot."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    world = World(list(batches), options=options(**named))
    return Story(world, Scenario(strikes, same_jvm)).play()
