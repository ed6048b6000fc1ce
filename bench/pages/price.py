"""What the sink costs, in the few rows of the README."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.end_to_end import NAME as END_TO_END
from bench.pages.end_to_end import times_as_old
from bench.pages.publication import Publication, Results, number, table
from bench.pages.sinks import times_the_rows
from bench.pages.small_batches import NAME as SMALL
from bench.pages.small_batches import added_ms

_LARGE = "sinks"
_SHAPES = {
    "100 B, keys, defaults": "100 bytes and a key, default settings",
    "1 KB, keys, defaults": "1 KB and a key, default settings",
    "100 B, keys": "100 bytes and a key, larger requests",
    "1 KB, keys": "1 KB and a key, larger requests",
    "100 B, 3 headers": "100 bytes and three headers, larger requests",
}


def lines(results: Results) -> Iterator[str]:
    """The age of rows, throughput by shape, and small batches, against Spark's own sink."""
    rows = []
    if found := results.get(END_TO_END):
        for part, meaning in (("p50", "median"), ("p99", "p99")):
            if (times := times_as_old(found, part)) is not None:
                rows.append((f"Age of a row at its reader: {meaning}", f"{number(times)} times"))
    if found := results.get(_LARGE):
        for shape, meaning in _SHAPES.items():
            if more := times_the_rows(found, shape):
                rows.append((f"Rows per second: {meaning}", f"{number(more.median)} times"))
    for tasks in (2, 200):
        if (found := results.get(SMALL)) and (added := added_ms(found, tasks)):
            what = f"Time of a batch: 1,000 rows in {tasks} tasks, with Unix domain sockets"
            rows.append((what, f"{added[0]:+,.0f} ms"))
    yield from table(("", "against Spark's own sink"), rows)
    days = sorted({result.date[:10] for result in results.values()})
    cores = sorted({str(result.machine["cores"]) for result in results.values()})
    yield (
        f"Medians of {' and '.join(days)}, with {' and '.join(cores)} cores for everything, the "
        "broker included."
    )


PRICE = Publication("price", "README.md", (END_TO_END, _LARGE, SMALL), lines)
