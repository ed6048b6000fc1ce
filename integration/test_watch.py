"""`eos-sink watch` on a real Kafka: what it sees, and how it leaves a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from eos_sink_lab.testing import KafkaCluster
from integration.conftest import MakeRun
from integration.in_process import Run
from integration.operator_commands import run_command
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic
from tests.snippets import ROOT, snippets_of

PATIENCE_S = 60
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Output:
    """All that a process writes to a file descriptor, read as it comes."""

    def __init__(self, descriptor: int) -> None:
        self.text = ""
        self._descriptor = descriptor
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                more = os.read(self._descriptor, 65_536)
            except OSError:  # A terminal whose other side is closed.
                return
            if not more:
                return
            self.text += more.decode(errors="replace")

    def wait_for(self, seen: Callable[[str], object]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not seen(self.text):
            assert time.monotonic() < until, self.text[-4000:]
            time.sleep(0.05)


def command(kafka: KafkaCluster, *words: str) -> list[str]:
    server = ["--bootstrap-server", kafka.bootstrap_servers, "--interval", "0.2"]
    return [sys.executable, "-m", "eos_sink", "watch", *server, *words]


@contextmanager
def in_terminal(kafka: KafkaCluster, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command, and the other side of the terminal that it runs in."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 40, 180, 0, 0))
    # TERM is what a terminal says of itself; a CI job has none.
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        command(kafka, *words), stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(theirs)


def test_lines_show_each_batch_as_it_is_decided_and_settled(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "watched")
    query, stream = run(kafka, topic=topic, eos_id=topic), f"stream-{topic}"
    query.write(value=["a", "b"])
    with subprocess.Popen(
        command(kafka, topic), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        output = Output(process.stdout.fileno())
        output.wait_for(lambda text: f"batch 0 of stream {stream} settled" in text)
        query.write(value=["c", "d", "e"])
        output.wait_for(lambda text: f"batch 1 of stream {stream} settled" in text)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert f"batch 1 of stream {stream} decided, 3 rows" in output.text
    assert "\x1b" not in output.text
    assert "Traceback" not in output.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_terminal_is_left_as_it_was(
    kafka: KafkaCluster, run: MakeRun, number: signal.Signals
) -> None:
    topic = new_topic(kafka, "pictured")
    run(kafka, topic=topic, eos_id=topic).write(value=["a"])
    with in_terminal(kafka, topic) as (process, terminal):
        before = termios.tcgetattr(terminal)
        output = Output(terminal)
        output.wait_for(lambda text: "settled" in text)
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == (0 if number is signal.SIGINT else 128 + number)
        output.wait_for(lambda text: text.rstrip().endswith(("\x1b[?25h", "\x1b[?1049l")))
        assert termios.tcgetattr(terminal) == before
    for on, off in (("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h")):
        assert output.text.count(on) == 1
        assert output.text.rindex(off) > output.text.rindex(on)
    # Nothing is left on the screen that was there before.
    assert ESCAPES.sub("", output.text.partition("\x1b[?1049h")[0]).strip() == ""


@pytest.mark.long
def test_a_broker_that_comes_back_is_seen_again() -> None:
    with start_own_kafka() as kafka:
        topic = new_topic(kafka, "watched")
        query = Run(kafka, {"topic": topic, "eos.id": topic})
        query.write(value=["a"])
        with subprocess.Popen(
            command(kafka, "--update-timeout", "5"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout is not None
            output = Output(process.stdout.fileno())
            output.wait_for(lambda text: "settled" in text)
            kafka.nodes[0].kill()
            output.wait_for(lambda text: "! " in text)
            kafka.nodes[0].restart()
            query.write(value=["b", "c"])
            query.close()
            output.wait_for(lambda text: "decided, 2 rows" in text)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
    assert output.text.count("decided, 1 rows") == 1


def test_the_commands_of_the_page_run(kafka: KafkaCluster, run: MakeRun) -> None:
    topic = new_topic(kafka, "watched")
    run(kafka, topic=topic, eos_id=topic).write(value=["a"])
    page = snippets_of(ROOT / "docs" / "status.md")
    of_the_page = [each for s in page if s.language == "sh" for each in s.commands]
    commands = [each for each in of_the_page if each.startswith("eos-sink watch ")]
    assert len(commands) == 4
    for each in commands:
        words = each.replace("localhost:9092", kafka.bootstrap_servers).split()[1:]
        words = [topic if word == "readings" else word for word in words]
        # What would go on until Ctrl-C ends after an update.
        ends = [] if "--updates" in words else ["--updates", "1"]
        # In a query's name what is no letter and no figure is an underscore.
        assert topic.replace("-", "_") in run_command(*words, *ends).out


def test_an_unknown_query_is_one_line(kafka: KafkaCluster) -> None:
    with in_terminal(kafka, "nowhere-to-be-seen") as (process, terminal):
        output = Output(terminal)
        assert process.wait(PATIENCE_S) == 2
        output.wait_for(lambda text: "eos-sink: " in text)
    assert "\x1b[?1049h" not in output.text
