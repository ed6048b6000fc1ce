"""The outcome of a cell, stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path

from proof.matrix.cells import Cell


class Verdict(str, Enum):
    """How a cell ended."""

    RAN = "ran"
    """Every row is there once, after a SIGKILL too."""
    FAILED = "failed"
    """It ran and something of it is wrong."""
    CANNOT = "cannot"
    """It could not be tried: its versions do not go together, or this machine lacks one."""


@dataclass(frozen=True)
class Outcome:
    """One cell's.

    Attributes:
        verdict: how it ended.
        why: the reason where it did not run well, else "".
        seconds: how long the two runs of the program took, for all Kafkas of its environment.
        killed_at: rows that were visible when everything was killed.
        rows: rows that are visible at the end, each of them once.
        modes: output mode to "works" or to Spark's words.
        versions: of what was installed.
    """

    cell: Cell
    verdict: Verdict
    why: str = ""
    seconds: float = 0.0
    killed_at: int = 0
    rows: int = 0
    modes: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def lasting(self, seconds: float) -> Outcome:
        return replace(self, seconds=seconds)

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "cell": self.cell.name, "verdict": self.verdict.value})

    @staticmethod
    def from_json(text: str) -> Outcome:
        given = json.loads(text)
        cell, verdict = Cell.parse(given.pop("cell")), Verdict(given.pop("verdict"))
        return Outcome(cell=cell, verdict=verdict, **given)


def read_all(there: Path) -> list[Outcome]:
    """Those that were kept in a directory, by the names of their cells."""
    found = [Outcome.from_json(path.read_text()) for path in there.glob("*.json")]
    return sorted(found, key=lambda outcome: outcome.cell)


def keep(outcome: Outcome, there: Path) -> None:
    there.mkdir(parents=True, exist_ok=True)
    (there / f"{outcome.cell.name}.json").write_text(outcome.to_json() + "\n")
