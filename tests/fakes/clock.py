"""Time that moves only during waits."""

from __future__ import annotations

from collections.abc import Callable


class FakeClock:
    """Seconds, read by calling it. A fake client that has to wait moves it forward, and each
    listener is called then, so that timeouts happen during waits, as they do in Kafka."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._listeners: list[Callable[[], None]] = []

    def __call__(self) -> float:
        return self._now

    @property
    def ms(self) -> int:
        return round(self._now * 1000)

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def advance(self, seconds: float) -> None:
        self._now += seconds
        for listener in self._listeners:
            listener()

    def wait(self, condition: Callable[[], bool], seconds: float, step: float = 0.5) -> bool:
        """Move on in steps until the condition holds or the time is over; whether it holds."""
        end = self._now + seconds
        while not condition():
            if self._now >= end:
                return False
            self.advance(min(step, end - self._now))
        return True
