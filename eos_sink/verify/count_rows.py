"""Finds doubled and missing numbers among those of all rows, and where a missing number is proof.

Pure; sorts one range of the numbers at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eos_sink.verify.row_columns import NO_NUMBERS, Chunk, Numbers, sort_rows, sort_values
from eos_sink.verify.verify_model import PartitionRead, VerifyOptions

MOST_SUSPECTS = 100_000
"""Identities that are read again, for certainty and for their places."""
_EXAMPLES = 20
_LEAST, _GREATEST = -(2**63), 2**63 - 1
# So many rows of a partition may be out of the order of their numbers.
_DISORDER = 1_000


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

    low: int = _LEAST
    high: int = _GREATEST
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
    """Whether a group has rows in more than one partition."""
    groups: defaultdict[int, set[int]] = defaultdict(set)
    for chunk in chunks:
        if chunk.groups is not None:
            groups[chunk.partition].update(np.unique(chunk.groups).tolist())
    every: set[int] = set().union(*groups.values())
    return len(every) < sum(map(len, groups.values()))


@dataclass(frozen=True)
class GapScope:
    """Where a missing number is a lost row.

    Attributes:
        bounds: the range; None: nowhere.
        why: the reason why nowhere.
        range_text: the range and its reason, for people; empty: all numbers that were seen.
    """

    bounds: Bounds | None
    why: str = ""
    range_text: str = ""


def find_scope(  # noqa: PLR0911 - one return for each reason
    options: VerifyOptions,
    partitions: Sequence[PartitionRead],
    chunks: Sequence[Chunk],
    *,
    interrupted: bool = False,
) -> GapScope:
    """Find where a missing number is a loss: not in what was not read or is not yet visible."""
    if interrupted:
        return GapScope(None, "it was interrupted, so not all rows were read")
    if options.expected is not None or options.expected_from is not None:
        if options.limited:
            return GapScope(None, "only a part of the topic was read")
        expected = options.expected
        return GapScope(Bounds() if expected is None else Bounds(0, expected - 1, whole=True))
    if not options.numbered:
        return GapScope(
            None, "it is unknown which rows there should be: --number, --expected, --expected-from"
        )
    if options.group is not None:
        partly = options.partitions or any(each.read_from or each.behind for each in partitions)
        if partly and has_split_groups(chunks):
            return GapScope(None, "groups are in several partitions, and not all were read")
        return GapScope(Bounds())
    if options.partitions:
        return GapScope(None, "numbers may be in the partitions that were left out")
    return _limit_to_read(partitions, chunks)


def _limit_to_read(partitions: Sequence[PartitionRead], chunks: Sequence[Chunk]) -> GapScope:
    # Numbers rise within a partition, except among concurrent writers. If a partition is not read
    # from its beginning, no number is lower than the highest of its first rows because it was left
    # out; the same holds for the end.
    cut = {each.partition for each in partitions if each.read_from}
    waiting = {each.partition for each in partitions if each.behind}
    heads: dict[int, Chunk] = {}
    tails: dict[int, Chunk] = {}
    for chunk in sorted(chunks, key=lambda each: each.first):
        heads.setdefault(chunk.partition, chunk)
        tails[chunk.partition] = chunk
    if not cut <= heads.keys():
        return GapScope(None, "a partition is not read from its beginning, and no row was read")
    if not waiting <= tails.keys():
        return GapScope(None, "readers are held up before the first row of a partition")
    low, high, texts = _LEAST, _GREATEST, []
    if cut:
        low = max(int(heads[p].values[: _near(heads[p])].max()) for p in cut)
        texts.append(f"from {low}, because a partition is not read from its beginning")
    if waiting:
        high = min(_last_number(tails[p]) for p in waiting)
        texts.append(f"up to {high}, because readers are held up")
    return GapScope(Bounds(low, high), range_text=", ".join(texts))


def _last_number(chunk: Chunk) -> int:
    """The median of the last numbers: an old row that was written again must not count."""
    near = _near(chunk)
    return int(np.sort(chunk.values[-near:])[near // 2])


def _near(chunk: Chunk) -> int:
    return min(_DISORDER, len(chunk.values) // 2 + 1)


def limit_to_seen(scope: GapScope, chunks: Sequence[Chunk]) -> GapScope:
    """Leave out what is above the highest number so far: later rows may fill a gap but add none."""
    numbers = [int(chunk.values.max()) for chunk in chunks if chunk.groups is None]
    if scope.bounds is None or not numbers:
        return scope
    high = min(scope.bounds.high, max(numbers))
    return replace(scope, bounds=replace(scope.bounds, high=high))


def _append(some: Numbers, more: Numbers, most: int) -> Numbers:
    return np.concatenate([some, more[: most - len(some)]]) if len(some) < most else some


def _lookup(values: Numbers, keys: Numbers, counts: Numbers) -> Numbers:
    """The count of each value, 0 if it is not among the keys, which are sorted."""
    if len(keys) == 0:
        return np.zeros(len(values), np.int64)
    places = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[places] == values, counts[places], 0)
