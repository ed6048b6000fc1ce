"""Micro-batches of 1,000 rows through `eos_sink.foreach_batch`, beside a function that drops its
rows and Spark's own sink, in turns.

    python -m bench.foreach_batch [--rounds N]

It runs on the Spark that is installed, also on 3.5, and prints the medians of a batch (Spark's
`addBatch`) and how many times as long as with Spark's own sink that is.
"""

from __future__ import annotations

import argparse
import statistics
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pyspark

import eos_sink
from bench.broker import start_broker, topic_for
from bench.shape import Shape
from bench.spark_turns import Bench, WriteBatch
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.waiting import to_stderr

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

TASKS = 2
SHAPE = Shape("1,000 rows, 2 tasks", 1_000, batches=14, warm_up=6, partitions=TASKS)
SPARKS_OWN, DROP, OURS = PEERS = ("kafka", "mapInArrow without rows", "eos_sink.foreach_batch")
_TURN_S = 240.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    given = parser.parse_args()
    took: dict[str, list[float]] = {peer: [] for peer in PEERS}
    with start_broker(given.version, to_stderr) as kafka, closing(Bench(TASKS, kafka)) as bench:
        for number in range(given.rounds):
            for peer in PEERS[:: 1 if number % 2 == 0 else -1]:
                with topic_for(kafka, f"bench-{uuid.uuid4().hex[:8]}", SHAPE.partitions) as topic:
                    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic}
                    function = _function(peer, options)
                    turn = bench.turn(peer, SHAPE, options, Deadline(_TURN_S), function=function)
                took[peer] += turn.add_batch_ms
                to_stderr(f"{peer}: {statistics.median(turn.add_batch_ms):.0f} ms")
    medians = {peer: statistics.median(took[peer]) for peer in PEERS}
    print(f"Spark {pyspark.__version__}, {given.rounds} rounds, medians of a batch:")
    for peer, median in medians.items():
        print(f"{peer}: {median:.0f} ms, {median / medians[SPARKS_OWN]:.2f} times Spark's own")


def _function(peer: str, options: dict[str, str]) -> WriteBatch | None:
    if peer == SPARKS_OWN:
        return None
    return (
        _drop if peer == DROP else eos_sink.foreach_batch({**options, "eos.id": options["topic"]})
    )


def _drop(frame: DataFrame, _: int) -> None:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    frame.mapInArrow(read, "report binary").rdd.collect()


if __name__ == "__main__":
    main()
