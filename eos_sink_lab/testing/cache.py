"""The directory of downloads, and a lock between the processes that share it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.waiting import wait_until


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """`EOS_CACHE`, else eos-sink under XDG_CACHE_HOME, else ~/.cache/eos-sink."""
    if environ.get("EOS_CACHE"):
        return Path(environ["EOS_CACHE"]).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "eos-sink"


@contextlib.contextmanager
def exclusive(path: Path, deadline: Deadline, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file, which the kernel frees when its holder dies.

    Args:
        path: the lock file, created if it is missing and never removed.
        deadline: how long to wait for another holder.
        on_wait: called once if there is one.

    Raises:
        NotReadyError: another process still held it at the deadline.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:

        def lock() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        if not lock():
            on_wait()
            wait_until(lock, deadline, f"the lock {path} is free")
        yield
