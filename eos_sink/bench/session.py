"""The Spark session that all peers share, and whose CPU seconds are whose."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from eos_sink.bench.cpu import Account, CpuClock, Part
from eos_sink.bench.floor import FloorDataSource
from eos_sink.demo.spark_jars import spark_kafka_jars
from eos_sink.testing import KafkaCluster, java_home
from eos_sink.testing.cluster_errors import DownloadError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROGRESSES = "1000"


def kafka_jars(say: Callable[[str], None]) -> Path | None:
    """Where the jars of Spark's own Kafka sink are; None if they cannot be had."""
    try:
        return spark_kafka_jars(say)
    except DownloadError as error:
        say(f"Without Spark's own Kafka sink: {error}")
        return None


def start_spark(tasks: int, jars: Path | None) -> SparkSession:
    """A session on this machine, in which every peer's format is known.

    Args:
        tasks: how many run at the same time.
        jars: of Spark's own Kafka sink.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    builder = (
        SparkSession.builder.appName("eos-sink bench")
        .master(f"local[{tasks}]")
        .config("spark.ui.enabled", "false")
        # As in conf/spark-defaults.conf. Spark's own Kafka sink has no Python to talk to.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.ui.showConsoleProgress", "false")
        # A query is stopped amid a batch, which Spark logs at length. What fails is told.
        .config("spark.log.level", "OFF")
        .config("spark.sql.streaming.numRecentProgressUpdates", _PROGRESSES)
    )
    if jars is not None:
        builder = builder.config("spark.driver.extraClassPath", f"{jars}/*")
    spark = builder.getOrCreate()
    spark.dataSource.register(FloorDataSource)
    return spark


def clock_of(spark: SparkSession, kafka: KafkaCluster | None) -> CpuClock:
    """A clock for Spark's JVM, its Python workers and, where they run here, the brokers."""
    jvm = spark._jvm
    assert jvm is not None
    driver = int(jvm.java.lang.ProcessHandle.current().pid())
    accounts = {
        "spark": [Account(driver, Part.OWN)],
        "python": [Account(driver, Part.BELOW)],
    }
    if kafka is not None:
        from eos_sink.testing.local_cluster import LocalNode

        nodes = [node for node in kafka.nodes if isinstance(node, LocalNode)]
        if nodes:
            accounts["broker"] = [Account(node.pid, Part.OWN) for node in nodes]
    return CpuClock(accounts)
