"""The table of docs/performance.md that says what the sink costs, one row for each question."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.end_to_end import NAME as _END_TO_END
from bench.pages.end_to_end import times_as_old
from bench.pages.publication import (
    PERFORMANCE_PAGE,
    Publication,
    Results,
    number,
    spread_text,
    table,
)
from bench.result import Label, Result, Series, ratio

_SINKS, _SMALL, _SPARK, _SETTLE, _MEMORY = "sinks", "small-batches", "eos-spark", "settle", "memory"
_OURS, _THEIRS = "kafka-eos", "kafka"
_DEFAULTS = "default `batch.size` (16 KiB, 1,000,000 bytes)"
_SHAPES = {
    "100 B": "100 bytes",
    "1 KB": "1 KB",
    "100 B, 3 headers": "100 bytes, 3 headers",
    "100 B, keys": "100 bytes, keys",
    "100 B, keys, defaults": f"100 bytes, keys, {_DEFAULTS}",
    "1 KB, keys, defaults": f"1 KB, keys, {_DEFAULTS}",
}
_TASKS = (10, 200, 1_000)
_MB = 2**20

_Row = tuple[str, str, str, str]


def lines(results: Results) -> Iterator[str]:
    """A row for each question that the results answer."""
    rows: list[_Row] = []
    for name, answers in _ANSWERS.items():
        if name in results:
            rows += answers(results[name])
    yield from table(("", "Spark's own sink", "kafka-eos", "compared"), rows)


def _rates(result: Result) -> Iterator[_Row]:
    """Rows per second: a ratio compares batches that ran next to each other."""
    for shape in result.parameters["shapes"]:
        title = _SHAPES.get(shape["name"])
        times = [_one(result, "addBatch", peer=p, shape=shape["name"]) for p in (_THEIRS, _OURS)]
        if title is None or None in times:
            continue
        theirs, ours = (each for each in times if each is not None)
        rate, ours_rate = (
            number(shape["rows"] * 1000 / each.spread.median) for each in (theirs, ours)
        )
        compared = f"{spread_text(ratio(theirs.samples, ours.samples))} times"
        yield f"rows per second: {title}", rate, ours_rate, compared


def _small(result: Result) -> Iterator[_Row]:
    for tasks in (2, 200):
        labels: dict[str, Label] = {"tasks": tasks, "sockets": True}
        times = [_one(result, "addBatch", peer=peer, **labels) for peer in (_THEIRS, _OURS)]
        theirs, ours = (each.spread.median if each else None for each in times)
        if theirs is not None and ours is not None:
            what = f"ms for 1,000 rows in {tasks} tasks, Unix domain sockets"
            yield what, number(theirs), number(ours), f"{ours - theirs:+,.0f} ms"


def _visible(result: Result) -> Iterator[_Row]:
    labels: dict[str, Label] = {"partitions": 10, "trigger_ms": 1000}
    found = [_one(result, "visible", sink=sink, **labels) for sink in (_THEIRS, _OURS)]
    theirs, ours = (each.spread.median if each else None for each in found)
    if theirs is not None and ours is not None:
        what = "ms until a reader has a row, trigger of 1 s, 10 partitions"
        yield what, number(theirs), number(ours), f"{ours - theirs:+,.0f} ms"


def _end_to_end(result: Result) -> Iterator[_Row]:
    for part in ("p50", "p99"):
        times = times_as_old(result, part)
        if times is None:
            continue
        theirs, ours = (
            number(result.one(part, peer=peer).spread.median) for peer in (_THEIRS, _OURS)
        )
        what = f"ms from a row's creation to a reader, no trigger interval, {part}"
        yield what, theirs, ours, f"{number(times)} times"


def _commits(result: Result) -> Iterator[_Row]:
    for tasks in _TASKS:
        found = _one(result, "commit", tasks=tasks)
        if found is not None:
            what = f"ms for the commit of {tasks:,} tasks with transactions, three brokers"
            yield what, "none", number(1000 * found.spread.median), ""


def _memory(result: Result) -> Iterator[_Row]:
    peaks = [series.samples[0] for series in result.having("peak")]
    what = "MB of a task's Python worker, the largest case"
    yield what, "none", f"{max(peaks) / _MB:.0f}", ""


def _one(result: Result, what: str, **labels: Label) -> Series | None:
    """The series with exactly these labels."""
    series = (each for each in result.having(what, **labels) if len(each.labels) == len(labels))
    return next(series, None)


_ANSWERS = {
    _END_TO_END: _end_to_end,
    _SPARK: _visible,
    _SMALL: _small,
    _SINKS: _rates,
    _SETTLE: _commits,
    _MEMORY: _memory,
}
COST = Publication("cost", PERFORMANCE_PAGE, tuple(_ANSWERS), lines)
