"""Commands of Kafka's own tools, carried out as they were printed.

`kafka-configs` is the real one. The jars that a broker needs hold no more of the tools, so
`kafka-topics` is read here and carried out with a client.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_files import DEFAULT_VERSION, ensure_kafka

_PATIENCE_S = 60


def carry_out(command: str) -> None:
    """Run it as copied by an operator."""
    tool, *words = shlex.split(command)
    if tool == "kafka-configs":
        _configs(words)
    elif tool == "kafka-topics":
        _topics(words)
    else:
        raise AssertionError(f"{command!r} is no command that is known here")


def _configs(words: list[str]) -> None:
    java = find_java()
    files = ensure_kafka(DEFAULT_VERSION, java)
    start = [str(java.executable), "-XX:TieredStopAtLevel=1", "-cp", files.classpath]
    done = subprocess.run(
        [*start, "kafka.admin.ConfigCommand", *words],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"


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
