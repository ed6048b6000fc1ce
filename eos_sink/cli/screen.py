"""How the demo shows itself while it works: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from eos_sink.demo.demo_events import Progress

_PLAIN_STEPS = 5


class PlainScreen:
    """Lines only: news as it comes, and each side's progress some times."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._began = time.monotonic()
        self._steps: dict[str, int] = {}

    def __enter__(self) -> PlainScreen:
        return self

    def __exit__(self, *_: object) -> None: ...

    def say(self, text: str) -> None:
        print(f"{_clock(self._began)}  {text}", file=self._out, flush=True)

    def progress(self, side: str, now: Progress) -> None:
        step = now.visible * _PLAIN_STEPS // now.expected
        if step > self._steps.get(side, 0):
            self._steps[side] = step
            self.say(
                f"{side}: {now.visible:,} of {now.expected:,} rows visible, "
                f"{now.batches} of {now.of_batches} batches, {now.doubled:,} doubled"
            )


class LiveScreen:
    """A bar for each side at the bottom, news above."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        self._began = time.monotonic()
        self._console = console
        self._sides: dict[str, TaskID] = {}
        self._bars = Bars(
            TextColumn("[bold]{task.description:<14}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[rows]}"),
            TextColumn("{task.fields[batches]}"),
            TextColumn("{task.fields[doubled]}"),
            console=console,
            refresh_per_second=8,
        )

    def __enter__(self) -> LiveScreen:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        from rich.text import Text

        line = Text.assemble((_clock(self._began), "dim"), "  ", (text, _style(text)))
        self._console.print(line, highlight=False)

    def progress(self, side: str, now: Progress) -> None:
        doubled = f"[bold red]{now.doubled:,} doubled[/]" if now.doubled else "0 doubled"
        fields: dict[str, Any] = {
            "rows": f"{now.visible:>7,} of {now.expected:,} rows",
            "batches": f"{now.batches:>2} of {now.of_batches} batches",
            "doubled": doubled,
        }
        if side not in self._sides:
            self._sides[side] = self._bars.add_task(side, total=now.expected, **fields)
        self._bars.update(self._sides[side], completed=now.visible, **fields)


def make_screen(out: TextIO) -> PlainScreen | LiveScreen:
    """What fits the file, which may be a terminal."""
    from rich.console import Console

    console = Console(file=out)
    return LiveScreen(console) if console.is_terminal else PlainScreen(out)


def _clock(began: float) -> str:
    return f"{time.monotonic() - began:6.1f} s"


def _style(text: str) -> str:
    return "yellow" if text.startswith(("SIGKILL", "SIGSTOP", "SIGCONT")) else ""
