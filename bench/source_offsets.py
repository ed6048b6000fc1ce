"""Micro-batches from Kafka to Kafka with `eos.source.group.id` and without it, in turns.

    python -m bench.source_offsets [--rounds N]

A turn is a query that reads a topic in batches of 1,000 rows and 2 tasks, the first of which only
warm up; it writes all rows, or filters all of them out. A round is a turn of each, in an order that
changes from round to round. Source and target are on one broker on this machine. Writes
bench/results/source-offsets.json and prints a table; `python -m bench.publish` puts it into
bench/results/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from bench import RESULTS
from bench.broker import start_broker, topic_for
from bench.pages.source_offsets import NAME, lines
from bench.result import Label, Notebook, spread
from bench.shape import Shape
from bench.spark_turns import Bench, Turn
from eos_sink import starting_offsets
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

TASKS = 2
SHAPE = Shape("1,000 rows, 2 tasks", 1_000, 14, 4)
_TURN_S = 240.0
_FILLED_WITHIN_S = 60.0


@dataclass(frozen=True)
class Peer:
    """A query.

    Attributes:
        writes: its rows; otherwise it filters all of them out.
        group: it has `eos.source.group.id`.
    """

    writes: bool
    group: bool


PEERS = tuple(Peer(writes, group) for writes in (True, False) for group in (False, True))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--rounds", type=int, default=10)
    add("--version", default="4.3.0", help="of the broker")
    add("--out", type=Path, default=RESULTS / f"{NAME}.json")
    parsed = parser.parse_args(arguments)
    with (
        start_broker(parsed.version, to_stderr) as kafka,
        contextlib.closing(Bench(TASKS, kafka)) as bench,
        topic_for(kafka, "bench-source", TASKS) as source,
    ):
        _fill(kafka, source)
        notebook = Notebook(NAME, kafka.version, {"rounds": parsed.rounds, "cores": TASKS})
        # The first query of a session starts Spark's Python processes.
        _turn(kafka, bench, source, PEERS[-1])
        for number in range(parsed.rounds):
            for peer in PEERS[:: 1 if number % 2 == 0 else -1]:
                turn = _turn(kafka, bench, source, peer)
                labels: dict[str, Label] = {"writes": peer.writes, "group": peer.group}
                notebook.note("addBatch", "ms", *turn.add_batch_ms, **labels)
                to_stderr(f"{peer}: {spread(turn.add_batch_ms).median:.0f} ms")
                # Each time, so that a run that is ended early has shown something.
                notebook.result().write(parsed.out)
    print("\n".join(lines({NAME: notebook.result()})))
    return 0


def _turn(kafka: LocalCluster, bench: Bench, source: str, peer: Peer) -> Turn:
    with topic_for(kafka, f"bench-{uuid.uuid4().hex[:8]}", SHAPE.partitions) as topic:
        options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "subscribe": source,
            "topic": topic,
            "eos.id": topic,
            **({"eos.source.group.id": f"{topic}-readers"} if peer.group else {}),
        }
        read = partial(_read, options=options, writes=peer.writes)
        return bench.turn("kafka-eos", SHAPE, options, Deadline(_TURN_S), source=read)


def _read(
    spark: SparkSession, checkpoint: str, *, options: Mapping[str, str], writes: bool
) -> DataFrame:
    """As many rows of each partition in each batch."""
    start = "earliest"
    if "eos.source.group.id" in options:
        start = starting_offsets({**options, "checkpointLocation": checkpoint})
    reader = spark.readStream.format("kafka").options(**options).option("startingOffsets", start)
    rows = reader.option("maxOffsetsPerTrigger", SHAPE.rows).load().select("value")
    return rows if writes else rows.where("value is null")


def _fill(kafka: LocalCluster, topic: str) -> None:
    """The rows of one query."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(SHAPE.rows * SHAPE.batches):
        producer.produce(topic, SHAPE.value(number), partition=number % TASKS)
    if left := producer.flush(_FILLED_WITHIN_S):
        raise TimeoutError(f"{left} rows could not be written to {topic}")


if __name__ == "__main__":
    sys.exit(main())
