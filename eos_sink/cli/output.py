"""Everything that a command prints: its report, news and progress.

On a terminal rich draws tables and bars, if it is installed. Everywhere else the same content is
plain text.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any, TextIO

_DURATIONS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000))
_FIRST_PROGRESS_S = 1.0


class CommandError(Exception):
    """The command cannot run; the message gives the reason and the remedy.

    Args:
        lines: the message has line breaks of its own.
    """

    def __init__(self, message: str, *, lines: bool = False) -> None:
        super().__init__(message)
        self.lines = lines


@contextlib.contextmanager
def signals_within_calls() -> Iterator[None]:
    """Raise what a signal handler has raised. Within some calls of confluent-kafka (2.16) it
    surfaces as a SystemError, "returned a result with an exception set", which it has caused."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt | SystemExit):
            raise error.__cause__ from None
        raise


def printable(text: str, *, lines: bool = False) -> str:
    """Escape what could change a terminal or begin a line of its own: names of ids, groups and
    clients come from Kafka, where they may have any characters.

    Args:
        lines: keep line breaks and tabs.
    """
    return "".join(
        each if each.isprintable() or (lines and each in "\n\t") else ascii(each)[1:-1]
        for each in text
    )


class Mood(Enum):
    """The style of a cell. The value is a style of rich."""

    PLAIN = ""
    GOOD = "green"
    WARN = "yellow"
    BAD = "bold red"


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    mood: Mood = Mood.PLAIN


@dataclass(frozen=True)
class Report:
    """A table and the notes below it.

    Attributes:
        columns: headings; without any there is no table.
        rows: each as long as `columns`.
        notes: sentences.
        ok: False makes the command's exit code 1.
        document: the same for programs: JSON, or what `encode_value` makes of a value.
        left: how many columns are aligned left; the others are aligned right.
        interrupted: Ctrl-C ended the command early; makes the exit code 130.
        wrap: plain text wraps cells at this many characters; 0: never.
        lines: notes have line breaks of their own.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]
    ok: bool
    document: Mapping[str, Any]
    left: int = 1
    interrupted: bool = False
    wrap: int = 0
    lines: bool = False

    @property
    def text(self) -> str:
        """The notes as they may be printed."""
        return "\n".join(printable(note, lines=self.lines) for note in self.notes)


def require_libraries(purpose: str, extra: str, *names: str) -> None:
    """Find out whether optional libraries are installed.

    Raises:
        CommandError: one is not; names the extra that installs it.
    """
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(f"{purpose} needs {', '.join(missing)}: pip install 'eos-sink[{extra}]'")


def is_rich_terminal(out: TextIO) -> bool:
    """True if rich can draw on `out`."""
    return out.isatty() and importlib.util.find_spec("rich") is not None


def print_report(report: Report, *, as_json: bool = False) -> None:
    """Print the report to standard output: a table, or its document as JSON."""
    if as_json or not report.columns or not is_rich_terminal(sys.stdout):
        print(render(report, as_json=as_json), flush=True)
        return
    # Imported here: a command in a pipe does without rich.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.HORIZONTALS, header_style="", pad_edge=False, padding=(0, 3, 0, 0))
    for index, name in enumerate(report.columns):
        table.add_column(
            Text(name), justify="left" if index < report.left else "right", overflow="fold"
        )
    for row in report.rows:
        table.add_row(*(Text(printable(cell.text), cell.mood.value) for cell in row))
    Console(file=sys.stdout).print(table)
    # Not printed by rich, which would break lines within a command.
    if report.notes:
        print(report.text, flush=True)


def render(report: Report, *, as_json: bool = False) -> str:
    """The report as plain text, or its document as JSON."""
    if as_json:
        return json.dumps(report.document, indent=2, default=encode_value)
    if not report.columns:
        return report.text
    lines = [report.columns, *_wrapped_rows(report)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *body = (
        "   ".join(
            text.ljust(width) if index < report.left else text.rjust(width)
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
    rule = "─" * (sum(widths) + 3 * (len(widths) - 1))
    return "\n".join(["", head, rule, *body, rule, *([report.text] if report.notes else [])])


def encode_value(value: Any) -> Any:
    """The JSON of dataclasses, enums and sets in a document."""
    if isinstance(value, frozenset):
        return sorted(value)
    return value.value if isinstance(value, Enum) else vars(value)


def _wrapped_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for row in report.rows:
        texts = [printable(cell.text) for cell in row]
        cells = [
            textwrap.wrap(text, report.wrap, break_long_words=False, break_on_hyphens=False)
            if report.wrap
            else [text]
            for text in texts
        ]
        yield from zip_longest(*cells, fillvalue="")


class Progress:
    """Prints the news and the progress of a long command, with the elapsed time.

    Where rich can draw, the progress is a bar for each step, which vanishes at the end. Elsewhere
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


def span(ms: int) -> str:
    """Format a duration in milliseconds for a table: "12 s", "3 min", "2 h"."""
    unit, size = next(((u, size) for u, size in _DURATIONS if abs(ms) >= 2 * size), ("s", 1000))
    return f"{ms / size:.0f} {unit}"
