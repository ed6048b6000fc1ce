"""How far a long command has come: a bar on a terminal, a line now and then elsewhere; on stderr,
so that what the command prints stays its own."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_FIRST_S, _EVERY_S = 1.0, 5.0


class Lines:
    """A line as something begins, one a second later, then one every five seconds."""

    def __init__(self) -> None:
        self._what, self._of, self._next = "", 0, 0.0
        self._began = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None: ...

    def step(self, what: str, offsets: int) -> None:
        if what != self._what:
            self._say(f"{what}: {offsets:,} offsets")
            self._next = time.monotonic() + _FIRST_S
        self._what, self._of = what, offsets

    def at(self, offsets: int, rows: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_S
            share = f"{offsets / self._of:.0%}, " if self._of else ""
            self._say(f"{self._what}: {share}{offsets:,} offsets, {rows:,} rows")

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", file=sys.stderr, flush=True)


class Silence(Lines):
    """Nothing."""

    def _say(self, text: str) -> None: ...


class Bar(Lines):
    """A bar, which is gone when the command ends."""

    def __enter__(self) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._task: TaskID | None = None
        self._bars: Progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[rows]:>12} rows"),
            TextColumn("{task.fields[rate]:>9} rows/s"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=8,
        )
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def step(self, what: str, offsets: int) -> None:
        if self._task is not None and what == self._what:
            self._bars.update(self._task, total=offsets)
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._what, self._began = what, time.monotonic()
        self._task = self._bars.add_task(what, total=offsets, rows="0", rate="")

    def at(self, offsets: int, rows: int) -> None:
        if self._task is not None:
            rate = rows / max(0.1, time.monotonic() - self._began)
            told = f"{rate:,.0f}"
            self._bars.update(self._task, completed=offsets, rows=f"{rows:,}", rate=told)


def progress(*, quiet: bool) -> Lines:
    """What fits standard error."""
    if quiet:
        return Silence()
    if sys.stderr.isatty() and importlib.util.find_spec("rich") is not None:
        return Bar()
    return Lines()
