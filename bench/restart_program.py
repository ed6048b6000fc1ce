"""A driver that `bench.restart` starts, stops and kills: one query at a time, text files in.

    python -m bench.restart_program '{"conf": {...}, "query": {...}}'

It starts its session and at once the query, and tells both instants as JSON lines on standard
output; `at` is in seconds since the epoch. Registering a source is part of the start: either of the
two looks up all Python data sources. A line on standard input is the next query, which
replaces the one that runs, and the end of the input ends the program. Run in its own session
(`setsid`), so that all of it can be killed at once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.least_sink import LeastSink

TASKS = 2


def main() -> None:
    given = json.loads(sys.argv[1])
    spark = _session(given["conf"])
    _tell("ready")
    query = _start(spark, given["query"])
    for line in sys.stdin:
        query.stop()
        query = _start(spark, json.loads(line))
    query.stop()
    spark.stop()


def _start(spark: SparkSession, given: dict[str, Any]) -> StreamingQuery:
    """A query whose batches are the files of two numbers after each other, one for each task."""
    at = time.time()
    if given["watched"]:
        from eos_sink_lab.testing import FaultyDataSource

        spark.dataSource.register(FaultyDataSource)
    elif given["sink"] == LeastSink.name():
        spark.dataSource.register(LeastSink)
    source = spark.readStream.format("text").option("maxFilesPerTrigger", TASKS)
    rows = source.load(given["input"])
    query = rows.writeStream.format(given["sink"]).options(**given["options"]).start()
    _tell("start", at)
    return query


def _session(conf: dict[str, str]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(f"local[{TASKS}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config(map={**conf})
        .getOrCreate()
    )


def _tell(what: str, at: float | None = None) -> None:
    print(json.dumps({"what": what, "at": at or time.time()}), flush=True)


if __name__ == "__main__":
    main()
