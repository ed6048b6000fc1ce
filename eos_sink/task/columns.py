"""The columns of Spark's Kafka sink: which there may be, and how Arrow batches hold them.

Source of the contract: Spark's KafkaWriter, KafkaWriteTask and its Kafka integration guide. Names
are case-sensitive and other columns are ignored. Spark itself refuses two columns of one name on
their way to a sink in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.rows import Rows, to_bytes

_TEXT_OR_BYTES = ("string", "binary")
_ALLOWED = {
    "value": _TEXT_OR_BYTES,
    "key": _TEXT_OR_BYTES,
    "topic": ("string",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
# What Spark's own sink calls these in SparkThrowable.getCondition.
_UNFIT_COLUMN = "_LEGACY_ERROR_TEMP_3080"
_NULL_TOPIC = "KAFKA_NULL_TOPIC_IN_DATA"


def check_columns(
    types: Mapping[str, str], topic: str | None, timestamp: str | None = None
) -> None:
    """Check a query's columns before anything is written.

    Args:
        types: Spark's simple type string of each column.
        topic: the option `topic`, or None. With it a column of that name is any other column.
        timestamp: the option `eos.timestamp.column`, or None.

    Raises:
        ConfigurationError: a column is missing or of a wrong type.
    """
    if "value" not in types:
        raise _unfit(
            f"Required column 'value' is missing; the query has {sorted(types)}.",
            "Select one, for example: to_json(struct('*')) AS value.",
        )
    if topic is None and "topic" not in types:
        raise _unfit(
            "There is neither option topic nor a column 'topic'.",
            "Set .option('topic', '<name>') or select a column 'topic'.",
        )
    for name, allowed in _ALLOWED.items():
        if name in types and (name != "topic" or topic is None):
            _check_type(name, types[name], allowed)
    if timestamp is not None:
        if timestamp not in types:
            raise ConfigurationError(
                f"Option eos.timestamp.column names {timestamp!r}, and the query has "
                f"{sorted(types)}.",
                remedy="Select that column, or correct or remove the option. Nothing was written.",
            )
        _check_type(timestamp, types[timestamp], ("timestamp",))


def _check_type(name: str, given: str, allowed: tuple[str, ...]) -> None:
    if _base_type(given) not in allowed:
        raise _unfit(
            f"Column '{name}' has type {given}; allowed: {' or '.join(allowed)}.",
            f"Cast it: CAST({name} AS {allowed[0].upper()}) AS {name}.",
        )


def _base_type(simple: str) -> str:
    """A collated string, `varchar(n)` or `char(n)` is a string on the wire; names of fields inside
    a type are the same in any case, as they are to Spark."""
    simple = simple.lower()
    return "string" if simple.startswith(("string", "varchar(", "char(")) else simple


def _unfit(what: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(
        what, remedy=f"{remedy} Nothing was written.", data={"condition": _UNFIT_COLUMN}
    )


def columns(batch: pa.RecordBatch, topic: str | None, timestamp: str | None = None) -> Rows:
    """The columns of an Arrow batch that make Kafka records.

    Raises:
        ConfigurationError: a row has no topic, a header without a key or with one that cannot be
            sent, a negative partition or a time that a record cannot have.
    """
    names = batch.schema.names

    def column(name: str | None) -> Any:
        return batch.column(names.index(name)) if name in names else None

    key, headers, partition = column("key"), column("headers"), column("partition")
    when = column(timestamp)
    return Rows(
        value=to_bytes(column("value")),
        key=None if key is None else to_bytes(key),
        topic=topic if topic is not None else _topics(column("topic")),
        headers=None if headers is None else _headers(headers),
        partition=None if partition is None else _partitions(partition),
        timestamp=None if when is None else _milliseconds(when, timestamp),
    )


def _topics(column: Any) -> Any:
    if column.null_count:
        raise ConfigurationError(
            f"[{_NULL_TOPIC}] A row has null in column 'topic' and option topic is not set.",
            remedy="Give each row a topic, filter such rows, or set option topic. Nothing of the "
            "batch is visible.",
            data={"condition": _NULL_TOPIC},
        )
    return pc.cast(column, pa.string())


def _partitions(column: Any) -> Any:
    """A client would take -1 for no partition; Java's, and so Spark's sink, refuses it."""
    least = pc.min(column).as_py()
    if least is not None and least < 0:
        raise ConfigurationError(
            f"A row has {least} in column 'partition'.",
            remedy="Partitions count from 0; null leaves the choice to the key. Nothing of the "
            "batch is visible.",
            data={"partition": least},
        )
    return column


def _milliseconds(column: Any, name: str | None) -> Any:
    """Spark's microseconds in Kafka's unit; the rest is cut off."""
    times = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    least = pc.min(times).as_py()
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
    keys = pc.list_flatten(column).flatten()[0]
    if keys.null_count:
        raise ConfigurationError(
            "A row has a header without a key in column 'headers'.",
            remedy="Give each header a key. Nothing of the batch is visible.",
        )
    if pc.any(pc.match_substring(keys, "\0")).as_py():
        raise ConfigurationError(
            "A row has a header whose key holds a zero character, where librdkafka would end it.",
            remedy="Give the header another key. Nothing of the batch is visible.",
        )
    return column
