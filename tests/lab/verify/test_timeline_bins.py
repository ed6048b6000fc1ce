"""Rows over time."""

from __future__ import annotations

from eos_sink_lab.verify.read_rows import Timeline


def test_bins_grow_with_the_time_they_span() -> None:
    timeline = Timeline()
    for time_ms in (1_000, 1_500, 2_000):
        timeline.add(time_ms)
    assert timeline.bins() == {1_000: 2, 2_000: 1}
    for second in range(5_000):
        timeline.add(second * 1_000)
    timeline.add(2**62)
    timeline.add(-(2**62))
    bins = timeline.bins()
    assert len(bins) <= 2_048
    assert sum(bins.values()) == 5_005
