"""Exactly-once Kafka sink for Spark Structured Streaming, in pure Python.

Public: the format `kafka-eos` and its options, `register`, the error classes, the command
`eos-sink` and the package `eos_sink.testing`. Everything else is private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eos_sink.errors import (
    BatchFailedError,
    ClusterError,
    CommitFailedError,
    ConfigurationError,
    EosSinkError,
    FailureKind,
    OperatorNeededError,
    OutcomeUnknownError,
    ProduceFailedError,
    SupersededError,
    UnfinishedError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "BatchFailedError",
    "ClusterError",
    "CommitFailedError",
    "ConfigurationError",
    "EosSinkError",
    "FailureKind",
    "OperatorNeededError",
    "OutcomeUnknownError",
    "ProduceFailedError",
    "SupersededError",
    "UnfinishedError",
    "register",
]


def register(spark: SparkSession) -> None:
    """Make `format("kafka-eos")` known to a session.

    Not needed where the package is installed with pip for the driver's Python: Spark finds it by
    itself there. Needed where it comes with `--py-files` or an archive.

    Args:
        spark: the session.
    """
    from eos_sink.datasource import KafkaEosDataSource

    spark.dataSource.register(KafkaEosDataSource)
