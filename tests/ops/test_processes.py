"""Whether a run's process is alive, as far as this process can tell."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from eos_sink.decision_log.codec import encode
from eos_sink.driver.processes import (
    current_run,
    is_alive_here,
    is_dead_here,
    process_name,
)
from eos_sink.protocol.model import LogRecord, Run
from tests.namespaces import IN_ANOTHER_NAMESPACE, has_namespaces
from tests.protocol.world import options
from tests.snippets import ROOT


def dead_run() -> Run:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return replace(current_run(options().origin), pid=process.pid)


def test_a_run_is_alive_if_its_process_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    here = current_run(options().origin)
    assert is_alive_here(here)
    assert not is_alive_here(replace(here, tool="eos-sink resolve"))

    def gone(pid: int, signal: int) -> None:
        raise ProcessLookupError

    def anothers(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", gone)
    assert not is_alive_here(here)
    monkeypatch.setattr(os, "kill", anothers)
    assert is_alive_here(here)


def test_a_run_that_died_here_is_known_to_be_dead() -> None:
    dead = dead_run()
    assert not is_dead_here(current_run(options().origin))
    assert is_dead_here(dead)
    assert not is_dead_here(replace(dead, tool="eos-sink resolve"))
    assert is_dead_here(replace(dead, session=f"{os.getpid()}@1"))


def test_an_idle_planner_process_that_was_ended_is_no_death() -> None:
    assert not is_dead_here(replace(dead_run(), session=process_name(os.getpid())))


def changed(run: Run, name: str, value: str) -> Run:
    return Run(**{**vars(run), name: value})


@pytest.mark.parametrize("other", ["elsewhere", ""])
@pytest.mark.parametrize("known_by", ["host", "boot_id", "pid_namespace"])
def test_numbers_of_processes_say_nothing_of_another_place(known_by: str, other: str) -> None:
    """Nor of one that is not wholly known, as in the record of an older version."""
    assert not is_dead_here(changed(dead_run(), known_by, other))
    assert not is_alive_here(changed(current_run(options().origin), known_by, other))


def test_without_proc_nothing_is_known_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    known = os.stat

    def without_proc(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        if str(path).startswith("/proc/"):
            raise FileNotFoundError(path)
        return known(path, *rest, **more)

    monkeypatch.setattr(os, "stat", without_proc)
    here = current_run(options().origin)
    assert here.pid_namespace == ""
    assert not is_alive_here(here)
    assert not is_dead_here(replace(here, pid=2**30))


@pytest.mark.parametrize("known_by", ["host", "boot_id", "pid_namespace"])
def test_a_process_of_another_place_is_no_sibling(known_by: str) -> None:
    """The first process of two containers is number 1 in both."""
    one = replace(current_run(options().origin), session="1@100")
    other = replace(one, pid=2**30)
    assert other.is_sibling_of(one)
    assert not changed(other, known_by, "elsewhere").is_sibling_of(one)


@pytest.mark.skipif(not has_namespaces(), reason="this user cannot make PID namespaces")
@pytest.mark.parametrize("here_too", [True, False])
def test_in_another_pid_namespace_nothing_is_known_of_the_driver(here_too: bool) -> None:
    """As in a sidecar, which has the host name of the driver's container: the number of a live
    process may be unused there, and that of a dead one in use."""
    alive = current_run(options().origin)
    run = replace(alive, pid=1) if here_too else alive
    program = (
        "import os, sys; from eos_sink.driver.processes import *\n"
        "from eos_sink.decision_log.codec import decode\n"
        "run = decode(sys.stdin.buffer.read(), 'stdin').run\n"
        "print(socket.gethostname() == run.host, is_alive_here(run), is_dead_here(run))"
    )
    told = subprocess.run(
        [*IN_ANOTHER_NAMESPACE, sys.executable, "-c", program],
        input=encode(LogRecord(1, None, "w", run=run)),
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    assert told.stdout.split() == [b"True", b"False", b"False"]
