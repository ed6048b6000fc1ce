"""The owner's end of the guard: the pipe whose end means that the owner is gone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from pathlib import Path

from eos_sink.testing import guard

_GUARD_ENDS_WITHIN_S = 10


class Owner:
    """Starts the guard process; `release` sends it home when everything is cleaned up.

    Attributes:
        token: what the command line of every process to be guarded has to carry.
    """

    def __init__(self, remove: Path | None) -> None:
        self.token = f"eos-guard-{uuid.uuid4().hex}"
        self._process_id = os.getpid()
        # The file, not the module: the guard needs neither this package nor its imports.
        self._guard = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(Path(guard.__file__).absolute())),
                *(self.token, *((str(remove),) if remove is not None else ())),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def is_this_process(self) -> bool:
        """False in a child that was forked off the owner: the cluster is not the child's."""
        return os.getpid() == self._process_id

    def release(self) -> None:
        """Everything is cleaned up: the guard may go."""
        assert self._guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.write(guard.DONE)
            self._guard.stdin.close()
        try:
            self._guard.wait(_GUARD_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
