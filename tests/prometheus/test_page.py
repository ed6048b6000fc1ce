"""The tables of docs/metrics.md are the code's."""

from __future__ import annotations

import re

from eos_sink.metrics.names import STEP_SECONDS, Count, Event, Gauge, Step
from tests.prometheus.promtool import ROOT

PAGE = (ROOT / "docs" / "metrics.md").read_text()


def rows(columns: int) -> list[list[str]]:
    """Of all tables of that many columns, without their heads."""
    found = re.findall(r"^\| (.+) \|$", PAGE, re.MULTILINE)
    cells = [line.split(" | ") for line in found]
    return [row for row in cells if len(row) == columns and row[0].startswith("`")]


def test_each_gauge_is_listed_with_its_labels() -> None:
    assert {each.labels for each in Count} == {("query",)}
    expected = [
        [f"`{each.prometheus}`", ", ".join(f"`{x}`" for x in each.labels) or "none", each.meaning]
        for each in Gauge
    ]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in expected)
    assert rows(3) == expected, f"docs/metrics.md needs:\n{lines}"
    assert f"`{STEP_SECONDS}`" in PAGE


def test_each_counter_each_step_and_each_event_is_listed() -> None:
    expected = [
        *([f"`{each.prometheus}`", each.meaning] for each in Count),
        *([f"`{each.label}`", each.meaning] for each in (*Step, *Event)),
    ]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in expected)
    assert rows(2) == expected, f"docs/metrics.md needs:\n{lines}"
