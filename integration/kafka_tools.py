"""Commands of Kafka's own tools, carried out as they were printed.

Most tools are in a jar that a broker does not need.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.jar_cache import Artifact, download_jars, ensure_jars
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_files import DEFAULT_VERSION, ensure_kafka
from eos_sink_lab.testing.waiting import to_stderr

_PATIENCE_S = 60
_CONSUMER_GROUPS = "kafka-consumer-groups"
_CLASSES = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    _CONSUMER_GROUPS: "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}


def carry_out(command: str) -> None:
    """Run it as copied by an operator."""
    tool, *words = shlex.split(command)
    _run(tool, words)


def describe_group(bootstrap_servers: str, group: str) -> dict[tuple[str, int], int]:
    """The lag of each partition, as `kafka-consumer-groups --describe` prints it."""
    words = ["--bootstrap-server", bootstrap_servers, "--describe", "--group", group]
    heads, *rows = (line.split() for line in _run(_CONSUMER_GROUPS, words).splitlines() if line)
    columns = [heads.index(name) for name in ("TOPIC", "PARTITION", "LAG")]
    cells = ([row[column] for column in columns] for row in rows)
    return {(topic, int(partition)): int(lag) for topic, partition, lag in cells}


def _run(tool: str, words: list[str]) -> str:
    """Run a tool; return what it prints."""
    java = find_java()
    classpath = f"{ensure_kafka(DEFAULT_VERSION, java).classpath}:{_ensure_tools()}/*"
    start = [str(java.executable), "-XX:TieredStopAtLevel=1", "-cp", classpath]
    done = subprocess.run(
        [*start, _CLASSES[tool], *words],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def _ensure_tools() -> Path:
    """The directory of the jar that has the rest of Kafka's tools."""
    directory, label = cache_root() / "kafka-tools" / DEFAULT_VERSION, "Kafka's tools (0.7 MB)"
    tools = Artifact("org.apache.kafka", "kafka-tools", DEFAULT_VERSION, transitive=False)

    def download(draft: Path) -> None:
        download_jars([tools], draft, find_java(), label=label, progress=to_stderr)

    ensure_jars(directory, download, label, to_stderr)
    return directory
