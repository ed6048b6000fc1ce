"""A 64-bit number for each row, in chunks that know their place in the topic.

A row whose identity is not a number is kept as a 64-bit hash. Equal hashes only say which chunks
to read again.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eos_sink_lab.verify.row_identity import as_number

Numbers = NDArray[np.int64]
NO_NUMBERS: Numbers = np.empty(0, np.int64)

CHUNK = 65_536
_RANGE_ROWS = 4_000_000
_MOST_RANGES = 256


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one partition, at least one.

    Attributes:
        partition: their partition.
        first, last: offsets of the first and the last row.
        values: the number of each row.
        groups: the hash of each row's group, if rows are numbered within groups.
    """

    partition: int
    first: int
    last: int
    values: Numbers
    groups: Numbers | None = None


class _Buffer:
    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.values, self.groups = array("q"), array("q")


class Columns:
    """Collects rows, in the order of their offsets within each partition."""

    def __init__(self, *, grouped: bool = False) -> None:
        self._grouped = grouped
        self._open: dict[int, _Buffer] = {}
        self._chunks: list[Chunk] = []

    def add(self, partition: int, offset: int, value: int, group: int = 0) -> None:
        try:
            buffer = self._open[partition]
        except KeyError:
            buffer = self._open[partition] = _Buffer(offset)
        buffer.values.append(value)
        if self._grouped:
            buffer.groups.append(group)
        buffer.last = offset
        if len(buffer.values) == CHUNK:
            self._close(partition)

    def chunks(self) -> list[Chunk]:
        """All rows that were added."""
        for partition in list(self._open):
            self._close(partition)
        return self._chunks

    def _close(self, partition: int) -> None:
        done = self._open.pop(partition)
        groups = np.array(done.groups, np.int64) if self._grouped else None
        values = np.array(done.values, np.int64)
        self._chunks.append(Chunk(partition, done.first, done.last, values, groups))


class SourceFileError(Exception):
    """The file of the source cannot be used; the message says why."""


class SourceFile:
    """The identities that the source expects in the topic, one a line; empty lines are skipped.

    Args:
        path: the file.
        numbered: each line is a whole number.

    Raises:
        SourceFileError: by each method: the file cannot be read, or a line is not a number.
    """

    def __init__(self, path: Path, *, numbered: bool) -> None:
        self._path = path
        self._numbered = numbered

    def chunks(self) -> list[Chunk]:
        """The number of each line, as `Columns` has it for a record."""
        columns = Columns()
        for place, (number, _) in enumerate(self._lines()):
            columns.add(0, place, number)
        return columns.chunks()

    def count_lines(self, numbers: set[int]) -> Counter[bytes]:
        """Count the lines that have one of these numbers, as `RowIdentifier.text` has them."""
        return Counter(
            b"%d" % number if self._numbered else line
            for number, line in self._lines()
            if number in numbers
        )

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            with self._path.open("rb") as lines:
                for place, line in enumerate(lines, 1):
                    text = line.rstrip(b"\r\n")
                    if not text:
                        continue
                    number = as_number(text) if self._numbered else hash(text)
                    if number is None:
                        raise SourceFileError(f"{self._path}:{place} is not a whole number")
                    yield number, text
        except OSError as error:
            raise SourceFileError(f"{self._path}: {error.strerror}") from error


def sort_values(*columns: Sequence[Numbers]) -> Iterator[tuple[Numbers, ...]]:
    """Sort each column, one range of numbers at a time, so that no copy of all rows is made.

    Hashes fill the ranges evenly, and so do row numbers.
    """
    for low, high in _split_ranges([part for column in columns for part in column]):
        yield tuple(
            np.sort(
                np.concatenate(
                    [NO_NUMBERS, *(part[(part >= low) & (part <= high)] for part in column)]
                )
            )
            for column in columns
        )


def sort_rows(chunks: Sequence[Chunk]) -> Iterator[tuple[NDArray[Any], Numbers]]:
    """Sort rows by group and number, one range at a time; without groups all groups are 0.

    A group is never split between two ranges.
    """
    columns = [(chunk.groups, chunk.values) for chunk in chunks if chunk.groups is not None]
    if not columns:
        for (values,) in sort_values([chunk.values for chunk in chunks]):
            yield np.zeros(len(values), np.int8), values
    for low, high in _split_ranges([groups for groups, _ in columns]):
        picked = [(g, v, (g >= low) & (g <= high)) for g, v in columns]
        groups = np.concatenate([g[mask] for g, _, mask in picked])
        values = np.concatenate([v[mask] for _, v, mask in picked])
        order = np.lexsort((values, groups))
        yield groups[order], values[order]


def _split_ranges(parts: Sequence[Numbers]) -> Iterator[tuple[int, int]]:
    if not parts:
        return
    least, greatest = min(int(p.min()) for p in parts), max(int(p.max()) for p in parts)
    count = min(_MOST_RANGES, sum(map(len, parts)) // _RANGE_ROWS + 1, greatest - least + 1)
    width = -(-(greatest - least + 1) // count)
    for low in range(least, greatest + 1, width):
        yield low, min(greatest, low + width - 1)
