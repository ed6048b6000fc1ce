"""The tables of small batches are made from whatever tasks and peers a run had."""

from __future__ import annotations

import pytest

from bench.pages.small_batches import added_ms, lines, over_tcp
from bench.result import Label, Result, Series
from tests.bench.machine import MACHINE


def series(peer: str, tasks: int, sockets: bool, *samples: float) -> Series:
    labels: dict[str, Label] = {"peer": peer, "tasks": tasks, "sockets": sockets}
    return Series("addBatch", "ms", labels, samples)


def results(*all_: Series) -> dict[str, Result]:
    told = {"rounds": 2, "cores": 2}
    name = "small-batches"
    return {name: Result(name, "2026-01-31T12:00Z", MACHINE, told, tuple(all_))}


FLOOR = series("floor", 200, True, 1000, 2000, 1200)


def test_each_peer_is_compared_with_the_floor_of_its_own_tasks() -> None:
    ours = series("kafka-eos", 200, True, 1100, 2400, 1500)
    few = series("kafka-eos", 2, True, 7)
    text = "\n".join(lines(results(FLOOR, ours, few)))
    assert "| kafka-eos | 3 | 1,500 | 2,310 | +300 | +390 | 1.2 (1.11 to 1.24) | 0 |" in text
    assert "| a Python sink that drops its rows | 3 | 1,200 | 1,920 |  |  |  | 0 |" in text
    assert "| kafka-eos | 1 | 7 | 7 |  |  |  | 0 |" in text


def test_what_a_batch_takes_more_than_with_sparks_own_sink() -> None:
    ours, theirs = series("kafka-eos", 2, True, 40, 60), series("kafka", 2, True, 10, 20)
    assert added_ms(results(ours, theirs)["small-batches"], 2) == pytest.approx((35, 39.5))
    assert added_ms(results(ours)["small-batches"], 2) is None


def test_the_ways_to_python_are_compared_where_both_were_measured() -> None:
    ours = series("kafka-eos", 200, True, 1500)
    text = "\n".join(over_tcp(results(FLOOR, series("floor", 200, False, 5000), ours)))
    assert "| a Python sink that drops its rows | 5 (5 to 5) | 1.2 (" in text
    assert "kafka-eos" not in text
