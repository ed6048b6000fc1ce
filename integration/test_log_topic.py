"""A decision log that an operator created is used only if it keeps its records."""

from __future__ import annotations

import logging
import time
import uuid

import pytest
from confluent_kafka import KafkaError, Producer

from eos_sink.errors import ConfigurationError
from eos_sink.kafka import log_topic
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.options import parse_options
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.kafka_tools import carry_out
from integration.topics import new_topic


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_log_that_deletes_is_refused_before_anything_is_written(
    kafka: KafkaCluster, run: MakeRun, policy: str
) -> None:
    log = new_topic(kafka, "log", LOG_PARTITIONS, cleanup_policy=policy)
    query = run(kafka, topic=new_topic(kafka, "readings"), eos_log_topic=log)
    with pytest.raises(ConfigurationError) as error:
        query.write(value=["a"])
    assert error.value.data == {"topic": log, "cleanup.policy": policy}
    advice, command = error.value.remedy.splitlines()
    assert "If it has anything but decisions, name another topic" in advice
    carry_out(command.replace("HOST:PORT", kafka.bootstrap_servers))
    query.write(value=["a"])


def test_a_compacted_log_is_used_without_a_warning(
    kafka: KafkaCluster, run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_topic(kafka, "log", LOG_PARTITIONS, cleanup_policy="compact")
    with caplog.at_level(logging.WARNING, "eos_sink.kafka"):
        run(kafka, topic=new_topic(kafka, "readings"), eos_log_topic=log).write(value=["a"])
    assert not [record for record in caplog.records if "compacted" in record.getMessage()]


def test_a_log_takes_records_of_a_driver_whose_clock_is_ahead(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    log = f"log-{uuid.uuid4().hex}"
    run(kafka, topic=new_topic(kafka, "readings"), eos_log_topic=log).write(value=["a"])
    tomorrow = int(time.time() + 86_400) * 1000
    producer, refused = Producer({"bootstrap.servers": kafka.bootstrap_servers}), []
    producer.produce(
        log, b"", b"of no query", timestamp=tomorrow, on_delivery=lambda e, _: refused.append(e)
    )
    producer.flush()
    assert refused == [None]


def test_a_log_is_created_where_a_cluster_refuses_its_settings(
    kafka: KafkaCluster,
    run: MakeRun,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Managed clusters do; here Kafka itself refuses one of them."""
    monkeypatch.setitem(log_topic.LOG_CONFIGURATION, "segment.bytes", "1")
    name = f"log-{uuid.uuid4().hex}"
    with caplog.at_level(logging.WARNING, "eos_sink.kafka"):
        run(kafka, topic=new_topic(kafka, "readings"), eos_log_topic=name).write(value=["a"])
    assert "is created with cleanup.policy alone" in caplog.text
    # It exists now, and its policy is what is needed.
    run(kafka, topic=new_topic(kafka, "readings"), eos_log_topic=name).write(value=["a"])


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_log_is_read_whatever_its_records_are_compressed_with(
    kafka: KafkaCluster, codec: str
) -> None:
    """Versions before wrote lz4, and an operator may set the topic's compression.type."""
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": "t", "eos.id": "codecs"}
    log = new_topic(kafka, "log", LOG_PARTITIONS, cleanup_policy="compact")
    options = parse_options({**given, "eos.log.topic": log})
    clients = ConfluentKafka(options.cluster)
    reader = clients.log_reader(options.names, Deadline(30))
    key = options.names.log_key
    place = reader.home
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "compression.type": codec}
    producer = Producer(settings)
    rows = [b"row %d" % number * 100 for number in range(200)]
    for row in rows:
        producer.produce(log, row, key=key, partition=place.partition)
    producer.flush(30)
    latest = reader.latest(Deadline(30))
    assert latest is not None
    assert (latest[0].offset, latest[1]) == (len(rows) - 1, rows[-1])
    clients.close()


def test_a_record_of_another_program_stops_only_the_query_that_it_concerns(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "readings")
    log = new_topic(kafka, "log", LOG_PARTITIONS, cleanup_policy="compact")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        refused.extend([error] if error else [])

    # A compacted topic takes no record without a key, and refuses the others of its batch with it.
    for key in (b"other-0123456789", b"anything", b"\xff"):
        for value in (b"junk", b"\xff", b"[" * 100_000, b"[]", b'{"format": "x"}'):
            producer.produce(log, value, key=key, on_delivery=delivered)
    producer.flush(30)
    assert not refused
    run(kafka, topic=topic, eos_log_topic=log).write(value=["a"])
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["a"]
