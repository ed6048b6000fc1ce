"""The page shows the result; no text of a topic becomes HTML."""

from __future__ import annotations

import pytest

from eos_sink_lab.verify.verify_model import Check, PartitionRead, Status, VerifyResult

pytest.importorskip("matplotlib")

from eos_sink_lab.verify.verify_page import render_verify_page

EVIL = "<script>alert(1)</script><b onclick='x'>&"


def result(**more: object) -> VerifyResult:
    partitions = (
        PartitionRead(
            0, kept_from=0, read_from=0, read_to=40, end=50, rows=30, aborted=4, held_up_by=EVIL
        ),
        PartitionRead(1, kept_from=5, read_from=5, read_to=5, end=5, rows=0),
    )
    checks = (
        Check("lost", Status.UNCHECKED, 0, EVIL),
        Check("doubled", Status.WRONG, 1_234, "told", (EVIL,)),
        Check("held up", Status.UNPROVEN, 2, "told"),
    )
    return VerifyResult(EVIL, EVIL, checks, partitions, (EVIL,), {0: 5, 2_000: 7}, {2_000: 1})


def test_nothing_from_the_topic_is_html() -> None:
    text = render_verify_page(result())
    assert "<script" not in text
    assert "onclick='" not in text
    assert text.count("&lt;script&gt;") >= 7
    assert "1,234" in text
    assert text.count("<svg") == 2


@pytest.mark.parametrize("times", [{}, {0: 1}, {-5_000: 1, 2**62: 3}, {2**62: 1}])
def test_any_times_can_be_drawn(times: dict[int, int]) -> None:
    plain = VerifyResult("t", "key", (), (PartitionRead(0, 0, 0, 0, 0, 0),), (), times, times)
    assert "<svg" in render_verify_page(plain)


def test_a_thousand_partitions_are_not_all_drawn() -> None:
    many = tuple(PartitionRead(number, 0, 0, 9, 9, 9) for number in range(1_000))
    text = render_verify_page(VerifyResult("t", "key", (), many))
    assert "960 more partitions" in text
    assert "800 more partitions" in text
