"""The report that a command prints.

On a terminal rich draws its table, if it is installed. Everywhere else the same content is
plain text.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TextIO

from eos_sink.cli.exit_codes import ExitCode
from eos_sink.published import as_published

if TYPE_CHECKING:
    from rich.text import Text

_DURATIONS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000))


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
    """Return a text for users as a terminal may show it, with links to the pages that it names.

    Escape what could change a terminal or begin a line of its own: names of ids, groups and
    clients come from Kafka, where they may have any characters.

    Args:
        lines: keep line breaks and tabs.
    """
    return "".join(
        each if each.isprintable() or (lines and each in "\n\t") else ascii(each)[1:-1]
        for each in as_published(text)
    )


class Mood(Enum):
    """The style of a cell. The value is a style of rich."""

    PLAIN = ""
    GOOD = "green"
    WARN = "yellow"
    BAD = "bold red"


@dataclass(frozen=True)
class Cell:
    """One cell of a table that is not plain."""

    text: str
    mood: Mood = Mood.PLAIN


TableRow = Mapping[str, "Cell | str"]
"""The cells of a row by the headings of their columns."""


@dataclass(frozen=True)
class Report:
    """A table and the notes below it.

    Attributes:
        rows: all with the same columns; without any there is no table.
        notes: sentences.
        ok: False makes the command's exit code 1.
        unseen: something could not be seen; makes the exit code 3 if all else is well.
        document: the same for programs: JSON, or what `encode_value` makes of a value.
        left: how many columns are aligned left; the others are aligned right.
        interrupted: Ctrl-C ended the command early; makes the exit code 130.
        wrap: plain text wraps cells at this many characters; 0: never.
        lines: notes have line breaks of their own.
    """

    rows: Sequence[TableRow]
    notes: Sequence[str]
    ok: bool
    document: Mapping[str, Any]
    left: int = 1
    interrupted: bool = False
    wrap: int = 0
    lines: bool = False
    unseen: bool = False

    @property
    def exit_code(self) -> ExitCode:
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if not self.ok:
            return ExitCode.FAILED
        return ExitCode.NOT_SEEN if self.unseen else ExitCode.OK

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings."""
        return tuple(self.rows[0]) if self.rows else ()

    @property
    def cells(self) -> list[list[Cell]]:
        """The table without its headings."""
        return [list_cells(row) for row in self.rows]

    @property
    def text(self) -> str:
        """The notes as they may be printed."""
        return "\n".join(printable(note, lines=self.lines) for note in self.notes)


def list_cells(row: TableRow) -> list[Cell]:
    return [each if isinstance(each, Cell) else Cell(each) for each in row.values()]


def list_texts(row: TableRow) -> list[Text]:
    """Return the cells of a row as rich draws them."""
    from rich.text import Text

    return [Text(printable(cell.text), cell.mood.value) for cell in list_cells(row)]


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
    if as_json or not report.rows or not is_rich_terminal(sys.stdout):
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
        table.add_row(*list_texts(row))
    Console(file=sys.stdout).print(table)
    # Not printed by rich, which would break lines within a command.
    if report.notes:
        print(report.text, flush=True)


def print_error(said: str) -> None:
    """Print an error as JSON to standard output, for a program that reads the result there."""
    print(json.dumps({"error": said}, indent=2))


def render(report: Report, *, as_json: bool = False) -> str:
    """The report as plain text, or its document as JSON."""
    if as_json:
        return json.dumps(report.document, indent=2, default=encode_value)
    if not report.rows:
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
    for row in report.cells:
        texts = [printable(cell.text) for cell in row]
        cells = [
            textwrap.wrap(text, report.wrap, break_long_words=False, break_on_hyphens=False)
            if report.wrap
            else [text]
            for text in texts
        ]
        yield from zip_longest(*cells, fillvalue="")


def span(ms: int) -> str:
    """Format a duration in milliseconds for a table: "12 s", "3 min", "2 h"."""
    unit, size = next(((u, size) for u, size in _DURATIONS if abs(ms) >= 2 * size), ("s", 1000))
    return f"{ms / size:.0f} {unit}"
