"""What `eos_sink.write` does around the job of a frame, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from eos_sink.errors import ConfigurationError, OperatorNeededError, SupersededError
from eos_sink.spark import foreach_batch
from eos_sink.spark.client_cache import ClientCache, Connect
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

    def selectExpr(self, *_: str) -> FailedJob:  # noqa: N802 - Spark's name
        return self

    def mapInArrow(self, write: WritePartition, _: str) -> FailedJob:  # noqa: N802 - Spark's name
        self.write = write
        return self

    def getNumPartitions(self) -> int:  # noqa: N802 - Spark's name
        return 1

    def collect(self) -> None:
        raise RuntimeError("the job has failed")


class Frame(FailedJob):
    """A frame of these partitions, whose job succeeds."""

    def __init__(self, *partitions: pa.RecordBatch) -> None:
        super().__init__()
        self._partitions = partitions

    def coalesce(self, _: int) -> Frame:
        """Spark replaces it, like the frame, by an empty relation, which has no partition."""
        return self

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        assert partitions == 1
        return Frame(pa.RecordBatch.from_pydict({"id": [*range(start, end, step)]}))

    def getNumPartitions(self) -> int:  # noqa: N802 - Spark's name
        return len(self._partitions)

    def collect(self) -> Any:
        reports = (report for part in self._partitions for report in self.write(iter([part])))
        return [SimpleNamespace(report=each.column("report")[0].as_py()) for each in reports]


@pytest.fixture
def connect(world: World, monkeypatch: pytest.MonkeyPatch) -> Connect:
    monkeypatch.setattr(foreach_batch, "_clients", ClientCache())
    monkeypatch.setattr(foreach_batch, "read_settings", lambda _: {})
    monkeypatch.setattr(TaskContext, "get", lambda: Task({}))

    def connect_to_world(_: object) -> Any:
        return FakeKafka(world.cluster)

    return connect_to_world


def test_a_task_that_begins_after_its_job_has_failed_is_refused(
    world: World, connect: Connect
) -> None:
    frame: Any = FailedJob()
    with pytest.raises(RuntimeError, match="the job has failed"):
        foreach_batch.write_frame(frame, given_options(), connect)
    with pytest.raises(SupersededError):
        next(frame.write(iter([pa.RecordBatch.from_pydict({"value": [b"late"]})])))
    assert open_ids(world) == []


def test_without_pinned_threads_a_write_needs_a_version(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    frame: Any = Frame(pa.RecordBatch.from_pydict({"value": [b"row"]}))
    with pytest.raises(ConfigurationError, match="PYSPARK_PIN_THREAD"):
        foreach_batch.write_frame(frame, given_options(), connect)
    numbered = given_options(txnAppId="load", txnVersion="1")
    foreach_batch.write_frame(frame, numbered, connect)


def test_a_name_with_a_dot_or_a_backtick_selects_the_column_and_not_a_field(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    selected: list[str] = []
    row = pa.RecordBatch.from_pydict({"c0": [b"row"], "c1": pa.array([10**6], pa.timestamp("us"))})
    frame: Any = Frame(row)

    def select(*expressions: str) -> Any:
        selected.extend(expressions)
        return frame

    monkeypatch.setattr(frame, "selectExpr", select)
    frame.dtypes = (("value", "string"), ("a.`b", "timestamp"), ("a", "struct<`b:timestamp>"))
    options = given_options(**{"eos.timestamp.column": "a.`b"})
    foreach_batch.write_frame(frame, options, connect)
    assert selected == ["`value` AS c0", "`a.``b` AS c1"]


def test_a_frame_that_spark_knows_to_be_empty_is_compared_with_the_rows_of_its_version(
    connect: Connect,
) -> None:
    numbered = given_options(txnAppId="load", txnVersion="1")
    frame: Any = Frame(pa.RecordBatch.from_pydict({"value": [b"row"]}))
    foreach_batch.write_frame(frame, numbered, connect)
    empty: Any = Frame()
    with pytest.raises(OperatorNeededError):
        foreach_batch.write_frame(empty, numbered, connect)
