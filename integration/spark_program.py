"""A user's streaming query: text files in, `kafka-eos` out, a file a batch.

As a program it has fault points and its own session (`setsid`), so that a fault can take all of
its processes at once:

    python integration/spark_program.py config.json

It ends with 0 when every file is written, and with 3 and the error's text in `config["error"]`
when the query stops.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from eos_sink.testing import FaultyDataSource


def spark_session() -> SparkSession:
    """A small session whose workers run this Python."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def start(spark: SparkSession, config: dict[str, Any]) -> StreamingQuery:
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(config["input"])
    rows = lines.repartition(config["tasks"]).selectExpr(*config["columns"])
    writer = rows.writeStream.format("kafka-eos").options(**config["options"])
    return writer.trigger(**config["trigger"]).start()


def main() -> int:
    config = json.loads(Path(sys.argv[1]).read_text())
    spark = spark_session()
    spark.dataSource.register(FaultyDataSource)
    try:
        start(spark, config).awaitTermination()
    except PySparkException as error:
        Path(config["error"]).write_text(str(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
