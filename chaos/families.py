"""Kinds of faults in groups that a plot can show apart."""

from __future__ import annotations

from enum import Enum

from chaos.kinds import DRIVER_DIES, Kind


class Family(Enum):
    """Who suffers."""

    DRIVER = "driver killed"
    PROCESS = "process killed or paused"
    ZOMBIE = "zombie"
    CLUSTER = "broker or controller"
    NETWORK = "network"


_ZOMBIES = {Kind.ZOMBIE, Kind.ZOMBIE_ANYTIME, Kind.LATE_TASK}
_NETWORK = {Kind.CUT, Kind.CUT_ANSWERS, Kind.RESET, Kind.DELAY}
_PROCESSES = {
    Kind.KILL_PLANNER,
    Kind.KILL_COMMITTER,
    Kind.KILL_TASK,
    Kind.KILL_EXECUTOR,
    Kind.PAUSE,
}


def family_of(text: str) -> Family:
    """By the text of a kind, as it is in the figures."""
    kind = Kind(text)
    if kind in DRIVER_DIES:
        return Family.DRIVER
    if kind in _ZOMBIES:
        return Family.ZOMBIE
    if kind in _PROCESSES:
        return Family.PROCESS
    return Family.NETWORK if kind in _NETWORK else Family.CLUSTER
