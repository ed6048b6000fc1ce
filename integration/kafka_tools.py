"""Commands of Kafka's own tools, carried out as they were printed.

`kafka-configs` and `kafka-consumer-groups` are the real ones; the latter is in a jar that a broker
does not need. `kafka-topics` is read here and carried out with a client.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.jar_cache import Artifact, download_jars, ensure_jars
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_files import DEFAULT_VERSION, ensure_kafka
from eos_sink_lab.testing.waiting import to_stderr

_PATIENCE_S = 60
_CONFIGS = "kafka.admin.ConfigCommand"
_CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def carry_out(command: str) -> None:
    """Run it as copied by an operator."""
    tool, *words = shlex.split(command)
    if tool == "kafka-configs":
        _run(_CONFIGS, words)
    elif tool == "kafka-topics":
        _topics(words)
    else:
        raise AssertionError(f"{command!r} is no command that is known here")


def describe_group(bootstrap_servers: str, group: str) -> dict[tuple[str, int], int]:
    """The lag of each partition, as `kafka-consumer-groups --describe` prints it."""
    words = ["--bootstrap-server", bootstrap_servers, "--describe", "--group", group]
    heads, *rows = (line.split() for line in _run(_CONSUMER_GROUPS, words).splitlines() if line)
    columns = [heads.index(name) for name in ("TOPIC", "PARTITION", "LAG")]
    cells = ([row[column] for column in columns] for row in rows)
    return {(topic, int(partition)): int(lag) for topic, partition, lag in cells}


def _run(tool: str, words: list[str]) -> str:
    """Run a tool's main class; return what it prints."""
    java = find_java()
    classpath = ensure_kafka(DEFAULT_VERSION, java).classpath
    if tool == _CONSUMER_GROUPS:
        classpath += f":{_ensure_tools()}/*"
    start = [str(java.executable), "-XX:TieredStopAtLevel=1", "-cp", classpath]
    done = subprocess.run(
        [*start, tool, *words],
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


def _topics(words: list[str]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--bootstrap-server", "--topic"):
        parser.add_argument(name, required=True)
    for name in ("--partitions", "--replication-factor"):
        parser.add_argument(name, type=int)
    for name in ("--create", "--alter"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--config", action="append", default=[])
    given = parser.parse_args(words)
    admin = AdminClient({"bootstrap.servers": given.bootstrap_server})
    if given.create:
        config = dict(pair.split("=", 1) for pair in given.config)
        new = NewTopic(given.topic, given.partitions, given.replication_factor, config=config)
        answers = admin.create_topics([new])
    else:
        answers = admin.create_partitions([NewPartitions(given.topic, given.partitions)])
    answers[given.topic].result(_PATIENCE_S)
