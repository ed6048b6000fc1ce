"""The three forms of `eos-sink watch`: a picture on a terminal, else lines or JSON."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TextIO

from eos_sink.cli.output import (
    Mood,
    TableRow,
    encode_value,
    list_texts,
    printable,
    require_libraries,
)
from eos_sink.cli.query_table import figure, make_rows
from eos_sink.ops.activity import EventKind, QueryEvent, Throughput
from eos_sink.ops.alerts import Alert
from eos_sink.ops.documents import batch_document, query_document, run_document

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_EVENTS = 12
_BARS = "▁▂▃▄▅▆▇█"
_EVENT_MOODS = {
    EventKind.SETTLED: Mood.GOOD,
    EventKind.REWRITTEN: Mood.WARN,
    EventKind.GIVEN_UP: Mood.WARN,
    EventKind.STARTED: Mood.WARN,
    EventKind.CHOSEN: Mood.BAD,
}
_LEFT = {"query", "state", "rows of the last batches", "driver"}
_COLUMNS = (
    *("query", "batch", "state", "rows/s", "batches/min", "rows of the last batches", "decided"),
    *("open", "time left", "source lag", "readers behind", "driver"),
)


@dataclass(frozen=True)
class Update:
    """The news since the update before, and the present state."""

    at_ms: int
    queries: Sequence[Throughput]
    events: Sequence[QueryEvent]
    alerts: Sequence[Alert]


class JsonLines:
    """A JSON object per update."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, update: Update) -> None:
        queries = [
            query_document(each.status, update.at_ms)
            | {
                "rows_per_s": each.rows_per_s,
                "batches_per_min": each.batches_per_min,
                "readers_behind": each.status.readers_behind,
            }
            for each in update.queries
        ]
        events = [
            {
                "at_ms": each.at_ms,
                "query": each.query,
                "event": each.kind.name.lower(),
                **batch_document(each.batch),
                "rows": each.rows,
                "dead_letter_rows": each.dead_letters,
                "run": run_document(each.run),
            }
            for each in update.events
        ]
        self._print({**vars(update), "queries": queries, "events": events})

    def show_error(self, why: str) -> None:
        self._print({"error": why})

    def close(self) -> None: ...

    def _print(self, document: Mapping[str, Any]) -> None:
        print(json.dumps(document, default=encode_value), file=self._out, flush=True)


class Lines:
    """A line per event, and one per alert when it appears."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: set[object] = set()
        self._first = True

    def show(self, update: Update) -> None:
        events = update.events
        if self._first:
            said = f"Queries: {len(update.queries)}. Their latest events, then new ones:"
            self._print(update.at_ms, said)
            events, self._first = events[-_EVENTS:], False
        for each in events:
            self._print(each.at_ms, f"{each.query}: {describe_event(each)}")
        # The texts of a query's alerts have times, which change.
        alerts = {(each.kind, each.query or each.text): each for each in update.alerts}
        for about, alert in alerts.items():
            if about not in self._shown:
                self._print(update.at_ms, f"! {alert}")
        self._shown = set(alerts)

    def show_error(self, why: str) -> None:
        if why not in self._shown:
            print(f"! {printable(why)}", file=self._out, flush=True)
        self._shown = {why}

    def close(self) -> None: ...

    def _print(self, at_ms: int, text: str) -> None:
        print(f"{_clock(at_ms)}  {printable(text)}", file=self._out, flush=True)


class Picture:
    """A table of the queries, the latest events, and the alerts, on the whole terminal; `close`
    restores the terminal."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._events: deque[QueryEvent] = deque(maxlen=_EVENTS)
        self._shown: RenderableType = ""
        self._live: Live | None = None

    def show(self, update: Update) -> None:
        self._shown = self.draw(update)
        self._refresh(self._shown)

    def show_error(self, why: str) -> None:
        from rich.console import Group
        from rich.text import Text

        self._refresh(Group(self._shown, Text(f"\n{printable(why)}", Mood.BAD.value)))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _refresh(self, shown: RenderableType) -> None:
        # Not before the first snapshot: if that fails, its error belongs on the usual screen.
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._console, screen=True, auto_refresh=False)
            self._live.start()
        self._live.update(shown, refresh=True)

    def draw(self, update: Update) -> RenderableType:
        """The whole picture, with earlier events."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        self._events.extend(update.events)
        table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        rows = _make_rows(update)
        for name in rows[0] if rows else ():
            table.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=True)
        for row in rows:
            table.add_row(*list_texts(row))
        lines = [
            Text.assemble(
                (_clock(each.at_ms), "dim"),
                "  ",
                printable(f"{each.query}: "),
                (printable(describe_event(each)), _EVENT_MOODS.get(each.kind, Mood.PLAIN).value),
            )
            for each in self._events
        ]
        alerts = [Text(printable(f"! {each}"), Mood.BAD.value) for each in update.alerts]
        clock = f" · {_clock(update.at_ms)} UTC"
        head = Text.assemble((self._title, "bold"), (clock, "dim"), "\n")
        nothing = [] if rows else [Text("No query has written to this decision log yet.")]
        return Group(head, table, *nothing, Text(), *lines, Text(), *alerts)


View = JsonLines | Lines | Picture


def make_view(out: TextIO, *, as_json: bool, lines: bool, title: str) -> View:
    """The view that fits the file.

    Raises:
        CommandError: a picture is wanted, and rich is not installed.
    """
    if as_json:
        return JsonLines(out)
    if lines or not out.isatty():
        return Lines(out)
    require_libraries("the live view (without --lines)", "cli", "rich")
    from rich.console import Console

    return Picture(Console(file=out), title)


def _make_rows(update: Update) -> list[TableRow]:
    statuses = [each.status for each in update.queries]
    rows: list[TableRow] = []
    for row, each in zip(make_rows(statuses, update.at_ms), update.queries, strict=True):
        (decided, undecided), behind = each.status.counts, each.status.readers_behind
        more = {
            "query": each.status.query,
            "rows/s": f"{each.rows_per_s:,.0f}",
            "batches/min": f"{each.batches_per_min:,.0f}",
            "rows of the last batches": draw_bars(each.recent),
            "open": figure(undecided) + (f" + {decided} decided" if decided else ""),
            "readers behind": figure(behind),
        }
        every = row | more
        rows.append({name: every[name] for name in _COLUMNS if name in every})
    return rows


def draw_bars(numbers: Sequence[int]) -> str:
    """A bar per number, the highest for the greatest."""
    most = max(numbers, default=0) or 1
    return "".join(_BARS[round(each * (len(_BARS) - 1) / most)] for each in numbers)


def describe_event(event: QueryEvent) -> str:
    """The event without time and query."""
    if event.kind is EventKind.DECIDED:
        letters = f", {event.dead_letters:,} dead letters" if event.dead_letters else ""
        return f"{event.batch} decided, {event.rows:,} rows{letters}"
    if event.kind is EventKind.SETTLED:
        return f"{event.batch} settled"
    if event.run:
        return f"{event.kind.value}: {event.run}"
    return str(event.kind.value) + (f", {event.batch}" if event.batch else "")


def _clock(at_ms: int) -> str:
    """The time of day, UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, timezone.utc):%H:%M:%S}"
