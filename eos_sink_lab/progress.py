"""The news and the progress of a long command."""

from __future__ import annotations

import time
from typing import Any, TextIO

from eos_sink.cli.output import is_rich_terminal, printable

_FIRST_PROGRESS_S = 1.0


class Progress:
    """Prints the news and the progress of a long command, with the elapsed time.

    Where rich can draw, the progress is a bar for each step, which is removed at the end. Elsewhere
    it is a line now and then.

    Args:
        out: a file or a terminal; None: nothing is shown.
        every_s: seconds between two lines of progress.
    """

    def __init__(self, out: TextIO | None, every_s: float = 5.0) -> None:
        self._out, self._every_s = out, every_s
        self._began = self._step_began = time.monotonic()
        self._next_line = 0.0
        self._step, self._total = "", 0
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Progress:
        if self._out is not None and is_rich_terminal(self._out):
            from rich import progress
            from rich.console import Console

            self._bars = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(bar_width=28),
                progress.TextColumn("{task.percentage:>3.0f} %"),
                progress.TextColumn("{task.fields[text]}"),
                progress.TimeRemainingColumn(compact=True),
                console=Console(file=self._out),
                transient=True,
                refresh_per_second=8,
            )
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """Print one line of news."""
        clock, text = f"{time.monotonic() - self._began:6.1f} s", printable(text)
        if self._bars is not None:
            self._bars.console.print(f"{clock}  {text}", markup=False, soft_wrap=True)
        elif self._out is not None:
            print(f"{clock}  {text}", file=self._out, flush=True)

    def step(self, what: str, total: int) -> None:
        """Begin a step, or change the total of the current one."""
        if what != self._step:
            self._step_began = time.monotonic()
            self._next_line = self._step_began + _FIRST_PROGRESS_S
        self._step, self._total = what, total
        if self._bars is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, text="")
            self._bars.update(self._tasks[what], total=total)

    def at(self, done: int, rows: int, note: str = "") -> None:
        """Show how far the step is; cheap, so it may be called often.

        Args:
            done: how much of the step's total.
            rows: rows so far; they give the rate.
            note: more to show.
        """
        now = time.monotonic()
        if self._bars is None and now < self._next_line:
            return
        self._next_line = now + self._every_s
        rate = rows / max(0.1, now - self._step_began)
        text = f"{rows:,} rows, {rate:,.0f} rows/s" + (f", {note}" if note else "")
        if self._bars is not None:
            self._bars.update(self._tasks[self._step], completed=done, text=text)
        else:
            share = f"{done / self._total:.0%}, " if self._total else ""
            self.say(f"{self._step}: {share}{text}")
