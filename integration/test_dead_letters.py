"""Rows that Kafka would refuse go to the dead letter topic, in the transaction of the others."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.errors import ClusterError, ConfigurationError, FailureKind, ProduceFailedError
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.query import INLINE_BYTES, VERSIONS, Query, kill_at
from integration.refused_rows import Sorted
from integration.secured_query import SecuredQuery, commands
from integration.topics import new_topic, set_config
from tests import seeds
from tests.kafka_acls_command import parse_kafka_acls
from tests.snippets import ROOT

pytestmark = pytest.mark.sampled(4, of="dead letters")

INLINE = "65536"
# Five seconds otherwise, in which a topic may still become known.
SOON = {"kafka_topic_metadata_propagation_max_ms": "200"}
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def times(seconds: float) -> Any:
    """A column with a time so many seconds from now."""
    return pa.array([int((time.time() + seconds) * 1_000_000)], pa.timestamp("us", "UTC"))


def text(content: bytes | None) -> str:
    return (content or b"").decode()


@dataclass(frozen=True)
class Bad:
    """A row that Kafka refuses.

    Attributes:
        error: the last part of its class.
        columns: of the row.
        topic: settings of the topic.
    """

    error: str
    columns: dict[str, Any]
    topic: dict[str, Any] = field(default_factory=dict)


# What the sink refuses before it asks Kafka is in tests/task/test_rejected.py.
BAD = {
    "too large for the topic": Bad(
        "RecordTooLargeException",
        {"value": ["x" * 3_000]},
        {"max_message_bytes": 2_000},
    ),
    "no such partition": Bad(
        "UnknownTopicOrPartitionException", {"partition": pa.array([3], pa.int32())}
    ),
    "no such topic": Bad("UnknownTopicOrPartitionException", {"topic": ["missing"]}),
    "no key in a compacted topic": Bad(
        "InvalidRecordException", {"key": pa.nulls(1, pa.string())}, {"cleanup_policy": "compact"}
    ),
    "too old": Bad(
        "InvalidTimestampException",
        {"at": times(-3600)},
        {"message_timestamp_before_max_ms": 60_000},
    ),
    "too far ahead": Bad(
        "InvalidTimestampException",
        {"at": times(7 * 86_400)},
        {"message_timestamp_after_max_ms": 3_600_000},
    ),
}


def mixed(topic: str, bad: Bad) -> dict[str, Any]:
    """A good row, the bad one, and another good one."""

    def column(name: str, good: Any, kind: Any) -> Any:
        row = pa.array(bad.columns.get(name, [good]), kind)
        return pa.concat_arrays([pa.array([good], kind), row, pa.array([good], kind)])

    kinds = {
        "value": ("good", pa.string()),
        "key": ("k", pa.string()),
        "topic": (topic, pa.string()),
        "partition": (None, pa.int32()),
        "at": (None, pa.timestamp("us", "UTC")),
    }
    return {name: column(name, *kind) for name, kind in kinds.items()}


@VERSIONS
@pytest.mark.parametrize(
    ("bad", "path"),
    [
        pytest.param(bad, path, id=f"{name}-{path}")
        for name, bad in BAD.items()
        for path in ("native", "row by row", "inline")
    ],
)
def test_a_refused_row_is_a_dead_letter_and_the_others_are_where_they_belong(
    kafka: KafkaCluster, run: MakeRun, bad: Bad, path: str
) -> None:
    how = {"row by row": {"eos_native": "false"}, "inline": {"eos_inline_bytes": INLINE}}
    topic, letters = new_topic(kafka, "main", **bad.topic), new_topic(kafka, "dead")
    given = {"eos_timestamp_column": "at", "kafka_compression_type": "none"}
    query = run(kafka, **SOON, eos_dead_letter_topic=letters, **given, **how.get(path, {}))
    rows = mixed(topic, bad)
    (report,) = query.write_tasks([rows])
    assert report.digest.rows == 3
    assert report.dead_letters == {bad.error: 1}
    narrow = "max_message_bytes" in bad.topic
    assert bool(report.inline) is (path == "inline" and not narrow)
    found = read_topic(kafka.bootstrap_servers, topic)
    assert found.values() == ["good", "good"]
    (letter,) = read_topic(kafka.bootstrap_servers, letters)
    assert text(letter.value) == rows["value"][1].as_py()
    assert text(letter.key) == (rows["key"][1].as_py() or "")
    headers = dict(letter.headers or [])
    assert text(headers["__connect.errors.topic"]) == rows["topic"][1].as_py()
    assert text(headers["__connect.errors.exception.class.name"]).endswith(f".{bad.error}")
    assert headers["__connect.errors.exception.message"]
    # Without the option the row is what Kafka refuses.
    with pytest.raises((ProduceFailedError, ClusterError)):
        run(kafka, kafka_topic_metadata_propagation_max_ms="1000", **given).write(rows)


# --- What stops the query.


def test_a_row_that_the_dead_letter_topic_does_not_take_says_how_to_make_room(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic, letters = (new_topic(kafka, name, max_message_bytes=2_000) for name in ("main", "dead"))
    query = run(kafka, topic=topic, eos_dead_letter_topic=letters)
    query.write(value=["good"])
    with pytest.raises(ProduceFailedError) as raised:
        query.write(value=["good", "x" * 3_000])
    assert raised.value.kind is FailureKind.MESSAGE_REJECTED
    assert raised.value.data["bytes"] > 3_000 > raised.value.data["limit"]
    assert f"--entity-name {letters}" in raised.value.remedy
    room = raised.value.remedy.split("max.message.bytes=")[1].split(")")[0]
    set_config(kafka.bootstrap_servers, letters, "max.message.bytes", room)
    query.write(value=["good", "x" * 3_000])
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["good", "good"]
    assert read_topic(kafka.bootstrap_servers, letters).values() == ["x" * 3_000]


@pytest.mark.long
def test_a_missing_topic_of_the_option_is_no_row_s_fault(kafka: KafkaCluster, run: MakeRun) -> None:
    letters = new_topic(kafka, "dead")
    with pytest.raises(ClusterError, match="nowhere"):
        run(kafka, topic="nowhere", eos_dead_letter_topic=letters, **SOON).write(value=["a"])
    assert read_topic(kafka.bootstrap_servers, letters).values() == []


@pytest.mark.long
def test_the_dead_letter_topic_is_looked_at_before_the_start(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "main")
    with pytest.raises(ClusterError, match="nowhere"):
        run(kafka, topic=topic, eos_dead_letter_topic="nowhere").plan()
    compacted = new_topic(kafka, "dead", cleanup_policy="compact")
    with pytest.raises(ClusterError) as refused:
        run(kafka, topic=topic, eos_dead_letter_topic=compacted).plan()
    assert refused.value.data == {"topic": compacted}
    with pytest.raises(ConfigurationError, match=r"eos\.destinations"):
        run(
            kafka,
            eos_destinations=f"{topic}:0-1",
            eos_dead_letter_topic=new_topic(kafka, "dead"),
        ).write(value=["a"], topic=[topic])


# --- What Kafka takes is no dead letter.


def test_the_largest_row_that_a_topic_takes_is_no_dead_letter_and_the_next_one_is(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic, letters = new_topic(kafka, "main", max_message_bytes=2_000), new_topic(kafka, "dead")
    query = run(kafka, topic=topic, eos_dead_letter_topic=letters, kafka_linger_ms="0")
    headers = pa.array([[("name", b"value"), ("n", None)]], PAIRS)
    found = []
    for size in range(1_900, 1_925):
        row = {"value": ["x" * size], "key": ["key"], "headers": headers}
        found.append(sum(query.write(row).dead_letters.values()))
    assert found == sorted(found)
    assert set(found) == {0, 1}
    # Kafka refuses the first dead letter as well.
    least = 1_900 + found.index(1)
    strict = run(kafka, topic=topic)
    with pytest.raises(ProduceFailedError, match="MSG_SIZE_TOO_LARGE"):
        strict.write(value=["x" * least], key=["key"], headers=headers)
    strict.write(value=["x" * (least - 1)], key=["key"], headers=headers)


def test_small_rows_fit_into_a_topic_that_takes_only_small_batches(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    rows = ["".join(uuid.uuid4().hex for _ in range(10)) for _ in range(100)]
    for by_column in (False, True):
        topic, letters = new_topic(kafka, "main", 1, max_message_bytes=2_000), new_topic(kafka, "d")
        given = {} if by_column else {"topic": topic}
        query = run(kafka, **given, eos_dead_letter_topic=letters)
        query.write(value=rows, topic=[topic] * len(rows))
        assert read_topic(kafka.bootstrap_servers, topic).values() == rows
        assert read_topic(kafka.bootstrap_servers, letters).values() == []


def test_a_dead_letter_keeps_its_headers_key_and_time(kafka: KafkaCluster, run: MakeRun) -> None:
    topic, letters = (new_topic(kafka, name, retention_ms=-1) for name in ("main", "dead"))
    query = run(kafka, topic=topic, eos_dead_letter_topic=letters, eos_timestamp_column="at")
    row = {
        "value": pa.nulls(1, pa.binary()),
        "key": [b"\0key"],
        "partition": pa.array([7], pa.int32()),
        "headers": pa.array([[("a", b"1"), ("a", None), ("", b"")]], PAIRS),
        "at": pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC")),
    }
    (report,) = query.write_tasks([{**row, "partition": pa.nulls(1, pa.int32())}], [row])[1:]
    (letter,) = read_topic(kafka.bootstrap_servers, letters)
    assert (letter.value, letter.key) == (None, b"\0key")
    assert letter.headers is not None
    assert list(letter.headers[:3]) == [("a", b"1"), ("a", None), ("", b"")]
    said = {name: text(content) for name, content in letter.headers[3:]}
    assert said.pop("__connect.errors.connector.name").startswith("q_")
    assert said == {
        "__connect.errors.topic": topic,
        "__connect.errors.partition": "7",
        "__connect.errors.task.id": "1",
        "__connect.errors.exception.class.name": (
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
        ),
        "__connect.errors.exception.message": (
            f"Topic {topic} has 3 partitions, and none of number 7."
        ),
        "__eos.errors.timestamp": "1700000000123",
    }
    assert report.dead_letters == {"UnknownTopicOrPartitionException": 1}


# --- Crashes.


POINTS = [
    FaultPoint.TASK_PRODUCE_AMID,
    FaultPoint.TASK_PREPARED_AFTER,
    FaultPoint.COMMITTER_VOTE_AFTER,
    FaultPoint.COMMITTER_WRITE_BEFORE,
    FaultPoint.COMMITTER_WRITE_AFTER,
    FaultPoint.COMMITTER_SETTLE_AMID,
]


@pytest.mark.parametrize("refused", ["topic", "size"])
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.value)
def test_each_row_is_once_where_it_belongs_after_a_crash_at(
    kafka: KafkaCluster, query: Query, point: FaultPoint, refused: str
) -> None:
    rows = Sorted(kafka, query, refused)
    query.batches = [rows.rows(batch, [8, 7, 1]) for batch in range(3)]
    query.run(kill_at(point, batch=1, partition=1)).killed_at(point)
    query.finish()
    rows.check()


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.COMMITTER_PRODUCE_AMID,
        FaultPoint.COMMITTER_WRITE_BEFORE,
        FaultPoint.COMMITTER_WRITE_AFTER,
    ],
    ids=lambda point: point.value,
)
def test_each_inlined_row_is_once_where_it_belongs_after_a_crash_at(
    kafka: KafkaCluster, query: Query, point: FaultPoint
) -> None:
    query.inline()
    rows = Sorted(kafka, query, "topic")
    query.batches = [rows.rows(batch, [8, 7, 2]) for batch in range(3)]
    query.run(kill_at(point, batch=1, partition=2)).killed_at(point)
    assert query.finish().inlined(2) == [0, 1, 2]
    rows.check()


@pytest.mark.long
@pytest.mark.parametrize("refused", ["size", "topic"])
def test_lost_partitions_are_written_again_with_their_dead_letters(
    kafka: KafkaCluster, query: Query, refused: str
) -> None:
    rows = Sorted(kafka, query, refused)
    query.batches = [rows.rows(batch, [8, 7, 2]) for batch in range(2)]
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    assert query.finish().written(1) == [1]
    rows.check()


KILLS, BATCHES, LONGEST_LIFE_S = 20, 12, 1.5


@pytest.mark.long
@pytest.mark.parametrize(
    ("refused", "inline", "native"),
    [
        pytest.param("topic", INLINE_BYTES, "true", id="topics and small tasks"),
        pytest.param("size", 0, "true", id="sizes"),
        pytest.param("size", 0, "false", id="sizes, row by row"),
    ],
)
def test_each_row_is_once_where_it_belongs_under_kills_at_any_time(
    kafka: KafkaCluster, query: Query, refused: str, inline: int, native: str
) -> None:
    chance = seeds.chance(refused, inline, native)
    rows = Sorted(kafka, query, refused)
    query.change({"eos.inline.bytes": str(inline), "eos.native": native})
    query.batches = [
        rows.rows(batch, [chance.choice((0, 1, 3, 40)) for _ in range(chance.randint(1, 4))] + [2])
        for batch in range(BATCHES)
    ]
    killed = 0
    for _ in range(KILLS):
        process = query.run()
        process.wait_ready()
        # How long it lives is drawn; nothing waits for it to come to anything.
        if not process.ends_within(chance.uniform(0, LONGEST_LIFE_S)):
            process.kill()
            killed += 1
    query.finish()
    there, letters = rows.check()
    print(json.dumps({"kills": killed, "rows": there + letters, "there": there, "dead": letters}))


# --- Permissions, and Spark.


@pytest.mark.long
def test_the_permissions_of_the_page_are_enough_and_a_missing_one_is_named(
    secured: KafkaCluster, tmp_path: Path
) -> None:
    query = SecuredQuery(secured, tmp_path)
    with contextlib.closing(query):
        rows = Sorted(secured, query, "size")
        granted: list[str] = []
        while len(granted) < 4:
            error = query.refused()
            granted += error.data["missing"]
            query.grant_as_told(str(error))
        page = ROOT / "docs" / "dead-letter.md"
        names = {"readings": query.topic, "readings-dead": rows.letters}
        expected = [
            str(replace(acl, name=names[acl.name]))
            for command in commands("kafka-acls", page)
            for acl in parse_kafka_acls(command)[1]
        ]
        assert sorted(granted) == sorted(expected)
        query.batches = [rows.rows(batch, [8, 7, 2]) for batch in range(2)]
        query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
        query.take_id(query.slot(), 1)
        query.finish()
        rows.check()
