"""An order-independent fingerprint of rows: equal for equal rows in any order and partition.

Each row has a 64-bit hash, and the hashes are added up modulo 2^64. The hash is a chain of steps,
each of which takes in eight bytes as a little-endian number; see `_step`. A field starts with its
length, -1 for null, so that fields do not run into each other. Then come its words, or XXH3 of a
long one: a call for each row costs more than numpy's steps of all rows at a time for a short one.
The hash of a row depends on that row alone.

Not cryptographic: data can be constructed to collide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest

from eos_sink.protocol.model import RowDigest
from eos_sink.rows.rows import Int64s, Row, Rows, find_spans, find_valid, split_headers, to_bytes

Hashes = npt.NDArray[np.uint64]

# SplitMix64's multipliers.
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
# The start of each chain: the fraction of pi.
_START = np.uint64(0x243F6A8885A308D3)
_NULL = np.uint64(2**64 - 1)
_HEADERS, _PARTITION, _TIMESTAMP = (np.uint64(tag) for tag in (1, 2, 3))
_WORD = 8
# Measured: from this length on a call of XXH3 takes no longer than the steps of the words.
_LONG = 256
_ROWS_AT_ONCE = 1000


class RowDigester:
    """Counts and fingerprints rows.

    Args:
        topic_varies: whether the topic is a part of each row.
    """

    def __init__(self, *, topic_varies: bool) -> None:
        self._topic_varies = topic_varies
        self._rows = self._bytes = self._sum = 0
        self._waiting: list[Row] = []

    def add(self, rows: Rows) -> Hashes:
        """Returns the hash of each row."""
        found = hashes(rows, topic_varies=self._topic_varies)
        self._rows += len(rows)
        self._bytes += _size(rows.value) + _size(rows.key)
        self._sum += int(found.sum())
        return found

    def add_row(self, row: Row) -> None:
        """Add a single row."""
        self._waiting.append(row)
        if len(self._waiting) == _ROWS_AT_ONCE:
            self._add_waiting()

    @property
    def digest(self) -> RowDigest:
        self._add_waiting()
        return RowDigest(self._rows, self._bytes, self._sum % 2**64)

    def _add_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.add(Rows.of(waiting))


def _size(column: Any) -> int:
    if column is None:
        return 0
    _, _, lengths = find_spans(column)
    return int(lengths.sum()) + int(column.null_count)


def hashes(rows: Rows, *, topic_varies: bool) -> Hashes:
    """The hash of each row. Absent parts do not count: a missing column hashes like one of nulls,
    and an empty list of headers like none."""
    state = _chained(_fields(rows.value), _absent() if rows.key is None else _fields(rows.key))
    if topic_varies:
        _step(state, _topics(rows))
    if rows.headers is not None:
        counts, keys, values = split_headers(rows.headers)
        _tagged(state, _HEADERS, counts > 0, _headers(counts, keys, values))
    if rows.partition is not None:
        _tagged(state, _PARTITION, find_valid(rows.partition), _numbers(rows.partition))
    if rows.timestamp is not None:
        _tagged(state, _TIMESTAMP, find_valid(rows.timestamp), _numbers(rows.timestamp))
    return _mixed(state)


def _step(state: Hashes, word: Hashes | np.uint64) -> None:
    """Mix a word into each state. Reversible, so different states and different words stay
    different. One multiplication would leave the highest bits alone, so that the next word could
    cancel them (the signs of neighbouring numbers): therefore two."""
    state ^= word
    state *= _FACTORS[0]
    state ^= state >> np.uint64(32)
    state *= _FACTORS[1]
    state ^= state >> np.uint64(29)


def _chained(first: Hashes, second: Hashes | np.uint64) -> Hashes:
    state = np.full(len(first), _START)
    _step(state, first)
    _step(state, second)
    return state


def _mixed(state: Hashes) -> Hashes:
    """SplitMix64's last step: each bit of the result depends on each bit of the state."""
    state = (state ^ (state >> np.uint64(30))) * _FACTORS[0]
    state = (state ^ (state >> np.uint64(27))) * _FACTORS[1]
    state ^= state >> np.uint64(31)
    return state


