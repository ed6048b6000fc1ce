"""A query without Spark and without processes: plan, tasks and commit, in the test itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol import model
from eos_sink.protocol.model import BatchId, Plan, TaskReport
from eos_sink.protocol.values import TransactionStatus
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from integration.query_state import init_id
from integration.topics import unique


class Died(BaseException):
    """The driver's process, in place of SIGKILL."""


def die(*_: object, **__: object) -> None:
    raise Died


class Run:
    """One query; `options` are the sink's. Unless they say otherwise, each task opens a
    transaction.

    Attributes:
        next: number of the next batch.
        stream: the id of its batches' stream.
    """

    def __init__(self, cluster: KafkaCluster, options: dict[str, str]) -> None:
        self.cluster = cluster
        self.options = parse_options(
            {
                "kafka.bootstrap.servers": cluster.bootstrap_servers,
                "eos.id": unique("q"),
                "eos.transaction.timeout.ms": "60000",
                "eos.inline.bytes": "0",
                **options,
            }
        )
        self.kafka = ConfluentKafka(self.options.cluster)
        self.next = 0
        # Spark gives each checkpoint a stream of its own.
        self.stream = f"stream-{self.options.origin.eos_id}"
        self._closing: list[Planner | Committer] = []
        self.start()

    def start(self, run: model.Run | None = None) -> None:
        """A new run; the one before is as good as dead."""
        self._planner = Planner(self.kafka, self.options, run)
        self.committer = Committer(self.kafka, self.options)
        self._closing += [self._planner, self.committer]

    def plan(self) -> Plan:
        return self._planner.plan()

    def write(self, *parts: dict[str, Any], **columns: Any) -> TaskReport:
        """One batch of one task: its Arrow batches, or the columns of the only one."""
        (report,) = self.write_tasks(parts or [columns])
        return report

    def write_tasks(self, *tasks: Sequence[dict[str, Any]]) -> list[TaskReport]:
        """One batch; of each task its Arrow batches."""
        plan, reports = self.plan(), list[TaskReport]()
        try:
            reports.extend(self.prepare(plan, self.next, *tasks))
            self.committer.commit(reports)
        except EosSinkError:
            self.committer.abort(reports)
            raise
        self.next += 1
        return reports

    def prepare(
        self, plan: Plan, batch: int, *tasks: Sequence[dict[str, Any]]
    ) -> Iterator[TaskReport]:
        """Let the tasks of a batch write, one after the other."""
        for partition, parts in enumerate(tasks):
            rows = [pa.RecordBatch.from_pydict(part) for part in parts]
            task = TaskWriter(self.kafka, self.options, plan)
            yield task.write(BatchId(self.stream, batch), partition, rows)

    def end_open(self) -> None:
        """End what is open, which `eos-sink status` of other tests on this cluster would show."""
        control, prefix = self.kafka.control(), f"{self.options.names.group}-"
        for each in control.list_transactions(prefix, Deadline(2), TransactionStatus.ONGOING):
            init_id(self.kafka, each.transaction.transactional_id, 2)

    def close(self) -> None:
        for each in self._closing:
            each.close()
