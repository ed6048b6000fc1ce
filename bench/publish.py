"""Writes results into their pages, between marks, and draws the plots in docs/bench/.

    python -m bench.publish [NAME ...]

Results are what the benchmarks have left in bench/results/; a name is that of a publication.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import RESULTS
from bench.pages import (
    end_to_end,
    eos_performance,
    restart,
    scale,
    sinks,
    small_batches,
    source_offsets,
    timeline,
    upstream,
)
from bench.pages.cost import COST
from bench.pages.memory import MEMORY
from bench.pages.price import PRICE
from bench.pages.publication import Publication, Results
from bench.result import Result
from eos_sink_lab.testing.waiting import to_stderr
from tools.dark import adapt

ROOT = Path(__file__).parent.parent
PLOTS = ROOT / "docs" / "bench"

# A benchmark that has something to publish is named here.
PUBLICATIONS: tuple[Publication, ...] = (
    sinks.TARGETS,
    sinks.SINKS,
    scale.SETTLING,
    scale.ASKED,
    scale.INLINE,
    scale.MANY_OF_EACH,
    *small_batches.PUBLICATIONS,
    source_offsets.PUBLICATION,
    end_to_end.PUBLICATION,
    timeline.PUBLICATION,
    restart.PUBLICATION,
    *eos_performance.PUBLICATIONS,
    upstream.PUBLICATION,
    MEMORY,
    COST,
    PRICE,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    known = [publication.name for publication in PUBLICATIONS]
    parser.add_argument("name", nargs="*", help=f"all, or some of: {', '.join(known)}")
    names = parser.parse_args().name
    if unknown := set(names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for publication in PUBLICATIONS:
        results = results_of(publication)
        if not results or (names and publication.name not in names):
            continue
        page = ROOT / publication.page
        page.write_text(publication.written_into(page.read_text(), results))
        for file, draw in publication.plots.items():
            PLOTS.mkdir(exist_ok=True)
            (PLOTS / file).write_text(adapt(f"{draw(results)}\n"))
        to_stderr(f"{publication.name}: {publication.page}")
    return 0


def results_of(publication: Publication) -> Results:
    """The results that exist."""
    files = {name: RESULTS / f"{name}.json" for name in publication.of}
    return {name: Result.read(file) for name, file in files.items() if file.exists()}


if __name__ == "__main__":
    sys.exit(main())
