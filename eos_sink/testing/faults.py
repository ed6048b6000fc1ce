"""Real crashes at named points of the protocol, in real Spark processes.

A test arms a point by a file in a directory; the process that reaches the point first takes the
file away and kills or stops itself, the driver or everything. Points lie at the adapter seam, the
calls of `eos_sink.ports`, so that no protocol code knows of them. Use it from a query's program:

    spark.dataSource.register(FaultyDataSource)      # still format("kafka-eos")

with the environment variable EOS_FAULTS_DIR naming the directory, and from the test:

    faults = Faults(directory)
    faults.arm(FaultPoint.COMMITTER_WRITE_AFTER, Action.KILL_ALL)
    faults.wait_fired(FaultPoint.COMMITTER_WRITE_AFTER, seconds=30)
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from eos_sink.clients.cluster import ConfluentKafka
from eos_sink.datasource import KafkaEosDataSource
from eos_sink.deadline import Deadline
from eos_sink.model import Transaction
from eos_sink.options import SinkOptions
from eos_sink.ports import EndOutcome, Kafka, TransactionControl

DIRECTORY_VARIABLE = "EOS_FAULTS_DIR"
ROLE_VARIABLE = "EOS_FAULTS_ROLE"

_ROLES = {
    "pyspark.sql.worker.write_into_data_source": "planner",
    "pyspark.sql.worker.python_streaming_sink_runner": "committer",
}


class Action(Enum):
    """What happens to whom when a point is reached."""

    KILL_PROCESS = "kill-process"
    """SIGKILL of the Python process itself: task, planner or committer."""
    KILL_DRIVER = "kill-driver"
    """SIGKILL of the JVM; its Python processes find out by themselves."""
    KILL_ALL = "kill-all"
    """SIGKILL of every process of the session, as when a machine is lost."""
    PAUSE = "pause"
    """SIGSTOP of the Python process itself, to be woken by the test: a zombie."""


class FaultPoint(Enum):
    """`<process>.<call>.<before|amid|after>`; `amid` is after the first of several transactions."""

    PLANNER_JOIN_BEFORE = "planner.join.before"
    PLANNER_JOIN_AFTER = "planner.join.after"
    PLANNER_OPEN_BEFORE = "planner.open.before"
    PLANNER_OPEN_AFTER = "planner.open.after"
    PLANNER_LIST_BEFORE = "planner.list.before"
    PLANNER_LIST_AFTER = "planner.list.after"
    PLANNER_WRITE_BEFORE = "planner.write.before"
    PLANNER_WRITE_AFTER = "planner.write.after"
    PLANNER_SETTLE_BEFORE = "planner.settle.before"
    PLANNER_SETTLE_AMID = "planner.settle.amid"
    PLANNER_SETTLE_AFTER = "planner.settle.after"
    PLANNER_ABORT_BEFORE = "planner.abort.before"
    PLANNER_ABORT_AMID = "planner.abort.amid"
    PLANNER_ABORT_AFTER = "planner.abort.after"
    PLANNER_STABLE_BEFORE = "planner.stable.before"
    PLANNER_STABLE_AFTER = "planner.stable.after"
    TASK_INIT_BEFORE = "task.init.before"
    TASK_INIT_AFTER = "task.init.after"
    TASK_OFFSET_BEFORE = "task.offset.before"
    TASK_OFFSET_AFTER = "task.offset.after"
    TASK_FLUSH_BEFORE = "task.flush.before"
    TASK_FLUSH_AFTER = "task.flush.after"
    COMMITTER_OPEN_BEFORE = "committer.open.before"
    COMMITTER_OPEN_AFTER = "committer.open.after"
    COMMITTER_VOTE_BEFORE = "committer.describe.before"
    COMMITTER_VOTE_AFTER = "committer.describe.after"
    COMMITTER_WRITE_BEFORE = "committer.write.before"
    COMMITTER_WRITE_AFTER = "committer.write.after"
    COMMITTER_SETTLE_BEFORE = "committer.settle.before"
    COMMITTER_SETTLE_AMID = "committer.settle.amid"
    COMMITTER_SETTLE_AFTER = "committer.settle.after"
    COMMITTER_LIST_BEFORE = "committer.list.before"
    COMMITTER_LIST_AFTER = "committer.list.after"
    COMMITTER_ABORT_BEFORE = "committer.abort.before"
    COMMITTER_ABORT_AMID = "committer.abort.amid"
    COMMITTER_ABORT_AFTER = "committer.abort.after"


class Faults:
    """The test's side: arms points and waits until they are reached."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """To be given to the query's process."""
        return {DIRECTORY_VARIABLE: str(self.directory)}

    def arm(self, point: FaultPoint, action: Action) -> None:
        """The next process that reaches `point` suffers `action`, once."""
        waiting = self.directory / f"{point.value}.new"
        waiting.write_text(action.value)
        waiting.rename(self.directory / point.value)

    def disarm(self, point: FaultPoint) -> None:
        (self.directory / point.value).unlink(missing_ok=True)

    def fired(self, point: FaultPoint) -> int | None:
        """The id of the process that reached the point, or None."""
        try:
            return int((self.directory / f"{point.value}.fired").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def wait_fired(self, point: FaultPoint, seconds: float) -> int:
        """Raises TimeoutError if the point is not reached within `seconds`."""
        deadline = Deadline(seconds)
        while (pid := self.fired(point)) is None:
            if deadline.passed:
                raise TimeoutError(f"{point.value} was not reached within {seconds} s")
            time.sleep(0.02)
        return pid


class _Gate:
    """The process's side: what each port call passes, before and after."""

    def __init__(self, directory: str | None, role: str) -> None:
        self._directory = Path(directory) if directory else None
        self._role = role

    def reach(self, call: str, when: str) -> None:
        if self._directory is None:
            return
        name = f"{self._role}.{call}.{when}"
        taken = self._directory / f"{name}.{os.getpid()}"
        try:
            (self._directory / name).rename(taken)
        except FileNotFoundError:
            return
        action = Action(taken.read_text())
        noted = self._directory / f"{name}.noted"
        noted.write_text(str(os.getpid()))
        noted.rename(self._directory / f"{name}.fired")
        _suffer(action)


