"""The same through Spark: its own Kafka source, into `kafka-eos` and into Spark's own sink."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.eos.feed import BYTES, Reader, feeding, thinned
from bench.eos.loops import new_topic
from bench.result import Notebook, Result
from bench.spark_turns import start_spark
from eos_sink_lab.testing import KafkaCluster
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
    spark = start_spark(INPUT_PARTITIONS)
    for number in range(rounds):
        for trigger_ms, partitions in PLACES:
            for sink in SINKS if number % 2 == 0 else SINKS[::-1]:
                _soon(Way(sink, partitions, trigger_ms), spark, kafka, notes)
    spark.stop()
    return notes.result()


@dataclass(frozen=True)
class Way:
    """A query from an input topic into all partitions of a new one.

    Attributes:
        sink: one of `SINKS`.
        partitions, trigger_ms: as in `PLACES`.
    """

    sink: str
    partitions: int
    trigger_ms: int

    @contextmanager
    def started(
        self, spark: SparkSession, kafka: KafkaCluster, source: str, topic: str
    ) -> Iterator[StreamingQuery]:
        """Run it meanwhile, from the beginning of the topic `source`."""
        rows = (
            spark.readStream.format("kafka")
            .options(**{"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": source})
            .option("startingOffsets", "earliest")
            .load()
            .selectExpr(
                "key",
                f"concat(substring(value, 1, {BYTES - 1}), X'70') AS value",
                f"CAST(pmod(hash(key), {self.partitions}) AS INT) AS partition",
            )
        )
        options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic, **TUNING}
        if "declared" in self.sink:
            options["eos.destinations"] = f"{topic}:0-{self.partitions - 1}"
        with tempfile.TemporaryDirectory() as checkpoint:
            options["checkpointLocation"] = f"{checkpoint}/c"
            writer = rows.writeStream.format(self.sink.partition(",")[0]).options(**options)
            query = writer.trigger(processingTime=f"{self.trigger_ms} milliseconds").start()
            try:
                yield query
            finally:
                query.stop()


def _soon(way: Way, spark: SparkSession, kafka: KafkaCluster, notes: Notebook) -> None:
    source, topic = new_topic(kafka, INPUT_PARTITIONS), new_topic(kafka, way.partitions)
    with (
        closing(Reader(kafka, topic, way.partitions)) as reader,
        feeding(kafka, source, RATE),
        way.started(spark, kafka, source, topic) as query,
    ):
        _wait_for_batches(query, 2)
        time.sleep(_WARM_UP_S)
        since, before = time.monotonic(), len(_batches(query))
        time.sleep(_SECONDS)
        _wait_for_batches(query, before + _FEWEST)
        ages = reader.ages_ms(since)
        batches = _batches(query)[before:]
    labels = asdict(way)
    notes.note("visible", "ms", *thinned(ages), **labels)
    notes.note("addBatch", "ms", *(each["durationMs"]["addBatch"] for each in batches), **labels)
    to_stderr(f"{way}: {len(batches)} batches, {len(ages)} rows seen")


def _batches(query: StreamingQuery) -> list[Any]:
    """Those with rows, as far as Spark remembers them."""
    return [each for each in query.recentProgress if each["numInputRows"]]


def _wait_for_batches(query: StreamingQuery, count: int) -> None:
    end = time.monotonic() + _LONGEST_S
    while len(_batches(query)) < count:
        if not query.isActive or time.monotonic() > end:
            raise RuntimeError(f"the query does not go on: {query.exception()}")
        time.sleep(_LOOK_S)
