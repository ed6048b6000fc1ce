"""Starts, watches, pauses and kills programs with all of their processes.

A program leads a session: its JVM and their Python workers belong to it, also those in another
process group. `watchdog.py` kills what an owner that died has left behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.waiting import wait_until
from eos_sink_lab.testing.watchdog import require_psutil

require_psutil()

import psutil  # noqa: E402
from psutil import Process  # noqa: E402

_LOOKS = 50
_ENDS_WITHIN_S = 120.0
_STOPS_WITHIN_S = 30.0
_ERROR = re.compile(r"(?:[\w$]+\.)*(\w+(?:Error|Exception): .*)")


class ProcessTree:
    """A running program that leads a session.

    Args:
        command: the program and its arguments.
        log: takes its standard error, and its standard output unless `stdout` is given; appended.
        environ, cwd, stdin, stdout: as of `subprocess.Popen`.
    """

    def __init__(  # noqa: PLR0913 - what Popen takes
        self,
        command: Sequence[object],
        log: Path,
        environ: Mapping[str, str] | None = None,
        *,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
    ) -> None:
        self.log = log
        self._gone = False
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [str(word) for word in command],
                stdin=stdin,
                stdout=output if stdout is None else stdout,
                stderr=output,
                cwd=cwd,
                env=None if environ is None else dict(environ),
                # Ctrl-C must end the owner only, which then ends its programs in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of the program's process, and of its session."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the program (negative: the signal that ended it), None while it runs."""
        return self._popen.poll()

    @property
    def alive(self) -> bool:
        return self.exit_code is None

    @property
    def stdin(self) -> IO[bytes]:
        assert self._popen.stdin is not None
        return self._popen.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._popen.stdout is not None
        return self._popen.stdout

    def wait(self, seconds: float = _ENDS_WITHIN_S) -> int:
        """Wait until the program has ended; return its exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        return self._popen.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program's process only, if it is alive."""
        self._popen.send_signal(number)

    def kill(self) -> None:
        """SIGKILL every process of the session, and wait until they are gone.

        It also kills what a program that ended by itself has left behind. May be called again.
        """
        if self._gone:
            return
        signal_session(self.pid, signal.SIGKILL)
        self._popen.wait(_ENDS_WITHIN_S)
        wait_until(
            lambda: not find_session(self.pid), Deadline(_ENDS_WITHIN_S), f"{self.pid} is killed"
        )
        # From now on the system may give the session's id to another program.
        self._gone = True

    def pause(self) -> None:
        """SIGSTOP every process of the session, and wait until they have stopped.

        Raises:
            NotReadyError: one still runs after half a minute.
        """
        signal_session(self.pid, signal.SIGSTOP)
        # A busy machine delivers the signal some milliseconds later: a driver can go on until then.
        deadline = Deadline(_STOPS_WITHIN_S)
        for process in find_session(self.pid):
            wait_stopped(process.pid, deadline)

    def resume(self) -> None:
        """SIGCONT every process of the session."""
        signal_session(self.pid, signal.SIGCONT)

    def find_processes(self) -> list[Process]:
        """The living processes of the session."""
        return [] if self._gone else find_session(self.pid)

    def read_log(self) -> list[str]:
        """The lines of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


def find_session(session: int) -> list[Process]:
    """The processes of a session that have not ended."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            if os.getsid(pid) == session:
                process = Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
    return found


def signal_session(session: int, number: signal.Signals) -> None:
    """Send a signal to every process of a session except this one, until it finds no new one."""
    done: set[Process] = set()
    for _ in range(_LOOKS):
        new = {each for each in find_session(session) if each.pid != os.getpid()} - done
        if not new:
            return
        for process in new:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        done |= new


def find_jvm_above(pid: int) -> int:
    """The nearest ancestor that is a JVM: the driver or a task's executor.

    Raises:
        ProcessLookupError: there is none.
    """
    for process in Process(pid).parents():
        if process.name().endswith("java"):
            return process.pid
    raise ProcessLookupError(f"no JVM among the ancestors of process {pid}")


def wait_stopped(pid: int, deadline: Deadline) -> None:
    """Wait until SIGSTOP has reached the process: a SIGCONT that overtakes it would be lost.

    Raises:
        NotReadyError: it is still running at the deadline.
    """

    def has_stopped() -> bool:
        try:
            status = Process(pid).status()
        except psutil.NoSuchProcess:
            return True
        return status in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)

    wait_until(has_stopped, deadline, f"process {pid} has stopped")


def find_last_error(lines: Sequence[str]) -> str:
    """The last line that names an error of the sink, else the last that names any."""
    for sign in ("eos_sink.errors.", ""):
        for line in reversed(lines):
            found = _ERROR.search(line) if sign in line else None
            if found:
                return found[1].strip()
    return ""
