"""The sizes of records, as the client and the brokers count them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eos_sink.kafka.rows import Int64s, Rows, find_spans, split_headers
from eos_sink.protocol.topic_rules import TopicRules

# A record batch in front of its records (KIP-98).
BATCH_BYTES = 61
# All numbers of a record as librdkafka counts them (RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD).
_RECORD_BYTES = 36
# Attributes, and the differences of time and offset of the first record of a batch.
_FIXED_BYTES = 3
# The default levels of librdkafka and of the brokers; snappy has none.
_LEVELS = {"gzip": 6, "lz4": 1, "zstd": 3}
# Kafka's Java code compresses such blocks one by one (SnappyOutputStream of snappy-java,
# Lz4BlockOutputStream), librdkafka does so with lz4. What is around a block, and around them all.
_JAVA_BLOCKS, _CLIENT_BLOCKS = {"snappy": 32 * 1024, "lz4": 64 * 1024}, {"lz4": 64 * 1024}
_AROUND_BLOCK, _AROUND_BLOCKS = 4, 16
# Libraries and their versions differ, and zstd finds less if it does not know the size in advance:
# the batch may be larger by these shares of its size, or by a quarter of what compression saves.
# Measured: the others are within 0.1 %, zstd is up to 4 % larger, and more above 1 MB.
_MORE, _MORE_ZSTD, _OF_SAVED, _FOR_SURE, _FOR_SURE_BYTES = 20, 4, 4, 1_000, 64


class RecordSizes:
    """The sizes of rows."""

    def __init__(self, rows: Rows) -> None:
        self._values = find_spans(rows.value)[2]
        nothing = np.full(len(rows), -1, np.int64)
        self._keys = nothing if rows.key is None else find_spans(rows.key)[2]
        self._counts = self._headers = np.zeros(len(rows), np.int64)
        if rows.headers is not None:
            counts, *parts = split_headers(rows.headers)
            each = np.sum([_field(find_spans(part)[2]) for part in parts], axis=0)
            ends = np.concatenate([[0], np.cumsum(each, dtype=np.int64)])
            last = np.cumsum(counts)
            self._counts, self._headers = counts, ends[last] - ends[last - counts]

    @property
    def bound(self) -> int:
        """No row is larger, however it is counted."""
        parts = (self._values, self._keys, self._headers)
        return BATCH_BYTES + _RECORD_BYTES + sum(int(part.max(initial=0)) for part in parts)

    def sizes(self) -> tuple[Int64s, Int64s]:
        """The bytes of each record as librdkafka compares them with `message.max.bytes`, and those
        of a record batch (KIP-98) that has only this record, without compression."""
        keys, values = np.maximum(self._keys, 0), np.maximum(self._values, 0)
        sent = _RECORD_BYTES + keys + values + self._headers
        body = _FIXED_BYTES + _field(self._keys) + _field(self._values) + self._headers
        body += _number(self._counts)
        return sent, BATCH_BYTES + _number(body) + body


class Codec(NamedTuple):
    """`compression.type` of a client or a topic, and the level; None: the default."""

    name: str
    level: int | None

    @staticmethod
    def of_client(settings: Mapping[str, str]) -> Codec:
        """Args:
        settings: librdkafka's, whose default level is -1.
        """
        level = int(settings.get("compression.level", -1))
        return Codec(settings.get("compression.type", "none"), None if level == -1 else level)


def find_largest(record: Rows, plain: int, client: Codec, topic: TopicRules) -> int:
    """Return the most bytes that the brokers may see in a batch with this record alone: as it is
    sent, or as the topic's codec makes of it (LogValidator).

    Args:
        record: one row.
        plain: the size of its batch without compression.
    """
    ((value, key, _, headers, _, _),) = record
    parts = [key, value]
    for name, more in headers or ():
        parts += [name.encode(), more]
    content = b"".join(part or b"" for part in parts)
    sent = plain
    if client.name != "none":
        # librdkafka sends it as it is if that is less.
        sent = min(plain, _compress(content, plain, client, _CLIENT_BLOCKS))
    if topic.compression == "producer" or (topic.compression == client.name and sent < plain):
        return sent
    if topic.compression == "uncompressed":
        return plain
    theirs = Codec(topic.compression, topic.level)
    stored = _compress(content, plain, theirs, _JAVA_BLOCKS)
    return max(sent, min(stored, topic.grown(plain)))


def _compress(content: bytes, plain: int, codec: Codec, blocks: dict[str, int]) -> int:
    """The size of a batch of this content, or a little more."""
    name, level = codec
    usual = _LEVELS.get(name)
    # Below the default, gzip has a level that compresses nothing, and zstd has negative ones.
    how = pa.Codec(name, usual if level is None or usual is None else level)
    step = blocks.get(name, len(content)) or 1
    starts = range(0, len(content), step)
    found = sum(len(how.compress(content[at : at + step], asbytes=True)) for at in starts)
    found += plain - len(content) + _AROUND_BLOCK * len(starts) + _AROUND_BLOCKS
    saved = max(plain - found, 0)
    more = min(found // (_MORE_ZSTD if name == "zstd" else _MORE), saved // _OF_SAVED)
    return found + more + found // _FOR_SURE + _FOR_SURE_BYTES


def _field(lengths: Int64s) -> Int64s:
    """The bytes of fields with these lengths, -1 for null, behind their lengths."""
    size: Int64s = _number(lengths) + np.maximum(lengths, 0)
    return size


def _number(numbers: Int64s) -> Int64s:
    """The bytes of numbers from -1 on as varints in zigzag encoding."""
    zigzag = np.where(numbers < 0, 1, 2 * numbers)
    size: Int64s = np.ones(len(numbers), np.int64)
    for bits in (7, 14, 21, 28):
        size += zigzag >= 1 << bits
    return size
