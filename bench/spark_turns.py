"""Turns of sinks in one Spark session: queries of some batches, the warm ones measured."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.cpu import Account, CpuClock, Part
from bench.shape import Shape
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import java_home
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.spark_jars import spark_kafka_jars
from eos_sink_lab.testing.waiting import to_stderr

ReadRows = Callable[[SparkSession, str], DataFrame]
WriteBatch = Callable[[DataFrame, int], None]

_LOOK_S = 0.02
_ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


class TurnFailedError(Exception):
    """The query has ended or does not go on; the message says why."""


@dataclass(frozen=True)
class Turn:
    """What the warm batches have shown.

    Attributes:
        add_batch_ms: of each batch, Spark's addBatch: planning the write, the tasks, the commit.
        cpu_s: CPU seconds a batch, by process.
    """

    add_batch_ms: tuple[float, ...]
    cpu_s: Mapping[str, float]


class Bench:
    """A Spark session on this machine, in which every peer's format is known.

    Args:
        tasks, sockets: as `start_spark` takes them.
        kafka: the CPU seconds of its brokers are measured too.
    """

    def __init__(self, tasks: int, kafka: LocalCluster, sockets: bool = True) -> None:
        self._tasks = tasks
        self._spark = start_spark(tasks, sockets)
        jvm = self._spark._jvm
        assert jvm is not None
        driver = int(jvm.java.lang.ProcessHandle.current().pid())
        self._clock = CpuClock(
            {
                "spark": [Account(driver, Part.OWN)],
                "python": [Account(driver, Part.BELOW)],
                "broker": [Account(node.pid, Part.OWN) for node in kafka.nodes],
            }
        )

    def close(self) -> None:
        self._spark.stop()

    def turn(  # noqa: PLR0913 - a query has as much
        self,
        sink: str,
        shape: Shape,
        options: Mapping[str, str],
        deadline: Deadline,
        *,
        tasks: int | None = None,
        source: ReadRows | None = None,
        function: WriteBatch | None = None,
    ) -> Turn:
        """Run a query until its last batch is done.

        Args:
            sink: the format, or the name of a function.
            shape: of its rows and batches.
            options: of a format, beside the checkpoint.
            deadline: for all of it.
            tasks: of each batch; None: as many as run at the same time.
            source: reads the rows of a query with a checkpoint; None: numbers that Spark makes.
            function: of `foreachBatch`; None: the sink is a format.

        Raises:
            TurnFailedError: it did not get there.
        """
        with tempfile.TemporaryDirectory(prefix="eos-bench-") as home:
            checkpoint = f"{home}/c"
            if source is None:
                made = read_numbers(self._spark, shape.rows, tasks or self._tasks)
                rows = made.selectExpr(*shape.columns)
            else:
                rows = source(self._spark, checkpoint)
            if function is None:
                writer = rows.writeStream.format(sink).options(**options)
            else:
                writer = rows.writeStream.foreachBatch(function)
            self._spark.conf.set(_ARROW_ROWS, shape.arrow_rows)
            query = writer.option("checkpointLocation", checkpoint).start()
            try:
                first = wait_batch(query, sink, shape.warm_up - 1, deadline)
                before = self._clock.read()
                last = wait_batch(query, sink, shape.batches - 1, deadline)
                used = self._clock.since(before)
                progress = all_progress(query)
            finally:
                query.stop()
        cpu_s = {name: seconds / (last - first) for name, seconds in used.items()}
        return read_turn(progress, shape, cpu_s)


def all_progress(query: StreamingQuery) -> list[Mapping[str, Any]]:
    """Spark's `StreamingQueryProgress` of each batch, as JSON values."""
    return [json.loads(each.json()) for each in query._jsq.recentProgress()]


def read_turn(
    progress: Sequence[Mapping[str, Any]], shape: Shape, cpu_s: Mapping[str, float]
) -> Turn:
    """Select the measured batches.

    Args:
        progress: Spark's `StreamingQueryProgress` of each batch, as JSON values.
        shape: which of them are measured.
        cpu_s: seconds a batch.
    """
    warm = [
        each["durationMs"]
        for each in sorted(progress, key=lambda each: int(each["batchId"]))
        if shape.warm_up <= each["batchId"] < shape.batches and each["numInputRows"] == shape.rows
    ]
    return Turn(tuple(float(times["addBatch"]) for times in warm), dict(cpu_s))


def start_spark(tasks: int, sockets: bool = True) -> SparkSession:
    """Start the session on this machine, with Spark's own Kafka sink.

    Args:
        tasks: how many run at the same time.
        sockets: Spark reaches its Python processes over Unix domain sockets, else over TCP.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    spark = (
        SparkSession.builder.appName("bench")
        .master(f"local[{tasks}]")
        .config("spark.driver.extraClassPath", f"{spark_kafka_jars(to_stderr)}/*")
        .config("spark.ui.enabled", "false")
        # A query that is stopped in a task leaves Arrow buffers behind (bench/upstream.md).
        .config("spark.driver.extraJavaOptions", "-XX:MaxDirectMemorySize=4g")
        # On in conf/spark-defaults.conf. Spark's own Kafka sink does not use Python.
        .config("spark.python.unix.domain.socket.enabled", str(sockets).lower())
        .config("spark.ui.showConsoleProgress", "false")
        # A query is stopped during a batch, which Spark logs at length. Failures are reported.
        .config("spark.log.level", "OFF")
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .getOrCreate()
    )
    if hasattr(spark, "dataSource"):  # Not on Spark 3.5.
        from bench.floor import FloorDataSource

        spark.dataSource.register(FloorDataSource)
    return spark


def read_numbers(spark: SparkSession, rows: int, tasks: int) -> DataFrame:
    """Numbers that Spark makes: as many rows and tasks in each batch."""
    options = {"rowsPerBatch": rows, "numPartitions": tasks}
    return spark.readStream.format("rate-micro-batch").options(**options).load()


def wait_batch(query: StreamingQuery, sink: str, batch: int, deadline: Deadline) -> int:
    """Wait until this batch is done; return the latest one that is."""
    while True:
        # pyspark's own lastProgress asks the JVM for each field: too slow every 20 ms.
        progress = query._jsq.lastProgress()
        done = -1 if progress is None else int(progress.batchId())
        if done >= batch:
            return done
        if not query.isActive:
            raise TurnFailedError(f"{sink}: the query has ended: {query.exception()}")
        if deadline.passed:
            raise TurnFailedError(
                f"{sink}: batch {done + 1} is not done after {deadline.seconds:.0f} s in all"
            )
        time.sleep(_LOOK_S)
