"""Writes the outcomes of a run into docs/compatibility.md, between two marks, and docs/matrix.json.

python -m proof.matrix.publish matrix-report
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.pages.publication import replace_between
from proof.matrix.cells import ALL, KAFKAS, Cell
from proof.matrix.outcome import Outcome, Verdict, read_all

_DOCS = Path(__file__).parents[2] / "docs"
PAGE, DATA = _DOCS / "compatibility.md", _DOCS / "matrix.json"
_BEGIN, _END = "<!-- outcomes: python -m proof.matrix.publish -->", "<!-- end of outcomes -->"


def main() -> int:
    outcomes = read_all(Path(sys.argv[1]))
    documents = [json.loads(outcome.to_json()) for outcome in outcomes]
    rows = ",\n".join(json.dumps(document) for document in documents)
    DATA.write_text(f"[\n{rows}\n]\n")
    PAGE.write_text(with_outcomes(PAGE.read_text(), outcomes))
    return 0


def published() -> list[Outcome]:
    """What the page shows."""
    return [Outcome.from_json(json.dumps(document)) for document in json.loads(DATA.read_text())]


def with_outcomes(page: str, outcomes: Sequence[Outcome]) -> str:
    """The page with these outcomes between its marks."""
    return replace_between(page, _BEGIN, _END, lines(outcomes))


def lines(outcomes: Sequence[Outcome], cells: Sequence[Cell] = ALL) -> Iterator[str]:
    """The Markdown: a row for each environment that can run, a column for each Kafka."""
    found = {outcome.cell: outcome for outcome in outcomes}
    environments = sorted({(cell.spark, _ordered(cell.python)) for cell in cells})
    ran = [outcome for outcome in outcomes if outcome.verdict is Verdict.RAN]
    yield (
        f"**{len(ran)} of {len(cells)} cells ran**, and every row was there once. "
        f"{len(found) - len(ran)} cannot run, {len(cells) - len(found)} were not tried."
    )
    if ran:
        first, last = (end(outcome.killed_at for outcome in ran) for end in (min, max))
        rows = max(outcome.rows for outcome in ran)
        yield f"Each was killed when {first} to {last} of {rows} rows were visible."
    yield ""
    heads = [f"Kafka {kafka}" for kafka in KAFKAS]
    yield f"| Spark | Python | {' | '.join(heads)} | confluent-kafka | pyarrow |"
    yield "|---|---|" + "---|" * (len(heads) + 2)
    refusals: list[str] = []
    for spark, (major, minor) in environments:
        python = f"{major}.{minor}"
        same = [found.get(Cell(spark, python, kafka)) for kafka in KAFKAS]
        reasons = {o.why if o and o.verdict is Verdict.CANNOT else None for o in same}
        if len(reasons) == 1 and (why := reasons.pop()):
            refusals.append(why)
            continue
        versions = next((o.versions for o in same if o and o.versions), {})
        shown = [_shown(outcome) for outcome in same]
        libraries = [versions.get(name, "") for name in ("confluent-kafka", "pyarrow")]
        exact = versions.get("python", python)
        yield f"| {spark} | {exact} | {' | '.join([*shown, *libraries])} |"
    yield ""
    if refusals:
        yield from ("Cannot run:", "")
        yield from (f"- {why}" for why in dict.fromkeys(refusals))
        yield ""
    yield from _modes(ran)


def _ordered(python: str) -> tuple[int, int]:
    major, minor = python.split(".")
    return int(major), int(minor)


def _shown(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not tried"
    if outcome.verdict is Verdict.RAN:
        return "ran"
    return f"{outcome.verdict.value}: {outcome.why}".replace("|", "/")


def _modes(ran: Sequence[Outcome]) -> Iterator[str]:
    yield "| Spark | Output mode | |"
    yield "|---|---|---|"
    told = {(mode, what, o.cell.spark) for o in ran for mode, what in o.modes.items()}
    for mode, what in sorted({(mode, what) for mode, what, _ in told}):
        sparks = ", ".join(sorted(each for *same, each in told if same == [mode, what]))
        yield f"| {sparks} | {mode} | {what if what == 'works' else f'`{what}`'} |"


if __name__ == "__main__":
    sys.exit(main())
