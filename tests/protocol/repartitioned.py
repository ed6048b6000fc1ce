"""Batches whose rows are in other partitions when Spark replays them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import SupportsIndex, overload

from eos_sink.errors import EosSinkError
from tests.protocol.explore import Story
from tests.protocol.world import Batch

OTHERS: dict[str, list[list[bytes]]] = {
    "more": [[], [b"b"], [], [b"a"]],
    "fewer": [[b"b", b"a"]],
    "the same": [[b"a"], [b"b"]],
    "moved": [[b"b"], [b"a"]],
}


class Repartitioned(list[Batch]):
    """Batches whose partitions are others each time that a run reads them."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        super().__init__(batches)
        self._reads: Counter[int] = Counter()

    @overload
    def __getitem__(self, key: SupportsIndex) -> Batch: ...
    @overload
    def __getitem__(self, key: slice) -> list[Batch]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> Batch | list[Batch]:
        if isinstance(key, slice):
            return super().__getitem__(key)
        number = key.__index__()
        batch = super().__getitem__(number)
        self._reads[number] += 1
        layouts: list[Batch] = [
            batch,
            [[], *([row] for part in batch for row in part)],
            [[row for part in batch for row in part]],
        ]
        return layouts[(self._reads[number] - 1) % len(layouts)]


# The driver writes partitions of one row, if it writes any.
BATCHES: list[Batch] = [[[b"a", b"b"], [b"c", b"d"], []]]


def wrong(story: Story) -> list[str]:
    """What went wrong, without the stops for partitions of a batch that is visible in part."""
    asked = [each for each in story.groundless if stops_for_partitions(each)]
    for each in asked:
        story.groundless.remove(each)
    return story.verdict


def stops_for_partitions(error: BaseException) -> bool:
    return isinstance(error, EosSinkError) and "decided_partitions" in error.data
