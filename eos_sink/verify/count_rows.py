"""What the numbers of all rows amount to. Pure; sorts a range of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from eos_sink.verify.row_columns import Chunk, Numbers, sort_groups_in_ranges, sort_in_ranges

MOST_SUSPECTS = 100_000
"""Identities that are looked at again, to be sure and to say where they are."""
_EXAMPLES = 20
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_NONE: Numbers = np.empty(0, np.int64)


@dataclass
class Repeats:
    """Rows that came more often than they should.

    Attributes:
        distinct: identities that were seen.
        doubled: rows beyond what is expected of each identity, which is one unless it is known.
        suspects: the numbers of those identities, the first `MOST_SUSPECTS` of them.
        suspected: how many such identities there are.
        lost, foreign: rows of the source that did not come, and the other way round.
        lost_some, foreign_some: numbers of a few of them.
    """

    distinct: int = 0
    doubled: int = 0
    suspects: Numbers = field(default_factory=lambda: _NONE)
    suspected: int = 0
    lost: int = 0
    foreign: int = 0
    lost_some: Numbers = field(default_factory=lambda: _NONE)
    foreign_some: Numbers = field(default_factory=lambda: _NONE)

    def _suspect(self, values: Numbers) -> None:
        self.suspected += len(values)
        self.suspects = _first(self.suspects, values, MOST_SUSPECTS)


def find_repeats(chunks: Sequence[Chunk]) -> Repeats:
    """Where nothing but the topic is known: once each."""
    found = Repeats()
    for groups, values in _sorted(chunks):
        if len(values) == 0:
            continue
        again = values[1:] == values[:-1]
        if groups is not None:
            again &= groups[1:] == groups[:-1]
        found.doubled += int(again.sum())
        found.distinct += len(values) - int(again.sum())
        found._suspect(np.unique(values[1:][again]))
    return found


def compare_with_source(chunks: Sequence[Chunk], source: Sequence[Chunk]) -> Repeats:
    """Compared with the source: as often as there."""
    found = Repeats()
    for ours, theirs in sort_in_ranges([c.values for c in chunks], [c.values for c in source]):
        seen, times = np.unique(ours, return_counts=True)
        wanted, due = np.unique(theirs, return_counts=True)
        found.distinct += len(seen)
        came = _lookup(wanted, seen, times)
        found.lost += int(np.maximum(due - came, 0).sum())
        found.lost_some = _first(found.lost_some, wanted[came < due], _EXAMPLES)
        should = _lookup(seen, wanted, due)
        known = should > 0
        found.foreign += int(times[~known].sum())
        found.foreign_some = _first(found.foreign_some, seen[~known], _EXAMPLES)
        found.doubled += int(np.maximum(times - should, 0)[known].sum())
        found._suspect(seen[known & (times > should)])
    return found


@dataclass(frozen=True)
class Range:
    """Numbers that are missing one after the other; `group` is the hash of theirs, else 0."""

    first: int
    last: int
    group: int

    def __str__(self) -> str:
        if self.first == self.last:
            return f"{self.first}"
        return f"{self.first} to {self.last} ({self.last - self.first + 1:,})"


@dataclass(frozen=True)
class Bounds:
    """Between which numbers gaps are looked for.

    Attributes:
        low, high: nothing outside of these is judged.
        whole: all from `low` to `high` should be there, not only what lies between seen ones.
    """

    low: int = _LEAST
    high: int = _GREATEST
    whole: bool = False


@dataclass
class Gaps:
    """Numbers that nobody has seen between those that were seen.

    Attributes:
        missing: how many.
        some: the first of them.
    """

    missing: int = 0
    some: list[Range] = field(default_factory=list)

    def between(self, before: Numbers, after: Numbers, bounds: Bounds, groups: Numbers) -> None:
        """Note what is missing between each number and the one that follows it."""
        rising = after > before
        first = np.maximum(before[rising] + 1, bounds.low)
        last = np.minimum(after[rising] - 1, bounds.high)
        lacking = last >= first
        first, last, groups = first[lacking], last[lacking], groups[rising][lacking]
        # Unsigned: the distance of two numbers of 64 bits does not fit into a signed one.
        self.missing += int((last.view(np.uint64) - first.view(np.uint64)).sum()) + len(first)
        rows = zip(first[:_EXAMPLES], last[:_EXAMPLES], groups[:_EXAMPLES], strict=True)
        more = [Range(int(one), int(other), int(group)) for one, other, group in rows]
        self.some += more[: _EXAMPLES - len(self.some)]


def find_gaps(chunks: Sequence[Chunk], bounds: Bounds) -> Gaps:
    """The numbers that are missing, within each group if there are groups."""
    found = Gaps()
    latest: Numbers = np.array([bounds.low - 1] if bounds.whole else [], np.int64)
    home: Numbers = np.zeros(len(latest), np.int64)
    beyond: Numbers = np.array([bounds.high + 1] if bounds.whole else [], np.int64)
    for groups, values in _sorted(chunks):
        if len(values) == 0:
            continue
        if groups is None:
            joined = np.concatenate([latest, values])
            found.between(joined[:-1], joined[1:], bounds, np.zeros(len(joined) - 1, np.int64))
            latest, home = joined[-1:], np.zeros(1, np.int64)
            continue
        same = groups[1:] == groups[:-1]
        found.between(values[:-1][same], values[1:][same], bounds, groups[1:][same])
        if bounds.whole:
            starts = np.concatenate([[True], ~same])
            ends = np.concatenate([~same, [True]])
            before = np.full(int(starts.sum()), bounds.low - 1, np.int64)
            found.between(before, values[starts], bounds, groups[starts])
            after = np.full(int(ends.sum()), bounds.high + 1, np.int64)
            found.between(values[ends], after, bounds, groups[ends])
        latest = latest[:0]
    if len(latest) and bounds.whole:
        found.between(latest, beyond, bounds, home)
    return found


def find_outside(chunks: Sequence[Chunk], high: int) -> tuple[int, Numbers]:
    """How many rows have numbers below 0 or above `high`, and some of those numbers."""
    number, some = 0, _NONE
    for chunk in chunks:
        strange = chunk.values[(chunk.values < 0) | (chunk.values > high)]
        number += len(strange)
        some = _first(some, strange, _EXAMPLES)
    return number, some


def has_split_groups(chunks: Sequence[Chunk]) -> bool:
    """Whether a group has rows in more than one partition."""
    home: dict[int, set[int]] = {}
    for chunk in chunks:
        if chunk.groups is not None:
            home.setdefault(chunk.partition, set()).update(np.unique(chunk.groups).tolist())
    seen: set[int] = set()
    for groups in home.values():
        if not seen.isdisjoint(groups):
            return True
        seen |= groups
    return False


def _sorted(chunks: Sequence[Chunk]) -> Iterator[tuple[Numbers | None, Numbers]]:
    if any(chunk.groups is not None for chunk in chunks):
        yield from sort_groups_in_ranges(chunks)
    else:
        for (values,) in sort_in_ranges([chunk.values for chunk in chunks]):
            yield None, values


def _first(some: Numbers, more: Numbers, most: int) -> Numbers:
    return np.concatenate([some, more[: most - len(some)]]) if len(some) < most else some


def _lookup(values: Numbers, keys: Numbers, counts: Numbers) -> Numbers:
    """The count of each value, 0 where it is no key; keys are sorted."""
    if len(keys) == 0:
        return np.zeros(len(values), np.int64)
    places = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[places] == values, counts[places], 0)
