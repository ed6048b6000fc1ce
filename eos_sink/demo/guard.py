"""Runs a program and sees to it that nothing of it outlives the demo.

`python -I guard.py COMMAND ...` (standard library only) leads a session of its own, in which the
program, its JVM and their workers live. It holds the read end of a pipe from the demo: when that
ends, however the demo ended, everything in the session is killed, frozen processes included.
When the program ends by itself, so does the guard, with its exit code.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

_LOOK_EVERY_S = 0.1
_LOOKS_AT_MOST = 50


def main(command: list[str]) -> int:
    """Run the command; what it returned, or 137 if it was killed."""
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    pipe = sys.stdin.fileno()
    while program.poll() is None:
        ready, _, _ = select.select([pipe], [], [], _LOOK_EVERY_S)
        if ready and not os.read(pipe, 1024):
            break
    send(os.getpid(), signal.SIGKILL)
    code = program.wait()
    return code if code >= 0 else 128 - code


def send(session: int, number: signal.Signals) -> None:
    """Send a signal to everything in the session but its leader, until nobody new is found."""
    done: set[int] = set()
    for _ in range(_LOOKS_AT_MOST):
        new = members(session) - done
        if not new:
            return
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        done |= new


def members(session: int) -> set[int]:
    """The processes of the session without its leader."""
    found = set()
    for process in _processes():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if process != session and os.getsid(process) == session:
                found.add(process)
    return found


def _processes() -> list[int]:
    if Path("/proc/self").exists():
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    listing = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, check=False)
    return [int(line) for line in listing.stdout.split()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
