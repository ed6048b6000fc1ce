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
from integration.topics import delete_topic, new_topic, unique

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


def test_a_topic_that_is_deleted_while_the_query_runs_is_named(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    doomed = new_topic(kafka, "doomed")
    query = run(kafka, topic=doomed, **SOON)
    query.write(value=["a"])
    delete_topic(kafka.bootstrap_servers, doomed)
    with pytest.raises(ClusterError, match=doomed):
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


def not_utf8(content: bytes) -> Any:
    """What Spark makes of CAST(X'..' AS STRING)."""
    return pa.array([content], pa.binary()).view(pa.string())


def headers(keys: Any, *, null: bool = False) -> Any:
    pairs = pa.StructArray.from_arrays(
        [keys, pa.array([b"h"])], ["key", "value"], mask=pa.array([null])
    )
    return pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pairs)


INVALID: dict[str, tuple[str, dict[str, Any]]] = {
    "topic": ("InvalidTopicException", {"topic": not_utf8(b"t\xff")}),
    "header-key": ("IllegalArgumentException", {"headers": headers(not_utf8(b"k\xff"))}),
    "header": ("IllegalArgumentException", {"headers": headers(pa.array(["k"]), null=True)}),
}


@pytest.mark.parametrize("name", INVALID)
@pytest.mark.parametrize(
    "path", ["native", pytest.param("row by row", marks=pytest.mark.long), "inline"]
)
def test_an_invalid_row_is_refused_or_a_dead_letter_whichever_way_it_goes(
    kafka: KafkaCluster, run: MakeRun, name: str, path: str
) -> None:
    topic, letters = new_topic(kafka, "readings"), new_topic(kafka, "dead")
    how = {
        "eos_native": str(path != "row by row").lower(),
        "eos_inline_bytes": "65536" if path == "inline" else "0",
    }
    good = {"value": ["good"], "topic": [topic], "headers": headers(pa.array(["ü"]))}
    error, wrong = INVALID[name]
    bad = {**good, "value": ["bad"], **wrong}
    query = run(kafka, **how)
    for parts in ([bad], [good, bad]):
        with pytest.raises(ConfigurationError):
            query.write(*parts)
    report = run(kafka, eos_dead_letter_topic=letters, **how).write(good, bad)
    assert report.dead_letters == {error: 1}
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["good"]
    (letter,) = read_topic(kafka.bootstrap_servers, letters)
    assert letter.value == b"bad"
    assert letter.headers


@pytest.mark.parametrize("inline", ["0", "65536"])
def test_a_row_for_the_decision_log_does_not_get_there(
    kafka: KafkaCluster, run: MakeRun, inline: str
) -> None:
    topic, log = new_topic(kafka, "readings"), new_topic(kafka, "log", 8, cleanup_policy="compact")
    query = run(kafka, eos_log_topic=log, eos_inline_bytes=inline)
    query.write(value=["a"], topic=[topic])
    records = read_topic(kafka.bootstrap_servers, log).values()
    with pytest.raises(ConfigurationError) as error:
        query.write(value=["b", "c"], topic=[topic, log], key=["k", "victim-0123456789"])
    assert error.value.data == {"topic": log}
    assert read_topic(kafka.bootstrap_servers, log).values() == records
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["a"]


@pytest.mark.parametrize("inline", ["0", pytest.param("65536", marks=pytest.mark.long)])
def test_a_row_for_the_decision_log_is_a_dead_letter_if_there_is_a_topic_for_them(
    kafka: KafkaCluster, run: MakeRun, inline: str
) -> None:
    topic, letters = new_topic(kafka, "readings"), new_topic(kafka, "dead")
    log = new_topic(kafka, "log", 8, cleanup_policy="compact")
    given = {"eos_log_topic": log, "eos_dead_letter_topic": letters, "eos_inline_bytes": inline}
    report = run(kafka, **given).write(value=["b", "c"], topic=[topic, log], key=["k", "victim"])
    assert report.dead_letters == {"InvalidTopicException": 1}
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["b"]
    assert read_topic(kafka.bootstrap_servers, letters).values() == ["c"]
    assert "c" not in read_topic(kafka.bootstrap_servers, log).values()


def foreign_log(kafka: KafkaCluster, run: MakeRun) -> str:
    """A topic with the decisions of another sink, which has its own eos.log.topic."""
    log = unique("foreign")
    run(kafka, eos_log_topic=log, topic=new_topic(kafka, "foreign")).write(value=["x"])
    return log


@pytest.mark.parametrize("option", ["topic", "eos_destinations", "eos_dead_letter_topic"])
def test_an_option_that_names_the_log_of_another_sink_is_refused(
    kafka: KafkaCluster, run: MakeRun, option: str
) -> None:
    log = foreign_log(kafka, run)
    before = read_topic(kafka.bootstrap_servers, log)
    given = {"topic": new_topic(kafka, "readings"), option: log}
    if option == "eos_destinations":
        del given["topic"]
    with pytest.raises(ConfigurationError) as error:
        run(kafka, **given).plan()
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


@pytest.mark.parametrize("inline", ["0", pytest.param("65536", marks=pytest.mark.long)])
def test_a_row_for_the_log_of_another_sink_is_a_dead_letter(
    kafka: KafkaCluster, run: MakeRun, inline: str
) -> None:
    topic, log, letters = new_topic(kafka, "t"), foreign_log(kafka, run), new_topic(kafka, "dead")
    before = read_topic(kafka.bootstrap_servers, log).values()
    query = run(kafka, eos_dead_letter_topic=letters, eos_inline_bytes=inline)
    report = query.write(value=["b", "c"], topic=[topic, log], key=["k", "victim-0123456789"])
    assert report.dead_letters == {"InvalidTopicException": 1}
    assert read_topic(kafka.bootstrap_servers, letters).values() == ["c"]
    assert read_topic(kafka.bootstrap_servers, log).values() == before


DECISION = encode(LogRecord(seq=1, decision=None, writer="x")).decode()


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_row_that_looks_like_a_decision_does_not_stop_the_queries_of_its_topic(
    kafka: KafkaCluster, run: MakeRun, policy: str
) -> None:
    topic = new_topic(kafka, "orders", 8, cleanup_policy=policy)
    # In a table it is one of several rows.
    before = ["first", "second"] if policy == "compact" else []
    values = [*before, DECISION, "restarted", "last"]
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
