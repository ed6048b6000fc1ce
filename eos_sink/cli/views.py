"""What `eos-sink watch` shows: a picture on a terminal, lines or JSON elsewhere."""

from __future__ import annotations

import importlib.util
import json
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

from eos_sink.cli.output import CommandError, Mood
from eos_sink.cli.status import batch_name, decided_ago, query_document, state_of, time_left
from eos_sink.ops.activity import Happening, Kind
from eos_sink.ops.alerts import concerns
from eos_sink.ops.pace import Pace
from eos_sink.ops.snapshot import Snapshot

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

_EVENTS = 12
_BARS = "▁▂▃▄▅▆▇█"
_STYLES = {Mood.GOOD: "green", Mood.WARN: "yellow", Mood.BAD: "bold red", Mood.PLAIN: ""}
_EVENT_MOODS = {
    Kind.SETTLED: Mood.GOOD,
    Kind.REWRITTEN: Mood.WARN,
    Kind.GIVEN_UP: Mood.WARN,
    Kind.STARTED: Mood.WARN,
    Kind.RULED: Mood.BAD,
}
_COLUMNS = (
    "query",
    "batch",
    "state",
    "rows/s",
    "batches/min",
    "rows of the last batches",
    "decided",
    "open",
    "time left",
    "readers behind",
    "driver",
)
_LEFT = {"query", "state", "rows of the last batches", "driver"}


class View(Protocol):
    """Shows one look after the other."""

    def __enter__(self) -> View: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(
        self, look: Snapshot, paces: Sequence[Pace], happened: Sequence[Happening]
    ) -> None: ...

    def failed(self, why: str) -> None:
        """This look saw nothing."""


def make_view(out: TextIO, *, as_json: bool, lines: bool, title: str, reach: str) -> View:
    """What fits the file, which may be a terminal.

    Args:
        reach: the options that lead a printed command to the same cluster.

    Raises:
        CommandError: a picture is wanted and what draws it is not installed.
    """
    if as_json:
        return JsonLines(out, reach)
    if lines or not out.isatty():
        return Lines(out, reach)
    if importlib.util.find_spec("rich") is None:
        raise CommandError("the live view needs rich: pip install 'eos-sink[cli]'; or add --lines")
    from rich.console import Console

    return Picture(Console(file=out), title, reach)


class JsonLines:
    """A JSON object for each look."""

    def __init__(self, out: TextIO, reach: str) -> None:
        self._out, self._reach = out, reach

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, look: Snapshot, paces: Sequence[Pace], happened: Sequence[Happening]) -> None:
        document = {
            "at_ms": look.at_ms,
            "queries": [
                query_document(pace.status, look.at_ms)
                | {
                    "rows_per_s": pace.rows_per_s,
                    "batches_per_min": pace.batches_per_min,
                    "readers_behind": pace.behind,
                }
                for pace in paces
            ],
            "events": [
                {
                    "at_ms": each.at_ms,
                    "query": each.query,
                    "event": each.kind.name.lower(),
                    "batch": each.batch or None,
                    "rows": each.rows,
                    "who": each.who or None,
                }
                for each in happened
            ],
            "concerns": [str(each) for each in concerns(look, self._reach)],
        }
        print(json.dumps(document), file=self._out, flush=True)

    def failed(self, why: str) -> None:
        print(json.dumps({"error": why}), file=self._out, flush=True)


class Lines:
    """A line for each event, and one for each concern when it comes."""

    def __init__(self, out: TextIO, reach: str) -> None:
        self._out, self._reach = out, reach
        self._told: set[object] = set()
        self._first = True

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, look: Snapshot, paces: Sequence[Pace], happened: Sequence[Happening]) -> None:
        if self._first:
            self._say(look.at_ms, f"{len(paces)} queries; what happens from here on:")
            happened, self._first = happened[-_EVENTS:], False
        for each in happened:
            self._say(each.at_ms, f"{each.query}: {event_text(each)}")
        found = {(each.kind, each.query): each for each in concerns(look, self._reach)}
        for about, concern in found.items():
            if about not in self._told:
                self._say(look.at_ms, f"! {concern}")
        self._told = set(found)

    def failed(self, why: str) -> None:
        if why not in self._told:
            print(f"! {why}", file=self._out, flush=True)
        self._told = {why}

    def _say(self, at_ms: int, text: str) -> None:
        print(f"{clock(at_ms)}  {text}", file=self._out, flush=True)


