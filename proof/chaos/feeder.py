"""Writes numbered rows at a steady rate into files; a file becomes a micro-batch."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

_LOOK_AGAIN_S = 0.05
_KEPT = 300
"""Older files are deleted, so that listing the directory stays fast."""


class Feeder(threading.Thread):
    """Drops files of JSON lines, `{"row": 17, "fed": 1763740800123}`.

    The rate of rows is steady. A file waits until the previous one is visible, so that a query
    that was down for a while gets one large file instead of several: Spark keeps the order of rows
    within a file, but not between files of a batch. `maxFilesPerTrigger` alone does not ensure one
    file per batch: a driver that is killed between Spark's source log and its offset log leaves a
    file that goes into one batch with the next.

    Args:
        directory: the query's input.
        hidden: on the same file system; files appear in `directory` whole.
        rate: rows per second.
        every_s: seconds between files, at least.
        visible: returns the number below which every row is visible.

    Attributes:
        rows: rows given so far; the numbers below it are the input.
    """

    def __init__(
        self, directory: Path, hidden: Path, rate: int, every_s: float, visible: Callable[[], int]
    ) -> None:
        super().__init__(name="feeder", daemon=True)
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._hidden = directory, hidden
        self._rate, self._every_s, self._visible = rate, every_s, visible
        self._files = 0
        self._enough = threading.Event()
        self.rows = 0

    def run(self) -> None:
        began = last = time.time()
        while not self._enough.wait(_LOOK_AGAIN_S):
            now = time.time()
            if now - last >= self._every_s and self._visible() >= self.rows:
                self._drop(began, round((now - began) * self._rate))
                last = now

    def stop(self) -> None:
        """Stop; no file appears after this returns."""
        self._enough.set()
        self.join()

    def _drop(self, began: float, end: int) -> None:
        rows = range(self.rows, end)
        due = [round((began + row / self._rate) * 1000) for row in rows]
        lines = (json.dumps({"row": row, "fed": fed}) for row, fed in zip(rows, due, strict=True))
        self._hidden.write_text("".join(f"{line}\n" for line in lines))
        # Counted before a reader can see them.
        self.rows = end
        self._hidden.rename(self._file(self._files))
        self._files += 1
        self._file(self._files - _KEPT).unlink(missing_ok=True)

    def _file(self, number: int) -> Path:
        return self._directory / f"{number:07}.jsonl"
