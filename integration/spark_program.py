"""A user's driver: a session of Spark that runs queries and jobs, text files in, `kafka-eos` out.

    python integration/spark_program.py '{"master": "local[2]", "conf": {}}'

It takes one query or job a line of its standard input, as JSON, and writes into the file `result`
of each how it ended: null, or the error's text. It ends with its input. Started in a session of its
own (`setsid`), with the environment of `Faults`, all of it can be struck at once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from eos_sink import EosSinkError

SOURCE, FUNCTION = "format('kafka-eos')", "eos_sink.foreach_batch and eos_sink.write"
"""The ways into the sink."""
ERRORS = (PySparkException, Py4JJavaError, EosSinkError)
"""What a write may raise in a driver."""
LOCAL = "local[2]"
# Names an archive of loaded classes, with which a session starts in half the time.
CLASSES_VARIABLE = "EOS_TEST_SPARK_CLASSES"


def spark_session(
    master: str = LOCAL, conf: dict[str, str] | None = None, java: str = ""
) -> SparkSession:
    """A small session whose workers run this Python."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    java += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    archive = Path(os.environ.get(CLASSES_VARIABLE, ""))
    if archive.is_file():
        java += f" -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
    return (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config(map={**(conf or {})})
        .getOrCreate()
    )


def start(spark: SparkSession, query: dict[str, Any]) -> StreamingQuery:
    """A query that writes by itself, or whose `foreachBatch` writes `frames`."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(query["input"])
    rows = lines.repartition(query["tasks"]).selectExpr(*query["columns"])
    where = query["options"].get("checkpointLocation")
    if query["frames"]:

        def write(batch: DataFrame, _: int) -> None:
            for options in query["frames"]:
                append(batch, options, query["way"])

        writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", where)
    elif query["way"] == FUNCTION:
        from eos_sink.spark.foreach_batch import make_foreach_batch
        from eos_sink_lab.testing.fault_gates import faulty_connect

        function = make_foreach_batch(query["options"], faulty_connect)
        writer = rows.writeStream.foreachBatch(function).option("checkpointLocation", where)
    else:
        writer = rows.writeStream.format("kafka-eos").options(**query["options"])
    return writer.trigger(**query["trigger"]).start()


def append(frame: DataFrame, options: dict[str, str], way: str) -> None:
    if way == FUNCTION:
        # A released version has none.
        from eos_sink.spark.foreach_batch import write_frame
        from eos_sink_lab.testing.fault_gates import faulty_connect

        write_frame(frame, options, faulty_connect)
    else:
        frame.write.format("kafka-eos").mode("append").options(**options).save()


def save(spark: SparkSession, job: dict[str, Any]) -> None:
    """A batch write of all files."""
    lines = spark.read.format("text").load(job["input"])
    frame = lines.repartition(job["tasks"]).selectExpr(*job["columns"])
    append(frame, job["options"], job["way"])


def run(spark: SparkSession, query: dict[str, Any]) -> None:
    error = None
    try:
        if query["batch"]:
            save(spark, query)
        else:
            start(spark, query).awaitTermination()
    except ERRORS as stopped:
        error = str(stopped)
    result = Path(query["result"])
    draft = result.with_suffix(".new")
    draft.write_text(json.dumps(error))
    draft.rename(result)


def main() -> None:
    spark = spark_session(**json.loads(sys.argv[1]))
    if hasattr(spark, "dataSource"):
        # The public name, which a released version at the front of the path has, too.
        from eos_sink.testing import FaultyDataSource

        spark.dataSource.register(FaultyDataSource)
    for line in sys.stdin:
        run(spark, json.loads(line))


if __name__ == "__main__":
    main()
