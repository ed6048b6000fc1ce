"""A user's streaming query as a program: text files in, `kafka-eos` out, until all are written.

    python integration/spark_query.py config.json

Its own session (`setsid`), so that a fault can take all of its processes at once. Ends with 0 when
every file is written, with 3 and the error's text in `config["error"]` when the query stops.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eos_sink.testing.faults import FaultyDataSource


def main() -> int:
    config = json.loads(Path(sys.argv[1]).read_text())
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.streaming.metricsEnabled", "false")
        .getOrCreate()
    )
    spark.dataSource.register(FaultyDataSource)
    lines = (
        spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(config["input"])
    ).repartition(config["tasks"])
    rows = lines.selectExpr(*config["columns"])
    try:
        writer = rows.writeStream.format("kafka-eos").options(**config["options"])
        writer = writer.option("checkpointLocation", config["checkpoint"])
        query = writer.trigger(**config["trigger"]).start()
        Path(config["started"]).touch()
        query.awaitTermination()
    except PySparkException as error:
        Path(config["error"]).write_text(str(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
