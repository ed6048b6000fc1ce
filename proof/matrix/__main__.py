"""`make matrix`: see docs/compatibility.md."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

from eos_sink_lab.testing import start_kafka
from proof.matrix.cells import Cell, select
from proof.matrix.environments import CannotRunError, build_wheel, prepare
from proof.matrix.outcome import Outcome, Verdict, keep
from proof.matrix.run import run_cells


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m proof.matrix", description="See docs/compatibility.md."
    )
    parser.add_argument("--cell", default="*", help="Cells to run, such as 4.3.0-*.")
    parser.add_argument(
        "--wheel", type=Path, help="Wheel of the sink. Default: built from this tree."
    )
    parser.add_argument("--prepare", action="store_true", help="Only create the environments.")
    parser.add_argument("--out", type=Path, default=Path("matrix-report"))
    given = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    cells = select(given.cell)
    with tempfile.TemporaryDirectory() as there:
        wheel = given.wheel or build_wheel(Path(there))
        if given.prepare:
            return _prepare(cells, wheel)
        outcomes = _run(cells, wheel, given.out)
    return 1 if any(outcome.verdict is Verdict.FAILED for outcome in outcomes) else 0


def _prepare(cells: list[Cell], wheel: Path) -> int:
    for environment, same in groupby(cells, key=lambda cell: cell.environment):
        try:
            prepare(next(same), wheel)
        except CannotRunError as missing:
            _tell(f"{environment}: {missing}")
        else:
            _tell(f"{environment}: is there")
    return 0


def _run(cells: list[Cell], wheel: Path, out: Path) -> list[Outcome]:
    """All of them; those of one environment share its runs, and all share the brokers."""
    outcomes: list[Outcome] = []
    with ExitStack() as started:
        versions = sorted({cell.kafka for cell in cells})
        kafkas = {v: started.enter_context(start_kafka(version=v)) for v in versions}
        for _, group in groupby(cells, key=lambda cell: cell.environment):
            same = list(group)
            try:
                found = run_cells(same, prepare(same[0], wheel), kafkas)
            except CannotRunError as missing:
                found = [Outcome(cell, Verdict.CANNOT, why=str(missing)) for cell in same]
            for outcome in found:
                keep(outcome, out)
                _tell(f"{outcome.cell.name}: {outcome.verdict.value} {outcome.why}")
            outcomes += found
    return outcomes


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
