"""A driver and its tasks, called by hand on the in-memory Kafka; and batches for it."""

from __future__ import annotations

import itertools
import pickle
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from eos_sink.driver.checkpoint_files import CheckpointFiles
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.driver.processes import current_run
from eos_sink.errors import UnfinishedError
from eos_sink.protocol.model import BatchId, Numbering, Plan, Run, TaskReport
from eos_sink.sink_options import SinkOptions
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Killed, Moment, Process
from tests.protocol.world import World, late_attempt

STREAM = "stream-1"
LOADS = partial(BatchId.numbered_by, Numbering.VERSION, "loads")
FRAMES = partial(BatchId.numbered_by, Numbering.FOREACH, "query-1")
OTHERS = partial(BatchId.numbered_by, Numbering.FOREACH, "query-2")
_PIDS = itertools.count(100)


def once(name: str) -> BatchId:
    """A single write; the name stands for the number that it has drawn."""
    return BatchId.numbered_by(Numbering.ONCE, "", zlib.crc32(name.encode()))


class Driver:
    """The planner, the committer and the tasks of one run, each in a process.

    Args:
        stream: of the batches that are given by their number alone.
        run: this process, unless it is given.
        clock: measures how long steps take; None: the brokers'.
        new_process: for the planner, the committer and each task.
        files: Spark's checkpoint, if the source's offsets are committed.
        options: of the sink; None: those of the world.
    """

    def __init__(
        self,
        world: World,
        stream: str = STREAM,
        run: Run | None = None,
        clock: Callable[[], float] | None = None,
        new_process: Callable[[], Process] = Process,
        files: CheckpointFiles | None = None,
        options: SinkOptions | None = None,
    ) -> None:
        self.world = world
        options = options or world.options
        self.identity = run or current_run(options.origin)
        self.options = replace(options, origin=self.identity.origin)
        clock = clock or world.cluster.clock
        self._stream, self._clock, self._new_process = stream, clock, new_process
        self.files = files
        self.plans, self.commits = self._kafka(), self._kafka()
        self.planner = Planner(self.plans, self.options, self.identity, files, clock)
        now_ms = partial(getattr, world.cluster.clock, "ms")
        self.committer = Committer(self.commits, self.options, now_ms, clock, files)

    def task(
        self,
        plan: Plan,
        batch: int | BatchId,
        partition: int,
        rows: Sequence[bytes],
        spark_run: str = "",
    ) -> TaskReport:
        """Write a partition; its report comes as Spark ships it."""
        named = batch if isinstance(batch, BatchId) else BatchId(self._stream, batch)
        writer = TaskWriter(self._kafka(), self.options, plan, self._clock)
        most = self.world.arrow_rows
        data = [
            pa.RecordBatch.from_pydict({"value": rows[first : first + most]})
            for first in range(0, len(rows), most)
        ]
        report: TaskReport = pickle.loads(
            pickle.dumps(writer.write(named, partition, data, spark_run))
        )
        return report

    def write(
        self, plan: Plan, batch: int | BatchId, *parts: Sequence[bytes], spark_run: str = ""
    ) -> list[TaskReport]:
        return [
            self.task(plan, batch, number, rows, spark_run) for number, rows in enumerate(parts)
        ]

    def run(
        self, batch: int | BatchId, *parts: Sequence[bytes], spark_run: str = ""
    ) -> list[TaskReport]:
        reports = self.write(self.planner.plan(), batch, *parts, spark_run=spark_run)
        self.committer.commit(reports)
        return reports

    def dies_after_the_decision(
        self, batch: int | BatchId, *parts: Sequence[bytes], spark_run: str = ""
    ) -> list[TaskReport]:
        reports = self.write(self.planner.plan(), batch, *parts, spark_run=spark_run)
        self.dies_committing(reports)
        return reports

    def dies_committing(self, reports: Sequence[TaskReport]) -> None:
        """Decide; before any transaction of a task is committed, the process is killed."""
        At(self.commits.process, "log_producer.commit", Moment.AFTER, self.commits.process.kill)
        with pytest.raises(Killed):
            self.committer.commit(reports)

    def loses(self, reports: Sequence[TaskReport], partition: int) -> None:
        """Commit, while a late attempt takes the id of a partition right after the decision."""
        slot = reports[0].slot
        late = At(
            self.commits.process,
            "log_producer.commit",
            Moment.AFTER,
            lambda: late_attempt(self.world, slot, partition),
        )
        with pytest.raises(UnfinishedError) as lost:
            self.committer.commit(reports)
        assert late.process.hook is None
        assert lost.value.data["partitions"] == [partition]

    def _kafka(self) -> FakeKafka:
        log_topic = self.world.options.log_topic
        return FakeKafka(self.world.cluster, self._new_process(), log_topic=log_topic)


class Job(Driver):
    """A run in another process than the tests, as a session of Spark keeps it for batch writes."""

    def __init__(self, world: World, clock: Callable[[], float] = time.monotonic) -> None:
        run = Run("host-a", next(_PIDS), 0, world.options.origin)
        super().__init__(world, run=run, clock=clock)


class Timed(Job):
    """Each step takes a second, a decision one before its vote and one after it."""

    def __init__(self, world: World) -> None:
        ticks = itertools.count()
        super().__init__(world, clock=lambda: float(next(ticks)))


def decide_and_die(world: World, *parts: Sequence[bytes], batch: int = 0) -> Driver:
    """A batch, by default of two partitions, whose driver is killed before it settles."""
    driver = Driver(world)
    driver.dies_after_the_decision(batch, *(parts or ([b"a"], [b"b"])))
    return driver


def lose_last(world: World, *parts: Sequence[bytes]) -> None:
    """Batch 0, by default of two partitions, of which the last is aborted after the decision."""
    driver, parts = Driver(world), parts or ([b"a"], [b"b"])
    driver.loses(driver.write(driver.planner.plan(), 0, *parts), len(parts) - 1)
