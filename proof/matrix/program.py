"""The program of a cell: it uses Spark, and only the format's name of the sink. Where Spark has no
data sources in Python it uses `eos_sink.foreach_batch` and `eos_sink.write`.

    python program.py config.json

With `"endless"` it writes until it is killed. Without, it goes on from there: to the end, twice
more with what has come since, through a batch write that is repeated, and through the other output
modes; what it saw goes into `config["seen"]`. It runs in the cell's own Python, so it imports
nothing of this tree.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

_LIBRARIES = ("confluent-kafka", "kafka-python", "pyarrow")
_COLUMNS = ("CAST(value AS BINARY) AS key", "value")
_PATIENCE_S = 240


def has_sources() -> bool:
    """True if this Spark can have the format."""
    try:
        from pyspark.sql import datasource
    except ImportError:
        return False
    return hasattr(datasource, "DataSourceArrowWriter")


def start(
    rows: DataFrame, mode: str, options: dict[str, str], checkpoint: str, trigger: dict[str, Any]
) -> StreamingQuery:
    if has_sources():
        writer = rows.writeStream.format("kafka-eos").options(**options)
    else:
        import eos_sink

        # A function does not get the checkpoint's location.
        named = {**options, "eos.id": f"matrix-{mode}"}
        writer = rows.writeStream.foreachBatch(eos_sink.foreach_batch(named))
    writer = writer.outputMode(mode).option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger).start()


def write(rows: DataFrame, options: dict[str, str]) -> None:
    if has_sources():
        rows.write.format("kafka-eos").mode("append").options(**options).save()
    else:
        import eos_sink

        eos_sink.write(rows, options)


class Query:
    """What writes to one broker; those of all brokers run side by side.

    Args:
        given: where from and where to, `matrix.target.Target.config`.
    """

    def __init__(self, spark: SparkSession, given: dict[str, Any]) -> None:
        self._spark = spark
        self._given = given
        self._late = iter(given["late"])

    def feed(self) -> None:
        """Let one more file be found."""
        late = Path(next(self._late))
        late.rename(Path(self._given["input"], late.name))

    def start(self, mode: str = "append", **trigger: Any) -> StreamingQuery:
        source = self._spark.readStream.format("text")
        if mode == "append":
            lines = source.option("maxFilesPerTrigger", 1).load(self._given["input"])
            rows = lines.repartition(2).selectExpr(*_COLUMNS)
        else:
            counts = source.load(self._given["input"]).groupBy().count()
            rows = counts.selectExpr("CAST(count AS STRING) AS value")
        options = {
            "kafka.bootstrap.servers": self._given["bootstrap"],
            "topic": self._given["topic" if mode == "append" else "side_topic"],
        }
        return start(rows, mode, options, f"{self._given['checkpoint']}/{mode}", trigger)

    def write_twice(self) -> None:
        """A batch write, and the same version of it again."""
        lines = self._spark.read.format("text").load(self._given["batch"])
        options = {
            "kafka.bootstrap.servers": self._given["bootstrap"],
            "topic": self._given["topic"],
            "txnAppId": "matrix",
            "txnVersion": "1",
        }
        for _ in range(2):
            write(lines.selectExpr(*_COLUMNS), options)


def endless(queries: list[Query], spark: SparkSession) -> None:
    for query in queries:
        query.start(processingTime="0 seconds")
    spark.streams.awaitAnyTermination()


def rest(queries: list[Query]) -> dict[str, str]:
    """Run to the end, from the checkpoints of the killed run."""
    together(queries, availableNow=True)
    for trigger in ("availableNow", "once"):
        for query in queries:
            query.feed()
        together(queries, **{trigger: True})
    for query in queries:
        query.write_twice()
    return {mode: in_mode(queries[0], mode) for mode in ("complete", "update")}


def together(queries: list[Query], **trigger: Any) -> None:
    for started in [query.start(**trigger) for query in queries]:
        finish(started)


def in_mode(query: Query, mode: str) -> str:
    """How a query in this output mode ends: "works", or Spark's words."""
    try:
        finish(query.start(mode, availableNow=True))
    except PySparkException as refused:
        return _words(str(refused), mode)
    return "works"


def finish(started: StreamingQuery) -> None:
    if not started.awaitTermination(_PATIENCE_S):
        raise TimeoutError(f"the query goes on: {started.status}")


def _words(text: str, mode: str) -> str:
    """The line that speaks of the mode, without the ids of the run."""
    lines = [line.strip() for line in text.splitlines() if mode in line.lower()]
    line = (lines or text.splitlines() or [""])[0]
    return line.rpartition("terminated with exception: ")[2]


def versions(spark: SparkSession) -> dict[str, str]:
    import eos_sink

    jvm: Any = spark.sparkContext._jvm
    return {
        "pyspark": pyspark.__version__,
        "python": platform.python_version(),
        "java": jvm.java.lang.System.getProperty("java.version"),
        "sink": str(Path(eos_sink.__file__).parent),
        **{name: metadata.version(name) for name in _LIBRARIES},
    }


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    builder = SparkSession.builder.master("local[2]").appName("matrix")
    spark = builder.config(map=config["spark"]).getOrCreate()
    queries = [Query(spark, given) for given in config["targets"]]
    if config["endless"]:
        endless(queries, spark)
    seen = {"modes": rest(queries), "versions": versions(spark)}
    Path(config["seen"]).write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
