"""Programs of bench/java: compiled for each run, over jars that are downloaded once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.jar_cache import Artifact, download_jars, ensure_jars
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.waiting import to_stderr

_FLINK, _CONNECTOR, _STREAMS = "2.2.1", "5.0.0-2.2", "4.3.0"

_LAST_WORDS = 3_000


@dataclass(frozen=True)
class Library:
    """A library of Java, whose programs are peers.

    Attributes:
        name: of its jars in the cache.
        version: what results say of it.
        jars: with what they depend on.
        options: for Java.
    """

    name: str
    version: str
    jars: Sequence[Artifact]
    options: Sequence[str] = ()

    @contextmanager
    def running(
        self, program: str, arguments: Sequence[object], there: Path
    ) -> Iterator[ProcessTree]:
        """Run a program of bench/java until the end of the block.

        Args:
            there: a directory for its class and its log.
        """
        versions = dict.fromkeys(jar.version for jar in self.jars)
        directory = cache_root() / self.name / "-".join(versions)
        ensure_jars(directory, self._download, self.name, to_stderr)
        java = find_java()
        source = Path(__file__).parent / "java" / f"{program}.java"
        compiler = str(java.home / "bin" / "javac")
        subprocess.run([compiler, "-cp", f"{directory}/*", "-d", there, source], check=True)
        classes = f"{there}:{directory}/*"
        command = [java.executable, "-Xmx1g", *self.options, "-cp", classes, program, *arguments]
        tree = ProcessTree(command, there / "log")
        try:
            yield tree
        finally:
            tree.kill()

    def _download(self, draft: Path) -> None:
        download_jars(self.jars, draft, find_java(), label=self.name, progress=to_stderr)


def last_words(program: ProcessTree) -> str:
    """The end of its log."""
    return "\n".join(program.read_log())[-_LAST_WORDS:]


FLINK_LIBRARY = Library(
    "flink",
    f"{_FLINK}, connector {_CONNECTOR}",
    (
        Artifact("org.apache.flink", "flink-clients", _FLINK),
        Artifact("org.apache.flink", "flink-connector-kafka", _CONNECTOR),
        Artifact("org.apache.flink", "flink-streaming-java", _FLINK),
        Artifact("org.apache.flink", "flink-connector-base", _FLINK),
        Artifact("org.apache.flink", "flink-connector-datagen", _FLINK),
    ),
    [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("util", "lang", "time")],
)
STREAMS_LIBRARY = Library(
    "streams", _STREAMS, (Artifact("org.apache.kafka", "kafka-streams", _STREAMS),)
)
