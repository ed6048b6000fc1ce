"""A query whose brokers are struck: three of them, each behind a link, and where to strike.

A process of the query stops itself at a site, the test injects the fault and lets it go on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol.values import Position, TransactionStatus
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import Rows, read_topic
from integration.minispark import DONE
from integration.query import PATIENCE_S, Process, Query

# A task whose client hangs has its step, of 60 s below; the abort behind it has another one.
SURVIVES_S = 150.0
# Two hundred tasks, one after the other.
COMPLETES_S = 300.0
READERS_S = 60.0
_LOOK_AGAIN_S = 0.02


class ClusterQuery(Query):
    """A query that comes over the links, while the test looks past them.

    Batch 0 uses slot 0 and batch 1, in which the faults come, slot 1.
    """

    def __init__(self, cluster: KafkaCluster, directory: Path) -> None:
        super().__init__(cluster, directory)
        self.cluster = cluster
        # A client that hangs when two coordinators die at once is replaced after a third of it.
        self.change({"eos.step.timeout.ms": "60000"})

    def change(self, options: dict[str, str]) -> None:
        """Options for the processes that come, beside those that every query has."""
        self._given.update(options)
        direct = {"kafka.bootstrap.servers": self.cluster.direct_servers}
        self.options = parse_options({**self._given, **direct})

    def visible(self) -> Rows:
        awake = [node.address for node in self.cluster.brokers if node.alive and not node.paused]
        return read_topic(",".join(awake) or self.cluster.bootstrap_servers, self.topic, READERS_S)

    def complete(self) -> Process:
        """Run the query to a good end, which may take long."""
        process = self.run()
        assert process.ends_within(COMPLETES_S), f"it goes on; {process.said}"
        process.finished()
        return process

    def survive(self, process: Process) -> None:
        """Wait for the end of a process that was struck; if it was not good, start again."""
        if not process.ends_within(SURVIVES_S) or process.end != DONE:
            assert process.end is not None, f"it hangs; {process.said}"
            self.finish()

    @property
    def task_id(self) -> str:
        """The transactional id of the second partition in batch 1."""
        return self.options.names.task(1, 1)

    def log_home(self) -> Position:
        """The query's partition of the log, without waiting for what is open at its end."""
        return self.kafka.log_reader(self.options.names, Deadline(PATIENCE_S)).home

    def statuses(self) -> list[TransactionStatus]:
        """Of the transactions of batch 1."""
        states = self.kafka.control().describe(self.task_ids(1), Deadline(PATIENCE_S))
        return [state.status for state in states.values()]

    def wait_timed_out(self) -> None:
        """Until no transaction of batch 1 is open."""
        wait_until(
            lambda: TransactionStatus.ONGOING not in self.statuses(),
            Deadline(PATIENCE_S),
            "the transactions have timed out",
        )


@dataclass(frozen=True)
class Site:
    """Where the query is when a fault comes.

    Attributes:
        point: where the process has stopped itself.
        batch, partition: when the point is armed.
        crash: where an earlier process was killed, if one was.
    """

    point: FaultPoint
    batch: int = 1
    partition: int = 2
    crash: FaultPoint | None = None

    def reach(self, query: ClusterQuery) -> Process:
        """A process that has stopped here."""
        if self.crash is not None:
            query.run_killed_at(self.crash)
        return query.run_paused_at(self.point, self.batch, self.partition)


SITES = {
    "writing": Site(FaultPoint.TASK_PRODUCE_AMID, partition=1),
    "prepared": Site(FaultPoint.COMMITTER_VOTE_BEFORE),
    "deciding": Site(FaultPoint.COMMITTER_WRITE_BEFORE),
    "decided": Site(FaultPoint.COMMITTER_WRITE_AFTER),
    "settling": Site(FaultPoint.COMMITTER_SETTLE_AMID),
    "aborting": Site(
        FaultPoint.PLANNER_ABORT_AMID, partition=-1, crash=FaultPoint.COMMITTER_VOTE_BEFORE
    ),
    "recovering": Site(
        FaultPoint.PLANNER_SETTLE_AMID, partition=-1, crash=FaultPoint.COMMITTER_WRITE_AFTER
    ),
}


def wait_held_back(query: ClusterQuery, process: Process, broker: int) -> None:
    """Until something of the process, or for it, waits in a cut link; or it has ended without."""
    link = query.cluster.node(broker).link
    deadline = Deadline(PATIENCE_S)
    while not link.held_back and process.end is None:
        assert not deadline.passed, f"it sent nothing; {process.said}"
        time.sleep(_LOOK_AGAIN_S)
