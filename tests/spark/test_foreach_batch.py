"""What `eos_sink.write` does around the job of a frame, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from eos_sink.errors import SupersededError
from eos_sink.spark import foreach_batch
from eos_sink.spark.client_cache import ClientCache
from tests.fakes.kafka import FakeKafka
from tests.protocol.world import World, given_options, open_ids
from tests.spark.fake_source import Task

WritePartition = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class FailedJob:
    """Stands for a frame of one partition, whose job fails while its task has not begun; and for
    its RDD and its session."""

    dtypes = (("value", "string"),)

    def __init__(self) -> None:
        self.rdd = self.sparkSession = self.sparkContext = self

    def getLocalProperty(self, _: str) -> None:  # noqa: N802 - Spark's name
        return None

    def select(self, *_: str) -> FailedJob:
        return self

    def mapInArrow(self, write: WritePartition, _: str) -> FailedJob:  # noqa: N802 - Spark's name
        self.write = write
        return self

    def getNumPartitions(self) -> int:  # noqa: N802 - Spark's name
        return 1

    def collect(self) -> None:
        raise RuntimeError("the job has failed")


def test_a_task_that_begins_after_its_job_has_failed_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(_: object) -> Any:
        return FakeKafka(world.cluster)

    monkeypatch.setattr(foreach_batch, "_clients", ClientCache())
    monkeypatch.setattr(foreach_batch, "read_settings", lambda _: {})
    monkeypatch.setattr(TaskContext, "get", lambda: Task({}))
    frame: Any = FailedJob()
    with pytest.raises(RuntimeError, match="the job has failed"):
        foreach_batch.write_frame(frame, given_options(), connect)
    with pytest.raises(SupersededError):
        next(frame.write(iter([pa.RecordBatch.from_pydict({"value": [b"late"]})])))
    assert open_ids(world) == []