def _tagged(state: Hashes, tag: np.uint64, there: Any, word: Hashes) -> None:
    """Mix in an optional part, behind its tag, where it is present."""
    changed = state[there]
    _step(changed, tag)
    _step(changed, word[there])
    state[there] = changed


def _numbers(column: Any) -> Hashes:
    whole = column.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(whole).view(np.uint64)


def _topics(rows: Rows) -> Hashes:
    names, topics = rows.topics
    found: Hashes = _fields(to_bytes(pa.array(names, pa.string())))[topics]
    return found


def _headers(counts: Int64s, keys: Any, values: Any) -> Hashes:
    """For each row the sum of its headers' hashes, each of which includes the header's index."""
    first = np.cumsum(counts) - counts
    each = _chained(_fields(keys), _fields(values))
    _step(each, (np.arange(len(each)) - np.repeat(first, counts)).astype(np.uint64))
    ends = np.zeros(len(each) + 1, np.uint64)
    np.cumsum(_mixed(each), out=ends[1:])
    sums: Hashes = ends[first + counts] - ends[first]
    return sums


def _absent() -> np.uint64:
    """The hash of a null."""
    state = np.full(1, _START)
    _step(state, _NULL)
    null: np.uint64 = state[0]
    return null


def _fields(column: Any) -> Hashes:
    """The hash of each field of a column."""
    buffer, starts, lengths = find_spans(column)
    state = np.full(len(starts), _START)
    _step(state, lengths.view(np.uint64))
    if not len(lengths):
        return state
    least, most = int(lengths.min()), int(lengths.max())
    if _WORD <= least == most <= _LONG and starts[-1] - starts[0] == (len(starts) - 1) * most:
        _even(state, buffer, int(starts[0]), most)
        return state
    if most > _LONG:
        long = np.flatnonzero(lengths > _LONG)
        data, first = memoryview(buffer), starts[long]
        spans = zip(first.tolist(), (first + lengths[long]).tolist(), strict=True)
        changed = state[long]
        _step(changed, np.array([xxh3_64_intdigest(data[a:b]) for a, b in spans], np.uint64))
        state[long] = changed
    _uneven(state, column, lengths)
    return state


def _even(state: Hashes, data: Any, start: int, length: int) -> None:
    """Contiguous fields of the same length, at least a word."""

    def words(at: int) -> Hashes:
        found: Hashes = np.ndarray(len(state), "<u8", data, start + at, (length,))
        return found

    for at in range(0, length - _WORD + 1, _WORD):
        _step(state, words(at))
    if rest := length % _WORD:
        _step(state, words(length - _WORD) >> np.uint64(8 * (_WORD - rest)))


def _uneven(state: Hashes, column: Any, lengths: Int64s) -> None:
    """The short fields, of any length, sorted by it: those that have an n-th word are the last."""
    counts = ((lengths + _WORD - 1) >> 3).astype(np.uint8)
    counts[lengths > _LONG] = 0
    ended = np.cumsum(np.bincount(counts))
    order, most = np.argsort(counts, kind="stable")[ended[0] :], len(ended) - 1
    if not most:
        return
    # Text can be padded, bytes cannot; nothing here looks at it as text.
    text = column.take(pa.array(order)).cast(pa.large_binary()).view(pa.large_string())
    padded = pc.ascii_rpad(text, _WORD * most, padding="\0").buffers()[2]
    words = np.frombuffer(padded, "<u8", most * len(order)).reshape(-1, most)
    changed = state[order]
    for number, first in enumerate(ended[:-1] - ended[0]):
        _step(changed[first:], words[first:, number])
    state[order] = changed
