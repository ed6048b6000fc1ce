"""A program is paused and killed with all of its processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.process_tree import ProcessTree, find_last_error
from eos_sink_lab.testing.waiting import wait_until

PATIENCE_S = 30.0
# A driver that starts a process in another group, as pyspark's daemon does.
FAMILY = """
import os, subprocess, sys, time
sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
subprocess.Popen(sleeper, preexec_fn=os.setpgrp)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def family(tmp_path: Path) -> Iterator[ProcessTree]:
    tree = ProcessTree([sys.executable, "-c", FAMILY], tmp_path / "log")
    wait_until(lambda: tree.read_log() == ["ready"], Deadline(PATIENCE_S), "it is ready")
    yield tree
    tree.kill()


def test_a_kill_reaches_processes_in_groups_of_their_own(family: ProcessTree) -> None:
    members = family.find_processes()
    assert len(members) == 2
    family.kill()
    assert family.exit_code == -signal.SIGKILL
    assert not any(each.is_running() and each.status() != "zombie" for each in members)
    family.kill()


def test_a_paused_tree_can_be_killed(family: ProcessTree) -> None:
    family.pause()
    family.kill()
    assert not family.find_processes()


def test_a_pause_waits_until_every_process_has_stopped(family: ProcessTree) -> None:
    # The signal is often in time by itself.
    for _ in range(30):
        family.pause()
        assert {each.status() for each in family.find_processes()} == {psutil.STATUS_STOPPED}
        family.resume()


def test_a_paused_tree_goes_on_when_it_is_resumed(family: ProcessTree) -> None:
    family.pause()
    family.resume()
    wait_until(
        lambda: psutil.STATUS_STOPPED not in [p.status() for p in family.find_processes()],
        Deadline(PATIENCE_S),
        "all of it goes on",
    )
    assert len(family.find_processes()) == 2


def test_what_a_program_leaves_behind_is_killed(tmp_path: Path) -> None:
    program = FAMILY.replace("\ntime.sleep(60)\n", "\nsys.exit(3)\n")
    tree = ProcessTree([sys.executable, "-c", program], tmp_path / "log")
    assert tree.wait(PATIENCE_S) == 3
    left = tree.find_processes()
    assert len(left) == 1
    tree.kill()
    assert not left[0].is_running() or left[0].status() == psutil.STATUS_ZOMBIE
    assert tree.exit_code == 3


def test_the_sinks_own_error_is_found_before_sparks() -> None:
    lines = [
        "pyspark.errors.PySparkRuntimeError: something",
        "eos_sink.errors.SupersededError: a newer driver has joined",
        "org.apache.spark.SparkException: Job aborted",
    ]
    assert find_last_error(lines) == "SupersededError: a newer driver has joined"
    assert find_last_error(lines[2:]) == "SparkException: Job aborted"
    assert find_last_error(["all is well"]) == ""
