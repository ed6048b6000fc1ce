"""A whole number for each row, 8 bytes, in chunks that know where in the topic they are from.

An identity that is no number goes in as a hash of 64 bits. Equal hashes accuse nobody: they say
which chunks to read again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

CHUNK = 65_536
_BUCKET = 4_000_000
_MOST_BUCKETS = 256


@dataclass(frozen=True)
class Chunk:
    """Rows of one partition that follow each other.

    Attributes:
        partition: theirs.
        first, last: offsets of the first and the last of them.
        values: a number for each.
        groups: a hash of each one's group, where rows are numbered within groups.
    """

    partition: int
    first: int
    last: int
    values: Numbers
    groups: Numbers | None = None


class Columns:
    """Takes rows in, in the order of their offsets within each partition."""

    def __init__(self, *, grouped: bool = False) -> None:
        self._grouped = grouped
        self._open: dict[int, _Open] = {}
        self._chunks: list[Chunk] = []

    def add(self, partition: int, offset: int, value: int, group: int = 0) -> None:
        try:
            buffer = self._open[partition]
        except KeyError:
            buffer = self._open[partition] = _Open(offset)
        buffer.values.append(value)
        if self._grouped:
            buffer.groups.append(group)
        buffer.last = offset
        if len(buffer.values) == CHUNK:
            self._close(partition)

    def chunks(self) -> list[Chunk]:
        """All that was taken in."""
        for partition in list(self._open):
            self._close(partition)
        return self._chunks

    def _close(self, partition: int) -> None:
        done = self._open.pop(partition)
        groups = np.array(done.groups, np.int64) if self._grouped else None
        values = np.array(done.values, np.int64)
        self._chunks.append(Chunk(partition, done.first, done.last, values, groups))


class _Open:
    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.values, self.groups = array("q"), array("q")


def sort_in_ranges(*columns: Sequence[Numbers]) -> Iterator[tuple[Numbers, ...]]:
    """Each column's numbers sorted, a range of them at a time, so that a copy of all is never made.

    Hashes fill the ranges evenly, and so do numbers that count rows.
    """
    parts = [part for column in columns for part in column if len(part)]
    if not parts:
        return
    least, greatest = min(int(p.min()) for p in parts), max(int(p.max()) for p in parts)
    for low, high in _ranges(least, greatest, sum(map(len, parts))):
        yield tuple(np.sort(_between(column, low, high)) for column in columns)


def sort_groups_in_ranges(chunks: Sequence[Chunk]) -> Iterator[tuple[Numbers, Numbers]]:
    """Groups and numbers, sorted by both; a group is never split."""
    columns = [(c.groups, c.values) for c in chunks if c.groups is not None and len(c.groups)]
    if not columns:
        return
    least = min(int(groups.min()) for groups, _ in columns)
    greatest = max(int(groups.max()) for groups, _ in columns)
    for low, high in _ranges(least, greatest, sum(len(groups) for groups, _ in columns)):
        picked = [(g, v, (g >= low) & (g <= high)) for g, v in columns]
        groups = np.concatenate([g[mask] for g, _, mask in picked])
        values = np.concatenate([v[mask] for _, v, mask in picked])
        order = np.lexsort((values, groups))
        yield groups[order], values[order]


def _ranges(least: int, greatest: int, rows: int) -> Iterator[tuple[int, int]]:
    number = min(_MOST_BUCKETS, rows // _BUCKET + 1, greatest - least + 1)
    width = -(-(greatest - least + 1) // number)
    for low in range(least, greatest + 1, width):
        yield low, min(greatest, low + width - 1)


def _between(column: Iterable[Numbers], low: int, high: int) -> Numbers:
    parts = [part[(part >= low) & (part <= high)] for part in column]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
