"""Memory: what a task's worker takes, by rows and behind a slow broker."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.publication import RESULTS_PAGE, Publication, Results, measured_on, table
from bench.result import Result

_MB = 2**20
_DEFAULT_MB = 64


def lines(results: Results) -> Iterator[str]:
    result = results["memory"]
    yield measured_on(result)
    yield ""
    head = ("Rows of a task", "bytes a row", "bound, MB", "at first, MB", "peak, MB", "more, MB")
    yield from table(head, list(_rows(result, slow=False)))
    delay = int(2000 * result.parameters["delay"])
    yield f"Behind a broker whose answers take {delay} ms longer for the first 15 seconds:"
    yield ""
    yield from table(head, list(_rows(result, slow=True)))


def _rows(result: Result, *, slow: bool) -> Iterator[tuple[str, ...]]:
    for series in result.having("peak", slow=slow):
        labels = series.labels
        rows, size = int(labels["rows"]), int(labels["size"])
        bound = int(labels["buffer_mb"]) or _DEFAULT_MB
        base, peak = (result.one(what, **labels).samples[0] / _MB for what in ("base", "peak"))
        told = (f"{mb:.0f}" for mb in (base, peak, peak - base))
        yield f"{rows:,}", f"{size:,}", str(bound), *told


MEMORY = Publication("memory", RESULTS_PAGE, ("memory",), lines)
