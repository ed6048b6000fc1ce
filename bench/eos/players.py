"""Processes that run turns: one per client library, kept between turns, so that all are warm."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.eos.turns import Played, Turn
from eos_sink_lab.testing import java_home
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_files import ensure_kafka

# The last client that adds partitions itself; from 4.0 on the broker adds them as data arrives
# (KIP-890), and there is nothing to declare.
JAVA_OLD, JAVA = "3.9.1", "4.3.0"
_SOURCE = Path(__file__).with_name("EosLoop.java")


@dataclass(frozen=True)
class Player:
    """A client that plays turns.

    Attributes:
        name: its name in the results.
        declares: partitions can be declared with it, one way or the other.
    """

    name: str
    declares: bool
    _process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self._process.pid

    def play(self, turn: Turn) -> Played:
        """Blocks until it is played.

        Raises:
            RuntimeError: its process has ended.
        """
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        pipe_in.write(f"{turn.line()}\n")
        pipe_in.flush()
        answer = pipe_out.readline()
        if not answer:
            raise RuntimeError(f"{self.name} ended during {turn}")
        return Played.parse(answer)


@contextmanager
def players(directory: Path) -> Iterator[list[Player]]:
    """librdkafka's, and the Java clients' where there is a compiler.

    Args:
        directory: for Java's classes.
    """
    with ExitStack() as stack:
        found = [stack.enter_context(librdkafka_player())]
        for version, declares in ((JAVA_OLD, True), (JAVA, False)):
            command = _java(version, directory)
            if command:
                player = _playing(f"Java {version}", declares, command)
                found.append(stack.enter_context(player))
        yield found


def librdkafka_player() -> AbstractContextManager[Player]:
    command = (sys.executable, "-m", "bench.eos.librdkafka_loop")
    return _playing("librdkafka", declares=True, command=command)


@contextmanager
def _playing(name: str, declares: bool, command: Sequence[str]) -> Iterator[Player]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield Player(name, declares, process)
        finally:
            process.kill()


def _java(version: str, directory: Path) -> tuple[str, ...]:
    compiler = java_home() / "bin" / "javac"
    if not compiler.exists():
        print(f"Java {version} is left out: {compiler} is missing", file=sys.stderr)
        return ()
    files = ensure_kafka(version, find_java())
    classes = directory / version
    classes.mkdir()
    subprocess.run([compiler, "-cp", files.classpath, "-d", classes, _SOURCE], check=True)
    java = str(java_home() / "bin" / "java")
    heap = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC")
    return (java, *heap, "-cp", f"{classes}:{files.classpath}", "EosLoop")