def _suffer(action: Action) -> None:
    if action is Action.PAUSE:
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    if action is Action.KILL_DRIVER:
        os.kill(_jvm(), signal.SIGKILL)
    elif action is Action.KILL_ALL:
        kill_session(os.getsid(0))
    os.kill(os.getpid(), signal.SIGKILL)


def kill_session(session: int) -> None:
    """SIGKILL every process of a session: a driver program, its JVM and all Python workers."""
    for line in _ps("-eo", "pid=,sess="):
        pid, sess = map(int, line.split())
        if sess == session and pid != os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _jvm() -> int:
    """The nearest ancestor that is a JVM."""
    pid = os.getpid()
    while pid > 1:
        ((parent, command),) = [line.split(None, 1) for line in _ps("-o", "ppid=,comm=", "-p", pid)]
        if command.strip().endswith("java"):
            return pid
        pid = int(parent)
    raise RuntimeError("no JVM among the ancestors of this process")


def _ps(*arguments: object) -> list[str]:
    command = ["ps", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


class _Watched:
    """A client whose named calls pass the gate."""

    def __init__(self, client: Any, gate: _Gate, points: dict[str, str]) -> None:
        self._client, self._gate, self._points = client, gate, points

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        point = self._points.get(name)
        if point is None:
            return call

        def watched(*arguments: Any, **named: Any) -> Any:
            self._gate.reach(point, "before")
            result = call(*arguments, **named)
            self._gate.reach(point, "after")
            return result

        return watched


class _WatchedControl(_Watched):
    """EndTxn can be interrupted between one transaction and the others."""

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        ordered = list(transactions)
        if not ordered:
            return {}
        control: TransactionControl = self._client
        call = "settle" if commit else "abort"
        self._gate.reach(call, "before")
        outcomes = control.end(ordered[:1], commit=commit, deadline=deadline)
        self._gate.reach(call, "amid")
        outcomes.update(control.end(ordered[1:], commit=commit, deadline=deadline))
        self._gate.reach(call, "after")
        return outcomes


class FaultyKafka:
    """The real clients behind gates. Implements `eos_sink.ports.Kafka`."""

    def __init__(self, kafka: Kafka, gate: _Gate) -> None:
        self._kafka, self._gate = kafka, gate

    def producer(self, transactional_id: str, timeout_ms: int) -> Any:
        points = {"init": "init", "send_offset": "offset", "flush": "flush"}
        return _Watched(self._kafka.producer(transactional_id, timeout_ms), self._gate, points)

    def log_producer(self, transactional_id: str, timeout_ms: int) -> Any:
        points = {"init": "open", "commit": "write"}
        return _Watched(self._kafka.log_producer(transactional_id, timeout_ms), self._gate, points)

    def member(self, group: str, instance_id: str, session_ms: int) -> Any:
        points = {"join": "join", "wait_stable": "stable"}
        return _Watched(self._kafka.member(group, instance_id, session_ms), self._gate, points)

    def control(self) -> Any:
        points = {"list_open": "list", "describe": "describe"}
        return _WatchedControl(self._kafka.control(), self._gate, points)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)


def faulty_connect(options: SinkOptions) -> Any:
    """The connection of `FaultyDataSource`. What Spark runs in a process tells its role."""
    role = os.environ.get(ROLE_VARIABLE) or _ROLES.get(sys.argv[-1], "task")
    gate = _Gate(os.environ.get(DIRECTORY_VARIABLE), role)
    return FaultyKafka(ConfluentKafka(options), gate)


class FaultyDataSource(KafkaEosDataSource):
    """`format("kafka-eos")` with fault points; everything else is the sink's own code."""

    connect = staticmethod(faulty_connect)
