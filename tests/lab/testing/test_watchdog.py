"""The watchdog kills what its owner left behind, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import BackendUnavailableError, watchdog
from eos_sink_lab.testing.waiting import wait_until
from eos_sink_lab.testing.watchdog import Watchdog

SLEEPER = "import sys; sys.stdin.read()"


def sleeper(token: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        env={**os.environ, watchdog.VARIABLE: token},
        stdin=subprocess.PIPE,
    )
    wait_shown(token, process.pid)
    return process


def wait_shown(token: str, *pids: int) -> None:
    """While a program is being started, its environment is still empty."""

    def is_shown() -> bool:
        found = {process.pid for process in watchdog.find(token)}
        return bool(found) and found >= set(pids)

    wait_until(is_shown, Deadline(10), "the process shows its token")


@pytest.fixture
def token() -> str:
    return f"eos-test-{uuid.uuid4().hex}"


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = sleeper("eos-another-owner")
    yield process
    process.kill()
    process.wait()


def test_it_kills_by_token_also_what_is_paused(
    token: str, stranger: subprocess.Popen[bytes]
) -> None:
    nodes = [sleeper(token), sleeper(token)]
    nodes[1].send_signal(signal.SIGSTOP)
    watchdog.kill_all(token)
    assert [node.wait(5) for node in nodes] == [-signal.SIGKILL] * 2
    assert stranger.poll() is None


OWNER = """
import os, pathlib, sys
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.watchdog import Watchdog
watchdog = Watchdog(pathlib.Path(sys.argv[1]))
program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
environ = {**os.environ, **watchdog.environ}
node = ProcessTree([sys.executable, "-c", program], pathlib.Path(sys.argv[2]), environ, stdin=-1)
node.pause()
print(watchdog.token, flush=True)
sys.stdin.read()
"""


def test_an_owner_that_is_dead_before_the_watchdog_looks_counts_as_dead(
    tmp_path: Path, token: str, stranger: subprocess.Popen[bytes]
) -> None:
    node = sleeper(token)
    directory = tmp_path / "data"
    directory.mkdir()
    watchdog.main(stranger.pid, token, str(directory))
    assert node.wait(5) == -signal.SIGKILL
    assert not directory.exists()
    assert stranger.poll() is None


def test_a_killed_owner_leaves_neither_process_nor_directory(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "file").touch()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory), str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    token = owner.stdout.readline().strip()
    wait_shown(token)
    owner.kill()
    owner.wait()
    wait_until(
        lambda: not directory.exists() and not watchdog.find(token),
        Deadline(10),
        "nothing is left",
    )


def test_a_watchdog_that_is_closed_touches_nothing(tmp_path: Path, token: str) -> None:
    mine = Watchdog(tmp_path)
    with sleeper(mine.token) as process:
        mine.close()
        assert process.poll() is None
        process.kill()
    assert tmp_path.exists()


def test_without_psutil_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(BackendUnavailableError):
        Watchdog()
