"""From the creation of a row to a `read_committed` reader, Kafka to Kafka, in turns of sinks.

    python -m bench.end_to_end [--rounds N] [--seconds S]

A turn is a query without a trigger interval, or a program of Flink or Kafka Streams, over a topic
of five partitions that gets 1,000 rows a second; each row has the time of its creation, and a
reader of the output compares it with its own clock, which is the same. The first seconds of a turn
are not measured. A round is a turn of each peer, in an order that changes from round to round.
Everything is on this machine. Writes bench/results/end-to-end.json and prints a table; `python -m
bench.publish` puts it into bench/results/README.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from bench import RESULTS
from bench.broker import start_broker, topic_for
from bench.java_peer import FLINK_LIBRARY, STREAMS_LIBRARY, last_words
from bench.pages.end_to_end import ASYNC, FLINK, NAME, OURS, PEERS, STEPS, STREAMS, lines
from bench.result import Notebook, spread
from bench.spark_turns import TurnFailedError, all_progress, start_spark
from eos_sink import starting_offsets
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

PARTITIONS, ROWS_A_S, TICK_S = 5, 1_000, 0.005
CORES = 2
_WARM_UP_S = 8.0
_POLL_S = 0.1
_NO_PROGRESS_S = 60.0
_ASYNC = {
    "asyncProgressTrackingEnabled": "true",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
# With the milliseconds between their commits: of Kafka Streams its default, and of Flink, which has
# none, a short one.
_PROGRAMS = {
    FLINK: (FLINK_LIBRARY, "FlinkCopy", 1_000),
    STREAMS: (STREAMS_LIBRARY, "StreamsCopy", 100),
}
_EACH_BATCH = {"asyncProgressTrackingCheckpointIntervalMs": "0"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--rounds", type=int, default=4)
    add("--peers", nargs="+", choices=PEERS, default=PEERS)
    add("--seconds", type=float, default=30.0, help="measured in each turn")
    add("--version", default="4.3.0", help="of the broker")
    add("--out", type=Path, default=RESULTS / f"{NAME}.json")
    parsed = parser.parse_args(arguments)
    parameters = {"rounds": parsed.rounds, "seconds": parsed.seconds, "cores": CORES}
    with start_broker(parsed.version, to_stderr) as kafka:
        spark, notebook = start_spark(CORES), Notebook(NAME, kafka.version, parameters)
        # The first query of a session starts Spark's Python processes.
        _turn(kafka, spark, OURS, 1.0)
        for number in range(parsed.rounds):
            for peer in parsed.peers if number % 2 == 0 else reversed(parsed.peers):
                latencies, progress = _turn(kafka, spark, peer, parsed.seconds)
                parts = _percentiles(latencies)
                for name, value in parts.items():
                    notebook.note(name, "ms", value, peer=peer)
                for step in STEPS:
                    took = [float(each[step]) for each in progress if step in each]
                    if took:
                        notebook.note(step, "ms", spread(took).median, peer=peer)
                to_stderr(f"{peer}: {parts} of {len(latencies):,} rows")
                # Each time, so that a run that is ended early has shown something.
                notebook.result().write(parsed.out)
        spark.stop()
    print("\n".join(lines({NAME: notebook.result()})))
    return 0


def _percentiles(latencies: Sequence[float]) -> dict[str, float]:
    ordered = sorted(latencies)
    return {f"p{part}": ordered[int(len(ordered) * part / 100)] for part in (50, 99)}


def _turn(
    kafka: LocalCluster, spark: SparkSession, peer: str, seconds: float
) -> tuple[list[float], list[Mapping[str, Any]]]:
    """Run a copy; the latency of each row, and the steps of each batch of Spark, in ms.

    Raises:
        TurnFailedError: no row has come.
    """
    with (
        topic_for(kafka, f"source-{time.time_ns()}", PARTITIONS) as source,
        topic_for(kafka, f"output-{time.time_ns()}", PARTITIONS) as output,
        tempfile.TemporaryDirectory(prefix="eos-bench-") as home,
        _feeding(kafka, source),
    ):
        if peer not in _PROGRAMS:
            return _run_query(kafka, spark, peer, seconds, (source, output, home))
        library, program, interval_ms = _PROGRAMS[peer]
        arguments = (kafka.bootstrap_servers, source, output, CORES, interval_ms)
        with library.running(program, arguments, Path(home)) as running:
            latencies = _read(kafka, output, seconds)
            if not running.alive or not latencies:
                raise TurnFailedError(f"{peer}: no row has come: {last_words(running)}")
        return latencies, []


def _run_query(
    kafka: LocalCluster,
    spark: SparkSession,
    peer: str,
    seconds: float,
    places: tuple[str, str, str],
) -> tuple[list[float], list[Mapping[str, Any]]]:
    (sink, *how), (source, output, home) = peer.split(", "), places
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": source,
        "topic": output,
        "checkpointLocation": f"{home}/checkpoint",
        **(_ASYNC if ASYNC in how else {}),
    }
    start = "earliest"
    if sink == OURS:
        options |= {"eos.id": output, "eos.source.group.id": f"{output}-readers"}
        options |= _EACH_BATCH if ASYNC in how else {}
        start = starting_offsets(options)
    read = spark.readStream.format("kafka").options(**options).option("startingOffsets", start)
    rows = read.load().select("value")
    query = rows.writeStream.format(sink).options(**options).start()
    try:
        latencies = _read(kafka, output, seconds)
        if query.exception() is not None or not latencies:
            raise TurnFailedError(f"{peer}: no row has come: {query.exception()}")
        told = all_progress(query)
    finally:
        query.stop()
    # The first third warms up.
    return latencies, [each["durationMs"] for each in told[len(told) // 3 :]]


@contextmanager
def _feeding(kafka: LocalCluster, topic: str) -> Iterator[None]:
    """Write rows with the time of their creation, in ns, until the end."""
    done = threading.Event()

    def feed() -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
        number, due = 0, time.monotonic()
        while not done.wait(max(0.0, due - time.monotonic())):
            for _ in range(int(ROWS_A_S * TICK_S)):
                producer.produce(topic, str(time.time_ns()), partition=number % PARTITIONS)
                number += 1
            producer.poll(0)
            due += TICK_S
        producer.flush(10)

    thread = threading.Thread(target=feed, name="feeds the source")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _read(kafka: LocalCluster, topic: str, seconds: float) -> list[float]:
    """The age in ms of each row when a reader gets it, after the first seconds of rows."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": topic,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found, begin, end = list[float](), 0.0, time.monotonic() + _NO_PROGRESS_S
    while (now := time.monotonic()) < end:
        for record in consumer.consume(1_000, _POLL_S):
            value = record.value()
            if record.error() is not None or value is None:
                continue
            if not begin:
                begin, end = now + _WARM_UP_S, now + _WARM_UP_S + seconds
            if now >= begin:
                found.append((time.time_ns() - int(value)) / 1e6)
    consumer.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
