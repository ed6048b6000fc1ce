"""The Kafka records of an Arrow batch, and where they may go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.rows import Rows, find_wrong_keys, to_bytes
from eos_sink.kafka_config.destinations import Destinations, is_topic_name, quote_name

# Its name in SparkThrowable.getCondition of Spark's own sink.
_NULL_TOPIC = "KAFKA_NULL_TOPIC_IN_DATA"


def to_rows(
    batch: pa.RecordBatch,
    topic: str | None,
    timestamp: str | None = None,
    *,
    checked: bool = True,
) -> Rows:
    """The Kafka records of an Arrow batch.

    Args:
        checked: otherwise there may be what is an error here; a null topic is "".

    Raises:
        ConfigurationError: a row has no topic, a header without a key or with one that cannot be
            sent, a negative partition or a time that a record cannot have; or the column of times
            is missing.
    """
    names = batch.schema.names

    def column(name: str) -> Any:
        return batch.column(names.index(name)) if name in names else None

    key, headers, partition = column("key"), column("headers"), column("partition")
    when = None if timestamp is None else column(timestamp)
    if timestamp is not None and when is None:
        # The records would silently have the time of the write.
        raise ConfigurationError(
            f"Option eos.timestamp.column names {timestamp!r}, and the rows have {names}.",
            remedy="Select that column, or correct or remove the option. Nothing of the batch is "
            "visible.",
        )
    return Rows(
        value=to_bytes(column("value")),
        key=None if key is None else to_bytes(key),
        topic=topic if topic is not None else _topics(column("topic"), checked),
        headers=_headers(headers) if checked and headers is not None else headers,
        partition=_partitions(partition) if checked and partition is not None else partition,
        timestamp=None if when is None else _milliseconds(when, timestamp, checked),
    )


def _topics(column: Any, checked: bool) -> Any:
    if checked and column.null_count:
        raise ConfigurationError(
            f"[{_NULL_TOPIC}] A row has null in column 'topic' and option topic is not set.",
            remedy="Give each row a topic, filter such rows, or set option topic. Nothing of the "
            "batch is visible.",
            data={"condition": _NULL_TOPIC},
        )
    return pc.fill_null(pc.cast(column, pa.string()), "")


def _partitions(column: Any) -> Any:
    """Librdkafka takes -1 as no partition; the Java client, and so Spark's sink, refuses it."""
    least = pc.min(column).as_py()
    if least is not None and least < 0:
        raise ConfigurationError(
            f"A row has {least} in column 'partition'.",
            remedy="Partitions count from 0; null leaves the choice to the key. Nothing of the "
            "batch is visible.",
            data={"partition": least},
        )
    return column


def _milliseconds(column: Any, name: str | None, checked: bool) -> Any:
    """Spark's microseconds in Kafka's unit, truncated."""
    times = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    least = pc.min(times).as_py() if checked else None
    # To librdkafka 0 means now.
    if least is not None and least < 1:
        raise ConfigurationError(
            f"A row has a time before 1970-01-01 00:00:00.001 UTC in column {name!r}, which option "
            "eos.timestamp.column names: a Kafka record cannot have it.",
            remedy="Filter such rows or make it null, which means now. Nothing of the batch is "
            "visible.",
            data={"milliseconds": least},
        )
    return times


def _headers(column: Any) -> Any:
    if find_wrong_keys(column).any():
        raise ConfigurationError(
            "A row has a header without a key in column 'headers', or with a key that is not UTF-8 "
            "or has a zero character in it, where librdkafka would cut it off.",
            remedy="Give each header a key of text. Nothing of the batch is visible.",
        )
    return column


def check_topics(rows: Rows, log: str) -> None:
    """Check the topics that rows name. In the decision log a row would be read as a decision.

    Args:
        rows: with a column of topics.
        log: the decision log.

    Raises:
        ConfigurationError: a row names the log, or what is no topic's name.
    """
    names = rows.topics[0]
    wrong = next((name for name in names if not is_topic_name(name)), None)
    if wrong is not None:
        raise ConfigurationError(
            f"A row has {quote_name(wrong)} in column 'topic', which cannot be the name of a topic "
            "that applications write.",
            remedy="Give the row another topic, or filter such rows. Nothing of the batch is "
            "visible.",
            data={"topic": wrong},
        )
    if log in names:
        raise ConfigurationError(
            f"A row has {log!r} in column 'topic', the decision log, where the sink keeps its "
            "decisions.",
            remedy="Give the row another topic, or filter such rows. Nothing of the batch is "
            "visible.",
            data={"topic": log},
        )


def check_destinations_of(batch: pa.RecordBatch, topic: str | None, declared: Destinations) -> None:
    """Check rows against the declared destinations before any of them is sent.

    Args:
        topic: the option `topic`, or None for the column.
        declared: the option `eos.destinations`.

    Raises:
        ConfigurationError: a row goes elsewhere.
    """
    by_partition = "partition" in batch.schema.names
    if topic is not None:
        numbers = pc.unique(batch.column("partition")).to_pylist() if by_partition else [None]
        places: list[Any] = [(topic, number) for number in numbers]
    else:
        names = ["topic", "partition"] if by_partition else ["topic"]
        found = pa.Table.from_batches([batch.select(names)]).group_by(names).aggregate([])
        places = [(row["topic"], row.get("partition")) for row in found.to_pylist()]
    for name, number in places:
        if not declared.allow(name, number):
            raise declared.make_error(name, number)
