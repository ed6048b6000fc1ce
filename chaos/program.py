"""The query that suffers: files of numbered rows in, `kafka-eos` out. An ordinary program.

    python -m chaos.program config.json

It ends with 3 when the query stops with an error, whose text is then in `config["error"]`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StreamingQuery

from eos_sink.testing import FaultyDataSource

STOPPED = 3


def session(settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("chaos")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def start(spark: SparkSession, config: dict[str, Any]) -> StreamingQuery:
    """Rows of a key go through one task, in their order, into one partition."""
    lines = (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", 1)  # one file, one micro-batch
        .load(config["input"])
    )
    row = sf.get_json_object("value", "$.row").cast("long")
    key = (row % config["keys"]).cast("string").alias("key")
    records = lines.select(key, "value").repartition(config["tasks"], "key")
    return records.writeStream.format("kafka-eos").options(**config["options"]).start()


def main() -> int:
    config = json.loads(Path(sys.argv[1]).read_text())
    spark = session(config["spark"])
    spark.dataSource.register(FaultyDataSource)
    try:
        start(spark, config).awaitTermination()
    except PySparkException as error:
        Path(config["error"]).write_text(str(error))
        return STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
