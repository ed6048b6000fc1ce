"""Where the time of one small batch goes: Spark's JVM, the planner, the tasks and the committer.

    python -m bench.timeline [--batches N]

Micro-batches of 1,000 rows in 2 tasks, on one broker on this machine: first small partitions, whose
rows the driver writes, then tasks with transactions of their own. The sink has the fault gates of
the tests, which note each call of a client before and after it, by the clock that Spark's progress
has too. Writes bench/results/timeline.json; `python -m bench.publish` draws it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from bench import RESULTS
from bench.broker import start_broker, topic_for
from bench.pages.timeline import KINDS, NAME, lines
from bench.result import Notebook
from bench.spark_turns import all_progress, read_numbers, start_spark, wait_batch
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.faults import TIMELINE_VARIABLE, Pass, read_timeline
from eos_sink_lab.testing.faulty_source import FaultyDataSource
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

CORES, ROWS = 2, 1_000
_WARM_UP = 100
_QUERY_S = 300.0
# In the order in which Spark takes them, one after the other.
_OF_SPARK = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")


class Span(NamedTuple):
    """A step of a batch; times in milliseconds since its trigger."""

    who: str
    step: str
    start: float
    end: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batches", type=int, default=100)
    batches = parser.parse_args(arguments).batches
    with start_broker("4.3.0", to_stderr) as kafka, tempfile.TemporaryDirectory() as home:
        timeline = f"{home}/timeline"
        # Spark's Python processes inherit it.
        os.environ[TIMELINE_VARIABLE] = timeline
        notebook = Notebook(NAME, kafka.version, {"batches": batches, "rows": ROWS, "cores": CORES})
        spark = start_spark(CORES)
        spark.dataSource.register(FaultyDataSource)
        for kind, options in KINDS.items():
            progress = _run(kafka, spark, options, _WARM_UP + batches)[_WARM_UP:]
            passes = read_timeline(timeline)
            for span in chain.from_iterable(spans(batch, passes) for batch in progress):
                labels = {"kind": kind, "who": span.who, "step": span.step}
                notebook.note("start", "ms", span.start, **labels)
                notebook.note("end", "ms", span.end, **labels)
        spark.stop()
    result = notebook.result()
    result.write(RESULTS / f"{NAME}.json")
    print("\n".join(lines({NAME: result})))
    return 0


def _run(
    kafka: LocalCluster, spark: SparkSession, options: Mapping[str, str], batches: int
) -> list[Mapping[str, Any]]:
    """Run a query; return Spark's progress of its first batches."""
    rows = read_numbers(spark, ROWS, CORES).selectExpr("CAST(value AS STRING) AS value")
    with (
        topic_for(kafka, f"timeline-{time.time_ns()}", CORES) as topic,
        tempfile.TemporaryDirectory() as checkpoint,
    ):
        places = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic}
        writer = rows.writeStream.format("kafka-eos").options(**places, **options)
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            wait_batch(query, "kafka-eos", batches - 1, Deadline(_QUERY_S))
            return all_progress(query)[:batches]
        finally:
            query.stop()


def spans(progress: Mapping[str, Any], passes: Sequence[Pass]) -> Iterator[Span]:
    """Yield the steps of a batch: those of Spark, and those of each Python process, from the first
    to the last time that one of its kind is in the step.

    Args:
        progress: Spark's `StreamingQueryProgress`, as JSON values.
        passes: of all batches.
    """
    begin_s = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    took, at = progress["durationMs"], 0.0
    for step in _OF_SPARK:
        if took.get(step):
            yield Span("Spark", step, at, at := at + took[step])
    end_s = begin_s + took["triggerExecution"] / 1000
    calls: dict[tuple[str, str], list[float]] = {}
    for each in passes:
        if begin_s <= each.t <= end_s:
            calls.setdefault((each.role, each.point.split(".")[1]), []).append(each.t)
    for (who, step), times in calls.items():
        yield Span(who, step, *((t - begin_s) * 1000 for t in (min(times), max(times))))


if __name__ == "__main__":
    sys.exit(main())
