"""One turn of one sink: a query that runs some batches, the warm ones of which are measured."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eos_sink.bench.cpu import CpuClock
from eos_sink.bench.shape import Shape
from eos_sink.kafka.deadline import Deadline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S = 0.02


class TurnFailedError(Exception):
    """The query has ended or does not go on; the message says why."""


@dataclass(frozen=True)
class Turn:
    """What the warm batches have shown.

    Attributes:
        add_batch_ms: of each, what Spark calls so: planning the write, the tasks, the commit.
        trigger_ms: of each, all that Spark does for it.
        cpu_s: CPU seconds a batch, by whose they are.
    """

    add_batch_ms: tuple[float, ...]
    trigger_ms: tuple[float, ...]
    cpu_s: Mapping[str, float]


@dataclass(frozen=True)
class Bench:
    """What every turn runs in."""

    spark: SparkSession
    clock: CpuClock
    tasks: int

    def turn(self, sink: str, shape: Shape, options: Mapping[str, str], deadline: Deadline) -> Turn:
        """Run the query until its last batch is done.

        Args:
            sink: the format.
            shape: of its rows and batches.
            options: of the sink, beside the checkpoint.
            deadline: for all of it.

        Raises:
            TurnFailedError: it did not get there.
        """
        rows = (
            self.spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", shape.rows)
            .option("numPartitions", self.tasks)
            .load()
            .selectExpr(*shape.columns)
        )
        with tempfile.TemporaryDirectory(prefix="eos-bench-") as checkpoint:
            query = (
                rows.writeStream.format(sink)
                .options(**options)
                .option("checkpointLocation", f"{checkpoint}/c")
                .start()
            )
            try:
                return self._measured(query, sink, shape, deadline)
            finally:
                query.stop()

    def _measured(self, query: StreamingQuery, sink: str, shape: Shape, deadline: Deadline) -> Turn:
        first = _wait(query, sink, shape.warm_up - 1, deadline)
        before = self.clock.read()
        last = _wait(query, sink, shape.batches - 1, deadline)
        used = self.clock.since(before)
        return turn_of(_progress(query), shape, {n: s / (last - first) for n, s in used.items()})


def turn_of(
    progress: Sequence[Mapping[str, Any]], shape: Shape, cpu_s: Mapping[str, float]
) -> Turn:
    """Pure: from what Spark tells of all batches to the measured ones.

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
    return Turn(
        add_batch_ms=tuple(float(times["addBatch"]) for times in warm),
        trigger_ms=tuple(float(times["triggerExecution"]) for times in warm),
        cpu_s=dict(cpu_s),
    )


def _wait(query: StreamingQuery, sink: str, batch: int, deadline: Deadline) -> int:
    """Until this batch is done; the number of the latest one that is."""
    while (done := _latest(query)) < batch:
        if not query.isActive:
            raise TurnFailedError(f"{sink}: the query has ended: {query.exception()}")
        if deadline.passed:
            raise TurnFailedError(
                f"{sink}: batch {done + 1} is not done after {deadline.seconds:.0f} s in all"
            )
        time.sleep(_LOOK_S)
    return done


def _latest(query: StreamingQuery) -> int:
    # pyspark's own lastProgress asks the JVM for each field: too much for a look every 20 ms.
    progress = query._jsq.lastProgress()
    return -1 if progress is None else int(progress.batchId())


def _progress(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(each.json()) for each in query._jsq.recentProgress()]
