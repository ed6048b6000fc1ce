"""Of what Spark tells of a query's batches, the warm ones count."""

from __future__ import annotations

from typing import Any

from eos_sink.bench.shape import Shape
from eos_sink.bench.spark_turns import read_turn

SHAPE = Shape("x", 1_000, batches=4, warm_up=2)


def told(batch: int, add_batch: int, rows: int = 1_000) -> dict[str, Any]:
    times = {"addBatch": add_batch, "triggerExecution": add_batch + 10}
    return {"batchId": batch, "numInputRows": rows, "durationMs": times}


def test_warm_batches_count_in_their_order() -> None:
    progress = [told(3, 33), told(0, 900), told(1, 100), told(2, 22), told(4, 44)]
    turn = read_turn(progress, SHAPE, {"spark": 1.5})
    assert turn.add_batch_ms == (22.0, 33.0)
    assert turn.trigger_ms == (32.0, 43.0)
    assert turn.cpu_s == {"spark": 1.5}


def test_a_batch_with_other_rows_does_not_count() -> None:
    assert read_turn([told(2, 22, rows=0), told(3, 33)], SHAPE, {}).add_batch_ms == (33.0,)
