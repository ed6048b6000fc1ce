"""What a process passes at each point of the protocol, and how it is struck there."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from eos_sink.testing.faults import DIRECTORY_VARIABLE, PAUSES, TIMELINE_VARIABLE, Action, Struck
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
        # psutil is for processes that are struck only.
        from eos_sink.testing.process_tree import find_jvm_above

        jvm = None
        with contextlib.suppress(ProcessLookupError):
            jvm = find_jvm_above(os.getpid())
        struck = Struck(os.getpid(), jvm, os.getsid(0), action)
        noted = self._directory / f"{name}.noted"
        noted.write_text(struck.to_text())
        noted.rename(self._directory / f"{name}.fired")
        _strike(struck)


def _strike(struck: Struck) -> None:
    """Do to the processes what the action says, to this one last."""
    from eos_sink.testing.process_tree import signal_session

    number = signal.SIGSTOP if struck.action in PAUSES else signal.SIGKILL
    if struck.action in (Action.KILL_ALL, Action.PAUSE_ALL):
        signal_session(struck.session, number)
    elif struck.action in (Action.KILL_JVM, Action.PAUSE_JVM):
        assert struck.jvm is not None, "this process has no JVM above it"
        os.kill(struck.jvm, number)
    if struck.action is not Action.PAUSE_JVM:
        os.kill(struck.pid, number)
