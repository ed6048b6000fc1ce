"""CPU seconds of processes, from /proc: what time alone hides where brokers share the cores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_PROC = Path("/proc")
# Counted from the state, which follows the name in parentheses (man 5 proc_pid_stat).
_PARENT, _OWN, _REAPED = 1, slice(11, 13), slice(13, 15)


class Part(Enum):
    """Of a process and those below it."""

    OWN = "own"
    """The process alone: all of its threads, dead ones included."""
    BELOW = "below"
    """Its children and theirs, those that have ended included."""
    ALL = "all"
    """Both."""


@dataclass(frozen=True)
class Account:
    """Whose seconds are counted.

    Attributes:
        pid: a process.
        part: of it.
    """

    pid: int
    part: Part = Part.ALL


class CpuClock:
    """User and system seconds that processes have used since they began.

    Args:
        accounts: by the name that the seconds are to have, such as {"broker": [Account(4711)]}.
    """

    def __init__(self, accounts: Mapping[str, list[Account]]) -> None:
        self._accounts = accounts
        self._families: dict[Account, _Family] = {}

    def read(self) -> dict[str, float]:
        """Seconds by name; empty on a system that has no /proc.

        What a process had used when it was last read stays in the sum, whatever becomes of it: of
        a killed parent's children nobody else would tell. A process that is not there counts 0.
        """
        found = dict(_processes())
        return {
            name: sum(self._seconds(found, account) for account in accounts)
            for name, accounts in self._accounts.items()
            if found
        }

    def _seconds(self, found: Mapping[int, _Process], account: Account) -> float:
        top = found.get(account.pid)
        if top is None:
            return 0.0
        below = self._families.setdefault(account, _Family()).below(found, account.pid)
        return {
            Part.OWN: top.own,
            Part.BELOW: top.reaped + below,
            Part.ALL: top.own + top.reaped + below,
        }[account.part]

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """Seconds by name since an earlier `read`."""
        return {name: value - before.get(name, 0.0) for name, value in self.read().items()}


@dataclass(frozen=True)
class _Process:
    parent: int
    own: float
    reaped: float


def _processes() -> Iterator[tuple[int, _Process]]:
    tick = os.sysconf("SC_CLK_TCK")
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            text = stat.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        fields = text.rpartition(")")[2].split()
        own, reaped = (sum(map(int, fields[part])) / tick for part in (_OWN, _REAPED))
        yield int(stat.parent.name), _Process(int(fields[_PARENT]), own, reaped)


class _Family:
    """The processes below one, from reading to reading."""

    def __init__(self) -> None:
        self._known: dict[int, _Process] = {}
        self._orphans = 0.0

    def below(self, found: Mapping[int, _Process], top: int) -> float:
        """Seconds of all that are or were there, but for those that the top has waited for."""
        now = {pid: each for pid, each in found.items() if _is_below(found, pid, top)}
        for pid, each in self._known.items():
            # Its parent has waited for it, and counts it, unless that is gone as well.
            if pid not in now and each.parent not in now and each.parent != top:
                self._orphans += each.own + each.reaped
        self._known = now
        return self._orphans + sum(each.own + each.reaped for each in now.values())


def _is_below(found: Mapping[int, _Process], pid: int, top: int) -> bool:
    at = found[pid].parent
    while at in found and at != top:
        at = found[at].parent
    return at == top
