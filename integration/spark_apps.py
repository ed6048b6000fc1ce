"""Drivers of their own for tests: programs that can be killed and paused, and are kept if not."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import Faults
from eos_sink_lab.testing.process_tree import ProcessTree
from integration import spark_program

PATIENCE_S = 300.0
_LOOK_AGAIN_S = 0.05


class Application:
    """One `integration.spark_program`: a Spark session with a JVM and Python workers."""

    def __init__(
        self,
        home: Path,
        faults: Faults,
        master: str = spark_program.LOCAL,
        conf: dict[str, str] | None = None,
    ) -> None:
        home.mkdir()
        self.home = home
        # On a cluster the executors do not inherit the program's environment.
        executors = {f"spark.executorEnv.{k}": v for k, v in faults.environment.items()}
        session = {"master": master, "conf": {**executors, **(conf or {})}}
        self._queries = 0
        self.processes = ProcessTree(
            [sys.executable, spark_program.__file__, json.dumps(session)],
            home / "log",
            {**os.environ, **faults.environment},
            stdin=subprocess.PIPE,
        )

    def run(self, query: dict[str, Any]) -> Run:
        """Start a query as soon as the session is there and its last one has ended."""
        self._queries += 1
        result = self.home / f"result-{self._queries}"
        given = json.dumps({**query, "result": str(result)})
        self.processes.stdin.write(f"{given}\n".encode())
        self.processes.stdin.flush()
        return Run(self, result)

    @property
    def alive(self) -> bool:
        return self.processes.alive

    @property
    def said(self) -> str:
        return self.processes.log.read_text()[-4000:]

    def killed(self) -> None:
        """Wait until a fault has ended it, then end what is left of it."""
        self.processes.wait(PATIENCE_S)
        self.kill()

    def kill(self) -> None:
        self.processes.kill()

    def workers(self) -> list[int]:
        """Planner, committer and task processes: what Spark's daemons have forked."""
        found: dict[int, tuple[str, int]] = {}
        for process in self.processes.find_processes():
            # One that has ended since is none of them.
            with contextlib.suppress(psutil.NoSuchProcess):
                found[process.pid] = process.name(), process.ppid()
        jvms = {pid for pid, (name, _) in found.items() if name.endswith("java")}
        python = {pid: parent for pid, (name, parent) in found.items() if name.startswith("python")}
        daemons = {pid for pid, parent in python.items() if parent in jvms}
        return [pid for pid, parent in python.items() if parent in daemons]


class Run:
    """A query of an application."""

    def __init__(self, application: Application, result: Path) -> None:
        self.application = application
        self._result = result

    @property
    def alive(self) -> bool:
        return self.application.alive and not self._result.exists()

    def finished(self) -> None:
        """Wait until all is written."""
        error = self.ended()
        assert error is None, error

    def stopped(self) -> str:
        """Wait until the query has stopped with an error; its text."""
        error = self.ended()
        assert error is not None, "the query has come to its end"
        return error

    def ended(self) -> str | None:
        """Wait until it has come to its end or stopped with an error, whose text this gives."""
        deadline = Deadline(PATIENCE_S)
        while self.alive:
            assert not deadline.passed, f"it goes on; {self.application.said}"
            time.sleep(_LOOK_AGAIN_S)
        assert self._result.exists(), f"it died; {self.application.said}"
        error: str | None = json.loads(self._result.read_text())
        return error


class Applications:
    """Applications of a test run. One that no fault has ended serves the next query too.

    Attributes:
        faults: armed in all of them.
    """

    def __init__(self, home: Path) -> None:
        self.faults = Faults(home / "faults")
        self._home = home
        self._all: list[Application] = []
        self._spare: Application | None = None

    def take(self) -> Application:
        """A local one that is free."""
        if self._spare is None or not self._spare.alive:
            self.warm_up()
        assert self._spare is not None
        return self._spare

    def warm_up(self) -> None:
        """Start one, so that it is there when it is needed."""
        self._spare = self.another()

    def another(
        self,
        master: str = spark_program.LOCAL,
        conf: dict[str, str] | None = None,
    ) -> Application:
        """One of its own."""
        home = self._home / f"application-{len(self._all)}"
        self._all.append(application := Application(home, self.faults, master, conf))
        return application

    def close(self) -> None:
        for application in self._all:
            application.kill()
