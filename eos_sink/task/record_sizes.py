"""The sizes of records, as the client and the brokers count them."""

from __future__ import annotations

import numpy as np

from eos_sink.rows.rows import Int64s, Rows, find_spans, split_headers

# A record batch in front of its records (KIP-98).
BATCH_BYTES = 61
# All numbers of a record as librdkafka counts them (RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD).
_RECORD_BYTES = 36
# Attributes, and the differences of time and offset of the first record of a batch.
_FIXED_BYTES = 3


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
