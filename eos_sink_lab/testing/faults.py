"""Real crashes and pauses at named points of the protocol, in real Spark processes.

A test arms a point by a file in a directory; the process that reaches the point first takes the
file away and kills or stops itself, its JVM or its session. A query's program registers the data
source with fault points, and runs in a session (`setsid`) if a fault is to strike all of it:

    spark.dataSource.register(FaultyDataSource)      # still format("kafka-eos")

with `Faults.environment` in its environment. The test does:

    faults = Faults(directory)
    faults.arm(FaultPoint.COMMITTER_WRITE_AFTER, Strike.KILL_ALL)
    faults.wait_fired(FaultPoint.COMMITTER_WRITE_AFTER, seconds=30)

With EOS_FAULTS_TIMELINE each process appends a line to that file whenever it passes a point:

    {"t": 1763740800.123456, "role": "planner", "pid": 4711, "point": "planner.join.before"}
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from eos_sink.kafka.deadline import Deadline

DIRECTORY_VARIABLE = "EOS_FAULTS_DIR"
TIMELINE_VARIABLE = "EOS_FAULTS_TIMELINE"
ROLE_VARIABLE = "EOS_FAULTS_ROLE"

_STOPS_WITHIN_S = 30.0
_LOOK_AGAIN_S = 0.02


class Strike(Enum):
    """What happens to processes that reach a point.

    The JVM is the nearest one above the Python process: the driver's for planner and committer,
    in local mode for tasks too; on a cluster a task's executor. The session is what `setsid`
    started: all of a driver program, or all of a worker machine.
    """

    KILL_PROCESS = "kill-process"
    """SIGKILL of the Python process itself: task, planner or committer."""
    KILL_JVM = "kill-jvm"
    """SIGKILL of the JVM and of this process; other Python processes find out by themselves."""
    KILL_ALL = "kill-all"
    """SIGKILL of every process of the session, as when a machine is lost."""
    PAUSE = "pause"
    """SIGSTOP of the Python process itself, until `Faults.resume`: a zombie."""
    PAUSE_JVM = "pause-jvm"
    """SIGSTOP of the JVM, as in a long garbage collection; the Python processes go on."""
    PAUSE_ALL = "pause-all"
    """SIGSTOP of every process of the session, as when a virtual machine is suspended."""


PAUSES = (Strike.PAUSE, Strike.PAUSE_JVM, Strike.PAUSE_ALL)


class FaultPoint(Enum):
    """`<process>.<call>.<before|amid|after>`; `amid` is after the first of several."""

    PLANNER_CHECK_BEFORE = "planner.check.before"
    PLANNER_CHECK_AFTER = "planner.check.after"
    PLANNER_JOIN_BEFORE = "planner.join.before"
    PLANNER_JOIN_AFTER = "planner.join.after"
    PLANNER_OPEN_BEFORE = "planner.open.before"
    PLANNER_OPEN_AFTER = "planner.open.after"
    PLANNER_READ_BEFORE = "planner.read.before"
    PLANNER_READ_AFTER = "planner.read.after"
    PLANNER_LIST_BEFORE = "planner.list.before"
    PLANNER_LIST_AFTER = "planner.list.after"
    PLANNER_WRITE_BEFORE = "planner.write.before"
    PLANNER_WRITE_AFTER = "planner.write.after"
    PLANNER_SETTLE_BEFORE = "planner.settle.before"
    PLANNER_SETTLE_AMID = "planner.settle.amid"
    PLANNER_SETTLE_AFTER = "planner.settle.after"
    PLANNER_WITNESS_BEFORE = "planner.witness.before"
    PLANNER_WITNESS_AFTER = "planner.witness.after"
    PLANNER_ABORT_BEFORE = "planner.abort.before"
    PLANNER_ABORT_AMID = "planner.abort.amid"
    PLANNER_ABORT_AFTER = "planner.abort.after"
    PLANNER_STABLE_BEFORE = "planner.stable.before"
    PLANNER_STABLE_AFTER = "planner.stable.after"
    TASK_INIT_BEFORE = "task.init.before"
    TASK_INIT_AFTER = "task.init.after"
    TASK_PRODUCE_AMID = "task.produce.amid"
    """The first row is on its broker, the others are not yet."""
    TASK_OFFSET_BEFORE = "task.offset.before"
    TASK_OFFSET_AFTER = "task.offset.after"
    TASK_FLUSH_BEFORE = "task.flush.before"
    TASK_FLUSH_AFTER = "task.flush.after"
    TASK_PREPARED_BEFORE = "task.prepared.before"
    TASK_PREPARED_AFTER = "task.prepared.after"
    """All rows are on the brokers, and the driver does not know yet."""
    TASK_ABORT_BEFORE = "task.abort.before"
    TASK_ABORT_AFTER = "task.abort.after"
    COMMITTER_OPEN_BEFORE = "committer.open.before"
    COMMITTER_OPEN_AFTER = "committer.open.after"
    COMMITTER_READ_BEFORE = "committer.read.before"
    COMMITTER_READ_AFTER = "committer.read.after"
    COMMITTER_VOTE_BEFORE = "committer.describe.before"
    COMMITTER_VOTE_AFTER = "committer.describe.after"
    COMMITTER_PRODUCE_AMID = "committer.produce.amid"
    """The first inlined row is on its broker, the others and the decision are not yet."""
    COMMITTER_WRITE_BEFORE = "committer.write.before"
    """The decision and all inlined rows are on the brokers, in an open transaction."""
    COMMITTER_WRITE_AFTER = "committer.write.after"
    COMMITTER_SETTLE_BEFORE = "committer.settle.before"
    COMMITTER_SETTLE_AMID = "committer.settle.amid"
    COMMITTER_SETTLE_AFTER = "committer.settle.after"
    COMMITTER_LIST_BEFORE = "committer.list.before"
    COMMITTER_LIST_AFTER = "committer.list.after"
    COMMITTER_ABORT_BEFORE = "committer.abort.before"
    COMMITTER_ABORT_AMID = "committer.abort.amid"
    COMMITTER_ABORT_AFTER = "committer.abort.after"


@dataclass(frozen=True)
class Struck:
    """The process that reached an armed point, and what was done.

    Attributes:
        pid: the Python process.
        jvm: the JVM above it, None if there is none (in a test without Spark).
        session: the session that it belongs to.
        action: what was done.
    """

    pid: int
    jvm: int | None
    session: int
    action: Strike


class Faults:
    """The test's side: arms points, waits until they are reached, wakes what they stopped."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """For the query's process, and for executors on other machines."""
        return {DIRECTORY_VARIABLE: str(self.directory)}

    def arm(self, point: FaultPoint, action: Strike) -> None:
        """Let `action` strike the next process that reaches `point`, once."""
        self.disarm(point)
        _write_at_once(self.directory / point.value, action.value)

    def disarm(self, point: FaultPoint) -> None:
        """Forget the point, and what happened there."""
        (self.directory / f"{point.value}.fired").unlink(missing_ok=True)
        (self.directory / point.value).unlink(missing_ok=True)

    def struck(self, point: FaultPoint) -> Struck | None:
        """Return the latest event at the point, or None."""
        try:
            given = json.loads((self.directory / f"{point.value}.fired").read_text())
        except FileNotFoundError:
            return None
        return Struck(**{**given, "action": Strike(given["action"])})

    def fired(self, point: FaultPoint) -> int | None:
        """The id of the process that reached the point, or None."""
        struck = self.struck(point)
        return None if struck is None else struck.pid

    def wait_fired(self, point: FaultPoint, seconds: float) -> int:
        """Raises TimeoutError if the point is not reached within `seconds`."""
        deadline = Deadline(seconds)
        while (pid := self.fired(point)) is None:
            if deadline.passed:
                raise TimeoutError(f"{point.value} was not reached within {seconds} s")
            time.sleep(_LOOK_AGAIN_S)
        return pid

    def resume(self, point: FaultPoint) -> None:
        """Send SIGCONT to what a pause at the point has stopped.

        Raises:
            ValueError: nothing was paused there.
        """
        struck = self.struck(point)
        if struck is None or struck.action not in PAUSES:
            raise ValueError(f"nothing was paused at {point.value}: {struck}")
        target = struck.jvm if struck.action is Strike.PAUSE_JVM else struck.pid
        assert target is not None
        # Only faults that are used need psutil.
        from eos_sink_lab.testing.process_tree import signal_session, wait_stopped

        wait_stopped(target, Deadline(_STOPS_WITHIN_S))
        if struck.action is Strike.PAUSE_ALL:
            signal_session(struck.session, signal.SIGCONT)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, signal.SIGCONT)


class Gate:
    """The process's side: each call of a client passes it, before and after.

    Args:
        role: of this process, the first part of each point's name.
        environ: names the directory of armed points and the timeline; without, nothing happens.
    """

    def __init__(self, role: str, environ: Mapping[str, str] = os.environ) -> None:
        directory, timeline = environ.get(DIRECTORY_VARIABLE), environ.get(TIMELINE_VARIABLE)
        self._directory = Path(directory) if directory else None
        self._timeline = Path(timeline) if timeline else None
        self._role = role

    def reach(self, call: str, when: str) -> None:
        """Note the point, and strike if it is armed."""
        point = f"{self._role}.{call}.{when}"
        action = self._take(point)
        if self._timeline is not None:
            entry: dict[str, object] = {"t": round(time.time(), 6), "role": self._role}
            entry |= {"pid": os.getpid(), "point": point}
            if action is not None:
                entry["fault"] = action.value
            # One write a line, to the end: lines of several processes never mix.
            with self._timeline.open("ab", buffering=0) as lines:
                lines.write(json.dumps(entry).encode() + b"\n")
        if action is not None:
            self._strike(point, action)

    def is_armed(self, call: str, when: str) -> bool:
        directory = self._directory
        return directory is not None and (directory / f"{self._role}.{call}.{when}").exists()

    def _take(self, point: str) -> Strike | None:
        """Of several processes at one point, one takes the file."""
        if self._directory is None:
            return None
        taken = self._directory / f"{point}.{os.getpid()}"
        try:
            (self._directory / point).rename(taken)
        except FileNotFoundError:
            return None
        return Strike(taken.read_text())

    def _strike(self, point: str, action: Strike) -> None:
        """Note what is struck, then strike: this process last."""
        assert self._directory is not None
        from eos_sink_lab.testing.process_tree import find_jvm_above, signal_session

        jvm = None
        with contextlib.suppress(ProcessLookupError):
            jvm = find_jvm_above(os.getpid())
        struck = Struck(os.getpid(), jvm, os.getsid(0), action)
        noted = json.dumps({**asdict(struck), "action": action.value})
        _write_at_once(self._directory / f"{point}.fired", noted)
        number = signal.SIGSTOP if action in PAUSES else signal.SIGKILL
        if action in (Strike.KILL_ALL, Strike.PAUSE_ALL):
            signal_session(struck.session, number)
        elif action in (Strike.KILL_JVM, Strike.PAUSE_JVM):
            assert jvm is not None, "this process has no JVM above it"
            os.kill(jvm, number)
        if action is not Strike.PAUSE_JVM:
            os.kill(struck.pid, number)


def _write_at_once(path: Path, text: str) -> None:
    """A reader sees the whole file or none."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text)
    draft.rename(path)


@dataclass(frozen=True)
class Pass:
    """A line of the timeline: one process at one point.

    Attributes:
        t: seconds since the epoch.
        role: "planner", "task" or "committer".
        pid: the process.
        point: `<role>.<call>.<before|amid|after>`.
        fault: what struck there (a value of `Strike`), None otherwise.
    """

    t: float
    role: str
    pid: int
    point: str
    fault: str | None = None


def read_timeline(path: str | Path) -> list[Pass]:
    """All lines of a timeline, in the order of time; empty if there is no file."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return sorted((Pass(**json.loads(line)) for line in lines), key=lambda entry: entry.t)
