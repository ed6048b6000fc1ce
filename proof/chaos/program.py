"""The query under test, an ordinary program: it reads numbered rows and writes to Kafka.

    python -m proof.chaos.program config.json

If the query fails, it writes the error to `config["error"]` and exits with 3. With `config["go"]`
it starts its session and waits for that file, which has the rest of the configuration.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StreamingQuery

import eos_sink
from eos_sink.spark.foreach_batch import make_foreach_batch
from eos_sink_lab.testing.fault_gates import faulty_connect
from proof.chaos.kinds import Way

STOPPED = 3
_LOOK_AGAIN_S = 0.02
_FEW = 64
_OTHER_KEY = "other"


def session(settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("chaos")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def start(spark: SparkSession, config: dict[str, Any]) -> StreamingQuery:
    """Start the query: one task writes all rows of a key, in order, to one partition."""
    records = read_files(spark, config) if config["input"] else read_topic(spark, config)
    options = config["options"]
    if Way(config["way"]) is Way.FUNCTION:
        writer = records.writeStream.foreachBatch(make_foreach_batch(options, faulty_connect))
        writer = writer.option("checkpointLocation", options["checkpointLocation"])
    else:
        writer = records.writeStream.format("kafka-eos").options(**options)
    return writer.start()


def read_topic(spark: SparkSession, config: dict[str, Any]) -> DataFrame:
    """Rows as they are: a partition of the source is a task."""
    options = config["options"]
    reader = spark.readStream.format("kafka").options(**options)
    reader = reader.option("kafka.isolation.level", "read_committed")
    reader = reader.option("startingOffsets", eos_sink.starting_offsets(options))
    return reader.load().select("key", "value")


def read_files(spark: SparkSession, config: dict[str, Any]) -> DataFrame:
    """The first task gets few rows: most of its keys' rows have another key."""
    lines = (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", 1)  # one file, one micro-batch
        .load(config["input"])
    )
    row = sf.get_json_object("value", "$.row").cast("long")
    key = (row % config["keys"]).cast("string")
    # As `repartition` does.
    is_first = sf.pmod(sf.hash(key), sf.lit(config["tasks"])) == 0
    key = sf.when(is_first & (row % _FEW != 0), _OTHER_KEY).otherwise(key).alias("key")
    return lines.select(key, "value").repartition(config["tasks"], "key")


def wait_for(file: Path) -> dict[str, Any]:
    """What the file has, which comes when the driver before this one has ended."""
    while not file.exists():
        time.sleep(_LOOK_AGAIN_S)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def main() -> int:
    config = json.loads(Path(sys.argv[1]).read_text())
    spark = session(config["spark"])
    if Way(config["way"]) is Way.FORMAT:
        from eos_sink_lab.testing import FaultyDataSource

        spark.dataSource.register(FaultyDataSource)
    if config["go"]:
        config |= wait_for(Path(config["go"]))
    try:
        start(spark, config).awaitTermination()
    except PySparkException as error:
        Path(config["error"]).write_text(str(error))
        return STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
