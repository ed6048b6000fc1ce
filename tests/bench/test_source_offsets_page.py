"""The table of the source's offsets is made from whatever queries a run had."""

from __future__ import annotations

from bench.pages.source_offsets import NAME, lines
from bench.result import Label, Result, Series
from tests.bench.machine import MACHINE


def series(*samples: float, group: bool, writes: bool = True) -> Series:
    labels: dict[str, Label] = {"writes": writes, "group": group}
    return Series("addBatch", "ms", labels, samples)


def test_each_batch_is_compared_with_one_of_the_same_round() -> None:
    told = {"rounds": 2, "cores": 2}
    measured = (
        series(10, 40, 20, group=False),
        series(13, 44, 20, group=True),
        series(5, group=False, writes=False),
    )
    result = Result(NAME, "2026-01-31T12:00Z", MACHINE, told, measured)
    *_, row, _ = lines({NAME: result})
    assert row == "| 1,000 rows in 2 tasks | 3 | 20 | 20 | +3.0 | 1.1 (1.01 to 1.28) |"
