"""A deadline that spans all requests of a step."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]


class Deadline:
    """A moment on a monotonic clock, in seconds; tests pass in their own clock."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self.seconds = seconds

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end - self._clock())

    @property
    def passed(self) -> bool:
        return self._clock() >= self._end

    def within(self, seconds: float) -> Deadline:
        """A deadline this many seconds from now, but not after this one."""
        return Deadline(min(seconds, self.left), self._clock)
