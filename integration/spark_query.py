"""The test's side of `integration.spark_program`: one query, its files, its runs and crashes."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import Decision
from eos_sink.sink_options import SinkOptions
from eos_sink.spark import foreach_batch
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint, Strike
from eos_sink_lab.testing.waiting import wait_until
from integration import spark_program
from integration.checker import Rows, read_topic
from integration.query_state import read_log, take_id
from integration.spark_apps import PATIENCE_S, Application, Applications, Run
from integration.spark_program import FUNCTION, SOURCE
from integration.topics import unique

TASKS = 2
BOTH_WAYS = pytest.mark.parametrize("way", [SOURCE, pytest.param(FUNCTION, marks=pytest.mark.long)])
"""Tests of what both ways into the sink promise, with the fixture `spark_query`."""
PARTITIONS = 3
ROWS = 40
_LOOK_AGAIN_S = 0.1


def close_kept_clients() -> None:
    """Close what a user's driver keeps for its next batches, where this process is the driver."""
    for kept in foreach_batch._clients._entries.values():
        kept.close()


class SparkQuery:
    """One query with its own topic.

    Attributes:
        expected: the rows of all files so far.
        columns: what the query selects, changeable before a run.
        options: of the sink, likewise.
        tasks: partitions of a batch, or the column that Spark's shuffle goes by, likewise.
        frames: where `foreachBatch` writes each batch, one options object a frame; none: the query
            writes by itself.
        batch: it is no query but a job, a batch write of all files.
    """

    def __init__(
        self,
        kafka: KafkaCluster,
        spark: SparkSession,
        applications: Applications,
        home: Path,
        way: str = SOURCE,
    ) -> None:
        """Args:
        way: into the sink, SOURCE or FUNCTION.
        """
        if way == SOURCE and not hasattr(spark, "dataSource"):
            pytest.skip("this Spark has no data sources in Python")
        self.kafka = kafka
        self.home = home
        self.topic = unique("out")
        kafka.create_topic(self.topic, partitions=PARTITIONS)
        self.checkpoint = home / "checkpoint"
        self.applications = applications
        self.faults = applications.faults
        for point in FaultPoint:
            self.faults.disarm(point)
        self.expected: list[str] = []
        self.columns = ["value", "split(value, '-')[1] AS key"]
        self.options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": self.topic,
            "checkpointLocation": str(self.checkpoint),
            "eos.step.timeout.ms": "60000",
            # Each task opens a transaction, unless a test says otherwise.
            "eos.inline.bytes": "0",
        }
        self.way = way
        if way == FUNCTION:
            self.options["eos.id"] = self.topic
        self.tasks: int | str = TASKS
        self.frames: list[dict[str, str]] = []
        self.batch = False
        self._spark = spark
        self._input = home / "input"
        self._input.mkdir()
        self._runs: list[Run] = []
        self._clients: list[ConfluentKafka] = []

    def add_batch(self, rows: int = ROWS) -> None:
        """One more file, which becomes one more batch."""
        number = len(list(self._input.iterdir()))
        texts = [f"{number}-{i % 7}-{i}" for i in range(rows)]
        self.write_file(number, texts)
        self.expected += texts

    def write_file(self, number: int, texts: list[str]) -> None:
        hidden = self.home / "new"
        hidden.write_text("".join(f"{text}\n" for text in texts))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(self._input / f"{number:04}.txt")

    def finish(self, trigger: dict[str, Any] | None = None) -> None:
        """Write all that is there."""
        if self.batch:
            spark_program.save(self._spark, self._config({}))
        else:
            assert self.start(trigger).awaitTermination(int(PATIENCE_S))

    def start(self, trigger: dict[str, Any] | None = None) -> StreamingQuery:
        """Begin to write all that is there."""
        return spark_program.start(self._spark, self._config(trigger or {"availableNow": True}))

    def fail(self) -> str:
        """Run into an error; its text."""
        try:
            self.finish()
        except spark_program.ERRORS as error:
            return str(error)
        raise AssertionError("the query went on")

    def program(
        self, trigger: dict[str, Any] | None = None, application: Application | None = None
    ) -> Run:
        """Start it in a separate program, with its fault points."""
        config = self._config(trigger or {"availableNow": True})
        run = (application or self.applications.take()).run(config)
        self._runs.append(run)
        return run

    def crash(
        self,
        point: FaultPoint,
        action: Strike = Strike.KILL_ALL,
        application: Application | None = None,
    ) -> None:
        """A run whose program dies at a point."""
        self.faults.arm(point, action)
        run = self.program(application=application)
        self.wait_fired(point, run)
        run.application.killed()
        self.applications.warm_up()

    def zombie(self, point: FaultPoint, action: Strike = Strike.PAUSE) -> str:
        """A run stopped at `point` that wakes up when its successor has finished; its error."""
        self.faults.arm(point, action)
        run = self.program()
        self.wait_fired(point, run)
        self.finish()
        self.assert_exactly_once()
        self.faults.resume(point)
        return run.stopped()

    def replay(self, batch: int) -> None:
        """Let Spark forget that the batch is done, as when it is stopped during `commit()`."""
        for name in (str(batch), f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink()

    def move_checkpoint(self, place: Path) -> None:
        self.checkpoint.rename(place)
        self.checkpoint = place
        self.options["checkpointLocation"] = str(place)

    def wait_decided(self, batch: int) -> None:
        """Until the decision log has the batch and no reader is held up by it."""
        clients, names, deadline = self.clients(), self.sink.names, Deadline(PATIENCE_S)

        def is_decided() -> bool:
            found = read_log(clients, names, deadline.left).decision
            return found is not None and found.batch.batch >= batch

        wait_until(is_decided, deadline, f"batch {batch} is decided")
        self.assert_nothing_held_up()

    def wait_fired(self, point: FaultPoint, run: Run) -> int:
        """Until a process of the run has reached an armed point; its id."""
        deadline = Deadline(PATIENCE_S)
        while (pid := self.faults.fired(point)) is None:
            assert run.alive or self.faults.fired(point), run.application.said
            assert not deadline.passed, f"{point.value} was not reached; {run.application.said}"
            time.sleep(_LOOK_AGAIN_S)
        return pid

    def wait_committed(self, batch: int, run: Run) -> None:
        """Until Spark has written a batch into its commit log."""
        deadline = Deadline(PATIENCE_S)
        while not (self.checkpoint / "commits" / str(batch)).exists():
            assert run.alive, run.application.said
            assert not deadline.passed, f"batch {batch} is not done; {run.application.said}"
            time.sleep(_LOOK_AGAIN_S)

    def take_id(self, slot: int, partition: int) -> None:
        take_id(self.clients(), self.sink.names, slot, partition)

    @property
    def sink(self) -> SinkOptions:
        if self.batch or self.way == FUNCTION:
            return parse_batch_options(self.options).sink
        return parse_options(self.options)

    def clients(self) -> ConfluentKafka:
        self._clients.append(clients := ConfluentKafka(self.sink.cluster))
        return clients

    def decision(self) -> Decision:
        """The latest one, which another planner process of the session may have repeated."""
        found = read_log(self.clients(), self.sink.names, PATIENCE_S).decision
        assert found is not None
        return found

    def frame(self, topic: str, **options: str) -> dict[str, str]:
        """The options of a frame; `options` with `_` for `.`."""
        named = ("kafka.bootstrap.servers", "eos.step.timeout.ms", "eos.inline.bytes")
        more = {name.replace("_", "."): value for name, value in options.items()}
        return {**{name: self.options[name] for name in named}, "topic": topic, **more}

    def seen(self, topic: str | None = None) -> Rows:
        return read_topic(self.kafka.bootstrap_servers, topic or self.topic)

    def assert_nothing_held_up(self) -> None:
        """Readers come to the end of the topic."""
        self.seen()

    def assert_exactly_once(self, topic: str | None = None) -> None:
        assert Counter(self.seen(topic).values()) == Counter(self.expected)

    def close(self) -> None:
        for run in self._runs:
            if run.alive:
                run.application.kill()
        for clients in self._clients:
            clients.close()
        if self.way == FUNCTION:
            close_kept_clients()

    def _config(self, trigger: dict[str, Any]) -> dict[str, Any]:
        return {
            "input": str(self._input),
            "tasks": self.tasks,
            "columns": self.columns,
            "options": self.options,
            "trigger": trigger,
            "frames": self.frames,
            "batch": self.batch,
            "way": self.way,
        }
