"""Nothing that the demo starts outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eos_sink.demo import guard
from eos_sink.demo.victim import Victim, last_error

# A driver that starts a process in a group of its own, as pyspark's daemon does.
FAMILY = """
import os, subprocess, sys, time
sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
subprocess.Popen(sleeper, preexec_fn=os.setpgrp)
print("ready", flush=True)
time.sleep(60)
"""


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Victim]:
    victim = Victim([sys.executable, "-c", FAMILY], os.environ, tmp_path / "log")
    assert wait_for(lambda: victim.lines() == ["ready"])
    yield victim
    victim.kill()


def test_a_kill_reaches_processes_in_groups_of_their_own(family: Victim) -> None:
    members = guard.members(family.session)
    assert len(members) == 2

    family.kill()

    assert wait_for(lambda: not any(map(is_running, members)))
    assert family.exit_code == 137


def test_frozen_processes_do_not_outlive_the_pipe(family: Victim) -> None:
    members = guard.members(family.session)
    family.freeze()

    family.let_go()

    assert wait_for(lambda: not any(map(is_running, members)))


def test_a_frozen_driver_goes_on_when_it_is_woken(family: Victim) -> None:
    family.freeze()
    family.thaw()

    assert family.exit_code is None
    assert len(guard.members(family.session)) == 2


def test_the_driver_s_own_exit_code_comes_through_and_its_children_go(tmp_path: Path) -> None:
    program = FAMILY.replace("\ntime.sleep(60)\n", "\nsys.exit(3)\n")
    victim = Victim([sys.executable, "-c", program], os.environ, tmp_path / "log")

    assert wait_for(lambda: victim.exit_code is not None)

    assert victim.exit_code == 3
    assert wait_for(lambda: not guard.members(victim.session))
    victim.kill()


def test_when_the_demo_is_killed_its_drivers_die(tmp_path: Path) -> None:
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from eos_sink.demo.victim import Victim\n"
        f"victim = Victim([sys.executable, '-c', {FAMILY!r}], os.environ, Path(sys.argv[1]))\n"
        "print(victim.session, flush=True)\n"
        "time.sleep(60)\n"
    )
    log = tmp_path / "log"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(log)], stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        session = int(demo.stdout.readline())
        assert wait_for(lambda: log.exists() and "ready" in log.read_text())
        members = guard.members(session)

        demo.send_signal(signal.SIGKILL)

    assert len(members) == 2
    assert wait_for(lambda: not any(map(is_running, members)))


def test_the_sink_s_own_error_is_told_before_spark_s() -> None:
    lines = [
        "pyspark.errors.PySparkRuntimeError: something",
        "eos_sink.errors.SupersededError: a newer driver has joined",
        "org.apache.spark.SparkException: Job aborted",
    ]

    assert last_error(lines) == "SupersededError: a newer driver has joined"
    assert last_error(lines[2:]) == "SparkException: Job aborted"
    assert last_error(["all is well"]) == ""
