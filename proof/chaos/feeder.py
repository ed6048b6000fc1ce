"""Delivers numbered rows at a steady rate; a delivery becomes a micro-batch."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from proof.chaos.inbox import Inbox

_LOOK_AGAIN_S = 0.05


class Feeder(threading.Thread):
    """Delivers JSON lines, `{"row": 17, "fed": 1763740800123}`.

    The rate of rows is steady. A delivery waits until the previous one is visible, so that a query
    that was down for a while gets one large file instead of several: Spark keeps the order of rows
    within a file, but not between files of a batch. `maxFilesPerTrigger` alone does not ensure one
    file per batch: a driver that is killed between Spark's source log and its offset log leaves a
    file that goes into one batch with the next.

    Args:
        inbox: the query's input.
        rate: rows per second.
        every_s: seconds between deliveries, at least.
        visible: returns the number below which every row is visible.
        few: rows of every second delivery, at most; None: no limit.

    Attributes:
        rows: rows given so far; the numbers below it are the input.
    """

    def __init__(
        self,
        inbox: Inbox,
        rate: int,
        every_s: float,
        visible: Callable[[], int],
        few: int | None = None,
    ) -> None:
        super().__init__(name="feeder", daemon=True)
        self._inbox, self._few = inbox, few
        self._rate, self._every_s, self._visible = rate, every_s, visible
        self._deliveries = 0
        self._enough = threading.Event()
        self.rows = 0

    def run(self) -> None:
        began = last = time.time()
        while not self._enough.wait(_LOOK_AGAIN_S):
            now = time.time()
            if now - last >= self._every_s and self._visible() >= self.rows:
                self._deliver(began, round((now - began) * self._rate))
                last = now

    def stop(self) -> None:
        """Stop; no row is delivered after this returns."""
        self._enough.set()
        self.join()

    def _deliver(self, began: float, end: int) -> None:
        self._deliveries += 1
        if self._few is not None and self._deliveries % 2:
            end = min(end, self.rows + self._few)
        lines = {}
        for row in range(self.rows, end):
            due = round((began + row / self._rate) * 1000)
            lines[row] = json.dumps({"row": row, "fed": due})
        # Counted before a reader can see them.
        self.rows = end
        self._inbox.put(lines)