class Picture:
    """A table of the queries, the latest events, and what needs somebody; all of the terminal,
    which is left as it was."""

    def __init__(self, console: Console, title: str, reach: str) -> None:
        self._console, self._title, self._reach = console, title, reach
        self._events: deque[Happening] = deque(maxlen=_EVENTS)
        self._shown: RenderableType = ""
        self._live: Live | None = None

    def __enter__(self) -> Picture:
        from rich.live import Live

        # The first look may end with an error, which belongs on the terminal as it was.
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None and self._live.is_started:
            self._live.stop()

    def show(self, look: Snapshot, paces: Sequence[Pace], happened: Sequence[Happening]) -> None:
        self._shown = self.drawn(look, paces, happened)
        self._refresh(self._shown)

    def failed(self, why: str) -> None:
        from rich.console import Group
        from rich.text import Text

        self._refresh(Group(self._shown, Text(f"\n{why}", _STYLES[Mood.BAD])))

    def _refresh(self, shown: RenderableType) -> None:
        assert self._live is not None
        if not self._live.is_started:
            self._live.start()
        self._live.update(shown, refresh=True)

    def drawn(
        self, look: Snapshot, paces: Sequence[Pace], happened: Sequence[Happening]
    ) -> RenderableType:
        """The whole picture, with what has happened before below it."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        self._events.extend(happened)
        table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=True)
        for pace in paces:
            table.add_row(*cells(pace, look.at_ms))
        events = [
            Text.assemble(
                (clock(each.at_ms), "dim"),
                "  ",
                f"{each.query}: ",
                (event_text(each), _STYLES[_EVENT_MOODS.get(each.kind, Mood.PLAIN)]),
            )
            for each in self._events
        ]
        worries = [Text(f"! {each}", _STYLES[Mood.BAD]) for each in concerns(look, self._reach)]
        head = Text.assemble((self._title, "bold"), (f" · {clock(look.at_ms)} UTC", "dim"), "\n")
        nothing = [] if paces else [Text("No query has written to this decision log yet.")]
        return Group(head, table, *nothing, Text(), *events, Text(), *worries)


def cells(pace: Pace, now_ms: int) -> list[str | Text]:
    """A row of the table."""
    from rich.text import Text

    status, state = pace.status, state_of(pace.status)
    decided = sum(each.decided for each in status.open)
    open_ = f"{len(status.undecided)} + {decided} decided" if decided else len(status.undecided)
    return [
        status.query,
        batch_name(status.batch),
        Text(state.text, _STYLES[state.mood]),
        f"{pace.rows_per_s:,.0f}",
        f"{pace.batches_per_min:,.0f}",
        bars(pace.recent),
        decided_ago(status, now_ms),
        str(open_),
        time_left(status, now_ms),
        "?" if pace.behind is None else f"{pace.behind:,}",
        status.driver.value,
    ]


def bars(numbers: Sequence[int]) -> str:
    """A column for each, the tallest for the greatest."""
    most = max(numbers, default=0) or 1
    return "".join(_BARS[round(each * (len(_BARS) - 1) / most)] for each in numbers)


def event_text(event: Happening) -> str:
    """What happened, without time and query."""
    about = {
        Kind.DECIDED: f"{event.batch} decided, {event.rows:,} rows",
        Kind.SETTLED: f"{event.batch} settled",
        Kind.STARTED: f"a run has begun: {event.who}",
        Kind.RULED: f"a person has chosen: {event.who}",
    }
    on = f", {event.batch}" if event.batch else ""
    return about.get(event.kind, f"{event.kind.value}{on}")


def clock(at_ms: int) -> str:
    """The time of day, UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, timezone.utc):%H:%M:%S}"
