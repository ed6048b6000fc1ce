"""The guard ends what its owner left behind, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_sink.deadline import Deadline
from eos_sink.testing import guard
from eos_sink.testing.owner import Owner
from eos_sink.testing.waiting import wait_until

SLEEPER = "import sys; sys.stdin.read()"


def sleeper(token: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SLEEPER, token], stdin=subprocess.PIPE)


@pytest.fixture
def token() -> str:
    return f"eos-test-{uuid.uuid4().hex}"


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = sleeper("eos-somebody-else")
    yield process
    process.kill()
    process.wait()


def test_it_kills_by_token_also_what_is_paused(
    token: str, stranger: subprocess.Popen[bytes]
) -> None:
    nodes = [sleeper(token), sleeper(token)]
    nodes[1].send_signal(signal.SIGSTOP)
    guard.kill_all(token)
    assert [node.wait(5) for node in nodes] == [-signal.SIGKILL] * 2
    assert stranger.poll() is None


def test_the_end_of_the_pipe_is_the_end_of_the_owner() -> None:
    read, write = os.pipe()
    os.close(write)
    assert guard.owner_said_done(read, os.getppid()) is False


def test_an_owner_that_cleaned_up_says_so() -> None:
    read, write = os.pipe()
    os.write(write, guard.DONE)
    os.close(write)
    assert guard.owner_said_done(read, os.getppid()) is True


def test_another_parent_means_that_the_owner_died_although_the_pipe_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "_CHECK_PARENT_EVERY_S", 0.01)
    read, write = os.pipe()
    assert guard.owner_said_done(read, owner=-1) is False
    os.close(write)


OWNER = """
import pathlib, subprocess, sys
from eos_sink.testing.owner import Owner
owner = Owner(pathlib.Path(sys.argv[1]))
node = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", owner.token],
                        start_new_session=True)
print(node.pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_owner_leaves_neither_process_nor_directory(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "file").touch()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    node = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    wait_until(
        lambda: not directory.exists() and not Path(f"/proc/{node}/cmdline").exists(),
        Deadline(10),
        "nothing is left",
    )


def test_a_released_guard_touches_nothing(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    owner.release()
    assert tmp_path.exists()
    assert guard.find(owner.token) == []
