"""A query of the test's own process whose figures are looked at."""

from __future__ import annotations

import itertools

from eos_sink.identity import Origin
from eos_sink.metrics.stats import Stats
from eos_sink.protocol import model
from eos_sink.protocol.model import Plan, TaskReport
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.in_process import Run
from integration.query_state import read_log
from integration.topics import new_topic, unique

_PIDS = itertools.count(1)


class Figured(Run):
    """A query of two tasks, run by run, each as if in a process of its own.

    Args:
        name: of its topic and its identity, which get something unique.
        log, prefix: of their own unless they are given.
    """

    def __init__(
        self, cluster: KafkaCluster, name: str = "figures", log: str = "", prefix: str = ""
    ) -> None:
        self.topic = new_topic(cluster, name, partitions=2)
        options = {
            "topic": self.topic,
            "eos.id": self.topic,
            "eos.log.topic": log or unique("log"),
            "eos.transactional.id.prefix": prefix or f"{unique('p')}-",
            "eos.transaction.timeout.ms": "120000",
        }
        super().__init__(cluster, options)

    @property
    def words(self) -> list[str]:
        """What leads a command here."""
        return [
            *("--bootstrap-server", self.cluster.bootstrap_servers),
            *("--log-topic", self.options.log_topic),
            *("--prefix", self.options.names.prefix),
        ]

    def start(self, run: model.Run | None = None) -> None:
        super().start(run or model.Run("host", next(_PIDS), 0, Origin(eos_id=self.topic)))

    def tasks(self, number: int, plan: Plan | None = None, rows: int = 3) -> list[TaskReport]:
        """The batch as far as its tasks write it: two thirds of the rows, and the others."""
        values = [b"%d-%d" % (number, row) for row in range(rows)]
        parts = values[: rows * 2 // 3], values[rows * 2 // 3 :]
        tasks = ([{"value": part}] for part in parts)
        return list(self.prepare(plan or self.plan(), number, *tasks))

    def batch(self, number: int, rows: int = 3) -> None:
        self.committer.commit(self.tasks(number, rows=rows))
        self.next = number + 1

    def stats(self) -> Stats:
        return read_log(self.kafka, self.options.names).record.stats

    def visible(self) -> int:
        return len(read_topic(self.cluster.bootstrap_servers, self.topic))
