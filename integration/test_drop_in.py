"""The same frames through Spark's own Kafka sink and through this one: a consumer sees the same.

Both are written as streams, so that one word differs. What Spark's sink refuses is refused, and
what only this sink does (record times) is read back.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eos_sink_lab.testing import KafkaCluster
from integration.checker import Seen, read_topic
from integration.topics import unique

SPARKS, OURS = "kafka", "kafka-eos"
PARTITIONS = 3
HEADERS = "ARRAY<STRUCT<key:STRING,value:BINARY>>"
LONG_S = 120


@dataclass(frozen=True)
class Given:
    """A session that knows both sinks, a cluster, and a stream of numbers below 40."""

    spark: SparkSession
    kafka: KafkaCluster
    home: Path

    def topic(self, name: str) -> str:
        """A new one, whose name tells neither sink from the other."""
        topic = unique(name)
        self.kafka.create_topic(topic, partitions=PARTITIONS)
        return topic

    def write(self, sink: str, columns: Sequence[str], **options: str | None) -> None:
        """Write the stream's rows and wait for its end."""
        lines = self.spark.readStream.format("text").load(str(self.home / "numbers"))
        frame = lines.selectExpr("CAST(value AS INT) AS n").selectExpr(*columns)
        given = {
            "kafka.bootstrap.servers": self.kafka.bootstrap_servers,
            "checkpointLocation": str(self.home / uuid.uuid4().hex),
            **options,
        }
        writer = frame.writeStream.format(sink).trigger(availableNow=True)
        query = writer.options(**{k: v for k, v in given.items() if v is not None}).start()
        assert query.awaitTermination(LONG_S)

    def refusal(self, sink: str, columns: Sequence[str], **options: str | None) -> str:
        with pytest.raises(PySparkException) as error:
            self.write(sink, columns, **options)
        return str(error.value)

    def seen(self, topic: str) -> tuple[Seen, ...]:
        return read_topic(self.kafka.bootstrap_servers, topic)


@pytest.fixture
def given(both: SparkSession, kafka: KafkaCluster, tmp_path: Path) -> Given:
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "0.txt").write_text("".join(f"{n}\n" for n in range(40)))
    return Given(both, kafka, tmp_path)


# Each row has its own value or key.
EVERY_COLUMN = [
    # Null is a tombstone.
    "CASE n % 5 WHEN 0 THEN NULL WHEN 1 THEN repeat('grün ', n) ELSE CONCAT('v', n) END AS value",
    # Null and no key are the same, an empty one is not.
    "BINARY(CASE WHEN n % 5 = 0 THEN CONCAT('k', n) WHEN n % 5 = 1 THEN '' WHEN n % 5 = 2 THEN "
    "NULL ELSE CONCAT('schlüssel-', n) END) AS key",
    # Null, none, one, one name twice and in an order that sorting would change, an empty name.
    f"""CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN CAST(array() AS {HEADERS})
        WHEN 2 THEN array(named_struct('key', 'h', 'value', CAST(NULL AS BINARY)))
        ELSE array(named_struct('key', 'z', 'value', BINARY('1')),
                   named_struct('key', 'a', 'value', BINARY('2')),
                   named_struct('key', 'z', 'value', BINARY('1')),
                   named_struct('key', '', 'value', BINARY(''))) END AS headers""",
    "CASE n % 3 WHEN 0 THEN NULL ELSE n % 2 END AS partition",
    "timestamp_millis(1000 * n) AS timestamp",
    "n AS offset",
    "'not the value' AS Value",
    "0 AS VALUE_",
]
FRAMES: dict[str, list[str]] = {
    "every column": EVERY_COLUMN,
    "bytes": ["to_binary(hex(n * 7919), 'hex') AS key", "unhex(hex(n)) AS value", "n AS topic"],
    "fields in another case": [
        "CONCAT('v', n) AS value",
        "array(named_struct('KEY', CONCAT('h', n), 'Value', BINARY('x'))) AS headers",
    ],
    "text": ["CONCAT('v', n) AS value", "CONCAT('schlüssel-', n) AS key"],
    "only a value": ["CONCAT('v', n) AS value"],
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FRAMES)
def test_a_consumer_sees_what_sparks_own_sink_writes(given: Given, name: str) -> None:
    found = {}
    for sink in (SPARKS, OURS):
        topic = given.topic("same")
        # Options have any case; what only a source knows is ignored.
        options = {"ToPiC": topic, "includeHEADERS": "true", "startingOffsets": "earliest"}
        given.write(sink, FRAMES[name], **options)
        found[sink] = Counter(record(seen) for seen in given.seen(topic))
    assert found[OURS] == found[SPARKS]
    assert found[OURS].total() == 40


