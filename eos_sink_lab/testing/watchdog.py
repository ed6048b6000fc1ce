"""Kills the processes of an owner that died before it ended them: kill -9, a crash, out of memory.

The owner starts a `Watchdog` and gives `Watchdog.environ` to every process that it starts; they
pass it on to theirs. This file then runs as a process (`python -I watchdog.py OWNER TOKEN
[DIRECTORY]`, without this package). When the owner is no longer its parent, it kills every process
that has the token in its environment, paused ones included, and removes the directory. It looks for
a token instead of keeping a list of ids: it misses no process between its start and its entry in a
list, and leaves an id alone that the system has given to another program.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
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

_CHECK_OWNER_EVERY_S = 0.2
_CLEAN_LOOKS = 3
_BETWEEN_LOOKS_S = 0.1
_GIVE_UP_AFTER_S = 20.0


class Watchdog:
    """The owner's side: starts the watchdog process.

    Args:
        remove: a directory that is removed with the processes.

    Raises:
        BackendUnavailableError: psutil is not installed.
    """

    def __init__(self, remove: Path | None = None) -> None:
        require_psutil()
        self.token = f"eos-{uuid.uuid4().hex}"
        self.environ = {VARIABLE: self.token}
        self._owner = os.getpid()
        arguments = [str(self._owner), self.token, *([str(remove)] if remove is not None else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).absolute()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def is_own(self) -> bool:
        """False in a child that was forked off the owner: it must not end the processes."""
        return os.getpid() == self._owner

    def close(self) -> None:
        """End the watchdog: the owner has cleaned up."""
        if self.is_own:
            self._process.kill()
            self._process.wait()


def require_psutil() -> None:
    """Check for psutil, which only the extras `demo` and `test` install.

    Raises:
        BackendUnavailableError: it is not installed.
    """
    if importlib.util.find_spec("psutil") is None:
        from eos_sink_lab.testing.cluster_errors import BackendUnavailableError

        raise BackendUnavailableError(
            "Starting, pausing and killing processes needs psutil: pip install psutil"
        )


def main(owner: int, token: str, *directories: str) -> None:
    """Wait for the owner's end, and clean up."""
    while os.getppid() == owner:
        time.sleep(_CHECK_OWNER_EVERY_S)
    kill_all(token)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


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
    main(int(sys.argv[1]), *sys.argv[2:])
