"""The driver as the demo sees it: a process with its JVM and workers, to be killed or frozen."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from eos_sink.demo import guard


class Victim:
    """A running driver.

    Args:
        command: the program and its arguments.
        environ: its environment.
        log: where it and its JVM write to; appended.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self.log = log
        self.started = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=dict(environ),
                start_new_session=True,
            )

    @property
    def session(self) -> int:
        """The session that all of it lives in."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """What the driver returned, None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """SIGKILL to all of it, and wait until it is gone. May be called again."""
        if self._process.poll() is None:
            guard.send(self.session, signal.SIGKILL)
        self.let_go()
        self._process.wait()

    def let_go(self) -> None:
        """Close the pipe, as the end of this process would: the guard kills all of it."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def freeze(self) -> None:
        """SIGSTOP to all of it."""
        guard.send(self.session, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT to all of it."""
        guard.send(self.session, signal.SIGCONT)

    def lines(self) -> list[str]:
        """Its log."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


_ERROR = re.compile(r"(?:[\w$]+\.)*(\w+(?:Error|Exception): .*)")


def last_error(lines: Sequence[str]) -> str:
    """The last line that names an error of the sink, else the last that names any."""
    for sign in ("eos_sink.errors.", ""):
        for line in reversed(lines):
            found = _ERROR.search(line) if sign in line else None
            if found:
                return found[1].strip()
    return ""
