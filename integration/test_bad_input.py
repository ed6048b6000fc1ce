"""Rows that Kafka does not take: the batch fails, says why, and nothing of it is visible."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from eos_sink.decision_log.codec import encode
from eos_sink.errors import ClusterError, ConfigurationError, FailureKind, ProduceFailedError
from eos_sink.protocol.model import LogRecord
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.topics import new_topic, unique

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
        with pytest.raises(ProduceFailedError, match="partition 3") as error:
            query.write(*parts)
        assert error.value.kind is FailureKind.MESSAGE_REJECTED
    query.write(GOOD)
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["good"]


def test_a_row_for_a_topic_that_does_not_exist_is_not_lost_in_silence(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "there")
    with pytest.raises(ClusterError, match="missing") as error:
        run(kafka, **SOON).write(value=["a", "b", "c"], topic=[topic, "missing", topic])
    assert "Create the topic" in str(error.value)
    assert read_topic(kafka.bootstrap_servers, topic).values() == []


def foreign_log(kafka: KafkaCluster, run: MakeRun) -> str:
    """A topic with the decisions of another sink, which has its own eos.log.topic."""
    log = unique("foreign")
    run(kafka, eos_log_topic=log, topic=new_topic(kafka, "foreign")).write(value=["x"])
    return log


def test_an_option_that_names_the_log_of_another_sink_is_refused(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    log = foreign_log(kafka, run)
    before = read_topic(kafka.bootstrap_servers, log)
    with pytest.raises(ConfigurationError) as error:
        run(kafka, topic=log).plan()
    assert error.value.data == {"topic": log}
    assert read_topic(kafka.bootstrap_servers, log) == before


@pytest.mark.parametrize("inline", ["0", "65536"])
def test_a_row_for_the_log_of_another_sink_does_not_become_visible(
    kafka: KafkaCluster, run: MakeRun, inline: str
) -> None:
    topic, log = new_topic(kafka, "readings"), foreign_log(kafka, run)
    before = read_topic(kafka.bootstrap_servers, log).values()
    query = run(kafka, eos_inline_bytes=inline)
    # The log is not the topic of the first row, by which a transaction is looked up.
    with pytest.raises(ConfigurationError) as error:
        query.write(value=["b", "c"], topic=[topic, log], key=["k", "victim-0123456789"])
    assert error.value.data == {"topic": log}
    query.write(value=["d"], topic=[topic])
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["d"]
    assert read_topic(kafka.bootstrap_servers, log).values() == before


DECISION = encode(LogRecord(seq=1, decision=None, writer="x")).decode()


def test_a_row_that_looks_like_a_decision_does_not_stop_the_queries_of_its_topic(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    """In a table, as the log is one."""
    topic = new_topic(kafka, "orders", 8, cleanup_policy="compact")
    values = ["first", "second", DECISION, "restarted", "last"]
    for number, value in enumerate(values):
        # A process asks once about a topic: by the option, and of the column before it decides.
        given = {"topic": topic} if number % 2 else {}
        query = run(kafka, eos_id=topic, **given)
        query.next = number
        query.write(
            value=[value], key=[value], topic=[topic], partition=pa.array([number], pa.int32())
        )
    assert read_topic(kafka.bootstrap_servers, topic).values() == values


def test_a_compacted_topic_with_the_partitions_of_a_log_takes_rows(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "table", 8, cleanup_policy="compact")
    value = ['{"format": 1}', '{"format": 1, "seq": 1}', "[]", "null", "", "\x00"]
    keys = [str(number) for number in range(len(value))]
    query = run(kafka, eos_destinations=topic)
    query.write(value=value, key=keys, topic=[topic] * len(value))
    run(kafka, topic=topic).plan()
    assert sorted(read_topic(kafka.bootstrap_servers, topic).values()) == sorted(value)
