"""The numbers of batch writes: each is written once, in any order."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from dataclasses import dataclass

MOST_RANGES = 1_000
_RANDOM_BITS = 20


@dataclass(frozen=True)
class WrittenNumbers:
    """Numbers of writes, as ranges. Of more than a record can keep, the lowest are forgotten.

    Attributes:
        ranges: first and last number of each, in ascending order, apart from each other.
        forgotten_below: of a lower number that is in no range it is not known any more.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    forgotten_below: int = 0

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.ranges, number, key=_first) - 1
        return at >= 0 and number <= self.ranges[at][1]

    @property
    def highest(self) -> int:
        return self.ranges[-1][1] if self.ranges else -1

    def forgets(self, number: int) -> bool:
        """True if it is not known whether the number was written."""
        return number < self.forgotten_below and number not in self

    def add(self, number: int) -> WrittenNumbers:
        if number in self:
            return self
        first = last = number
        apart = []
        for low, high in self.ranges:
            if high == number - 1:
                first = low
            elif low == number + 1:
                last = high
            else:
                apart.append((low, high))
        every = sorted([*apart, (first, last)])
        below = [self.forgotten_below, *(high + 1 for _, high in every[:-MOST_RANGES])]
        return WrittenNumbers(tuple(every[-MOST_RANGES:]), max(below))


def draw_number(now_ms: int, highest: int) -> int:
    """Return a number for a write, higher than `highest` whatever the clock says. Two writes that
    begin at once draw different ones."""
    above = max(now_ms, (highest >> _RANDOM_BITS) + 1)
    return above << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)


def _first(of: tuple[int, int]) -> int:
    return of[0]
