"""`eos-sink bench` on a real Kafka and a real Spark: it measures, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from eos_sink.testing import KafkaCluster

TIMEOUT_S = 200

pytestmark = [pytest.mark.timeout(TIMEOUT_S + 30)]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eos_sink", "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )


def left_behind(kafka: KafkaCluster) -> set[str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    groups = admin.list_consumer_groups().result().valid
    named = {*admin.list_topics(timeout=30).topics, *(group.group_id for group in groups)}
    return {name for name in named if "eos-sink-bench" in name}


@pytest.mark.long
def test_it_measures_and_leaves_nothing_behind(kafka: KafkaCluster, tmp_path: Path) -> None:
    told = tmp_path / "bench.json"
    sizes = ("--rows", "50", "--batches", "3", "--warm-up", "1", "--rounds", "1")
    done = bench("--bootstrap-server", kafka.bootstrap_servers, *sizes, "--samples", str(told))
    assert done.returncode == 0, done.stderr
    assert "kafka-eos writes" in done.stdout
    series = json.loads(told.read_text())["series"]
    assert {each["labels"]["peer"] for each in series} == {"kafka-eos", "kafka", "eos-sink-floor"}
    assert {each["n"] for each in series if each["what"] == "addBatch"} == {2}
    assert left_behind(kafka) == set()


def test_a_missing_topic_is_reported(kafka: KafkaCluster) -> None:
    done = bench("--bootstrap-server", kafka.bootstrap_servers, "--topic", "nowhere")
    assert done.returncode == 2
    assert "there is no topic nowhere" in done.stderr


@pytest.mark.long
def test_an_address_without_a_broker_is_reported() -> None:
    done = bench("--bootstrap-server", "127.0.0.1:1")
    assert done.returncode == 2
    assert "No broker of 127.0.0.1:1 answers" in done.stderr
