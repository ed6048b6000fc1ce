"""A result as one HTML page that needs nothing else. All that is from the topic is escaped."""

from __future__ import annotations

import time

from eos_sink.pages.html import document, section, table, text, tile
from eos_sink.verify import plots
from eos_sink.verify.verify_result import Check, Result, Status, Stretch

_MOST_ROWS = 200
_MARKS = {
    Status.GOOD: "zero",
    Status.WRONG: "alarm",
    Status.UNPROVEN: "doubt",
    Status.UNCHECKED: "unchecked",
}


def render_page(result: Result) -> str:
    """The whole page."""
    parts = [
        _head(result),
        _tiles(result),
        section("What was checked", _checks(result.checks), _notes(result)),
        _found(result.checks),
    ]
    if result.rows_at:
        what = "By the records' own timestamps."
        parts.append(section("Rows over time", plots.plot_over_time(result), what))
    parts.append(
        section("Partitions", plots.plot_partitions(result), _more(plots.count_left_out(result)))
    )
    parts.append(section("Offsets", _stretches(result.stretches)))
    return document(f"verify {result.topic}", parts)


def _head(result: Result) -> str:
    verdict, mark = ("nothing wrong", "good") if result.good else ("something is wrong", "bad")
    if result.interrupted:
        verdict = f"{verdict}, interrupted"
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return (
        f'<h1>{text(result.topic)} <span class="verdict {mark}">{verdict}</span></h1>'
        f'<p class="sub">{result.rows:,} rows of {len(result.stretches):,} partitions as a '
        f"read_committed reader is given them, told apart by "
        f"<code>{text(result.identity)}</code>; {when}, {result.seconds:,.1f} s.</p>"
    )


def _tiles(result: Result) -> str:
    tiles = [tile(f"{result.rows:,}", "rows read")]
    for check in result.checks:
        value = "–" if check.status is Status.UNCHECKED else f"{check.found:,}"  # noqa: RUF001
        label = check.name if check.status is not Status.UNCHECKED else f"{check.name}, not checked"
        tiles.append(tile(value, text(label), _MARKS[check.status]))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _checks(checks: tuple[Check, ...]) -> str:
    rows = [
        [
            text(check.name),
            f'<span class="{_MARKS[check.status]}">{check.status.value}</span>',
            text(check.told),
            "" if check.status is Status.UNCHECKED else f"{check.found:,}",
        ]
        for check in checks
    ]
    return table(["check", "outcome", "what was looked at", "found"], rows, numbers=1)


def _notes(result: Result) -> str:
    return " ".join(text(note) for note in result.notes)


def _found(checks: tuple[Check, ...]) -> str:
    rows = [
        [text(check.name), f"<code>{text(example)}</code>"]
        for check in checks
        for example in check.examples
    ]
    if not rows:
        return ""
    note = "partition@offset; the first ones of each kind."
    return section("Examples", table(["", "where"], rows, numbers=0), note)


def _stretches(stretches: tuple[Stretch, ...]) -> str:
    rows = [
        [
            str(s.partition),
            text(s.holder),
            f"{s.kept:,}",
            f"{s.start:,}",
            f"{s.stop:,}",
            f"{s.end:,}",
            f"{s.rows:,}",
            "" if s.aborted is None else f"{s.aborted:,}",
            f"{s.behind:,}",
        ]
        for s in stretches[:_MOST_ROWS]
    ]
    heads = ["partition", "held up by", "kept from", "read from", "read to", "end", "rows"]
    return table([*heads, "aborted", "waited for"], rows, numbers=7) + _more(
        len(stretches) - _MOST_ROWS
    )


def _more(number: int) -> str:
    return f"{number:,} more partitions are left out here." if number > 0 else ""
