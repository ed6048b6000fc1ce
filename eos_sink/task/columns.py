"""The columns of Spark's Kafka sink: which there may be, and how Arrow batches hold them.

Source of the contract: Spark's KafkaWriter and its Kafka integration guide. Names are
case-sensitive and other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eos_sink.errors import ConfigurationError

Row = tuple[
    "bytes | None", "bytes | None", "str", "list[tuple[str, bytes | None]] | None", "int | None"
]
"""Value, key, topic, headers, partition."""

_TEXT_OR_BYTES = ("string", "binary")
_ALLOWED = {
    "value": _TEXT_OR_BYTES,
    "key": _TEXT_OR_BYTES,
    "topic": ("string",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}


def check_columns(types: Mapping[str, str], topic: str | None) -> None:
    """Check a query's columns before anything is written.

    Args:
        types: Spark's simple type string of each column.
        topic: the option `topic`, or None.

    Raises:
        ConfigurationError: a column is missing or of a wrong type.
    """
    if "value" not in types:
        raise ConfigurationError(
            f"Required column 'value' is missing; the query has {sorted(types)}.",
            remedy="Select one, for example: to_json(struct('*')) AS value. Nothing was written.",
        )
    if topic is None and "topic" not in types:
        raise ConfigurationError(
            "There is neither option topic nor a column 'topic'.",
            remedy="Set .option('topic', '<name>') or select a column 'topic'. Nothing was "
            "written.",
        )
    for name, allowed in _ALLOWED.items():
        if name in types and _base_type(types[name]) not in allowed:
            raise ConfigurationError(
                f"Column '{name}' has type {types[name]}; allowed: {' or '.join(allowed)}.",
                remedy=f"Cast it: CAST({name} AS {allowed[0].upper()}) AS {name}. Nothing was "
                "written.",
            )


def _base_type(simple: str) -> str:
    """A collated string, `varchar(n)` or `char(n)` is a string on the wire."""
    simple = simple.lower()
    return "string" if simple.startswith(("string", "varchar(", "char(")) else simple


def rows(batch: pa.RecordBatch, topic: str | None) -> Iterator[Row]:
    """The rows of an Arrow batch as parts of Kafka records.

    Raises:
        ConfigurationError: a row has no topic, or a header without a key.
    """
    names = batch.schema.names
    nothing = [None] * batch.num_rows

    def column(name: str) -> Any:
        return batch.column(names.index(name)) if name in names else None

    key, headers, partition = column("key"), column("headers"), column("partition")
    return zip(
        _bytes(column("value")),
        nothing if key is None else _bytes(key),
        repeat(topic, batch.num_rows) if topic is not None else _topics(column("topic")),
        nothing if headers is None else map(_headers, headers.to_pylist()),
        nothing if partition is None else partition.to_pylist(),
        strict=True,
    )


def _bytes(column: pa.Array) -> list[bytes | None]:
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        values: list[bytes | None] = column.to_pylist()
        return values
    large = pa.types.is_large_string(column.type)
    text = column if large else pc.cast(column, pa.string())
    return list(pc.cast(text, pa.large_binary() if large else pa.binary()).to_pylist())


def _topics(column: pa.Array) -> list[str]:
    if column.null_count:
        raise ConfigurationError(
            "A row has null in column 'topic' and option topic is not set.",
            remedy="Give each row a topic, filter such rows, or set option topic. Nothing of the "
            "batch is visible.",
        )
    values: list[str] = column.to_pylist()
    return values


def _headers(headers: list[dict[str, Any]] | None) -> list[tuple[str, bytes | None]] | None:
    if headers is None:
        return None
    pairs = [(header["key"], header["value"]) if header else (None, None) for header in headers]
    if any(key is None for key, _ in pairs):
        raise ConfigurationError(
            "A row has a header without a key in column 'headers'.",
            remedy="Give each header a key. Nothing of the batch is visible.",
        )
    return [(str(key), value) for key, value in pairs]
