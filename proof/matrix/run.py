"""Runs the program in an environment twice, until it is killed and to its end; checks the rows."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.java import spark_environment
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.topic_scan import ReaderError
from proof.matrix.cells import Cell
from proof.matrix.outcome import Outcome, Verdict
from proof.matrix.target import Target

_PATIENCE_S = 300.0
_LAST_LINES = 3
_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}


class _WrongError(Exception):
    """A failure of all cells of the run."""


def run_cells(
    cells: Sequence[Cell], python: Path, kafkas: Mapping[str, KafkaCluster]
) -> list[Outcome]:
    """Run the cells of one environment side by side, with one kill for all of them.

    Args:
        cells: they differ in their Kafka only.
        python: the environment's.
        kafkas: a broker for each version.
    """
    started = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix=f"matrix-{cells[0].environment}-"))
    targets = [Target(cell, kafkas[cell.kafka], home / cell.kafka) for cell in cells]
    run = _Run(python, home, targets)
    try:
        killed_at, seen = run.whole()
    except (_WrongError, ReaderError) as wrong:
        why = f"{wrong}; {run.said()}"
        outcomes = [Outcome(cell, Verdict.FAILED, why=why) for cell in cells]
    else:
        outcomes = [_check(target, killed_at[target.cell], seen) for target in targets]
    finally:
        for target in targets:
            target.close()
    if all(outcome.verdict is Verdict.RAN for outcome in outcomes):
        shutil.rmtree(home)
    seconds = round(time.monotonic() - started, 1)
    return [outcome.lasting(seconds) for outcome in outcomes]


def _check(target: Target, killed_at: int, seen: dict[str, Any]) -> Outcome:
    found = target.audit(_PATIENCE_S)
    if found.perfect:
        rows = found.count.records
        return Outcome(target.cell, Verdict.RAN, killed_at=killed_at, rows=rows, **seen)
    return Outcome(target.cell, Verdict.FAILED, why=f"not every row once: {found}")


class _Run:
    def __init__(self, python: Path, home: Path, targets: Sequence[Target]) -> None:
        self._python, self._home, self._targets = python, home, targets
        self._seen = home / "seen"

    def whole(self) -> tuple[dict[Cell, int], dict[str, Any]]:
        """Both runs. Rows that were visible at the kill, and what the program has seen."""
        killed_at = self._killed()
        self._finished()
        seen: dict[str, Any] = json.loads(self._seen.read_text())
        if Path(seen["versions"].pop("sink")).is_relative_to(Path(__file__).parents[2]):
            raise _WrongError("the sink was imported from the tree, not from the wheel")
        return killed_at, seen

    def said(self) -> str:
        lines = (self._home / "log").read_text(errors="replace").splitlines()
        return " | ".join(lines[-_LAST_LINES:]) + f" (see {self._home}/log)"

    def _killed(self) -> dict[Cell, int]:
        """Until some rows are visible on each broker; then all of its processes are killed."""
        deadline = Deadline(_PATIENCE_S)
        program = self._launch(endless=True)
        try:
            while not all(target.has_begun for target in self._targets):
                if not program.alive or deadline.passed:
                    raise _WrongError("too few rows are visible")
                for target in self._targets:
                    target.look()
        finally:
            program.kill()
        if any(target.complete for target in self._targets):
            raise _WrongError("all was written before the kill")
        return {target.cell: target.seen for target in self._targets}

    def _finished(self) -> None:
        program = self._launch(endless=False)
        try:
            program.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise _WrongError("it goes on") from None
        finally:
            program.kill()
        if program.exit_code:
            raise _WrongError(f"it ended with {program.exit_code}")

    def _launch(self, *, endless: bool) -> ProcessTree:
        config = self._home / "config.json"
        given = {
            "targets": [target.config for target in self._targets],
            "spark": {**_SPARK, "spark.sql.warehouse.dir": str(self._home / "warehouse")},
            "seen": str(self._seen),
            "endless": endless,
        }
        config.write_text(json.dumps(given))
        # A copy, so that this tree is not on the program's path.
        program = Path(shutil.copy(Path(__file__).with_name("program.py"), self._home))
        environ = {**spark_environment(self._python), "TMPDIR": str(self._home)}
        command = [self._python, program, config]
        return ProcessTree(command, self._home / "log", environ, cwd=self._home)
