"""CPU seconds of processes, from /proc: where brokers share the cores, time alone hides them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_PROC = Path("/proc")
# Counted from the state, which follows the name in parentheses (man 5 proc_pid_stat).
_PARENT, _OWN, _REAPED = 1, slice(11, 13), slice(13, 15)


class Part(Enum):
    """Which processes of an account are counted."""

    OWN = "own"
    """The process alone: all of its threads, ended ones included."""
    BELOW = "below"
    """Its descendants, ended ones included."""
    ALL = "all"
    """Both."""


@dataclass(frozen=True)
class Account:
    """A process, and what is counted of it."""

    pid: int
    part: Part = Part.ALL


class CpuClock:
    """User and system seconds that processes have used since they began.

    Args:
        accounts: by the name that the seconds are to have, such as {"broker": [Account(4711)]}.
    """

    def __init__(self, accounts: Mapping[str, list[Account]]) -> None:
        self._accounts = accounts
        self._families = {each: _Family(each.pid) for all_ in accounts.values() for each in all_}

    def read(self) -> dict[str, float]:
        """Seconds by name; empty on a system that has no /proc.

        What a process had used at the last reading stays in the sum after its end, whether its
        parent has waited for it or not. A process that does not exist counts 0.
        """
        found = _read_processes()
        if not found:
            return {}
        return {
            name: sum(self._families[each].read(found, each.part) for each in accounts)
            for name, accounts in self._accounts.items()
        }

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """Seconds by name since an earlier `read`."""
        return {name: value - before.get(name, 0.0) for name, value in self.read().items()}


@dataclass(frozen=True)
class _Process:
    parent: int
    own: float
    reaped: float


def _read_processes() -> dict[int, _Process]:
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            text = stat.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        fields = text.rpartition(")")[2].split()
        own, reaped = (sum(map(int, fields[part])) / tick for part in (_OWN, _REAPED))
        found[int(stat.parent.name)] = _Process(int(fields[_PARENT]), own, reaped)
    return found


class _Family:
    """A process and its descendants, from reading to reading."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._known: dict[int, _Process] = {}
        self._lost = 0.0

    def read(self, found: Mapping[int, _Process], part: Part) -> float:
        top = found.get(self._top)
        if top is None:
            return 0.0
        below = {pid: each for pid, each in found.items() if self._has(found, pid)}
        family = {self._top: top, **below}
        # By the nearest ancestor that is left. It counts those that it has waited for: none, if it
        # ignores SIGCHLD, as Spark's daemon does.
        ended: dict[int, float] = {}
        for pid, each in self._known.items():
            if pid not in family:
                left = each.parent
                while left not in family:
                    left = self._known[left].parent
                ended[left] = ended.get(left, 0.0) + each.own + each.reaped
        for pid, seconds in ended.items():
            counted = family[pid].reaped - self._known[pid].reaped
            self._lost += max(0.0, seconds - counted)
        self._known = family
        used = top.reaped + self._lost + sum(each.own + each.reaped for each in below.values())
        return {Part.OWN: top.own, Part.BELOW: used, Part.ALL: top.own + used}[part]

    def _has(self, found: Mapping[int, _Process], pid: int) -> bool:
        """Whether the process is a descendant."""
        at = found[pid].parent
        while at in found and at != self._top:
            at = found[at].parent
        return at == self._top
