"""Ends a cluster whose owner died without doing it: kill -9, a crash, an out-of-memory kill.

Runs as a process of its own (`python guard.py TOKEN [DIRECTORY]`, standard library only) and
holds the read end of a pipe from the owner. When the pipe ends without the word "done", or the
owner is no longer its parent, every process whose command line carries the token is killed,
paused ones included, and the directory is removed. It looks for a token instead of keeping a list
of ids: nothing is missed between a node's start and its entry in a list, and an id that the
system gave to somebody else in the meantime is left alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

_CHECK_PARENT_EVERY_S = 0.5
_CLEAN_LOOKS = 3
_BETWEEN_LOOKS_S = 0.1
_GIVE_UP_AFTER_S = 20.0

DONE = b"done"


def main(arguments: list[str]) -> None:
    """Wait for the owner's end; clean up if it was not a regular one."""
    token = arguments[0]
    directory = Path(arguments[1]) if len(arguments) > 1 else None
    if owner_said_done(sys.stdin.fileno(), os.getppid()):
        return
    kill_all(token)
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def owner_said_done(pipe: int, owner: int) -> bool:
    """Block until the owner has ended; whether it said that it has cleaned up itself."""
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
    """SIGKILL whatever carries the token, until several looks in a row find nothing."""
    end = time.monotonic() + _GIVE_UP_AFTER_S
    clean_looks = 0
    while clean_looks < _CLEAN_LOOKS and time.monotonic() < end:
        found = find(token)
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        # A node that was being forked when its owner died shows the token only a moment later.
        clean_looks = 0 if found else clean_looks + 1
        time.sleep(_BETWEEN_LOOKS_S)


def find(token: str) -> list[int]:
    """Ids of the processes, this one and zombies apart, whose command line carries the token."""
    on_linux = Path("/proc/self/cmdline").exists()
    commands = _commands_from_proc() if on_linux else _commands_from_ps()
    return [process for process, command in commands if token in command and process != os.getpid()]


def _commands_from_proc() -> list[tuple[int, str]]:
    commands = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            commands.append((int(entry.name), command.decode(errors="replace")))
    return commands


def _commands_from_ps() -> list[tuple[int, str]]:
    listing = subprocess.run(
        ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=False
    ).stdout
    pairs = (line.split(None, 1) for line in listing.splitlines())
    return [(int(pair[0]), pair[1]) for pair in pairs if len(pair) > 1]


if __name__ == "__main__":
    main(sys.argv[1:])
