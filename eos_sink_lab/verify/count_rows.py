"""Finds doubled and missing numbers among those of all rows. Pure; sorts a range at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eos_sink_lab.verify.row_columns import NO_NUMBERS, Chunk, Numbers, sort_rows, sort_values

MOST_SUSPECTS = 100_000
"""Identities that are read again, for certainty and for their places."""
_EXAMPLES = 20
LEAST, GREATEST = -(2**63), 2**63 - 1


@dataclass
class Repeats:
    """Rows that came more or less often than they should.

    Attributes:
        doubled: rows beyond the expected number of each identity, which is 1 without a source.
        suspects: numbers of those identities, at most `MOST_SUSPECTS`.
        suspected: how many such identities there are.
        lost: rows of the source that are not in the topic.
        foreign: rows of the topic that are not in the source.
        lost_some, foreign_some: numbers of a few of them.
    """

    doubled: int = 0
    suspects: Numbers = field(default_factory=lambda: NO_NUMBERS)
    suspected: int = 0
    lost: int = 0
    foreign: int = 0
    lost_some: Numbers = field(default_factory=lambda: NO_NUMBERS)
    foreign_some: Numbers = field(default_factory=lambda: NO_NUMBERS)

    def _suspect(self, values: Numbers) -> None:
        self.suspected += len(values)
        self.suspects = _append(self.suspects, values, MOST_SUSPECTS)


def find_repeats(chunks: Sequence[Chunk]) -> Repeats:
    """Find numbers that came more than once, within their group if there are groups."""
    found = Repeats()
    for groups, values in sort_rows(chunks):
        again = (values[1:] == values[:-1]) & (groups[1:] == groups[:-1])
        found.doubled += int(again.sum())
        found._suspect(np.unique(values[1:][again]))
    return found


def compare_with_source(chunks: Sequence[Chunk], source: Sequence[Chunk]) -> Repeats:
    """Compare how often each number is in the topic and in the source."""
    found = Repeats()
    for ours, theirs in sort_values([c.values for c in chunks], [c.values for c in source]):
        seen, times = np.unique(ours, return_counts=True)
        wanted, due = np.unique(theirs, return_counts=True)
        came = _lookup(wanted, seen, times)
        found.lost += int(np.maximum(due - came, 0).sum())
        found.lost_some = _append(found.lost_some, wanted[came < due], _EXAMPLES)
        should = _lookup(seen, wanted, due)
        known = should > 0
        found.foreign += int(times[~known].sum())
        found.foreign_some = _append(found.foreign_some, seen[~known], _EXAMPLES)
        found.doubled += int(np.maximum(times - should, 0)[known].sum())
        found._suspect(seen[known & (times > should)])
    return found


@dataclass(frozen=True)
class Gap:
    """Consecutive missing numbers; `group` is the hash of their group, else 0."""

    first: int
    last: int
    group: int

    def __str__(self) -> str:
        if self.first == self.last:
            return f"{self.first}"
        return f"{self.first} to {self.last} ({self.last - self.first + 1:,})"


@dataclass(frozen=True)
class Bounds:
    """The range in which a missing number counts.

    Attributes:
        low, high: the range.
        whole: every number of it should be there, not only those between numbers that were seen.
    """

    low: int = LEAST
    high: int = GREATEST
    whole: bool = False


@dataclass
class Gaps:
    """Missing numbers.

    Attributes:
        missing: how many.
        some: the first gaps.
    """

    missing: int = 0
    some: list[Gap] = field(default_factory=list)

    def add_between(
        self,
        before: Numbers,
        after: Numbers,
        bounds: Bounds,
        groups: NDArray[Any],
        among: NDArray[np.bool_] | bool = True,
    ) -> None:
        """Add what is missing between each number and its successor, among those selected."""
        rising = (after > before) & among
        first = np.maximum(before[rising] + 1, bounds.low)
        last = np.minimum(after[rising] - 1, bounds.high)
        lacking = last >= first
        first, last, groups = first[lacking], last[lacking], groups[rising][lacking]
        # Unsigned: the distance of two 64-bit numbers does not fit into a signed one.
        self.missing += int((last.view(np.uint64) - first.view(np.uint64)).sum()) + len(first)
        most = _EXAMPLES - len(self.some)
        rows = zip(first[:most], last[:most], groups[:most], strict=True)
        self.some += [Gap(int(one), int(other), int(group)) for one, other, group in rows]


def find_gaps(chunks: Sequence[Chunk], bounds: Bounds) -> Gaps:
    """Find missing numbers, within each group if there are groups."""
    found = Gaps()
    # The last row of the previous range, at first the number before the lowest one.
    last: Numbers = np.array([bounds.low - 1] if bounds.whole else [], np.int64)
    last_group: NDArray[Any] | None = None
    for groups, values in sort_rows(chunks):
        if not len(values):
            continue
        if last_group is None:
            last_group = groups[: len(last)]
        joined = np.concatenate([last, values])
        homes = np.concatenate([last_group, groups])
        same = homes[1:] == homes[:-1]
        found.add_between(joined[:-1], joined[1:], bounds, homes[1:], same)
        if bounds.whole:
            ends, starts = joined[:-1][~same], joined[1:][~same]
            above, below = np.full_like(ends, bounds.high + 1), np.full_like(ends, bounds.low - 1)
            found.add_between(ends, above, bounds, homes[:-1][~same])
            found.add_between(below, starts, bounds, homes[1:][~same])
        last, last_group = values[-1:], groups[-1:]
    if bounds.whole:
        group = np.zeros(1, np.int64) if last_group is None else last_group
        found.add_between(last, np.array([bounds.high + 1], np.int64), bounds, group)
    return found


def find_outside(chunks: Sequence[Chunk], high: int) -> tuple[int, Numbers]:
    """Count the rows whose number is below 0 or above `high`; return some of the numbers too."""
    count, some = 0, NO_NUMBERS
    for chunk in chunks:
        outside = chunk.values[(chunk.values < 0) | (chunk.values > high)]
        count += len(outside)
        some = _append(some, outside, _EXAMPLES)
    return count, some


def has_split_groups(chunks: Sequence[Chunk]) -> bool:
    """True if a group has rows in more than one partition."""
    groups: defaultdict[int, set[int]] = defaultdict(set)
    for chunk in chunks:
        if chunk.groups is not None:
            groups[chunk.partition].update(np.unique(chunk.groups).tolist())
    every: set[int] = set().union(*groups.values())
    return len(every) < sum(map(len, groups.values()))


def _append(some: Numbers, more: Numbers, most: int) -> Numbers:
    return np.concatenate([some, more[: most - len(some)]]) if len(some) < most else some


def _lookup(values: Numbers, keys: Numbers, counts: Numbers) -> Numbers:
    """The count of each value, 0 if it is not among the keys, which are sorted."""
    if len(keys) == 0:
        return np.zeros(len(values), np.int64)
    places = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[places] == values, counts[places], 0)
