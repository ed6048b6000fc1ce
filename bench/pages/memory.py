"""docs/memory.md: what a task's worker takes, by rows and behind a slow broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.pages.publication import Publication, Results, measured_on, number, table
from bench.result import Label, Result
from eos_sink_lab.verify.pages import BLUE, INK, ORANGE, STYLE, WIDTH, render_svg

_MB = 2**20
_DEFAULT_MB = 64
_BASE, _PEAK, _TIME, _RSS, _TAKEN = "base", "peak", "time", "rss", "rows taken"


def lines(results: Results) -> Iterator[str]:
    result = results["memory"]
    yield measured_on(result)
    yield ""
    head = ("Rows of a task", "bytes a row", "bound, MB", "at first, MB", "peak, MB", "more, MB")
    yield from table(head, [_row(result, labels) for labels in _cases(result, slow=False)])
    slow = _cases(result, slow=True)
    if slow:
        delay = int(2000 * result.parameters["delay"])
        yield f"Behind a broker whose answers take {delay} ms longer for the first 15 seconds:"
        yield ""
        yield from table(head, [_row(result, labels) for labels in slow])
    many = list(result.having("rss of many"))
    if many:
        first, last = many[0].samples[0] / _MB, many[0].samples[-1] / _MB
        yield (
            f"{len(many[0].samples)} consecutive batches in one worker: {number(first)} MB "
            f"after the first, {number(last)} after the last."
        )


def _cases(result: Result, *, slow: bool) -> list[Mapping[str, Label]]:
    return [s.labels for s in result.having(_PEAK) if s.labels.get("slow", False) == slow]


def _row(result: Result, labels: Mapping[str, Label]) -> tuple[str, ...]:
    base, peak = (_one(result, what, labels)[0] / _MB for what in (_BASE, _PEAK))
    rows, size = int(labels["rows"]), int(labels["size"])
    bound = int(labels["buffer_mb"]) or _DEFAULT_MB
    return (
        f"{rows:,}",
        f"{size:,}",
        str(bound),
        *(f"{mb:.0f}" for mb in (base, peak, peak - base)),
    )


def _one(result: Result, what: str, labels: Mapping[str, Label]) -> tuple[float, ...]:
    return next(s.samples for s in result.having(what) if s.labels == labels)


def draw(results: Results) -> str:
    """Memory over time, and rows that Spark has handed over, behind a slow broker."""
    result = results["memory"]
    slow = _cases(result, slow=True)
    with mpl.rc_context(STYLE):
        figure, (memory, rows) = plt.subplots(
            2, 1, figsize=(WIDTH, 5.0), sharex=True, layout="constrained"
        )
        for labels, colour in zip(slow, (BLUE, ORANGE, INK, "#0f766e"), strict=False):
            time = _one(result, _TIME, labels)
            bound = int(labels["buffer_mb"]) or _DEFAULT_MB
            name = f"{int(labels['rows']):,} rows of {int(labels['size']):,} bytes, {bound} MB"
            memory.plot(time, [each / _MB for each in _one(result, _RSS, labels)], color=colour)
            share = [each / int(labels["rows"]) for each in _one(result, _TAKEN, labels)]
            rows.plot(time, share, color=colour, label=name)
        memory.set_ylabel("memory of the worker, MB")
        memory.set_ylim(bottom=0)
        rows.set_ylabel("share of the rows taken")
        rows.set_xlabel("seconds; the broker is slow until 15")
        rows.legend()
        return render_svg(figure)


MEMORY = Publication("memory", "memory.md", ("memory",), lines, {"memory-slow.svg": draw})
