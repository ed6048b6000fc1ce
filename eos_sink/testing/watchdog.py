"""Kills the processes of an owner that died without doing it: kill -9, a crash, out of memory.

The owner starts a `Watchdog` and gives `Watchdog.environ` to every process that it starts; they
pass it on to theirs. This file then runs as a process of its own (`python -I watchdog.py TOKEN
[DIRECTORY]`, without this package) and holds the read end of a pipe from the owner. When the pipe
ends without the word "done", or the owner is no longer its parent, every process that has the token
in its environment is killed, paused ones included, and the directory is removed. It looks for a
token instead of keeping a list of ids: nothing is missed between a process's start and its entry in
a list, and an id that the system has given to another program in the meantime is left alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

VARIABLE = "EOS_WATCHDOG"
DONE = b"done"

_CHECK_PARENT_EVERY_S = 0.5
_CLEAN_LOOKS = 3
_BETWEEN_LOOKS_S = 0.1
_GIVE_UP_AFTER_S = 20.0
_ENDS_WITHIN_S = 10


class Watchdog:
    """The owner's side: starts the watchdog process.

    Args:
        remove: a directory that goes with the processes.

    Raises:
        BackendUnavailableError: psutil is not installed.
    """

    def __init__(self, remove: Path | None = None) -> None:
        require_psutil()
        self.token = f"eos-{uuid.uuid4().hex}"
        self.environ = {VARIABLE: self.token}
        self._owner = os.getpid()
        arguments = [self.token, *([str(remove)] if remove is not None else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).absolute()), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def is_own(self) -> bool:
        """False in a child that was forked off the owner: the processes are not the child's."""
        return os.getpid() == self._owner

    def close(self) -> None:
        """End the watchdog: everything is cleaned up."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(DONE)
            self._process.stdin.close()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def require_psutil() -> None:
    """Check for psutil, which is part of the extras `demo` and `test` only.

    Raises:
        BackendUnavailableError: it is not installed.
    """
    if importlib.util.find_spec("psutil") is None:
        from eos_sink.testing.cluster_errors import BackendUnavailableError

        raise BackendUnavailableError(
            "Starting, pausing and killing processes needs psutil: pip install psutil"
        )


def main(arguments: list[str]) -> None:
    """Wait for the owner's end; clean up if the owner has not done it."""
    token = arguments[0]
    if wait_owner(sys.stdin.fileno(), os.getppid()):
        return
    kill_all(token)
    for directory in arguments[1:]:
        shutil.rmtree(directory, ignore_errors=True)


def wait_owner(pipe: int, owner: int) -> bool:
    """Block until the owner has ended; return whether it said that it has cleaned up itself."""
    said = b""
    while True:
        # A child that the owner forked may hold the pipe open after its death: look at both.
        ready, _, _ = select.select([pipe], [], [], _CHECK_PARENT_EVERY_S)
        if ready:
            chunk = os.read(pipe, 1024)
            if not chunk:
                return said == DONE
            said += chunk
        elif os.getppid() != owner:
            return said == DONE


def kill_all(token: str) -> None:
    """SIGKILL every process with the token, until several looks in a row find none."""
    import psutil

    end = time.monotonic() + _GIVE_UP_AFTER_S
    clean_looks = 0
    while clean_looks < _CLEAN_LOOKS and time.monotonic() < end:
        found = find(token)
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        # A process that was being forked when its owner died shows the token a moment later.
        clean_looks = 0 if found else clean_looks + 1
        time.sleep(_BETWEEN_LOOKS_S)


def find(token: str) -> list[psutil.Process]:
    """The processes that have the token in their environment."""
    import psutil

    # The environment of a process that has ended or is another user's is None.
    return [
        process
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get(VARIABLE) == token
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
