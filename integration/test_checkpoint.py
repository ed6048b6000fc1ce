"""Checkpoints that the real Spark writes, compared with what it reports of its batches."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from eos_sink.checkpoint import Checkpoint, Offsets
from eos_sink.kafka_config.source_topics import parse_source_topics
from eos_sink_lab.testing import KafkaCluster
from integration.messages import send
from integration.topics import unique

KAFKA = "kafka"
LONG_S = 120
FORMAT = "spark.sql.streaming.offsetLog.formatVersion"
NAMES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
PER_BATCH = {"maxOffsetsPerTrigger": "15"}


@dataclass
class Given:
    """A query of Kafka sources whose rows go nowhere.

    Attributes:
        progress: of each batch, as Spark reports it.
    """

    spark: SparkSession
    kafka: KafkaCluster
    location: str
    progress: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    stream_id: str = ""

    def topic(self, name: str = "in", partitions: int = 2) -> str:
        """A new one with rows."""
        topic = unique(name)
        self.kafka.create_topic(topic, partitions=partitions)
        self.add_rows(topic)
        return topic

    def add_rows(self, topic: str) -> None:
        send(self.kafka.bootstrap_servers, topic, *(f"row {number}" for number in range(20)))

    def source(self, name: str = "", **options: str) -> DataFrame:
        reader = self.spark.readStream.format(KAFKA)
        reader = reader.option("kafka.bootstrap.servers", self.kafka.bootstrap_servers)
        given = {"startingOffsets": "earliest", **PER_BATCH, **options}
        named = reader.name(name) if name else reader
        return named.options(**given).load().select("value")

    def run(self, rows: DataFrame, trigger: Mapping[str, Any] | None = None) -> None:
        """Write all that is there."""
        writer = rows.writeStream.format("noop").option("checkpointLocation", self.location)
        query = writer.trigger(**(trigger or {"availableNow": True})).start()
        self.stream_id = query.id
        assert query.awaitTermination(LONG_S)
        for each in query.recentProgress:
            if each["sources"][0]["endOffset"] is not None:
                self.progress[each["batchId"]] = json.loads(each.json)

    def checkpoint(self, **options: str) -> Checkpoint:
        return Checkpoint(self.location, parse_source_topics(options))

    def reported(self, batch: int, side: str) -> Offsets:
        """The offsets of Kafka sources at a side of the batch."""
        sources = self.progress[batch]["sources"]
        found = [each[side] for each in sources if each["description"].startswith("Kafka")]
        return {
            (topic, int(partition)): offset
            for source in found
            for topic, partitions in source.items()
            for partition, offset in partitions.items()
        }

    def assert_as_reported(self, checkpoint: Checkpoint) -> None:
        batches = sorted(self.progress)
        assert len(batches) > 1
        assert batches[0] == 0
        assert checkpoint.stream_id() == self.stream_id
        assert checkpoint.latest_batch() == checkpoint.latest_commit() == batches[-1]
        for batch in batches:
            assert checkpoint.end_offsets(batch) == self.reported(batch, "endOffset")
            if batch:
                assert checkpoint.end_offsets(batch - 1) == self.reported(batch, "startOffset")
        assert checkpoint.end_offsets(batches[-1] + 1) is None


@pytest.fixture
def given(both: SparkSession, kafka: KafkaCluster, tmp_path: Path) -> Given:
    return Given(both, kafka, str(tmp_path / "checkpoint"))


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.long)])
def named(both: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    """Queries write the second format of the offset log, with or without names of sources."""
    both.conf.set(FORMAT, "2")
    both.conf.set(NAMES, str(request.param).lower())
    yield request.param
    for name in (FORMAT, NAMES):
        both.conf.unset(name)


def starts(*topics: str) -> Offsets:
    return {(topic, partition): 0 for topic in topics for partition in range(2)}


def test_one_kafka_source(given: Given) -> None:
    topic = given.topic()
    given.run(given.source(subscribe=topic))
    given.add_rows(topic)
    given.run(given.source(subscribe=topic))
    for checkpoint in (given.checkpoint(), given.checkpoint(subscribe=topic)):
        given.assert_as_reported(checkpoint)
        assert checkpoint.initial_offsets() == starts(topic)
        assert not checkpoint.has_state()


def test_a_new_directory_and_one_of_a_batch_that_is_not_committed(given: Given) -> None:
    topic, checkpoint = given.topic(), given.checkpoint()
    assert checkpoint.stream_id() is None
    assert checkpoint.latest_batch() is checkpoint.latest_commit() is None
    assert checkpoint.end_offsets(0) is checkpoint.initial_offsets() is None
    given.run(given.source(subscribe=topic))
    latest = checkpoint.latest_commit()
    assert latest is not None
    (Path(given.location) / "commits" / str(latest)).unlink()
    assert (checkpoint.latest_batch(), checkpoint.latest_commit()) == (latest, latest - 1)


@pytest.mark.long
def test_a_source_that_begins_in_the_middle(given: Given) -> None:
    topic = given.topic(partitions=1)
    begin = json.dumps({topic: {"0": 3}})
    given.run(given.source(subscribe=topic, startingOffsets=begin))
    assert given.checkpoint().initial_offsets() == {(topic, 0): 3}


def test_two_kafka_sources(given: Given) -> None:
    first, second = given.topic("first"), given.topic("second")
    rows = given.source(subscribe=first).union(given.source(subscribe=second))
    given.run(rows)
    for options in ({}, {"subscribe": f"{first},{second}"}):
        checkpoint = given.checkpoint(**options)
        given.assert_as_reported(checkpoint)
        assert checkpoint.initial_offsets() == starts(first, second)
    assert set(given.checkpoint(subscribe=first).initial_offsets() or ()) == set(starts(first))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["rate", "rate-micro-batch", "text"])
def test_a_kafka_source_beside_another_one(given: Given, tmp_path: Path, kind: str) -> None:
    topic = given.topic()
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "one.txt").write_text("a\nb\n")
    reader = given.spark.readStream.format(kind).options(rowsPerBatch=3, rowsPerSecond=9)
    other = reader.load(str(lines) if kind == "text" else None)
    other = other.selectExpr("CAST(CAST(value AS STRING) AS BINARY) AS value")
    rows = other.union(given.source(subscribe=topic))
    given.run(rows)
    given.add_rows(topic)
    given.run(rows)
    for checkpoint in (given.checkpoint(), given.checkpoint(subscribe=topic)):
        given.assert_as_reported(checkpoint)
        assert checkpoint.initial_offsets() == starts(topic)


@pytest.mark.long
def test_a_dataframe_that_is_used_twice_is_one_source(given: Given) -> None:
    """Spark writes its offset twice."""
    topic = given.topic()
    rows = given.source(subscribe=topic)
    given.run(rows.union(rows))
    assert (Path(given.location) / "offsets" / "0").read_text().count(topic) == 2
    checkpoint = given.checkpoint(subscribe=topic)
    given.assert_as_reported(checkpoint)
    assert checkpoint.initial_offsets() == starts(topic)


def test_the_second_format_of_the_offset_log(given: Given, named: bool) -> None:
    first, second = given.topic("first"), given.topic("second")
    one = given.source("one" if named else "", subscribe=first)
    # Without names the same source may come twice.
    again = [] if named else [one]
    two = given.source("two" if named else "", subscribe=second)
    given.run(reduce(DataFrame.union, [one, two, *again]))
    written = (Path(given.location) / "offsets" / "0").read_text()
    assert written.startswith("v2\n")
    checkpoint = given.checkpoint(subscribepattern="^(first|second)-")
    given.assert_as_reported(checkpoint)
    assert checkpoint.initial_offsets() == starts(first, second)


@pytest.mark.long
def test_a_pattern_is_found_anywhere_in_a_name(given: Given) -> None:
    """As Spark selects topics, which the consumers of Kafka's own clients do otherwise."""
    pattern = uuid.uuid4().hex[:8]
    topic = f"in-{pattern}-x"
    given.kafka.create_topic(topic, partitions=2)
    given.add_rows(topic)
    given.run(given.source(subscribePattern=pattern))
    given.assert_as_reported(given.checkpoint(subscribepattern=pattern))


def test_a_query_with_state(given: Given) -> None:
    topic = given.topic()
    given.run(given.source(subscribe=topic).dropDuplicates(["value"]))
    assert given.checkpoint().has_state()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_location_is_literal(given: Given, tmp_path: Path, scheme: str) -> None:
    given.location = f"{scheme}{tmp_path}/ü %20;x+y"
    given.run(given.source(subscribe=given.topic()))
    given.assert_as_reported(given.checkpoint())
