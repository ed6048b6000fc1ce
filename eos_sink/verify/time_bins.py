"""How many of something there were over time, by the records' own timestamps."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eos_sink.verify.row_columns import Numbers

_FIRST_WIDTH_MS = 1_000
_MOST_BINS = 2_048
_AT_ONCE = 16_384


class Timeline:
    """Counts in bins, which become twice as wide whenever there are too many of them."""

    def __init__(self) -> None:
        self.width_ms = _FIRST_WIDTH_MS
        self._bins: Counter[int] = Counter()
        self._open: list[int] = []

    def add(self, timestamp_ms: int) -> None:
        self._open.append(timestamp_ms)
        if len(self._open) == _AT_ONCE:
            self._take()

    def bins(self) -> dict[int, int]:
        """The number in each bin, by its beginning in milliseconds since the epoch."""
        self._take()
        return {place * self.width_ms: number for place, number in sorted(self._bins.items())}

    def _take(self) -> None:
        times: Numbers = np.array(self._open, np.int64)
        self._open.clear()
        places, counts = np.unique(times // self.width_ms, return_counts=True)
        self._bins.update(dict(zip(places.tolist(), counts.tolist(), strict=True)))
        while len(self._bins) > _MOST_BINS:
            self.width_ms *= 2
            wider: Counter[int] = Counter()
            for place, number in self._bins.items():
                wider[place // 2] += number
            self._bins = wider