def test_rows_name_their_topics_and_the_option_goes_first(given: Given) -> None:
    found: dict[str, list[Counter[Any]]] = {SPARKS: [], OURS: []}
    for sink, counts in found.items():
        one, other = given.topic("one"), given.topic("other")
        columns = [f"IF(n < 10, '{one}', '{other}') AS topic", *EVERY_COLUMN]
        given.write(sink, columns, topic=None)
        given.write(sink, columns, topic=one)
        counts += [Counter(record(seen) for seen in given.seen(topic)) for topic in (one, other)]
    assert found[OURS] == found[SPARKS]
    assert [counted.total() for counted in found[OURS]] == [50, 30]


def record(seen: Seen) -> tuple[Any, ...]:
    """What must be the same. A record without key and partition may be anywhere."""
    chosen = seen.key is not None
    return seen.key, seen.value, seen.headers, seen.partition if chosen else "any"


@dataclass(frozen=True)
class Refused:
    """What neither sink takes: columns, options, and words of both messages."""

    columns: tuple[str, ...]
    sparks: str
    ours: str
    topic: bool = True


A_VALUE = "CONCAT('v', n) AS value"
REFUSED = {
    "a null header": Refused(
        (A_VALUE, "array(CAST(NULL AS STRUCT<key:STRING,value:BINARY>)) AS headers"),
        "NullPointerException",
        "header without a key",
    ),
    "a partition below zero": Refused(
        (A_VALUE, "-1 AS partition"), "Invalid partition: -1", "-1 in column 'partition'"
    ),
    "no value": Refused(
        ("CONCAT('v', n) AS Value",),
        "Required attribute 'value' not found",
        "Required column 'value' is missing",
    ),
    "a number": Refused(
        ("n AS value",), "value attribute unsupported type int", "Column 'value' has type int"
    ),
    "a key of no type": Refused(
        (A_VALUE, "NULL AS key"),
        "key attribute unsupported type void",
        "Column 'key' has type void",
    ),
    "headers of strings": Refused(
        (A_VALUE, "array(named_struct('key', 'k', 'value', 'v')) AS headers"),
        "headers attribute unsupported type array<struct<key:string,value:string>>",
        "Column 'headers' has type array<struct<key:string,value:string>>",
    ),
    "headers in another order": Refused(
        (A_VALUE, "array(named_struct('value', BINARY('v'), 'key', 'k')) AS headers"),
        "headers attribute unsupported type",
        "Column 'headers' has type",
    ),
    "headers with more": Refused(
        (A_VALUE, "array(named_struct('key', 'k', 'value', BINARY('v'), 'x', 1)) AS headers"),
        "headers attribute unsupported type",
        "Column 'headers' has type",
    ),
    "a header without a key": Refused(
        (
            A_VALUE,
            "array(named_struct('key', CAST(NULL AS STRING), 'value', BINARY(''))) AS headers",
        ),
        "NullPointerException",
        "header without a key",
    ),
    "a partition of another type": Refused(
        (A_VALUE, "BIGINT(1) AS partition"),
        "partition attribute unsupported type bigint",
        "Column 'partition' has type bigint",
    ),
    "no topic": Refused(
        (A_VALUE,), "topic option required", "neither option topic nor a column", topic=False
    ),
    "a topic of another type": Refused(
        (A_VALUE, "n AS topic"),
        "topic attribute unsupported type int",
        "Column 'topic' has type int",
        topic=False,
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", REFUSED)
def test_what_sparks_own_sink_refuses_is_refused(given: Given, name: str) -> None:
    refused, topic = REFUSED[name], given.topic("refused")
    option = topic if refused.topic else None
    assert refused.sparks in given.refusal(SPARKS, refused.columns, topic=option)
    assert refused.ours in given.refusal(OURS, refused.columns, topic=option)
    assert given.seen(topic) == ()


@pytest.mark.long
def test_a_null_topic_has_sparks_name(given: Given) -> None:
    columns = [A_VALUE, "CAST(NULL AS STRING) AS topic"]
    assert "KAFKA_NULL_TOPIC_IN_DATA" in given.refusal(OURS, columns)


COLLATED = [
    "CONCAT('v', n) COLLATE UTF8_LCASE AS value",
    "CONCAT('k', n) COLLATE UNICODE AS key",
]


@pytest.mark.long
def test_a_collated_string_is_written_where_sparks_own_sink_refuses_it(given: Given) -> None:
    topic = given.topic("collated")
    assert "unsupported type string collate" in given.refusal(SPARKS, COLLATED, topic=topic)
    given.write(OURS, COLLATED, topic=topic)
    assert sorted(seen.value or b"" for seen in given.seen(topic)) == sorted(
        b"v%d" % n for n in range(40)
    )


@pytest.mark.long
def test_char_and_varchar_columns_are_strings(given: Given) -> None:
    place = given.home / "table"
    table = f"parquet_{uuid.uuid4().hex[:8]}"
    columns = "value VARCHAR(9), key CHAR(4)"
    given.spark.sql(f"CREATE TABLE {table} ({columns}) USING parquet LOCATION '{place}'")
    given.spark.sql(f"INSERT INTO {table} VALUES ('a', 'b')")
    found = []
    for sink in (SPARKS, OURS):
        topic = given.topic("char")
        query = (
            given.spark.readStream.table(table)
            .writeStream.format(sink)
            .trigger(availableNow=True)
            .option("kafka.bootstrap.servers", given.kafka.bootstrap_servers)
            .option("checkpointLocation", str(given.home / uuid.uuid4().hex))
            .option("topic", topic)
            .start()
        )
        assert query.awaitTermination(LONG_S)
        found.append([(seen.key, seen.value) for seen in given.seen(topic)])
    given.spark.sql(f"DROP TABLE {table}")
    assert found[0] == found[1] == [(b"b   ", b"a")]


@pytest.mark.long
def test_spark_does_not_open_real_time_mode_to_the_sink(given: Given) -> None:
    topic = given.topic("real-time")
    options = {
        "kafka.bootstrap.servers": given.kafka.bootstrap_servers,
        "checkpointLocation": str(given.home / "checkpoint"),
    }
    source = given.spark.readStream.format(SPARKS).options(subscribe=topic, **options).load()
    rows = source.selectExpr("CAST(value AS STRING) AS value")
    writer = rows.writeStream.format(OURS).options(topic=topic, **options).outputMode("update")
    with pytest.raises(PySparkException, match="NOT_IN_ALLOWLIST"):
        writer.trigger(realTime="5 seconds").start()  # type: ignore[call-overload]


AT = 1_700_000_000_123
CREATE_TIME = 1


def test_records_have_the_times_of_a_named_column_and_null_is_now(given: Given) -> None:
    topic = given.topic("times")
    columns = [
        A_VALUE,
        f"IF(n = 0, NULL, timestamp_micros({AT}000 + n * 1000 + 999)) AS `event time`",
    ]
    before = now()
    given.write(OURS, columns, topic=topic, **{"eos.timestamp.column": "event time"})
    times = {seen.value: seen.timestamp for seen in given.seen(topic)}
    kind, written = times.pop(b"v0")
    assert kind == CREATE_TIME
    assert before <= written <= now()
    assert times == {b"v%d" % n: (CREATE_TIME, AT + n) for n in range(1, 40)}


@pytest.mark.long
def test_without_the_option_a_column_timestamp_means_nothing(given: Given) -> None:
    for sink in (SPARKS, OURS):
        topic, before = given.topic("now"), now()
        given.write(sink, [A_VALUE, "timestamp_millis(n) AS timestamp"], topic=topic)
        times = {seen.timestamp for seen in given.seen(topic)}
        assert all(kind == CREATE_TIME and before <= at <= now() for kind, at in times)


def now() -> int:
    return int(time.time() * 1000)


def test_a_struct_with_two_fields_of_one_name_is_refused_by_the_name_of_its_column(
    given: Given,
) -> None:
    """Spark's own sink does not convert a column that it does not write."""
    columns = [A_VALUE, "array(named_struct('twin', n, 'twin', n)) AS unused"]
    given.write(SPARKS, columns, topic=given.topic("twins"))
    refusal = given.refusal(OURS, columns, topic=given.topic("twins"))
    assert "Column 'unused' has a struct with two fields 'twin'" in refusal


def test_rows_are_inserted_in_sql_through_a_view_and_a_table_is_refused(given: Given) -> None:
    topic = given.topic("sql")
    servers = given.kafka.bootstrap_servers
    options = f"OPTIONS ('kafka.bootstrap.servers' '{servers}', topic '{topic}')"
    sql = given.spark.sql
    sql(f"CREATE TEMPORARY VIEW by_view (value STRING) USING `kafka-eos` {options}")
    sql("INSERT INTO by_view VALUES ('a')")
    assert read_topic(servers, topic).values() == ["a"]
    sql(f"CREATE TABLE IF NOT EXISTS by_table (value STRING) USING `kafka-eos` {options}")
    with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
        sql("INSERT INTO by_table VALUES ('b')")
