"""The results of `bench.upstream`: what limits of Spark and librdkafka cost."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.publication import (
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.result import ratio

NAME = "upstream"
_TITLES = {
    "commit coordinator": "[commit coordinator](#the-commit-coordinator), us of a Py4J call",
    "size check": "[size of each row](#the-size-of-each-row), us of the JVM's CPU a row",
    "in flight": "[requests in flight](#requests-in-flight), rows a second",
    "headers": "[headers](#headers), us of the client's CPU a row",
}


def lines(results: Results) -> Iterator[str]:
    """Each limit's cases, with and without it."""
    result = results[NAME]
    yield f"Measured {measured_on(result)} {result.parameters['rounds']} rounds in turns."
    yield ""
    rows = []
    for limit, title in _TITLES.items():
        for having in result.having(limit, applies=True):
            case = having.labels["case"]
            without = result.one(limit, case=case, applies=False)
            medians = (number(each.spread.median) for each in (without, having))
            times = spread_text(ratio(having.samples, without.samples))
            rows.append((f"{title}: {case}", *medians, times))
    yield from table(("limit", "without", "with", "times"), rows)


PUBLICATION = Publication(NAME, "bench/upstream.md", (NAME,), lines)
