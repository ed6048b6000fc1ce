"""A driver that was frozen, replaced, and wakes up as if nothing had happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from textwrap import shorten

from eos_sink.demo.run_watch import Watch
from eos_sink.testing.process_tree import ProcessTree, find_last_error

_ENDS_WITHIN_S = 60.0
_WORDS = 130


class Zombie:
    """A frozen driver whose successor is at work.

    Args:
        driver: frozen.
        batch: what it was writing. It is woken when the successor is past it.
        say: takes one line of news.
    """

    def __init__(self, driver: ProcessTree, batch: int, say: Callable[[str], None]) -> None:
        self._driver = driver
        self._batch = batch
        self._say = say
        self._woken: float | None = None
        self.refused: bool | None = None
        """Whether it ended with an error; None while it lives."""

    def look(self, watch: Watch, *, last_call: bool = False) -> None:
        """Wake it when it is time, and see what has become of it.

        Args:
            watch: readers of the run.
            last_call: the successor has ended: wake it in any case.
        """
        if self.refused is not None:
            return
        if self._woken is None:
            if last_call or self._is_past(watch):
                self._woken = time.monotonic()
                self._driver.resume()
                self._say("SIGCONT: the frozen driver wakes up, its successor is at work")
            return
        awake_s = time.monotonic() - self._woken
        code = self._driver.exit_code
        if code is not None:
            self.refused = code != 0
            why = shorten(find_last_error(self._driver.read_log()) or f"exit code {code}", _WORDS)
            verb = "gives up" if self.refused else "ends as if all were well"
            self._say(f"the woken driver {verb} after {awake_s:.1f} s: {why}")
        elif awake_s > _ENDS_WITHIN_S:
            self.refused = False
            self._driver.kill()
            self._say(f"the woken driver still ran after {awake_s:.0f} s; killed")

    def _is_past(self, watch: Watch) -> bool:
        """Whether the successor has done the zombie's batch and is at a later one."""
        now_at = watch.current_batch()
        return now_at is not None and now_at > self._batch

    def close(self) -> None:
        self._driver.kill()
