"""A Spark standalone cluster on this machine: a master and workers, each its own session.

    with closing(StandaloneCluster(tmp_path / "spark")) as cluster:
        builder.master(cluster.url).config(map=cluster.conf)
        cluster.workers[0].kill_executor()      # the JVM that runs tasks, with their Python
        cluster.workers[1].kill()               # a machine is lost: worker, executors, Python
        cluster.workers[1].start()

Only pyspark's own jars are needed. If this process dies, all of it is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pyspark

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import java_home
from eos_sink_lab.testing.network_links import HOST, free_ports
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.waiting import wait_until
from eos_sink_lab.testing.watchdog import Watchdog

_PATIENCE_S = 120.0
_WORKERS = 2
# Of each worker, as Spark counts them: an application takes `conf`'s share only, so that a
# successor finds room beside a zombie.
_CORES = 6
_QUIET_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SPARK_HOME = Path(pyspark.__file__).parent


class _Daemon:
    """A master or a worker: a JVM that leads its own session."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.log = home / "log"
        self._environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(_SPARK_HOME),
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_DAEMON_JAVA_OPTS": _QUIET_JVM,
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_LOCAL_DIRS": str(home / "local"),
            **environment,
        }
        self._processes: ProcessTree | None = None
        home.mkdir(parents=True, exist_ok=True)

    @property
    def processes(self) -> ProcessTree:
        """The JVM and what it has started."""
        assert self._processes is not None, "it was not started"
        return self._processes

    @property
    def alive(self) -> bool:
        return self._processes is not None and self._processes.alive

    def launch(self, *command: object) -> None:
        assert not self.alive, "it is running already"
        spark_class = _SPARK_HOME / "bin" / "spark-class"
        self._processes = ProcessTree(
            [spark_class, *command], self.log, self._environment, cwd=self.log.parent
        )

    def kill(self) -> None:
        """SIGKILL all of the session, as when a machine is lost. May be called again."""
        if self._processes is not None:
            self._processes.kill()

    @property
    def said(self) -> str:
        return self.log.read_text()[-4000:] if self.log.exists() else ""


class Worker(_Daemon):
    """A worker machine: the worker's JVM, executors and the Python of their tasks."""

    def __init__(self, url: str, home: Path, environment: dict[str, str]) -> None:
        super().__init__(home, environment)
        self._url, self._work = url, home / "work"

    def start(self) -> None:
        """Start it, also after `kill`. `StandaloneCluster.wait_workers` tells when it is there."""
        size = ("--cores", _CORES, "--memory", f"{_CORES}g")
        place = ("--host", HOST, "--webui-port", 0, "--work-dir", self._work)
        self.launch("org.apache.spark.deploy.worker.Worker", *place, *size, self._url)

    def kill_executor(self) -> None:
        """SIGKILL an executor's JVM; its Python processes find out by themselves."""
        wait_until(lambda: bool(self._executors()), Deadline(_PATIENCE_S), "an executor is there")
        os.kill(self._executors()[0], signal.SIGKILL)

    def _executors(self) -> list[int]:
        """The JVMs that run tasks; the Python processes of the tasks are below them."""
        found = []
        for process in self.processes.find_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "--app-id" in process.cmdline() and process.name().endswith("java"):
                    found.append(process.pid)
        return found


class StandaloneCluster:
    """See the module.

    Args:
        home: a directory for logs and work; it stays.
    """

    def __init__(self, home: Path) -> None:
        self._watchdog = Watchdog()
        given = self._watchdog.environ
        port, self._web = free_ports(2)
        self.url = f"spark://{HOST}:{port}"
        # A worker that is silent for so long is given up by the master.
        # Ten executors may fail by default before the master ends their application.
        settings = ("spark.worker.timeout=15", "spark.deploy.maxExecutorRetries=-1")
        opts = {"SPARK_MASTER_OPTS": " ".join(f"-D{setting}" for setting in settings)}
        self.master = _Daemon(home / "master", {**given, **opts})
        self.workers = tuple(Worker(self.url, home / f"worker-{n}", given) for n in range(_WORKERS))
        try:
            where = ("--host", HOST, "--port", port, "--webui-port", self._web)
            self.master.launch("org.apache.spark.deploy.master.Master", *where)
            for worker in self.workers:
                worker.start()
            self.wait_workers(_WORKERS)
        except BaseException:
            self.close()
            raise

    @property
    def conf(self) -> dict[str, str]:
        """For an application: one executor of one core on each worker, in little memory."""
        return {
            "spark.executor.cores": "1",
            "spark.cores.max": str(len(self.workers)),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": _QUIET_JVM,
            # A killed executor's place is looked for at once, without waiting for its data.
            "spark.locality.wait": "0",
        }

    def wait_workers(self, count: int) -> None:
        """Until the master knows of exactly so many workers that live.

        Raises:
            NotReadyError: it does not.
        """
        assert self.master.alive, self.master.said
        what = f"{count} workers are registered; {self.master.said}"
        wait_until(lambda: self._state().get("aliveworkers") == count, Deadline(_PATIENCE_S), what)

    def close(self) -> None:
        for daemon in (*self.workers, self.master):
            daemon.kill()
        self._watchdog.close()

    def _state(self) -> dict[str, Any]:
        """What the master's page says; nothing while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._web}/json/", timeout=10) as page:
                state: dict[str, Any] = json.load(page)
                return state
        except (urllib.error.URLError, OSError, ValueError):
            return {}
