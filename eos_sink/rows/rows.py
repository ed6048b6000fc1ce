"""Rows for Kafka: checked Arrow columns, which can also be read row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Row = tuple[
    "bytes | None",
    "bytes | None",
    "str",
    "list[tuple[str, bytes | None]] | None",
    "int | None",
    "int | None",
]
"""Value, key, topic, headers, partition, and the record's time in ms since the epoch."""

Int64s = npt.NDArray[np.int64]

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True)
class Rows:
    """Arrow arrays of equal length; None stands for a column of nulls.

    Attributes:
        value, key: binary or large_binary.
        topic: the topic of all rows, or an array of strings without a null.
        headers: lists of a struct of two fields: text without a null, and binary or large_binary.
            Spark's text may be no UTF-8, and `find_wrong_keys` finds the keys that no record has.
        partition: int32, none below 0.
        timestamp: int64, milliseconds since the epoch, none below 1.
    """

    value: Any
    key: Any = None
    topic: Any = ""
    headers: Any = None
    partition: Any = None
    timestamp: Any = None

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Row]:
        nothing = [None] * len(self)

        def each(column: Any) -> Any:
            return nothing if column is None else column.to_pylist()

        names, topics = self.topics
        return zip(
            each(self.value),
            each(self.key),
            (names[index] for index in topics.tolist()),
            nothing if self.headers is None else _pairs(self.headers),
            each(self.partition),
            each(self.timestamp),
            strict=True,
        )

    @cached_property
    def topics(self) -> tuple[list[str], Int64s]:
        """The distinct topics, and the index of each row's topic in them. What is no UTF-8 has a
        backslash, as no topic has."""
        if isinstance(self.topic, str):
            return [self.topic], np.zeros(len(self), np.int64)
        found = self.topic.dictionary_encode()
        names = (
            each.decode(errors="backslashreplace")
            for each in to_bytes(found.dictionary).to_pylist()
        )
        return list(names), found.indices.to_numpy().astype(np.int64)

    def slice(self, start: int, length: int | None = None) -> Rows:
        """Some of the rows, without a copy."""
        return self._select(lambda column: column.slice(start, length))

    def take(self, chosen: Int64s) -> Rows:
        """The rows of these numbers."""
        indices = pa.array(chosen)
        return self._select(lambda column: column.take(indices))

    def _select(self, select: Callable[[Any], Any]) -> Rows:
        columns = (getattr(self, each.name) for each in fields(self))
        return Rows(*(c if c is None or isinstance(c, str) else select(c) for c in columns))

    @staticmethod
    def of(rows: Sequence[Row]) -> Rows:
        """Rows as columns."""
        value, key, topic, headers, partition, timestamp = (
            zip(*rows, strict=True) if rows else repeat((), 6)
        )
        return Rows(
            pa.array(value, pa.large_binary()),
            pa.array(key, pa.large_binary()),
            pa.array(topic, pa.string()),
            pa.array(headers, HEADERS),
            pa.array(partition, pa.int32()),
            pa.array(timestamp, pa.int64()),
        )


def _pairs(column: Any) -> Iterator[list[tuple[str, bytes | None]] | None]:
    """Keys that are null are "", and U+FFFD stands for what is no UTF-8 in one."""
    counts, keys, values = split_headers(column)
    names = ((each or b"").decode(errors="replace") for each in keys.to_pylist())
    pairs = zip(names, values.to_pylist(), strict=True)
    return (
        list(islice(pairs, count)) if there else None
        for count, there in zip(counts.tolist(), find_valid(column).tolist(), strict=True)
    )


def pack(rows: Rows) -> bytes:
    """The columns as an Arrow stream, without a topic that all rows have."""
    columns = {each.name: getattr(rows, each.name) for each in fields(rows)}
    batch = pa.RecordBatch.from_pydict(
        {name: c for name, c in columns.items() if c is not None and not isinstance(c, str)}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(packed: Sequence[bytes], topic: str | None) -> Rows:
    """The rows of several `pack`, in this order.

    Args:
        topic: the topic of all rows, if they have one.
    """
    table = pa.concat_tables([pa.ipc.open_stream(each).read_all() for each in packed])
    # Not those of the table's `combine_chunks`, which leaves several chunks of more than 2 GB.
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return Rows(**columns) if topic is None else Rows(**columns, topic=topic)


def split_headers(column: Any) -> tuple[Int64s, Any, Any]:
    """The number of headers of each row, and the keys and values of all headers, in order."""
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    keys, values = (to_bytes(part) for part in pc.list_flatten(column).flatten())
    return counts.astype(np.int64), keys, values


def find_wrong_keys(headers: Any) -> npt.NDArray[np.bool_]:
    """Which of all headers have a key that is null, is no UTF-8 or has a zero character, where
    librdkafka would cut it off; or are null themselves."""
    keys = pc.list_flatten(headers).flatten()[0]
    wrong = pc.fill_null(pc.match_substring(keys, "\0"), True).to_numpy(zero_copy_only=False)
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        wrong = wrong | [not _is_utf8(each or b"") for each in to_bytes(keys).to_pylist()]
    found: npt.NDArray[np.bool_] = wrong
    return found


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def to_bytes(column: Any) -> Any:
    """Text or bytes as bytes in one buffer; without a copy, except for dictionaries and views."""
    types, kind = pa.types, column.type
    if types.is_binary(kind) or types.is_large_binary(kind):
        return column
    return pc.cast(column, pa.binary() if types.is_string(kind) else pa.large_binary())


def find_valid(column: Any) -> npt.NDArray[np.bool_]:
    """Which rows are not null."""
    found: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return found


def find_spans(column: Any) -> tuple[Any, Int64s, Int64s]:
    """The places of the values of a binary or large binary column.

    Returns:
        Their Arrow buffer (None: the column is empty), and for each row the start in the buffer and
        the length, -1 for null.
    """
    if not len(column):
        return None, np.zeros(0, np.int64), np.zeros(0, np.int64)
    _, offsets, data = column.buffers()
    kind = np.dtype(np.int64 if pa.types.is_large_binary(column.type) else np.int32)
    skipped = column.offset * kind.itemsize
    edges = np.frombuffer(offsets, kind, len(column) + 1, skipped).astype(np.int64, copy=False)
    lengths = np.diff(edges)
    if column.null_count:
        lengths[~find_valid(column)] = -1
    return data, edges[:-1], lengths
