"""The rows of `proof/spec/run.sh` that remove a rule."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from proof.guards.code import ROOT

_RUN = ROOT / "proof" / "spec" / "run.sh"
_FLAG = re.compile(r"-D(\w+)")


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


def row_of(switch: str) -> str:
    """The row with this switch that makes the model fail, with the fewest others.

    Raises:
        StopIteration: there is none.
    """
    those = [row for row in rows() if row.violated and switch in row.switches]
    those.sort(key=lambda row: (row.name != switch, len(row.switches)))
    return next(row.name for row in those)
