"""A query of the test's own process whose figures are looked at."""

from __future__ import annotations

import itertools
import uuid

import pyarrow as pa

from eos_sink.decision_log import DecisionRegister
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.identity import Origin
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.metrics.stats import Stats
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, Plan, Run, TaskReport
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.in_process import new_topic

_LONG_S = 90.0
_PIDS = itertools.count(1)


class Figured:
    """A query of two tasks, run by run.

    Args:
        name: of its topic and its identity, which get something unique.
        log, prefix: of their own unless they are given.

    Attributes:
        next: number of the next batch.
    """

    def __init__(
        self, cluster: KafkaCluster, name: str = "figures", log: str = "", prefix: str = ""
    ) -> None:
        self.cluster = cluster
        self.next = 0
        self.topic = new_topic(cluster, name, partitions=2)
        self.options = parse_options(
            {
                "kafka.bootstrap.servers": cluster.bootstrap_servers,
                "topic": self.topic,
                "eos.inline.bytes": "0",
                "eos.id": self.topic,
                "eos.log.topic": log or f"log-{uuid.uuid4().hex[:8]}",
                "eos.transactional.id.prefix": prefix or f"p-{uuid.uuid4().hex[:8]}-",
                "eos.transaction.timeout.ms": "120000",
            }
        )
        self.kafka = ConfluentKafka(self.options.cluster)
        self._planners: list[Planner] = []
        self.start()

    @property
    def words(self) -> list[str]:
        """What leads a command here."""
        return [
            *("--bootstrap-server", self.cluster.bootstrap_servers),
            *("--log-topic", self.options.log_topic),
            *("--prefix", self.options.names.prefix),
        ]

    def start(self) -> None:
        """A new run; the one before is as good as dead."""
        run = Run("host", next(_PIDS), 0, Origin(eos_id=self.topic))
        self._planners.append(Planner(self.kafka, self.options, run))
        self.committer = Committer(self.kafka, self.options)

    def plan(self) -> Plan:
        return self._planners[-1].plan()

    def tasks(self, number: int, plan: Plan | None = None, rows: int = 3) -> list[TaskReport]:
        """The batch as far as its tasks write it: two thirds of the rows, and the others."""
        plan = plan or self.plan()
        values = [b"%d-%d" % (number, row) for row in range(rows)]
        parts = values[: rows * 2 // 3], values[rows * 2 // 3 :]
        return [
            TaskWriter(self.kafka, self.options, plan).write(
                BatchId("stream", number), partition, [pa.RecordBatch.from_pydict({"value": part})]
            )
            for partition, part in enumerate(parts)
        ]

    def batch(self, number: int, rows: int = 3) -> None:
        self.committer.commit(self.tasks(number, rows=rows))
        self.next = number + 1

    def stats(self) -> Stats:
        register = DecisionRegister(self.kafka, self.options.names)
        try:
            return register.read(Deadline(_LONG_S)).record.stats
        finally:
            register.close()

    def visible(self) -> int:
        return len(read_topic(self.cluster.bootstrap_servers, self.topic))

    def close(self) -> None:
        for planner in self._planners:
            planner.close()
        self.kafka.close()
