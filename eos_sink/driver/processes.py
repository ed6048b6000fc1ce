"""Which process plans for a query, and whether a process of this machine lives.

Imports next to nothing: `eos-sink status` asks this too.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

from eos_sink.options import SinkOptions
from eos_sink.protocol.model import Run


def current_run(options: SinkOptions) -> Run:
    """How this run is named to a run that it replaces."""
    now_ms = int(time.time() * 1000)
    return Run(socket.gethostname(), os.getpid(), now_ms, options.origin, session=_session())


def _session() -> str:
    """What all planner processes of a Spark session share: who has started them.

    That is Spark's Python daemon, or its JVM. A process that Spark has not started has none.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or not spec.name.startswith("pyspark."):
        return ""
    return process_name(os.getppid())


def process_name(pid: int) -> str:
    """A process of this machine, told from an earlier one of the same number where Linux tells."""
    try:
        # Field 22: since when it runs.
        since = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        since = ""
    return f"{pid}@{since}"


def is_alive_here(run: Run) -> bool:
    """Whether the run that wrote last is alive on this machine."""
    return _is_local(run) and _is_running(run.pid)


def is_dead_here(run: Run) -> bool:
    """Whether the run that wrote last is known to have died, since it ran on this machine. Spark
    ends idle planner processes: the run lives on while the process does that has started them."""
    if not _is_local(run) or _is_running(run.pid):
        return False
    parent = run.session.partition("@")[0]
    lives = parent.isdecimal() and _is_running(int(parent))
    return not (lives and process_name(int(parent)) == run.session)


def _is_local(run: Run) -> bool:
    return not run.tool and run.host == socket.gethostname()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
