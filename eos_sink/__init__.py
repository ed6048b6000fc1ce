"""Exactly-once Kafka sink for Spark Structured Streaming, in pure Python.

Public: the format `kafka-eos` and its options, `register`, `foreach_batch`, `write`,
`starting_offsets`, `status`, the error classes, the command `eos-sink` and the package
`eos_sink.testing`. Everything else is private.
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
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from eos_sink.cli.notebook import SinkStatus

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
    "foreach_batch",
    "register",
    "starting_offsets",
    "status",
    "write",
]


def foreach_batch(options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Return a function for `DataStreamWriter.foreachBatch` that writes each batch exactly once.

    For Spark 3.5, which has no data sources in Python, and for what Spark refuses to them, such as
    output mode `update`. The checkpoint and the trigger are the query's own; the guarantees and the
    operator's commands are those of `df.write.format("kafka-eos")` inside `foreachBatch`.

    Args:
        options: of the sink, as for `format("kafka-eos")`. `eos.id` is required: with `topic` it is
            the identity. The session's defaults (`spark.datasource.kafka-eos.*`) count, too.

    Returns:
        The function. It raises ConfigurationError where it cannot see the query that runs it:
        Spark Connect, threads of its own, PYSPARK_PIN_THREAD=false; and the errors of the sink.

    Raises:
        ConfigurationError: an option is missing or wrong.
    """
    from eos_sink.spark.foreach_batch import make_foreach_batch

    return make_foreach_batch(options)


def write(frame: DataFrame, options: Mapping[str, str]) -> None:
    """Write a frame exactly once, as `df.write.format("kafka-eos").mode("append")` does, on Spark
    3.5 too. The frame is computed once.

    Args:
        frame: has the columns of Spark's own Kafka sink. Not of Spark Connect.
        options: of the sink; `txnAppId` and `txnVersion` number a write that may be repeated.

    Raises:
        EosSinkError: the errors of the sink; each says what to do.
    """
    from eos_sink.spark.foreach_batch import write_frame

    write_frame(frame, options)


def register(spark: SparkSession) -> None:
    """Make `format("kafka-eos")` known to a session, with the session's defaults.

    A setting `spark.datasource.kafka-eos.NAME` of the session becomes the default of option NAME
    for queries that start later. Without such settings a call is not needed where the package is
    installed with pip for the driver's Python: Spark finds it by itself there. It is needed where
    the package comes with `--py-files`.

    Args:
        spark: the session, classic or Connect.

    Raises:
        ConfigurationError: a default has a name that is no option; Spark is older than 4.0; or it
            is 4.0, which keeps a format that it has found by its name, and there are defaults.
    """
    from eos_sink.spark.registration import register_format

    register_format(spark)


def starting_offsets(options: Mapping[str, str], default: str = "earliest") -> str:
    """Return where the query stands in its Kafka source, for Spark's option `startingOffsets`.

    Pass it always: Spark ignores it while the query has a checkpoint, and a new checkpoint begins
    exactly after the rows that are visible (docs/source-offsets.md). A decided batch that a crash
    has left unfinished becomes visible first.

    Args:
        options: those of the sink (`kafka.*`, `eos.source.group.id`, `checkpointLocation` and so
            on) and the source's `subscribe`, `subscribePattern` or `assign`. The defaults of the
            active session (`spark.datasource.kafka-eos.*`) count, too.
        default: where topics begin that the query has never read: 'earliest', 'latest', or
            'committed', which is where the group is.

    Returns:
        JSON with an offset of every partition; -2 is the first row, -1 the end.

    Raises:
        ConfigurationError: an option is missing or wrong.
        OperatorNeededError: where the query stands is not known, or rows would be repeated or lost.
        EosSinkError: the brokers do not answer, or the decision log cannot be read.
    """
    from eos_sink.ops.starting_offsets import find_starting_offsets
    from eos_sink.spark.classic_session import active_settings
    from eos_sink.spark.session_defaults import Defaults

    given = Defaults.of_settings(active_settings()).fill_in(options)
    return find_starting_offsets(given, default)


def status(
    query: StreamingQuery, options: Mapping[str, str] | None = None, *, timeout: float = 30.0
) -> SinkStatus:
    """Look at a query that writes with the sink: its latest batch, what is open, and what needs an
    operator. The outcome is that of `eos-sink status`. It changes nothing.

    Args:
        query: a query of this process, running or ended.
        options: options of its writer, which replace those that Spark has. All of them with Spark
            Connect, which does not show a query's options, and for a query that writes inside
            `foreachBatch`: those of `foreach_batch`, or of one of its writes.
        timeout: seconds that it may take.

    Returns:
        A value with attributes, a table when it is printed or shown in Jupyter
        (docs/api.md#in-a-notebook).

    Raises:
        ConfigurationError: the query has another sink, ended before Spark had planned it, or its
            options are not known.
        EosSinkError: no broker answers, or the decision log cannot be read.
    """
    from eos_sink.cli.notebook import read_status

    return read_status(query, options, timeout)
