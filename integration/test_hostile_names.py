"""Names that other programs have chosen neither change a terminal nor a command that is pasted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.query import PARTITIONS, Query

# A screen is cleared, a line begins, a command is run, a style begins, the direction changes.
EVIL = "\x1b[2J\nOWNED $(touch owned) 'q' ; [red]x[/red] \u202e\x85"
PREFIX = "it's a;$(touch owned) [red]"
LOOK = (0, 1)


@pytest.fixture
def query(kafka: KafkaCluster, query: Query) -> Query:
    """One that died with prepared transactions, and whose group session has ended."""
    query.stand_apart()
    query.change({"eos.transactional.id.prefix": PREFIX})
    query.run_killed_at(FaultPoint.TASK_PREPARED_AFTER)
    kafka.end_session(query.options.names.group, query.options.names.driver)
    return query


@pytest.fixture
def unknown(kafka: KafkaCluster, query: Query) -> Iterator[str]:
    """An open transaction under the prefix, and a record in the log, both of such a name."""
    name = f"{PREFIX}{EVIL}"
    plain = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer({**plain, "transactional.id": name, "client.id": EVIL})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(query.topic, b"x")
    producer.flush(30)
    other = Producer({**plain, "client.id": EVIL})
    for key in (EVIL, f"{EVIL}x-0123456789"):
        other.produce(query.options.log_topic, b"[]", key=key)
    other.flush(30)
    yield name
    with suppress(KafkaException):
        producer.abort_transaction(30)


@pytest.mark.long
def test_hostile_names_are_shown_and_commands_about_them_are_right(
    kafka: KafkaCluster, query: Query, unknown: str, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "EOS_SINK_BOOTSTRAP_SERVER": kafka.bootstrap_servers,
        "EOS_SINK_LOG_TOPIC": query.options.log_topic,
        "EOS_SINK_PREFIX": PREFIX,
        "PYTHON": sys.executable,
        "LC_ALL": "C.UTF-8",
    }
    where = tmp_path / "here"
    where.mkdir()

    def pasted(command: str) -> subprocess.CompletedProcess[str]:
        program = 'eos-sink() { "$PYTHON" -m eos_sink "$@"; }\n' + command
        return subprocess.run(
            ["bash", "-c", program],
            capture_output=True,
            text=True,
            env=environment,
            cwd=where,
            timeout=100,
            check=False,
        )

    def types(*words: str, expect: tuple[int, ...] = LOOK) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "eos_sink", *words],
            capture_output=True,
            text=True,
            env=environment,
            timeout=100,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode in expect, (words, said)
        assert re.findall(r"[^\n\t -~─·▁-█]", said) == [], words
        assert not any(line.lstrip().startswith("OWNED") for line in said.splitlines()), words
        return said

    name = query.options.names.query
    for words in (
        ["status"],
        ["watch", "--updates", "1", "--lines"],
        ["status", "--transactions"],
        ["status", name, "0"],
        ["resolve", name],
        ["doctor", "--topic", query.topic],
        ["exporter", "--once"],
    ):
        types(*words)
        if words[0] != "exporter":
            json.loads(types(*words, "--json"))
    seen = json.loads(types("status", "--json"))
    assert unknown in [each["transactional_id"] for each in seen["open_of_no_query"]]
    assert [len(each["open"]) for each in seen["queries"] if each["query"] == name] == [PARTITIONS]
    types("resolve", EVIL, "--end", "--yes", expect=(2,))
    (command,) = re.findall(r"eos-sink resolve .* --end .*", types("status"))
    done = pasted(f"{command} --yes")
    assert done.returncode == 0, done
    seen = json.loads(types("status", "--json"))
    assert [each["open"] for each in seen["queries"] if each["query"] == name] == [[]]
    assert list(where.iterdir()) == []
