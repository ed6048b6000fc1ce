"""When each process passed which point of the protocol: JSON lines, appended by all of them.

    {"t": 1763740800.123456, "role": "planner", "pid": 4711, "point": "planner.join.before"}

`t` is in seconds since the epoch, `fault` is there where one struck. A line is one write of a file
that is opened for appending, so that lines of several processes never mix.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pass:
    """One process at one point.

    Attributes:
        t: seconds since the epoch.
        role: "planner", "task" or "committer".
        pid: the process.
        point: `<role>.<call>.<before|amid|after>`.
        fault: what struck there (a value of `Action`), None otherwise.
    """

    t: float
    role: str
    pid: int
    point: str
    fault: str | None = None


class Timeline:
    """The writing side, one a process."""

    def __init__(self, path: str | Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o644)

    def note(self, role: str, point: str, fault: str | None = None) -> None:
        entry = {"t": round(time.time(), 6), "role": role, "pid": os.getpid(), "point": point}
        if fault is not None:
            entry["fault"] = fault
        os.write(self._file, json.dumps(entry).encode() + b"\n")


def read_timeline(path: str | Path) -> list[Pass]:
    """All that has been noted, in the order of time; empty where nothing was."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return sorted((Pass(**json.loads(line)) for line in lines), key=lambda entry: entry.t)
