"""The page of the sinks is made from whatever shapes and peers a run had."""

from __future__ import annotations

from dataclasses import asdict

from bench.pages.sinks import SINKS, TARGETS, lines, times_the_rows
from bench.result import Result, Series
from bench.shape import Shape
from tests.bench.machine import MACHINE

LARGE, OTHER = Shape("100 B", 1_000_000, 4, 2), Shape("20 B", 2_000_000, 4, 2)


def result(*shapes: Shape) -> Result:
    times = {"kafka-eos": (1000.0, 1100.0), "kafka": (1500.0, 1100.0), "noop": (50.0, 60.0)}
    series = [
        Series("addBatch", "ms", {"peer": peer, "shape": shape.name}, samples)
        for shape in shapes
        for peer, samples in times.items()
    ]
    for peer, whose in (("kafka-eos", "python"), ("kafka", "broker"), ("flink", "flink")):
        labels = {"peer": peer, "shape": LARGE.name, "whose": whose}
        series.append(Series("cpu", "s/Mrow", labels, (1.25,)))
    series.append(Series("rate", "rows/s", {"peer": "flink", "shape": LARGE.name}, (2e6,)))
    told = {"rounds": 2, "tasks": 2, "shapes": [asdict(shape) for shape in shapes]}
    return Result("sinks", "2026-01-31T12:00Z", MACHINE, told, tuple(series))


def test_a_ratio_is_of_rows_in_the_same_time() -> None:
    found = times_the_rows(result(LARGE), "100 B")
    assert found is not None
    assert found.median == 1.25


def test_the_tables_have_what_was_measured() -> None:
    text = "\n".join(lines({"sinks": result(LARGE, OTHER)}))
    assert "| 100 B | 952,381 | 769,231 | 18,181,818 | 1.25 (1.02 to 1.48) |  | 1.00 |" in text
    assert "| kafka-eos |  | 1.25 |  |  | 1.25 |" in text
    assert "| 100 B: Flink's KafkaSink, EXACTLY_ONCE | 2,000,000 (2,000,000 to 2,000,000) |" in text


def test_targets_are_shown_beside_the_measurements() -> None:
    text = "\n".join(TARGETS.lines({"sinks": result(LARGE)}))
    assert "at least 1.2 times | 1.25 (1.02 to 1.48) times |" in text
    assert "micro-batch" not in text


def test_each_plot_is_drawn_from_few_shapes_too() -> None:
    for shapes in ((LARGE, OTHER), (LARGE,)):
        for draw in SINKS.plots.values():
            assert draw({"sinks": result(*shapes)}).startswith("<svg")
