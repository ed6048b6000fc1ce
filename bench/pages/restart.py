"""The result of `bench.restart`: the time from a process's start to its first batch."""

from __future__ import annotations

from collections.abc import Iterator

from bench.floor import FORMAT as FLOOR
from bench.pages.publication import (
    RESULTS_PAGE,
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.pages.sinks import OURS, THEIRS, TITLES
from bench.result import spread

NAME = "restart"
PEERS = (OURS, FLOOR, THEIRS)


def lines(results: Results) -> Iterator[str]:
    """Each sink's first start and its restart, compared with the sink that drops its rows."""
    result = results[NAME]
    yield f"Measured {measured_on(result)} {result.parameters['rounds']} rounds in turns."
    yield ""
    rows = []
    for again in (False, True):
        floor = result.one("batch", peer=FLOOR, again=again)
        for peer in PEERS:
            batch = result.one("batch", peer=peer, again=again)
            session = result.one("session", peer=peer, again=again)
            pairs = zip(batch.samples, floor.samples, strict=True)
            added = spread(ours - theirs for ours, theirs in pairs).median
            title = f"{TITLES[peer]}, {'again' if again else 'first start'}"
            shown = f"{added:+,.0f}" if peer != FLOOR else ""
            rows.append((title, number(session.spread.median), spread_text(batch.spread), shown))
    yield from table(("ms since the process began", "session", "first batch", "added"), rows)


PUBLICATION = Publication(NAME, RESULTS_PAGE, (NAME,), lines)
