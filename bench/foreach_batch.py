"""Micro-batches of 1,000 rows through `eos_sink.foreach_batch`, beside Spark's own sink, in turns.

    python -m bench.foreach_batch [--rounds N]

It runs on the Spark that is installed, also on 3.5, and prints the medians of a batch (Spark's
`addBatch`) and their ratio. A turn is a query of some batches, the first of which only warm up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import uuid
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import eos_sink
from bench.broker import start_broker, topic_for
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.spark_jars import spark_kafka_jars
from eos_sink_lab.testing.waiting import to_stderr, wait_until

ROWS, TASKS, BATCHES, WARM_UP = 1_000, 2, 14, 6
PEERS = ("kafka", "eos_sink.foreach_batch")
_TURN_S = 240.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    given = parser.parse_args()
    took: dict[str, list[float]] = {peer: [] for peer in PEERS}
    with start_broker(given.version, to_stderr) as kafka:
        spark = _session()
        for number in range(given.rounds):
            for peer in PEERS[:: 1 if number % 2 == 0 else -1]:
                with topic_for(kafka, f"bench-{uuid.uuid4().hex[:8]}", TASKS) as topic:
                    took[peer] += _turn(spark, peer, kafka.bootstrap_servers, topic)
        spark.stop()
    medians = {peer: statistics.median(took[peer]) for peer in PEERS}
    print(f"Spark {pyspark.__version__}, {given.rounds} rounds, medians of a batch:")
    for peer, median in medians.items():
        print(f"{peer}: {median:.0f} ms")
    print(f"ratio: {medians[PEERS[1]] / medians[PEERS[0]]:.2f}")


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.appName("bench")
        .master(f"local[{TASKS}]")
        .config("spark.driver.extraClassPath", f"{spark_kafka_jars(to_stderr)}/*")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )


def _turn(spark: SparkSession, peer: str, servers: str, topic: str) -> list[float]:
    """Milliseconds of the warm batches of a query."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    rows = source.option("numPartitions", TASKS).load()
    writer = rows.selectExpr(
        "CAST(value AS STRING) AS key", "repeat('x', 100) AS value"
    ).writeStream
    options = {"kafka.bootstrap.servers": servers, "topic": topic}
    if peer == "kafka":
        writer = writer.format(peer).options(**options)
    else:
        writer = writer.foreachBatch(eos_sink.foreach_batch({**options, "eos.id": topic}))
    with tempfile.TemporaryDirectory(prefix="eos-bench-") as checkpoint:
        query = writer.option("checkpointLocation", f"{checkpoint}/c").start()
        try:
            wait_until(
                lambda: _latest(query) >= BATCHES - 1, Deadline(_TURN_S), f"{peer}: the last batch"
            )
            progress = [json.loads(each.json()) for each in query._jsq.recentProgress()]
        finally:
            query.stop()
    warm = [each for each in progress if WARM_UP <= each["batchId"] < BATCHES]
    to_stderr(f"{peer}: {statistics.median(_add_batch(warm)):.0f} ms")
    return _add_batch(warm)


def _latest(query: StreamingQuery) -> int:
    if not query.isActive:
        raise RuntimeError(f"the query has ended: {query.exception()}")
    progress = query._jsq.lastProgress()
    return -1 if progress is None else int(progress.batchId())


def _add_batch(progress: list[dict[str, Any]]) -> list[float]:
    return [float(each["durationMs"]["addBatch"]) for each in progress]


if __name__ == "__main__":
    main()
