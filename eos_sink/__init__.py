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
    """Make `format("kafka-eos")` known to a session, with the session's defaults.

    A setting `spark.datasource.kafka-eos.NAME` of the session becomes the default of option NAME
    for queries that start later. Without such settings a call is not needed where the package is
    installed with pip for the driver's Python: Spark finds it by itself there. It is needed where
    the package comes with `--py-files` or an archive.

    Args:
        spark: the session, classic or Connect.

    Raises:
        ConfigurationError: a default has a name that is no option.
    """
    from eos_sink.options import check_names
    from eos_sink.spark.data_source import with_defaults
    from eos_sink.spark.session_defaults import Defaults

    defaults = Defaults.of_settings(spark.conf.getAll)
    check_names(defaults.values)
    spark.dataSource.register(with_defaults(defaults))
