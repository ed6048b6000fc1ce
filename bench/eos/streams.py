"""The same through Spark: its own Kafka source, into `kafka-eos` and into Spark's own sink."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.eos.feed import BYTES, feeding, reading, thinned
from bench.eos.loops import new_topic
from bench.result import Label, Notebook, Result
from bench.spark_turns import start_spark
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.spark_jars import spark_kafka_jars
from eos_sink_lab.testing.waiting import to_stderr

INPUT_PARTITIONS = 2
"""Tasks per batch, one per core."""
RATE = 1_000
TUNING = {
    "kafka.linger.ms": "5",
    "kafka.batch.size": "262144",
    # A batch for each of 200 partitions, and some on their way: 32 MB hold 128.
    "kafka.buffer.memory": "134217728",
    "kafka.acks": "all",
}
SINKS = ("kafka-eos", "kafka-eos, declared", "kafka")
_WARM_UP_S = 3.0
_LONGEST_S = 600.0
_LOOK_S = 0.05
_FEWEST = 3
"""Batches in a measured stretch, however long they take."""


PLACES = ((0, 10), (0, 100), (1_000, 10))
"""Milliseconds between batches, and partitions of the output; 0 ms: each batch as soon as the last
is done."""
_SECONDS = 4.0


def measure(kafka: KafkaCluster, rounds: int) -> Result:
    """Every sink in turns at each place."""
    parameters = {"rate": RATE, "tasks": INPUT_PARTITIONS, "rounds": rounds}
    notes = Notebook("eos-spark", kafka.version, parameters)
    spark = start_spark(INPUT_PARTITIONS, spark_kafka_jars(to_stderr))
    for number in range(rounds):
        for trigger_ms, partitions in PLACES:
            for sink in SINKS if number % 2 == 0 else SINKS[::-1]:
                _soon(Way(spark, kafka, sink, partitions), trigger_ms, notes)
    spark.stop()
    return notes.result()


class Way:
    """A query from an input topic into all partitions of a new one.

    Args:
        sink: one of `SINKS`.
    """

    def __init__(
        self, spark: SparkSession, kafka: KafkaCluster, sink: str, partitions: int
    ) -> None:
        self._spark = spark
        self._bootstrap = kafka.bootstrap_servers
        self.kafka = kafka
        self.sink = sink
        self.partitions = partitions
        self.topic = new_topic(kafka, partitions)

    @contextmanager
    def started(self, source: str, trigger_ms: int) -> Iterator[StreamingQuery]:
        """Run it meanwhile, from the beginning of the topic `source`."""
        rows = (
            self._spark.readStream.format("kafka")
            .options(**{"kafka.bootstrap.servers": self._bootstrap, "subscribe": source})
            .option("startingOffsets", "earliest")
            .load()
            .selectExpr(
                "key",
                f"concat(substring(value, 1, {BYTES - 1}), X'70') AS value",
                f"CAST(pmod(hash(key), {self.partitions}) AS INT) AS partition",
            )
        )
        options = {"kafka.bootstrap.servers": self._bootstrap, "topic": self.topic, **TUNING}
        if "declared" in self.sink:
            options["eos.destinations"] = f"{self.topic}:0-{self.partitions - 1}"
        with tempfile.TemporaryDirectory() as checkpoint:
            options["checkpointLocation"] = f"{checkpoint}/c"
            writer = rows.writeStream.format(self.sink.partition(",")[0]).options(**options)
            query = writer.trigger(processingTime=f"{trigger_ms} milliseconds").start()
            try:
                yield query
            finally:
                query.stop()


def _soon(way: Way, trigger_ms: int, notes: Notebook) -> None:
    source = new_topic(way.kafka, INPUT_PARTITIONS)
    with (
        reading(way.kafka, way.topic, way.partitions) as reader,
        feeding(way.kafka, source, RATE),
        way.started(source, trigger_ms) as query,
    ):
        _wait_for_batches(query, 2)
        time.sleep(_WARM_UP_S)
        since, before = time.monotonic(), len(_batches(query))
        time.sleep(_SECONDS)
        _wait_for_batches(query, before + _FEWEST)
        ages = reader.ages_ms(since)
        batches = _batches(query)[before:]
    labels: dict[str, Label] = {
        "sink": way.sink,
        "partitions": way.partitions,
        "trigger_ms": trigger_ms,
    }
    notes.note("visible", "ms", *thinned(ages), **labels)
    notes.note("addBatch", "ms", *(each["durationMs"]["addBatch"] for each in batches), **labels)
    to_stderr(f"{labels}: {len(batches)} batches, {len(ages)} rows seen")


def _batches(query: StreamingQuery) -> list[Any]:
    """Those with rows, as far as Spark remembers them."""
    return [each for each in query.recentProgress if each["numInputRows"]]


def _wait_for_batches(query: StreamingQuery, count: int) -> None:
    end = time.monotonic() + _LONGEST_S
    while len(_batches(query)) < count:
        if not query.isActive or time.monotonic() > end:
            raise RuntimeError(f"the query does not go on: {query.exception()}")
        time.sleep(_LOOK_S)
