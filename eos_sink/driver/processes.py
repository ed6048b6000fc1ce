"""The run of this process, how Spark reaches it, and whether a run's process is alive here.

Imports next to nothing, since `eos-sink status` uses it too.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from pathlib import Path

from eos_sink.identity import Origin
from eos_sink.protocol.model import Run


def current_run(origin: Origin) -> Run:
    """This process's run, as records of the decision log name it.

    Args:
        origin: what its query was started with.
    """
    now_ms = int(time.time() * 1000)
    host, boot_id, pid_namespace = _place()
    return Run(
        host,
        os.getpid(),
        now_ms,
        origin,
        session=_session(),
        boot_id=boot_id,
        pid_namespace=pid_namespace,
    )


def _place() -> tuple[str, str, str]:
    """`Run.place` of this process. A system without /proc tells its host name only."""
    boot_id = pid_namespace = ""
    with contextlib.suppress(OSError):
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        pid_namespace = str(os.stat("/proc/self/ns/pid").st_ino)
    return socket.gethostname(), boot_id, pid_namespace


def _session() -> str:
    """The process that has started all planner processes of a Spark session: Spark's Python daemon
    or its JVM. "" if Spark has not started this process."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or not spec.name.startswith("pyspark."):
        return ""
    return process_name(os.getppid())


def uses_tcp_to_spark() -> bool:
    """True if Spark has started this process and exchanges data with it over TCP, although both
    could use Unix domain sockets."""
    if not (_session() and hasattr(socket, "AF_UNIX")):
        return False
    # Spark 4.0 has no such sockets. This class came with them, and each process of Spark loads it.
    if not hasattr(sys.modules.get("pyspark.accumulators"), "AccumulatorUnixServer"):
        return False
    # Set by Spark's PythonWorkerFactory, for its daemon and for workers without one.
    return os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower() != "true"


def process_name(pid: int) -> str:
    """A process of this machine. On Linux it differs from an earlier process of the same number."""
    try:
        # Field 22: its start.
        since = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        since = ""
    return f"{pid}@{since}"


def is_alive_here(run: Run) -> bool:
    """True if the run is known to be alive, in this PID namespace."""
    return _is_local(run) and _is_running(run.pid)


def is_dead_here(run: Run) -> bool:
    """True if the run is known to have died, in this PID namespace. Spark ends idle planner
    processes: the run lives as long as the process that has started them."""
    if not _is_local(run) or _is_running(run.pid):
        return False
    parent = run.session.partition("@")[0]
    lives = parent.isdecimal() and _is_running(int(parent))
    return not (lives and process_name(int(parent)) == run.session)


def _is_local(run: Run) -> bool:
    """True if the run's process numbers mean the same here. Containers may share a host name, and
    virtual machines may; so a run of which not all is known counts as remote."""
    return not run.tool and all(run.place) and run.place == _place()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
