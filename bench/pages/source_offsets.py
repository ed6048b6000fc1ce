"""The results of `bench.source_offsets`: what `eos.source.group.id` adds to a batch."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.publication import (
    RESULTS_PAGE,
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.result import Result, ratio, spread

NAME = "source-offsets"
_TITLES = {True: "1,000 rows in 2 tasks", False: "1,000 rows read, none written"}


def lines(results: Results) -> Iterator[str]:
    """addBatch without and with the option."""
    result = results[NAME]
    yield (
        f"Measured {measured_on(result)} {result.parameters['rounds']} rounds in turns. The "
        f"machine's load was {result.machine['load'][1]}."
    )
    yield ""
    heads = ("addBatch, ms", "batches", "without", "with", "added, median", "times")
    yield from table(heads, list(_rows(result)))


def _rows(result: Result) -> Iterator[tuple[str, ...]]:
    for writes, title in _TITLES.items():
        without, having = (
            result.find("addBatch", writes=writes, group=group) for group in (False, True)
        )
        if without is None or having is None:
            continue
        # Each batch with one of the same round, since the machine is not equally busy in all.
        pairs = zip(having.samples, without.samples, strict=False)
        added = spread(ours - theirs for ours, theirs in pairs).median
        yield (
            title,
            str(having.spread.n),
            number(without.spread.median),
            number(having.spread.median),
            f"{added:+.1f}",
            spread_text(ratio(having.samples, without.samples)),
        )


PUBLICATION = Publication("source offsets", RESULTS_PAGE, (NAME,), lines)
