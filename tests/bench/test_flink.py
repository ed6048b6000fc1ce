"""The rate of a sink whose rows become visible in steps is taken between two of them."""

from __future__ import annotations

import pytest

from bench.flink import Seen, steady


def test_a_rate_is_taken_between_checkpoints_in_the_middle() -> None:
    seen = [Seen(0.0, 0, {"flink": 5.0})]
    for step in range(1, 8):
        # Two transactions of a checkpoint are committed one after the other.
        seen.append(Seen(step * 2.0, step * 1000 - 500, {"flink": 5.0 + step}))
        seen.append(Seen(step * 2.0 + 0.1, step * 1000, {"flink": 5.0 + step}))
    found = steady(seen)
    assert found.rows_per_second == pytest.approx(500)
    assert found.cpu_s["flink"] == pytest.approx(1000)


def test_too_few_checkpoints_have_no_rate() -> None:
    with pytest.raises(RuntimeError, match="too few"):
        steady([Seen(float(at), at, {}) for at in range(5)])
