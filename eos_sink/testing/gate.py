"""What a process passes at each point of the protocol, and how it is struck there."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from eos_sink.testing import victims
from eos_sink.testing.faults import DIRECTORY_VARIABLE, TIMELINE_VARIABLE, Action, Struck
from eos_sink.testing.timeline import Timeline


class Gate:
    """What each call of a client passes, before and after.

    Args:
        role: of this process, the first part of each point's name.
        environ: names the directory of armed points and the timeline; without, nothing happens.
    """

    def __init__(self, role: str, environ: Mapping[str, str] = os.environ) -> None:
        directory, timeline = environ.get(DIRECTORY_VARIABLE), environ.get(TIMELINE_VARIABLE)
        self._directory = Path(directory) if directory else None
        self._timeline = Timeline(timeline) if timeline else None
        self._role = role

    def reach(self, call: str, when: str) -> None:
        """Note it, and suffer what is armed there."""
        name = f"{self._role}.{call}.{when}"
        action = self._take(name)
        if self._timeline is not None:
            self._timeline.note(self._role, name, action.value if action else None)
        if action is not None:
            self._strike(name, action)

    def is_armed(self, call: str, when: str) -> bool:
        return (
            self._directory is not None
            and (self._directory / f"{self._role}.{call}.{when}").exists()
        )

    def _take(self, name: str) -> Action | None:
        """Of several processes at one point, one takes the file."""
        if self._directory is None:
            return None
        taken = self._directory / f"{name}.{os.getpid()}"
        try:
            (self._directory / name).rename(taken)
        except FileNotFoundError:
            return None
        return Action(taken.read_text())

    def _strike(self, name: str, action: Action) -> None:
        assert self._directory is not None
        jvm = None
        with contextlib.suppress(ProcessLookupError):
            jvm = victims.jvm_above(os.getpid())
        struck = Struck(os.getpid(), jvm, os.getsid(0), action)
        noted = self._directory / f"{name}.noted"
        noted.write_text(struck.to_text())
        noted.rename(self._directory / f"{name}.fired")
        _STRIKES[action](struck)


def _kill_jvm(struck: Struck) -> None:
    assert struck.jvm is not None, "this process has no JVM above it"
    os.kill(struck.jvm, signal.SIGKILL)
    os.kill(struck.pid, signal.SIGKILL)


def _kill_all(struck: Struck) -> None:
    victims.kill_session(struck.session)
    os.kill(struck.pid, signal.SIGKILL)


def _pause_jvm(struck: Struck) -> None:
    assert struck.jvm is not None, "this process has no JVM above it"
    os.kill(struck.jvm, signal.SIGSTOP)


def _pause_all(struck: Struck) -> None:
    victims.pause_session(struck.session)
    os.kill(struck.pid, signal.SIGSTOP)


_STRIKES: dict[Action, Callable[[Struck], None]] = {
    Action.KILL_PROCESS: lambda struck: os.kill(struck.pid, signal.SIGKILL),
    Action.KILL_JVM: _kill_jvm,
    Action.KILL_ALL: _kill_all,
    Action.PAUSE: lambda struck: os.kill(struck.pid, signal.SIGSTOP),
    Action.PAUSE_JVM: _pause_jvm,
    Action.PAUSE_ALL: _pause_all,
}
