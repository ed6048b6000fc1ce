"""The tables about a task's producer in docs/eos-performance.md."""

from __future__ import annotations

from collections.abc import Iterator

from bench.opening import STEPS, VARIATIONS
from bench.pages.eos_performance import PAGE, measured
from bench.pages.publication import Publication, Results, number, table
from bench.result import Result

_RESULTS = ("opening-1", "opening-3")


def lines(results: Results) -> Iterator[str]:
    """The steps of a task's producer, and what shortens them, by number of brokers."""
    first = next(iter(results.values()))
    yield from measured(first)
    yield ""
    for found in results.values():
        brokers = found.parameters["brokers"]
        yield f"{'One broker' if brokers == 1 else f'{brokers} brokers'}, medians in ms:"
        yield ""
        yield from table(
            ["variation", *STEPS, "all", "95th percentile"],
            [[name, *_cells(found, name)] for name in VARIATIONS],
        )


def _cells(found: Result, variation: str) -> Iterator[str]:
    for step in (*STEPS, "all"):
        series = list(found.having(step, variation=variation))
        yield number(series[0].spread.median) if series else ""
    yield number(found.one("all", variation=variation).spread.p95)


PUBLICATION = Publication("opening", PAGE, _RESULTS, lines)
