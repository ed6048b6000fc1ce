"""Faults strike the processes that they name, and no others. Only Spark is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import FaultPoint, Faults, Strike, read_timeline
from eos_sink_lab.testing.faults import TIMELINE_VARIABLE
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.waiting import wait_until

POINT = FaultPoint.TASK_INIT_BEFORE
PATIENCE_S = 60

# What stands for a JVM starts a task and something else beside it.
JVM = """
import subprocess, sys
python, task = sys.argv[1:]
subprocess.Popen([python, "-c", "import time; time.sleep(600)"])
subprocess.run([python, "-c", task])
import time; time.sleep(600)
"""
TASK = """
import time
from eos_sink_lab.testing.faults import Gate
gate = Gate("task")
gate.reach("init", "before")
gate.reach("init", "after")
time.sleep(600)
"""


class Machine:
    """A session of three: the JVM, its task, and a process beside the task."""

    def __init__(self, home: Path, action: Strike) -> None:
        self.faults = Faults(home / "faults")
        self.faults.arm(POINT, action)
        self.timeline = home / "timeline"
        java = home / "java"
        java.symlink_to(Path(sys.executable).resolve())
        self._processes = ProcessTree(
            [java, "-c", JVM, sys.executable, TASK],
            home / "log",
            {
                **os.environ,
                **self.faults.environment,
                TIMELINE_VARIABLE: str(self.timeline),
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )
        self.jvm = self._processes.pid

    @property
    def task(self) -> int:
        """The task's process, once it was struck."""
        return self.faults.wait_fired(POINT, PATIENCE_S)

    def becomes(self, *, alive: int, stopped: set[int]) -> None:
        """Wait until so many live, of which these are stopped."""

        def so() -> bool:
            found = self._processes.find_processes()
            return len(found) == alive and self.stopped() == stopped

        wait_until(so, Deadline(PATIENCE_S), f"{alive} live and {stopped} are stopped")

    def stopped(self) -> set[int]:
        found = self._processes.find_processes()
        return {each.pid for each in found if each.status() == psutil.STATUS_STOPPED}

    def points(self) -> list[str]:
        return [entry.point for entry in read_timeline(self.timeline)]

    def end(self) -> None:
        self._processes.kill()


@pytest.fixture
def struck(tmp_path: Path) -> Iterator[Callable[[Strike], Machine]]:
    started: list[Machine] = []

    def start(action: Strike) -> Machine:
        started.append(Machine(tmp_path, action))
        return started[-1]

    yield start
    for machine in started:
        machine.end()


def test_the_process_alone_is_killed(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.KILL_PROCESS)
    assert machine.task != machine.jvm
    machine.becomes(alive=2, stopped=set())
    assert machine.points() == ["task.init.before"]
    assert read_timeline(machine.timeline)[0].fault == "kill-process"


def test_the_jvm_and_the_process_are_killed(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.KILL_JVM)
    assert machine.task
    machine.becomes(alive=1, stopped=set())
    found = machine.faults.struck(POINT)
    assert found is not None
    assert found.jvm == machine.jvm


def test_all_of_the_session_is_killed(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.KILL_ALL)
    assert machine.task
    machine.becomes(alive=0, stopped=set())


def test_a_paused_process_goes_on_when_it_is_woken(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.PAUSE)
    machine.becomes(alive=3, stopped={machine.task})
    assert machine.points() == ["task.init.before"]
    machine.faults.resume(POINT)
    machine.becomes(alive=3, stopped=set())
    wait_until(
        lambda: machine.points() == ["task.init.before", "task.init.after"],
        Deadline(PATIENCE_S),
        "the task has gone on",
    )


def test_a_paused_jvm_does_not_stop_its_processes(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.PAUSE_JVM)
    assert machine.task
    machine.becomes(alive=3, stopped={machine.jvm})
    machine.faults.resume(POINT)
    machine.becomes(alive=3, stopped=set())


def test_a_paused_session_wakes_up_as_a_whole(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.PAUSE_ALL)
    assert machine.task
    wait_until(
        lambda: len(machine.stopped()) == 3,
        Deadline(PATIENCE_S),
        "all three are stopped",
    )
    machine.faults.resume(POINT)
    machine.becomes(alive=3, stopped=set())


def test_only_what_was_paused_can_be_woken(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.KILL_PROCESS)
    assert machine.task
    with pytest.raises(ValueError, match=POINT.value):
        machine.faults.resume(POINT)


def test_a_point_that_is_armed_again_has_not_fired(struck: Callable[[Strike], Machine]) -> None:
    machine = struck(Strike.KILL_PROCESS)
    assert machine.task
    machine.faults.arm(POINT, Strike.KILL_PROCESS)
    assert machine.faults.fired(POINT) is None
