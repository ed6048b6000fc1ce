"""The Kafka records of an Arrow batch, and where they may go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eos_sink.kafka_config.destinations import Destinations, is_topic_name, quote_name
from eos_sink.messages import Reason, stop
from eos_sink.rows.rows import Rows, find_wrong_keys, to_bytes

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
        raise stop(Reason.NO_TIMESTAMP, column=timestamp, columns=names)
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
        raise stop(Reason.NULL_TOPIC, condition=_NULL_TOPIC)
    return pc.fill_null(pc.cast(column, pa.string()), "")


def _partitions(column: Any) -> Any:
    """Librdkafka takes -1 as no partition; the Java client, and so Spark's sink, refuses it."""
    least = pc.min(column).as_py()
    if least is not None and least < 0:
        raise stop(Reason.NEGATIVE_PARTITION, partition=least)
    return column


def _milliseconds(column: Any, name: str | None, checked: bool) -> Any:
    """Spark's microseconds in Kafka's unit, truncated."""
    times = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    least = pc.min(times).as_py() if checked else None
    # To librdkafka 0 means now.
    if least is not None and least < 1:
        raise stop(Reason.EARLY_TIME, name=name, milliseconds=least)
    return times


def _headers(column: Any) -> Any:
    if find_wrong_keys(column).any():
        raise stop(Reason.WRONG_HEADER)
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
        raise stop(Reason.WRONG_TOPIC, shown=quote_name(wrong), topic=wrong)
    if log in names:
        raise stop(Reason.ROW_FOR_LOG, topic=log)


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
