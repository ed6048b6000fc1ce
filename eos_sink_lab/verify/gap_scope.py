"""Decides where a missing number proves a lost row. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eos_sink_lab.verify.count_rows import GREATEST, LEAST, Bounds, has_split_groups
from eos_sink_lab.verify.row_columns import Chunk
from eos_sink_lab.verify.verify_model import PartitionRead, VerifyOptions

# So many rows of a partition may be out of the order of their numbers.
_DISORDER = 1_000


@dataclass(frozen=True)
class GapScope:
    """The numbers of which a missing one is a lost row.

    Attributes:
        bounds: the range; None: nowhere.
        why: the reason why nowhere.
        range_text: the range and its reason, for people; empty: all numbers that were seen.
        covers: the range has every number that was seen.
    """

    bounds: Bounds | None
    why: str = ""
    range_text: str = ""
    covers: bool = True


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
    if not chunks:
        return GapScope(None, "no row with a number was read")
    if options.group is not None:
        partly = options.partitions or any(each.read_from or each.behind for each in partitions)
        if partly and has_split_groups(chunks):
            return GapScope(None, "groups are in several partitions, and not all were read")
        return GapScope(Bounds())
    if options.partitions:
        return GapScope(None, "numbers may be in the partitions that were left out")
    return _limit_to_read(partitions, chunks)


def _limit_to_read(partitions: Sequence[PartitionRead], chunks: Sequence[Chunk]) -> GapScope:
    # Numbers rise within a partition, except among concurrent writers. So what was not read of its
    # beginning has no number above the highest of the first rows, and what readers wait for has
    # none below the median of the last ones.
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
    low, high, texts = LEAST, GREATEST, []
    if cut:
        low = max(int(heads[p].values[: _near(heads[p])].max()) for p in cut)
        texts.append(f"from {low}, because a partition is not read from its beginning")
    if waiting:
        high = min(_last_number(tails[p]) for p in waiting)
        texts.append(f"up to {high}, because readers are held up")
    covers = all(
        low <= int(each.values.min()) and int(each.values.max()) <= high for each in chunks
    )
    return GapScope(Bounds(low, high), range_text=", ".join(texts), covers=covers)


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
