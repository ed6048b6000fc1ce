"""`kafka-eos` beside Spark's own at-least-once Kafka sink, interleaved in one session.

    python -m bench.spark_sinks [--rounds 3] [--version 4.3.0]

Two shapes: micro-batches of 1,000 rows (added latency) and of 1,000,000 rows (throughput), 100
bytes a row, into six partitions of one broker on the same machine. Both sinks read the same
generated rows and are tuned alike: acks all, linger 5 ms, batch size 256 KiB. What is compared is
Spark's `addBatch` of warm batches. Writes JSON to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from eos_sink.demo.spark_jars import spark_kafka_jars
from eos_sink.testing import KafkaCluster, start_kafka

SINKS = ("kafka-eos", "kafka")
TUNING = {"kafka.linger.ms": "5", "kafka.batch.size": "262144", "kafka.acks": "all"}
PARTITIONS = 6
TASKS = 2
LONGEST_S = 600.0


@dataclass(frozen=True)
class Shape:
    """Batches of one size: how many are run, and how many of them only warm up."""

    rows: int
    batches: int
    warm_up: int


SHAPES = (Shape(1_000, 40, 10), Shape(1_000_000, 6, 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    arguments = parser.parse_args()
    times: dict[tuple[int, str], list[float]] = {}
    with start_kafka(version=arguments.version) as kafka:
        spark = _session()
        for number in range(arguments.rounds):
            for shape in SHAPES:
                for sink in SINKS if number % 2 == 0 else reversed(SINKS):
                    found = _run(spark, kafka, shape, sink)
                    times.setdefault((shape.rows, sink), []).extend(found)
                    _say(f"round {number + 1}: {sink}, {shape.rows} rows: {_middle(found):.0f} ms")
        spark.stop()
    print(json.dumps([_result(shape, times) for shape in SHAPES], indent=2))
    return 0


def _result(shape: Shape, times: dict[tuple[int, str], list[float]]) -> dict[str, object]:
    ours, theirs = (times[shape.rows, sink] for sink in SINKS)
    return {
        "rows": shape.rows,
        "batches": len(ours),
        "addBatch_ms": {
            sink: {
                "median": _middle(times[shape.rows, sink]),
                "p95": statistics.quantiles(times[shape.rows, sink], n=20)[-1],
            }
            for sink in SINKS
        },
        "rows_per_second": {
            sink: round(shape.rows * 1000 / _middle(times[shape.rows, sink])) for sink in SINKS
        },
        "added_ms": _middle(ours) - _middle(theirs),
        "throughput_ratio": round(_middle(theirs) / _middle(ours), 2),
    }


def _middle(times: list[float]) -> float:
    return statistics.median(times)


def _run(spark: SparkSession, kafka: KafkaCluster, shape: Shape, sink: str) -> list[float]:
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, partitions=PARTITIONS)
    with tempfile.TemporaryDirectory() as checkpoint:
        options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "checkpointLocation": f"{checkpoint}/c",
            **TUNING,
        }
        query = _rows(spark, shape.rows).writeStream.format(sink).options(**options).start()
        try:
            return _add_batch_times(query, shape)
        finally:
            query.stop()


def _rows(spark: SparkSession, count: int) -> DataFrame:
    """Rows of 100 bytes: a key of about 8 and a value that fills up."""
    source = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", count)
        .option("numPartitions", TASKS)
        .load()
    )
    return source.selectExpr(
        "CAST(value % 100000 AS STRING) AS key",
        "rpad(CAST(value AS STRING), 92, 'abcdefghijklmnopqrstuvwxyz') AS value",
    )


def _add_batch_times(query: StreamingQuery, shape: Shape) -> list[float]:
    """Milliseconds of `addBatch` of each warm batch, by Spark's own clock."""
    end = time.monotonic() + LONGEST_S
    times: dict[int, float] = {}
    while len(times) < shape.batches:
        if not query.isActive or time.monotonic() > end:
            raise RuntimeError(f"the query does not go on: {query.exception()}")
        for progress in query.recentProgress:
            if progress["numInputRows"] == shape.rows:
                times[progress["batchId"]] = progress["durationMs"]["addBatch"]
        time.sleep(0.05)
    return [times[batch] for batch in sorted(times)][shape.warm_up :]


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = spark_kafka_jars(_say)
    return (
        SparkSession.builder.master(f"local[{TASKS}]")
        .config("spark.driver.extraClassPath", f"{jars}/*")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
