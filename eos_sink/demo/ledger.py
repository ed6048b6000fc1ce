"""Counting what a reader was given. No Kafka here: records come in, numbers come out."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Count:
    """What the records amount to.

    Attributes:
        expected: rows that the input has.
        records: records that were read.
        lost: rows that never came.
        doubled: records beyond the first of their row.
        foreign: records whose row the input does not have.
        out_of_order: records older than an earlier record of the same key, or in another
            partition than it.
    """

    expected: int
    records: int
    lost: int
    doubled: int
    foreign: int
    out_of_order: int

    @property
    def perfect(self) -> bool:
        """Every row once, and along each key in the order of the input."""
        flaws = self.lost + self.doubled + self.foreign + self.out_of_order
        return flaws == 0 and self.records == self.expected


class Ledger:
    """One reader's account. Records of a partition have to come in the order of their offsets.

    The order that is checked: rows are numbered in date order, each batch is a stretch of them,
    and all rows of a key go through one task into one partition. So within a key the row number
    never falls, over the whole run.
    """

    def __init__(self, batches: tuple[int, ...]) -> None:
        self._expected = sum(batches)
        self._ends = list(accumulate(batches))
        self._batch_rows = batches
        self._seen = bytearray(self._expected)
        self._latest: dict[bytes, tuple[int, int]] = {}
        self._batch_seen = [0] * len(batches)
        self._counts: Counter[str] = Counter()

    def add(self, partition: int, key: bytes, row: int) -> None:
        """Take one record into account."""
        counts = self._counts
        counts["records"] += 1
        batch = self.batch_of(row)
        if batch is None:
            counts["foreign"] += 1
            return
        if self._seen[row]:
            counts["doubled"] += 1
        else:
            self._seen[row] = 1
            counts["distinct"] += 1
            self._batch_seen[batch] += 1
        before = self._latest.get(key)
        if before is None or (before[0] == partition and row >= before[1]):
            self._latest[key] = (partition, row)
        else:
            counts["out_of_order"] += 1

    def batch_of(self, row: int) -> int | None:
        """The batch that a row belongs to, None if the input has no such row."""
        if not 0 <= row < self._expected:
            return None
        return bisect_right(self._ends, row)

    @property
    def distinct(self) -> int:
        """Rows seen at least once."""
        return self._counts["distinct"]

    @property
    def doubled(self) -> int:
        return self._counts["doubled"]

    @property
    def whole_batches(self) -> int:
        """Batches of which every row was seen."""
        return sum(self.seen_whole(batch) for batch in range(len(self._batch_rows)))

    def seen_of(self, batch: int) -> int:
        """Rows of the batch that were seen."""
        return self._batch_seen[batch]

    def seen_whole(self, batch: int) -> bool:
        """Whether every row of the batch was seen."""
        return self._batch_seen[batch] == self._batch_rows[batch]

    def count(self) -> Count:
        """The account so far."""
        return Count(
            expected=self._expected,
            records=self._counts["records"],
            lost=self._expected - self.distinct,
            doubled=self.doubled,
            foreign=self._counts["foreign"],
            out_of_order=self._counts["out_of_order"],
        )
