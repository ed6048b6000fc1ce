"""The table of latencies is made from whatever peers a run had."""

from __future__ import annotations

from bench.pages.end_to_end import NAME, OURS, THEIRS, lines
from bench.result import Result, Series
from tests.bench.machine import MACHINE


def test_a_turn_is_compared_with_the_one_beside_it() -> None:
    told = {"rounds": 2, "seconds": 30.0, "cores": 2}
    measured = (
        Series("p50", "ms", {"peer": OURS}, (200, 300)),
        Series("p99", "ms", {"peer": OURS}, (400, 500)),
        Series("addBatch", "ms", {"peer": OURS}, (60, 70)),
        Series("p50", "ms", {"peer": THEIRS}, (100, 200)),
        Series("p99", "ms", {"peer": THEIRS}, (400, 250)),
    )
    result = Result(NAME, "2026-01-31T12:00Z", MACHINE, told, measured)
    *_, ours, theirs, _ = lines({NAME: result})
    assert ours.split(" | ")[3:] == ["1.75", "1.5", "-", "65", "-", "- |"]
    assert theirs.split(" | ")[3:] == ["1", "1", "-", "-", "-", "- |"]
