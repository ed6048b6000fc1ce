"""A read_committed reader in a thread, which checks rows as they become visible."""

from __future__ import annotations

import itertools
import json
import statistics
import threading
import time
from bisect import bisect_right
from dataclasses import dataclass

from eos_sink_lab.testing.topic_audit import Checker
from eos_sink_lab.testing.topic_scan import Row

_LOOK_S = 0.1


@dataclass(frozen=True)
class Second:
    """One second of the run.

    Attributes:
        t: seconds since the epoch, whole.
        rows: rows that became visible in it.
        median_s: from fed to visible, seconds.
        longest_s: the same of the slowest row.
    """

    t: int
    rows: int
    median_s: float
    longest_s: float


class Watch(threading.Thread):
    """Reads until it is stopped.

    Args:
        checker: reads the topic of the run.

    Attributes:
        whole: every row below this number is visible.
        failure: the error that ended it; None: it runs.
    """

    def __init__(self, checker: Checker) -> None:
        super().__init__(name="watch", daemon=True)
        self._checker = checker
        self._lock = threading.Lock()
        self._enough = threading.Event()
        self._seconds: list[Second] = []
        self._now, self._delays = 0, list[float]()
        self._arrivals: list[float] = []
        self.whole = 0
        self.failure: str | None = None

    def run(self) -> None:
        try:
            while not self._enough.is_set():
                self._take(self._checker.look(_LOOK_S))
                self.whole = self._checker.check.whole()
        except Exception as error:  # noqa: BLE001 - the run reports it
            self.failure = repr(error)

    def stop(self) -> None:
        """Stop; after this the caller may use the checker."""
        self._enough.set()
        self.join()

    def first_after(self, moment: float) -> float | None:
        """When a row became visible for the first time after a moment (seconds, epoch)."""
        with self._lock:
            place = bisect_right(self._arrivals, moment)
            return self._arrivals[place] if place < len(self._arrivals) else None

    def longest_silence(self, since: float, until: float) -> float:
        """The longest time without a newly visible row between two moments, in seconds."""
        with self._lock:
            first, last = bisect_right(self._arrivals, since), bisect_right(self._arrivals, until)
            moments = [since, *self._arrivals[first:last], until]
        return max(later - earlier for earlier, later in itertools.pairwise(moments))

    def seconds(self) -> list[Second]:
        """The seconds in which rows became visible, without the current one."""
        with self._lock:
            return list(self._seconds)

    def _take(self, rows: list[Row]) -> None:
        now = time.time()
        with self._lock:
            if int(now) != self._now:
                self._turn(int(now))
            if rows:
                self._arrivals.append(now)
            self._delays += [now - json.loads(row.value() or b"")["fed"] / 1000 for row in rows]

    def _turn(self, now: int) -> None:
        if self._delays:
            middle, longest = statistics.median(self._delays), max(self._delays)
            second = Second(self._now, len(self._delays), round(middle, 3), round(longest, 3))
            self._seconds.append(second)
        self._now, self._delays = now, []
