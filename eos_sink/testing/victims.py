"""Whom a fault strikes: a process, the JVM above it, or all of its session."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass

from eos_sink.deadline import Deadline
from eos_sink.testing.waiting import wait_until

_LOOKS = 50


@dataclass(frozen=True)
class Found:
    """A process that `ps` has listed."""

    pid: int
    parent: int
    session: int
    state: str
    command: str

    @property
    def stopped(self) -> bool:
        return self.state.startswith("T")

    @property
    def dead(self) -> bool:
        """Ended, and only its parent has not asked for its exit code yet."""
        return self.state.startswith("Z")


def processes() -> dict[int, Found]:
    """Every process of this machine but the listing itself."""
    command = ["ps", "-eo", "pid=,ppid=,sess=,stat=,comm="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        text, _ = listing.communicate()
    rows = (line.split(None, 4) for line in text.splitlines())
    return {
        int(pid): Found(int(pid), int(parent), int(session), state, name.strip())
        for pid, parent, session, state, name in rows
        if int(pid) != listing.pid
    }


def of_session(session: int) -> list[Found]:
    """What lives of a session: a driver program, its JVM and all Python workers, for instance."""
    return [p for p in processes().values() if p.session == session and not p.dead]


def jvm_above(pid: int) -> int:
    """The nearest ancestor that is a JVM: the driver's, or a task's executor.

    Raises:
        ProcessLookupError: there is none.
    """
    known = processes()
    at = known.get(pid)
    while at is not None:
        if at.command.endswith("java"):
            return at.pid
        at = known.get(at.parent)
    raise ProcessLookupError(f"no JVM among the ancestors of process {pid}")


def kill_session(session: int) -> None:
    """SIGKILL every process of a session, what it forks meanwhile included; this one is spared."""
    for _ in range(_LOOKS):
        if not _send(signal.SIGKILL, _others(session)):
            return


def pause_session(session: int) -> None:
    """SIGSTOP every process of a session but this one."""
    for _ in range(_LOOKS):
        if not _send(signal.SIGSTOP, [p for p in _others(session) if not p.stopped]):
            return


def resume_session(session: int) -> None:
    """SIGCONT every process of a session."""
    _send(signal.SIGCONT, _others(session))


def wait_stopped(pids: list[int], deadline: Deadline) -> None:
    """Until SIGSTOP has reached each: a SIGCONT that overtakes it would be lost.

    Raises:
        NotReadyError: one of them goes on.
    """

    def all_stopped() -> bool:
        known = processes()
        return all(pid not in known or known[pid].stopped or known[pid].dead for pid in pids)

    wait_until(all_stopped, deadline, f"the processes {pids} have stopped")


def _others(session: int) -> list[Found]:
    return [p for p in of_session(session) if p.pid != os.getpid()]


def _send(number: signal.Signals, targets: list[Found]) -> bool:
    """Whether there was anybody to send it to."""
    for target in targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(target.pid, number)
    return bool(targets)
