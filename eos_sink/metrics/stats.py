"""Figures of a query, which its records in the decision log carry, and the clock that times steps.

Nothing of the protocol reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from eos_sink.metrics.names import Count, Step

_MICROS = 1_000_000


@dataclass(frozen=True)
class StepTime:
    """The times of a step, in microseconds: sum, number and the latest."""

    total_us: int = 0
    count: int = 0
    last_us: int = 0

    @staticmethod
    def once(seconds: float) -> StepTime:
        took = max(0, round(seconds * _MICROS))
        return StepTime(took, 1, took)

    @property
    def total(self) -> float:
        """Seconds."""
        return self.total_us / _MICROS

    @property
    def last(self) -> float:
        """Seconds."""
        return self.last_us / _MICROS

    def __add__(self, later: StepTime) -> StepTime:
        last_us = later.last_us if later.count else self.last_us
        return StepTime(self.total_us + later.total_us, self.count + later.count, last_us)


@dataclass(frozen=True)
class Stats:
    """Figures of a query up to a record, or those that one record adds.

    Attributes:
        counts: since the query's first record with figures; a missing one is 0.
        steps: times since then. A batch's vote, decide and settle end after its record is written,
            so the next record of the same process has their times.
        decided_ms: when the latest batch was decided, by the clock of its process, milliseconds
            since the epoch; 0: unknown.
        left_ms: the least time left of a task's transaction timeout at the latest vote.
        timeout_ms: that timeout.
    """

    counts: Mapping[Count, int] = field(default_factory=dict)
    steps: Mapping[Step, StepTime] = field(default_factory=dict)
    decided_ms: int = 0
    left_ms: int | None = None
    timeout_ms: int | None = None

    @staticmethod
    def of_counts(counts: Mapping[Count, int]) -> Stats:
        """Drop zero counts."""
        return Stats({count: int(number) for count, number in counts.items() if number})

    @staticmethod
    def of_steps(took: Mapping[Step, float]) -> Stats:
        """One time for each step, in seconds."""
        return Stats(steps={step: StepTime.once(seconds) for step, seconds in took.items()})

    def count(self, what: Count) -> int:
        return self.counts.get(what, 0)

    def step(self, step: Step) -> StepTime:
        return self.steps.get(step, StepTime())

    def __add__(self, later: Stats) -> Stats:
        counted = self.counts.keys() | later.counts.keys()
        timed = self.steps.keys() | later.steps.keys()
        voted = later if later.left_ms is not None else self
        return Stats(
            counts={c: self.count(c) + later.count(c) for c in Count if c in counted},
            steps={s: self.step(s) + later.step(s) for s in Step if s in timed},
            decided_ms=later.decided_ms or self.decided_ms,
            left_ms=voted.left_ms,
            timeout_ms=voted.timeout_ms,
        )


class StepClock:
    """Times the steps of one batch in one process. A step that fails has no time."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._since = now()
        self.took: dict[Step, float] = {}

    def begin(self) -> None:
        """Start timing."""
        self._since = self._now()

    def end(self, step: Step) -> None:
        """The step is done; start timing the next one."""
        begun = self._since
        self.begin()
        self.took[step] = self._since - begun

    @contextmanager
    def inner(self, step: Step) -> Iterator[None]:
        """Time a step inside the current one, whose time excludes it."""
        begun = self._now()
        yield
        self.took[step] = self._now() - begun
        self._since += self.took[step]
