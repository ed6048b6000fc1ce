"""The benchmarks still run; what they measure is not looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.eos.feed import feeding, fill
from bench.eos.loops import INPUT_PARTITIONS, RATE, Output, new_topic
from bench.eos.players import librdkafka_player
from bench.result import Result
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic

RECORDS = 300
TIMEOUT_S = 300


@pytest.mark.long
def test_a_loop_writes_what_it_says_with_declared_partitions_and_as_they_come(
    kafka: KafkaCluster,
) -> None:
    source = new_topic(kafka, INPUT_PARTITIONS)
    fill(kafka, source, RECORDS)
    # A turn has three transactions at least, and these records may fit into the first.
    with feeding(kafka, source, RATE), librdkafka_player() as player:
        for declared in (False, True):
            output = Output(kafka, source, partitions=5)
            played = player.play(output.turn(50, 0.2, declared=declared))
            visible = read_topic(kafka.bootstrap_servers, output.topic)
            assert played.records == len(visible) > 0
            assert played.transactions
            assert played.requests["AddPartitionsToTxn"] >= 1


@pytest.mark.long
def test_queries_that_read_a_topic_with_a_source_group_and_without_take_turns(
    tmp_path: Path,
) -> None:
    out = tmp_path / "found.json"
    words = ["--rounds", "1", "--out", str(out)]
    subprocess.run(
        [sys.executable, "-m", "bench.source_offsets", *words], check=True, timeout=TIMEOUT_S
    )
    groups = {each.labels["group"] for each in Result.read(out).having("addBatch", writes=False)}
    assert groups == {True, False}


@pytest.mark.long
def test_queries_of_several_sinks_take_turns_on_a_broker_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    words = ["--rounds", "1", "--tasks", "2", "--without-tcp", "--out", str(out)]
    # Its Spark session is not that of other tests.
    subprocess.run(
        [sys.executable, "-m", "bench.small_batches", *words], check=True, timeout=TIMEOUT_S
    )
    peers = {each.labels["peer"] for each in Result.read(out).having("addBatch")}
    assert {"kafka", "kafka-eos"} < peers
