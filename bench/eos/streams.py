"""The same through Spark: its own Kafka source, into `kafka-eos` and into Spark's own sink."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.eos.feed import BYTES, feeding, fill, reading, thinned
from bench.eos.loops import new_topic
from bench.result import Label, Notebook, Result
from eos_sink_lab.testing import KafkaCluster, java_home
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


@dataclass(frozen=True)
class Extent:
    """The sizes of the measurement.

    Attributes:
        partitions: of the output, with the next batch as soon as the last is done.
        triggers_ms: between batches, into `TRIGGER_PARTITIONS`.
        seconds: of a query; those of a long trigger take four triggers.
        batch: rows of a batch, where it is measured how fast it goes.
        batches: how many of them, the first of which warms up.
        rounds: how often everything is done.
    """

    partitions: Sequence[int]
    triggers_ms: Sequence[int]
    seconds: float
    batch: int
    batches: int
    rounds: int


TRIGGER_PARTITIONS = 10
SHORT = Extent((1, 10, 100), (1_000,), 3.0, 100_000, 4, 1)
LONG = Extent((1, 10, 100), (200, 1_000, 5_000), 10.0, 500_000, 6, 3)


def measure(kafka: KafkaCluster, extent: Extent) -> Result:
    """Every sink in turns at each place of the grid."""
    notes = Notebook(
        "eos-spark",
        kafka.version,
        {
            "rate": RATE,
            "tasks": INPUT_PARTITIONS,
            "batch": extent.batch,
            "trigger_partitions": TRIGGER_PARTITIONS,
            "rounds": extent.rounds,
        },
    )
    with _session() as spark:
        source = new_topic(kafka, INPUT_PARTITIONS)
        fill(kafka, source, extent.batch * extent.batches)
        for number in range(extent.rounds):
            sinks = SINKS if number % 2 == 0 else SINKS[::-1]
            for partitions in extent.partitions:
                for sink in sinks:
                    _fast(Way(spark, kafka, sink, partitions), source, extent, notes)
                for sink in sinks:
                    _soon(Way(spark, kafka, sink, partitions), 0, extent.seconds, notes)
            for trigger_ms in extent.triggers_ms:
                for sink in sinks:
                    seconds = max(extent.seconds, 4 * trigger_ms / 1000)
                    _soon(Way(spark, kafka, sink, TRIGGER_PARTITIONS), trigger_ms, seconds, notes)
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
    def started(
        self, source: str, trigger: Mapping[str, Any], limits: Mapping[str, str]
    ) -> Iterator[StreamingQuery]:
        """Run it meanwhile.

        Args:
            source: the input topic, read from its beginning.
            trigger: arguments of `DataStreamWriter.trigger`.
            limits: further options of the source.
        """
        rows = (
            self._spark.readStream.format("kafka")
            .options(**{"kafka.bootstrap.servers": self._bootstrap, "subscribe": source})
            .options(startingOffsets="earliest", **limits)
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
            query = writer.trigger(**trigger).start()
            try:
                yield query
            finally:
                query.stop()

    def labels(self, trigger_ms: int) -> dict[str, Label]:
        return {"sink": self.sink, "partitions": self.partitions, "trigger_ms": trigger_ms}


def _fast(way: Way, source: str, extent: Extent, notes: Notebook) -> None:
    limits = {"maxOffsetsPerTrigger": str(extent.batch)}
    with way.started(source, {"availableNow": True}, limits) as query:
        if not query.awaitTermination(int(_LONGEST_S)):
            raise RuntimeError(f"{way.sink} does not come to an end")
        took = [each["durationMs"]["addBatch"] for each in _batches(query)][1:]
    rates = [extent.batch / (ms / 1000) for ms in took]
    notes.note("throughput", "rows/s", *rates, **way.labels(0))
    to_stderr(f"{way.labels(0)}: {max(rates):,.0f} rows/s")


def _soon(way: Way, trigger_ms: int, seconds: float, notes: Notebook) -> None:
    source = new_topic(way.kafka, INPUT_PARTITIONS)
    trigger = {"processingTime": f"{trigger_ms} milliseconds"}
    with (
        reading(way.kafka, way.topic, way.partitions) as reader,
        feeding(way.kafka, source, RATE),
        way.started(source, trigger, {}) as query,
    ):
        _wait_for_batches(query, 2)
        time.sleep(_WARM_UP_S)
        since, before = time.monotonic(), len(_batches(query))
        time.sleep(seconds)
        _wait_for_batches(query, before + _FEWEST)
        ages = reader.ages_ms(since)
        batches = _batches(query)[before:]
    labels = way.labels(trigger_ms)
    notes.note("visible", "ms", *thinned(ages), **labels)
    notes.note("addBatch", "ms", *(each["durationMs"]["addBatch"] for each in batches), **labels)
    notes.note("rows", "", *(each["numInputRows"] for each in batches), **labels)
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


@contextmanager
def _session() -> Iterator[SparkSession]:
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{INPUT_PARTITIONS}]")
        .config("spark.driver.extraClassPath", f"{spark_kafka_jars(to_stderr)}/*")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()
