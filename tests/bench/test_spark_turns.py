"""Only the warm batches of a query are measured."""

from __future__ import annotations

from typing import Any

from bench.shape import Shape
from bench.spark_turns import read_turn

SHAPE = Shape("x", 1_000, batches=4, warm_up=2)


def batch(number: int, add_batch: int, rows: int = 1_000) -> dict[str, Any]:
    return {"batchId": number, "numInputRows": rows, "durationMs": {"addBatch": add_batch}}


def test_warm_batches_count_in_their_order() -> None:
    progress = [batch(3, 33), batch(0, 900), batch(1, 100), batch(2, 22), batch(4, 44)]
    turn = read_turn(progress, SHAPE, {"spark": 1.5})
    assert turn.add_batch_ms == (22.0, 33.0)
    assert turn.cpu_s == {"spark": 1.5}


def test_a_batch_with_other_rows_does_not_count() -> None:
    assert read_turn([batch(2, 22, rows=0), batch(3, 33)], SHAPE, {}).add_batch_ms == (33.0,)
