"""Where a missing number accuses. Pure.

A gap is a loss only where nothing innocent explains it: a range that was not read, or rows that
readers still wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eos_sink.verify.count_rows import Bounds, has_split_groups
from eos_sink.verify.question import Question
from eos_sink.verify.row_columns import Chunk, Numbers

# So many rows of a partition may be out of the order of their numbers.
_DISORDER = 1_000
_UNKNOWN = "nothing says which rows there should be: --number, --expected, --expected-from"
_SPREAD = "groups are in several partitions, and not all of these were read"


@dataclass(frozen=True)
class Reading:
    """What is known of how the topic was read.

    Attributes:
        cut: partitions that were not read from offset 0.
        waiting: partitions whose readers are held up.
        interrupted: not all was read.
    """

    cut: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()
    interrupted: bool = False


@dataclass(frozen=True)
class Scope:
    """Where gaps may be judged; without `bounds`, `why` says why they may not."""

    bounds: Bounds | None
    why: str = ""
    told: str = ""


def find_scope(  # noqa: PLR0911 - each reason is a sentence of its own
    question: Question, reading: Reading, chunks: Sequence[Chunk]
) -> Scope:
    """Where a missing number would be missing indeed."""
    if reading.interrupted:
        return Scope(None, "it was interrupted, so that not all was read")
    if question.expected is not None or question.expected_from is not None:
        if question.limited:
            return Scope(None, "only a part of the topic was read")
        whole = question.expected is not None
        return Scope(Bounds(0, (question.expected or 0) - 1, whole=True) if whole else Bounds())
    if not question.numbered:
        return Scope(None, _UNKNOWN)
    if question.group is not None:
        part = reading.cut or reading.waiting or question.partitions
        return Scope(None, _SPREAD) if part and has_split_groups(chunks) else Scope(Bounds())
    if question.partitions:
        return Scope(None, "numbers may be in the partitions that were left out")
    return _between(reading, chunks)


def _between(reading: Reading, chunks: Sequence[Chunk]) -> Scope:
    """Numbers rise within a partition, but for writers side by side: so a little behind the place
    where reading begins amid a partition nothing lower is to come from before that place, and
    likewise at the end."""
    heads: dict[int, Chunk] = {}
    tails: dict[int, Chunk] = {}
    for chunk in sorted(chunks, key=lambda each: each.first):
        heads.setdefault(chunk.partition, chunk)
        tails[chunk.partition] = chunk
    if not reading.cut <= heads.keys():
        return Scope(None, "a partition begins amid the topic and has no row to begin from")
    if not reading.waiting <= tails.keys():
        return Scope(None, "readers are held up before the first row of a partition")
    low = max((_highest(heads[p].values) for p in reading.cut), default=None)
    high = min((_middle(tails[p].values) for p in reading.waiting), default=None)
    bounds, told = Bounds(), []
    if low is not None:
        bounds = replace(bounds, low=low)
        told.append(f"from {low}, since reading begins amid the topic")
    if high is not None:
        bounds = replace(bounds, high=high)
        told.append(f"up to {high}, since readers are held up")
    return Scope(bounds, told=", ".join(told))


def _highest(values: Numbers) -> int:
    return int(values[: _near(values)].max())


def _middle(values: Numbers) -> int:
    """Of the last ones; an old row that was written again must not count as how far it went."""
    return int(np.sort(values[-_near(values) :])[_near(values) // 2])


def _near(values: Numbers) -> int:
    return min(_DISORDER, len(values) // 2 + 1)


def limit_to_seen(place: Scope, chunks: Sequence[Chunk]) -> Scope:
    """The same, and nothing beyond the greatest number that was seen by now: what is read later may
    fill a gap, and makes none."""
    numbers = [int(chunk.values.max()) for chunk in chunks if chunk.groups is None]
    if place.bounds is None or not numbers:
        return place
    return replace(place, bounds=replace(place.bounds, high=min(place.bounds.high, max(numbers))))
