"""What a task holds of its rows, and what it looks for before it writes them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from eos_sink.errors import FailureKind, ProduceFailedError
from eos_sink.protocol.model import BatchId
from eos_sink.protocol.values import HangingLook
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeControl, FakeKafka
from tests.protocol.driver import STREAM, Driver
from tests.protocol.world import TOPIC, World, open_ids, options

PARTS = 4


class Parts(Iterator[pa.RecordBatch]):
    """Arrow batches of one row each that are made when they are asked for.

    Attributes:
        held: whether the batch before each was still there when it was made.
    """

    def __init__(self) -> None:
        self.held: list[bool] = []
        self._before: weakref.ref[np.ndarray[tuple[int], np.dtype[np.uint8]]] | None = None

    def __next__(self) -> pa.RecordBatch:
        if self._before is not None:
            self.held.append(self._before() is not None)
        if len(self.held) == PARTS:
            raise StopIteration
        data = np.frombuffer(b"row", np.uint8).copy()
        self._before = weakref.ref(data)
        ends = pa.py_buffer(np.array([0, len(data)], np.int32))
        value = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(data)])
        return pa.record_batch({"value": value})


@pytest.mark.parametrize("replayed", [False, True])
def test_a_task_holds_no_batch_of_rows_while_the_next_one_is_made(replayed: bool) -> None:
    """But the first, since it asks whether there is more before it writes anything."""
    world = World([])
    driver = Driver(world)

    def write(rows: Iterator[pa.RecordBatch]) -> None:
        plan = driver.planner.plan()
        writer = TaskWriter(FakeKafka(world.cluster), world.options, plan)
        driver.committer.commit([writer.write(BatchId(STREAM, 0), 0, rows)])

    if replayed:
        write(Parts())
    parts = Parts()
    write(parts)
    assert parts.held == [not replayed] + [False] * (PARTS - 1)
    assert world.visible() == [b"row"] * PARTS


def test_an_error_that_needs_no_explanation_is_not_its_own_cause() -> None:
    world = World([])
    writer = TaskWriter(FakeKafka(world.cluster), world.options, Driver(world).planner.plan())

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"a"]})
        yield pa.record_batch({"value": [b"b"]})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failed:
        writer.write(BatchId(STREAM, 0), 0, rows())
    assert failed.value.__cause__ is not failed.value


def test_a_repeated_attempt_writes_nothing_while_what_the_first_has_left_may_be_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World([], options=options(**{"eos.step.timeout.ms": "1000"}))
    plan, kafka = Driver(world).planner.plan(), FakeKafka(world.cluster)
    look = HangingLook([], frozenset({(TOPIC, 0)}))
    monkeypatch.setattr(FakeControl, "find_hanging", lambda *_: look)
    writer = TaskWriter(kafka, world.options, plan, attempt=1)
    with pytest.raises(ProduceFailedError) as refused:
        writer.write(BatchId(STREAM, 0), 0, [pa.record_batch({"value": [b"a"]})])
    assert refused.value.data["kind"] == FailureKind.DELIVERY_FAILED.value
    assert open_ids(world) == []
