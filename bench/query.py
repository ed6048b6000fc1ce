"""A query without Spark: its driver's side, and tasks that write as Spark's do, in this process."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, Plan, TaskReport
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster

_AT_ONCE = 8

Rows = Iterable[pa.RecordBatch]


class Query:
    """One query into a topic of its own.

    Args:
        kafka: the cluster.
        partitions: of the topic.
        given: more options of the sink, and those that are to differ.
        like: a query whose clients its committer and tasks use.

    Attributes:
        given: all options.
        planner, committer: as in two processes of Spark, each with its own clients.
    """

    def __init__(
        self,
        kafka: KafkaCluster,
        partitions: int,
        given: Mapping[str, str] | None = None,
        *,
        like: Query | None = None,
    ) -> None:
        self.topic = f"bench-{uuid.uuid4().hex[:8]}"
        kafka.create_topic(self.topic, partitions)
        self.given = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "eos.id": self.topic,
            "topic": self.topic,
            **(given or {}),
        }
        self._options = parse_options(self.given)
        self._of_plan = ConfluentKafka(self._options.cluster)
        self.clients: ConfluentKafka
        self._of_tasks: ConfluentKafka
        if like is None:
            self.clients, self._of_tasks = (ConfluentKafka(self._options.cluster) for _ in range(2))
        else:
            self.clients, self._of_tasks = like.clients, like._of_tasks
        self.planner = Planner(self._of_plan, self._options)
        self.committer = Committer(self.clients, self._options)
        self._batch = 0

    def write(self, plan: Plan, tasks: Iterable[Rows]) -> list[TaskReport]:
        """Write the next batch, a task for the rows of each partition, some at the same time."""
        self._batch += 1
        batch = BatchId(self.topic, self._batch)
        # Spark's commit process does so at the end of the batch before.
        self.committer.prepare()

        def write(partition: int, rows: Rows) -> TaskReport:
            return TaskWriter(self._of_tasks, self._options, plan).write(batch, partition, rows)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [each.result() for each in [pool.submit(write, *x) for x in enumerate(tasks)]]

    def leave(self) -> None:
        """End its driver; clients that others use stay."""
        self.planner.close()
        self._of_plan.close()

    def close(self) -> None:
        self.leave()
        self.clients.close()
        self._of_tasks.close()


def row_for_each(partitions: int) -> Rows:
    """A row of 100 bytes for each partition of the topic."""
    numbers = pa.array(range(partitions), pa.int32())
    return [pa.RecordBatch.from_pydict({"value": [b"x" * 100] * partitions, "partition": numbers})]
