"""Builds librdkafka's structures from Arrow columns: pointers into the same memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eos_sink.kafka.native import library as rdkafka
from eos_sink.rows.partitioner import hash_keys
from eos_sink.rows.rows import Int64s, Rows, find_spans, split_headers, to_bytes

# The address of empty fields: NULL would mean null.
_NOTHING = ctypes.create_string_buffer(1)
_FIXED = (
    rdkafka.PART_TOPIC,
    rdkafka.PART_PARTITION,
    rdkafka.PART_VALUE,
    rdkafka.PART_KEY,
    rdkafka.PART_TIMESTAMP,
    rdkafka.PART_PRIVATE,
    rdkafka.PART_FLAGS,
)


@dataclass(frozen=True)
class Group:
    """Rows for one topic, and for one partition or the partitioner's choice.

    Attributes:
        messages: rd_kafka_message_t; they point into the rows, which must outlive them.
    """

    topic: str
    partition: int
    messages: npt.NDArray[Any]


@dataclass(frozen=True)
class Calls:
    """Rows for rd_kafka_produceva, one call for each.

    Attributes:
        addresses, counts: of each row's parts.
        kept: the memory that the addresses point to.
    """

    addresses: list[int]
    counts: list[int]
    kept: tuple[Any, ...]


def place_by_key(rows: Rows, count_partitions: Callable[[str], int]) -> Rows:
    """The rows with the partitions of their keys, if each has a key and none names a partition.

    Rows that are handed over partition by partition take a third less CPU than those that
    librdkafka places: no hash and lock for each, and neighbours in a request are neighbours in
    memory.

    Args:
        count_partitions: returns the number of partitions of a topic, or 0 to leave its rows, and
            those of all other topics, to librdkafka.
    """
    if rows.key is None or rows.key.null_count:
        return rows
    if rows.partition is not None and rows.partition.null_count < len(rows):
        return rows
    names, topics = rows.topics
    # A cluster that does not answer is waited for once.
    counts = list(takewhile(bool, map(count_partitions, names)))
    if len(counts) < len(names):
        return rows
    placed = hash_keys(rows.key) % np.array(counts)[topics]
    return replace(rows, partition=pa.array(placed, pa.int32()))


def can_group(rows: Rows) -> bool:
    """True if the rows fit into rd_kafka_message_t, which has neither headers nor a timestamp, and
    can be sorted by partition: the partitioner may send rows without one to the same partition."""
    if rows.headers is not None and pc.sum(pc.list_value_length(rows.headers)).as_py():
        return False
    if rows.timestamp is not None and rows.timestamp.null_count < len(rows):
        return False
    return rows.partition is None or rows.partition.null_count in (0, len(rows))


def group_rows(rows: Rows, private: int) -> Iterator[Group]:
    """The rows by topic and partition, in the same order otherwise. `can_group` must hold.

    Args:
        private: a number that comes back with each record's delivery.
    """
    messages = np.zeros(len(rows), rdkafka.MESSAGE)
    messages["payload"], messages["len"] = _pointers(rows.value)
    messages["key"], messages["key_len"] = _pointers(rows.key)
    messages["private"] = private
    partitioned = rows.partition is not None and not rows.partition.null_count
    names, topics = rows.topics
    if len(names) == 1 and not partitioned:
        yield Group(names[0], rdkafka.UNASSIGNED, messages)
        return
    partitions = _fill(rows.partition) if partitioned else np.full(len(rows), rdkafka.UNASSIGNED)
    places = topics * 2**32 + partitions
    order = np.argsort(places, kind="stable")
    edges = np.flatnonzero(np.diff(places[order])) + 1
    for part in np.split(order, edges):
        yield Group(names[topics[part[0]]], int(partitions[part[0]]), messages[part])


def build_calls(rows: Rows, private: int, handle: Callable[[str], int]) -> Calls:
    """The rows in their order.

    Args:
        private: a number that comes back with each record's delivery.
        handle: returns the rd_kafka_topic_t of a topic.
    """
    names, topics = rows.topics
    counts, keys, values = _headers(rows)
    begin = len(_FIXED) * np.arange(len(rows)) + np.cumsum(counts) - counts
    parts = np.zeros(len(_FIXED) * len(rows) + len(keys), rdkafka.PART)
    for number, kind in enumerate(_FIXED):
        parts["kind"][begin + number] = kind
    topic, partition, value, key, timestamp, tag, flags = (
        begin + number for number in range(len(_FIXED))
    )
    parts["pointer"][topic] = np.array([handle(name) for name in names], np.uintp)[topics]
    parts["number"][partition] = _fill(rows.partition, rdkafka.UNASSIGNED, len(rows))
    parts["pointer"][value], parts["size"][value] = _pointers(rows.value)
    parts["pointer"][key], parts["size"][key] = _pointers(rows.key)
    # 0 means now.
    parts["number"][timestamp] = _fill(rows.timestamp, 0, len(rows))
    parts["pointer"][tag] = private
    parts["number"][flags] = rdkafka.COPY
    within = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    header = np.repeat(begin, counts) + len(_FIXED) + within
    parts["kind"][header] = rdkafka.PART_HEADER
    parts["pointer"][header], _ = _pointers(keys)
    parts["second"][header], sizes = _pointers(values)
    parts["third"][header] = sizes
    addresses = parts.ctypes.data + begin * rdkafka.PART.itemsize
    return Calls(addresses.tolist(), (len(_FIXED) + counts).tolist(), (parts, keys, values, rows))


def _fill(column: Any, null: int = 0, count: int = 0) -> Int64s:
    if column is None:
        return np.full(count, null, np.int64)
    filled: Int64s = pc.fill_null(column, null).to_numpy().astype(np.int64)
    return filled


def _pointers(column: Any) -> tuple[Any, Any]:
    """The address of each field, NULL for null, and its number of bytes."""
    if column is None:
        return 0, 0
    buffer, starts, lengths = find_spans(column)
    base = buffer.address if buffer is not None and buffer.size else ctypes.addressof(_NOTHING)
    there = lengths >= 0
    pointers = np.where(there, starts + base, 0).astype(np.uintp)
    return pointers, np.where(there, lengths, 0).astype(np.uintp)


def _headers(rows: Rows) -> tuple[Int64s, Any, Any]:
    """As `split_headers`, with a zero byte after each key, which librdkafka requires."""
    if rows.headers is None:
        nothing = pa.array([], pa.binary())
        return np.zeros(len(rows), np.int64), nothing, nothing
    counts, keys, values = split_headers(rows.headers)
    end = pa.scalar(b"", keys.type)
    return (
        counts,
        to_bytes(pc.binary_join_element_wise(keys, end, pa.scalar(b"\0", keys.type))),
        values,
    )
