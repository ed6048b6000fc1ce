"""The rows of `proof/spec/run.sh` that remove a rule, and what Spin found in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from proof.guards.trial import ROOT

_RUN = ROOT / "proof" / "spec" / "run.sh"
_RESULTS = ROOT / "proof" / "spec" / "build"
_FLAG = re.compile(r"-D(\w+)")
_FOUND = re.compile(r"states\s+[\d.]*s\s*(.*)$")


@dataclass(frozen=True)
class Row:
    """One row of `proof/spec/run.sh`."""

    name: str
    switches: frozenset[str]
    violated: bool


def rows() -> list[Row]:
    found = []
    for line in _RUN.read_text().splitlines():
        if line.startswith("row "):
            _, name, expected, flags, *_ = shlex.split(line.replace("$", ""))
            found.append(Row(name, frozenset(_FLAG.findall(flags)), expected == "violation"))
    return found


def rows_of(switch: str) -> list[Row]:
    """The rows with this switch that make the model fail, the one with the fewest others first."""
    those = [row for row in rows() if row.violated and switch in row.switches]
    return sorted(those, key=lambda row: (row.name != switch, len(row.switches)))


def found(row: Row, results: Path = _RESULTS) -> str:
    """What the last `make spec` found in the row; empty if it was not run."""
    for path in sorted(results.glob("*/*.line")):
        line = path.read_text()
        named = re.match(re.escape(row.name) + r"\s+(?:ok\s+)?violation\b", line)
        if named and (match := _FOUND.search(line.strip())):
            return match[1]
    return ""
