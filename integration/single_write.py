"""Batch writes without Spark's JVM: sessions in this process that write through the data source."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StringType, StructField, StructType

from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_batch_options
from eos_sink.protocol.model import Run
from eos_sink.protocol.values import TransactionStatus
from eos_sink.sink_options import SinkOptions
from eos_sink.spark import data_source, writers
from eos_sink.spark.client_cache import ClientCache
from eos_sink.spark.data_source import KafkaEosDataSource
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.operator_commands import run_command
from integration.query_state import take_id
from integration.topics import unique

SCHEMA = StructType([StructField("value", StringType())])
INLINED = "65536"
PATIENCE_S = 60.0


@dataclass
class Task:
    """Stands for Spark's TaskContext."""

    number: int

    def getLocalProperty(self, _: str) -> None:  # noqa: N802 - Spark's name
        return None

    def partitionId(self) -> int:  # noqa: N802 - Spark's name
        return self.number

    def attemptNumber(self) -> int:  # noqa: N802 - Spark's name
        return 0


class Session:
    """A Spark session: the clients that its processes keep between writes.

    Attributes:
        number: of the last write.
    """

    def __init__(self, patch: pytest.MonkeyPatch, options: dict[str, str], number: int) -> None:
        self._patch = patch
        self._given = options
        self.options: SinkOptions = parse_batch_options(options).sink
        self._planners: ClientCache[Planner] = ClientCache()
        self._committers: ClientCache[Any] = ClientCache()
        # Sessions are processes of their own.
        self._run = Run("host-a", number, 0, self.options.origin)
        self.number = 0

    def write(
        self,
        *parts: Sequence[str],
        options: Mapping[str, str] = {},
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        """A write of so many tasks; aborted if it fails, as Spark does."""
        self.enter()
        given = {**self._given, **options}
        self.options = parse_batch_options(given).sink

        def new_planner() -> Planner:
            return Planner(ConfluentKafka(self.options.cluster), self.options, self._run)

        with self._planners.lease(self.options, new_planner):
            pass
        writer = KafkaEosDataSource(given).writer(SCHEMA, overwrite=False)
        self.number = writer._batch.batch
        reports: list[Any] = []
        try:
            for number, rows in enumerate(parts):
                self._patch.setattr(TaskContext, "get", lambda number=number: Task(number))
                batch = pa.RecordBatch.from_pydict({"value": list(rows)})
                reports.append(writer.write(iter([batch])))
            before_commit()
            writer.commit(reports)
        except EosSinkError:
            self.enter()
            writer.abort(reports)
            raise

    def enter(self) -> None:
        """What runs from now on runs in this session's processes."""
        self._patch.setattr(data_source, "_planners", self._planners)
        self._patch.setattr(writers, "_committers", self._committers)

    def close(self) -> None:
        for cache in (self._planners, self._committers):
            for entry in cache._entries.values():
                entry.close()


class Sessions:
    """Sessions that write to one topic under one identity."""

    def __init__(self, kafka: KafkaCluster, patch: pytest.MonkeyPatch, **options: str) -> None:
        self.servers = kafka.bootstrap_servers
        self._patch = patch
        self.topic = unique("single")
        kafka.create_topic(self.topic, partitions=3)
        self._given = {
            "kafka.bootstrap.servers": self.servers,
            "topic": self.topic,
            "eos.transaction.timeout.ms": "60000",
            "eos.inline.bytes": "0",
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        self.all: list[Session] = []

    def start(self) -> Session:
        self.all.append(Session(self._patch, self._given, len(self.all) + 1))
        return self.all[-1]

    @property
    def names(self) -> QueryNames:
        return self.all[0].options.names

    def visible(self) -> list[str]:
        return sorted(str(row) for row in read_topic(self.servers, self.topic).values())

    def lose(self, *partitions: int, slot: int = 0) -> None:
        """What a late attempt of a task, or a timeout, does: it ends what is open."""
        kafka = ConfluentKafka(self.all[0].options.cluster)
        for partition in partitions:
            take_id(kafka, self.names, slot, partition)
        kafka.close()

    def open(self) -> list[str]:
        kafka = ConfluentKafka(self.all[0].options.cluster)
        try:
            prefix, is_open = f"{self.names.group}-", TransactionStatus.ONGOING
            states = kafka.control().list_transactions(prefix, Deadline(PATIENCE_S), is_open)
            return [each.transaction.transactional_id for each in states]
        finally:
            kafka.close()

    def types(self, command: str, *more: str, expect: int | None = 0) -> str:
        """Run a command that an error prints."""
        program, *words = shlex.split(command.replace("HOST:PORT", self.servers))
        assert program == "eos-sink"
        return run_command(*words, *more, expect=expect).said

    def close(self) -> None:
        for session in self.all:
            session.close()


MakeSessions = Callable[..., Sessions]
