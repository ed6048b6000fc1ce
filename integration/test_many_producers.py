"""Millions of producers have written to a topic in the last day, and a query starts."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.topic_scan import Offsets, Source
from integration.conftest import MakeRun
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic

PARTITIONS, PRODUCERS, FIRST_ID = 100, 30_000, 10**9
# Answers that wait on the connection at the same time.
PIPELINE = 20
START_S = 120.0


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaCluster]:
    """A broker that can hold the state of these producers."""
    monkeypatch.setenv("_JAVA_OPTIONS", "-Xmx5g")
    with start_own_kafka() as cluster:
        yield cluster


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_query_starts_where_millions_of_producers_have_written(
    large: KafkaCluster, run: MakeRun
) -> None:
    """One answer about all of them would have more than the 100 MB that a client takes."""
    topic = new_topic(large, "readings", PARTITIONS)
    write_with_each(large, topic)
    # New partitions refuse some at first.
    ends = Offsets(Source(large.bootstrap_servers, topic)).wait_high(Deadline(START_S))
    assert sum(ends.values()) > PARTITIONS * PRODUCERS * 0.99
    for value in ("first", "restarted"):
        query = run(large, topic=topic, eos_id=topic)
        start = Deadline(START_S)
        query.plan()
        print(f"{value}: {START_S - start.left:.1f} s")
        assert not start.passed
    query.write(value=["x"])


def write_with_each(cluster: KafkaCluster, topic: str) -> None:
    """Let each of many idempotent producers write a row to each partition of a topic."""
    template, now = _batch(0, 0), int(time.time() * 1000)
    data = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            data(
                name=topic,
                partition_data=[
                    data.PartitionProduceData(index=number, records=template)
                    for number in range(PARTITIONS)
                ],
            )
        ],
    )
    request.with_header(correlation_id=1, client_id="many")
    frame = request.encode(version=7, header=True, framed=True)
    assert frame.count(template) == PARTITIONS
    host, port = cluster.bootstrap_servers.split(",")[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        answers = connection.makefile("rb")
        for number in range(PRODUCERS + PIPELINE):
            if number < PRODUCERS:
                connection.sendall(frame.replace(template, _batch(FIRST_ID + number, now)))
            if number >= PIPELINE:
                answers.read(int.from_bytes(answers.read(4), "big"))


def _batch(producer_id: int, now_ms: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        batch_size=1_000,
    )
    builder.append(0, timestamp=now_ms, key=None, value=b"x", headers=[])
    return bytes(builder.build())
