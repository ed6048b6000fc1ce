"""An order-independent fingerprint of rows: equal for equal rows in any order and partition.

Each row has a 64-bit hash, and the hashes are added up modulo 2^64. The hash is a chain of steps,
each of which takes in eight bytes as a little-endian number; see `_step`. A field starts with its
length, -1 for null, so that fields do not run into each other. numpy does one step of all rows at a
time. The hash of a row depends on that row alone.

Not cryptographic: data can be constructed to collide.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos_sink.kafka.rows import Int64s, Row, Rows, find_spans, find_valid, split_headers, to_bytes
from eos_sink.protocol.model import RowDigest

Hashes = npt.NDArray[np.uint64]

# SplitMix64's multipliers.
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
# The start of each chain: the fraction of pi.
_START = np.uint64(0x243F6A8885A308D3)
_NULL = np.uint64(2**64 - 1)
_HEADERS, _PARTITION, _TIMESTAMP = (np.uint64(tag) for tag in (1, 2, 3))
_WORD = 8
_MASKS = np.array([256**count - 1 for count in range(_WORD + 1)], np.uint64)
# Longer fields go through BLAKE2b one by one, which is as fast from this length on.
_LONG = 1024
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
    if buffer is None or not buffer.size or not lengths.size:
        return state
    data = np.frombuffer(buffer, np.uint8)
    least, most = int(lengths.min()), int(lengths.max())
    evenly = _WORD <= least == most and starts[-1] - starts[0] == (len(starts) - 1) * most
    if most > _LONG:
        lengths = _without_long(state, data, starts, lengths)
    elif evenly:
        _even(state, data, int(starts[0]), most)
        return state
    _uneven(state, data, starts, lengths)
    return state


def _without_long(state: Hashes, data: Any, starts: Int64s, lengths: Int64s) -> Int64s:
    """Mix in the long fields; returns the lengths, 0 for those."""
    long = np.flatnonzero(lengths > _LONG)
    digests = b"".join(
        blake2b(data[start : start + length], digest_size=_WORD).digest()
        for start, length in zip(starts[long], lengths[long], strict=True)
    )
    changed = state[long]
    _step(changed, np.frombuffer(digests, "<u8"))
    state[long] = changed
    return np.where(lengths > _LONG, 0, lengths)


def _even(state: Hashes, data: Any, start: int, length: int) -> None:
    """Contiguous fields of the same length, at least a word."""

    def words(at: int) -> Hashes:
        found: Hashes = np.ndarray(len(state), "<u8", data, start + at, (length,))
        return found

    for at in range(0, length - _WORD + 1, _WORD):
        _step(state, words(at))
    if rest := length % _WORD:
        _step(state, words(length - _WORD) >> np.uint64(8 * (_WORD - rest)))


def _uneven(state: Hashes, data: Any, starts: Int64s, lengths: Int64s) -> None:
    """Fields of any length, sorted by it: the fields that have an n-th word are the first ones."""
    if data.size < _WORD:
        data = np.concatenate([data, np.zeros(_WORD, np.uint8)])
    at_byte = np.ndarray(data.size - _WORD + 1, "<u8", data, 0, (1,))
    counts = ((lengths + _WORD - 1) // _WORD).astype(np.uint16)
    order = np.argsort(counts.max() - counts, kind="stable")
    having = len(counts) - np.cumsum(np.bincount(counts))
    begin, end, sorted_ = starts[order], (starts + lengths)[order], state[order]
    for number in range(int(counts.max())):
        some, ended = int(having[number]), int(having[number + 1])
        places = begin[:some] + number * _WORD
        words = np.empty(some, np.uint64)
        words[:ended] = at_byte[places[:ended]]
        # A last word may end behind the buffer, or have bytes of the next field.
        last = places[ended:]
        inside = np.minimum(last, len(at_byte) - 1)
        words[ended:] = at_byte[inside] >> (8 * (last - inside)).astype(np.uint64)
        words[ended:] &= _MASKS[end[ended:some] - last]
        _step(sorted_[:some], words)
    state[order] = sorted_
