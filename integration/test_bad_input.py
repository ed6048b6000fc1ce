"""Rows that Kafka does not take: the batch fails, says why, and nothing of it is visible."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from eos_sink.errors import ClusterError, FailureKind, ProduceFailedError
from eos_sink.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.in_process import new_topic

pytestmark = pytest.mark.timeout(300)

# Half a minute by default, in which a topic may still become known.
SOON = {"kafka_topic_metadata_propagation_max_ms": "1000"}
GOOD: dict[str, Any] = {"value": ["good"], "partition": pa.array([0], pa.int32())}


def test_a_row_for_a_partition_that_does_not_exist_is_not_lost_in_silence(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "three")
    query = run(kafka, topic=topic)
    beyond = {"value": ["beyond"], "partition": pa.array([3], pa.int32())}
    for parts in ([GOOD, beyond], [beyond, GOOD], [beyond]):
        with pytest.raises(ProduceFailedError, match=f"topic {topic}, partition 3") as error:
            query.write(*parts)
        assert error.value.kind is FailureKind.MESSAGE_REJECTED
    query.write(GOOD)
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["good"]


def test_a_row_for_a_topic_that_does_not_exist_is_not_lost_in_silence(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "there")
    with pytest.raises(ClusterError, match="topic missing") as error:
        run(kafka, **SOON).write(value=["a", "b", "c"], topic=[topic, "missing", topic])
    assert "Create the topic" in str(error.value)
    assert read_topic(kafka.bootstrap_servers, topic).values() == []


def test_a_topic_that_is_deleted_while_the_query_runs_is_named(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    doomed = new_topic(kafka, "doomed")
    query = run(kafka, topic=doomed, **SOON)
    query.write(value=["a"])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.delete_topics([doomed])[doomed].result(30)
    with pytest.raises(ClusterError, match=f"topic {doomed}.*Create the topic"):
        query.write(value=["b"])
    kafka.create_topic(doomed, partitions=1)
    query.write(value=["c"])
    assert read_topic(kafka.bootstrap_servers, doomed).values() == ["c"]


def test_a_time_that_the_topic_does_not_take_is_a_rejected_message(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "recent", message_timestamp_before_max_ms=60_000)
    query = run(kafka, topic=topic, eos_timestamp_column="at")
    old = pa.array([1_600_000_000_000_000], pa.timestamp("us", "UTC"))
    with pytest.raises(ProduceFailedError, match="INVALID_TIMESTAMP") as error:
        query.write(value=["a"], at=old)
    assert error.value.kind is FailureKind.MESSAGE_REJECTED
    query.write(value=["b"], at=pa.array([None], pa.timestamp("us", "UTC")))
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["b"]
