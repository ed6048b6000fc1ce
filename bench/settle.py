"""Measures a driver's steps by the number of tasks: committed, idle, failed and lost ones.

    python -m bench.settle [--rounds 5] [--tasks 1,10,200] [--version 4.3.0]

Three brokers with replication 3 and two copies in sync, as many partitions of __transaction_state
as Kafka has by default. Transactions are opened as tasks leave them; plan, vote, decision and
settling are the sink's own. Writes bench/results/settle.json; progress to standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bench import RESULTS
from bench.cpu import Account, CpuClock, Part
from bench.result import Notebook
from bench.stopwatch import Stopwatch, WatchedKafka
from bench.transactions import Opened, open_transactions
from eos_sink.decision_log.codec import encode
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.kafka import transaction_control as control
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Plan,
    Prepared,
    RowDigest,
    TaskReport,
)
from eos_sink.protocol.rules import assign
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster, start_kafka
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

TASKS = (1, 2, 5, 10, 50, 200, 500, 1000)
LOST = (1, 10, 100, 500)
IDLE = (0, 10, 100, 1000)
PARTITIONS, WRITTEN = 6, 2
BROKERS = 3
_LONG_S = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", default=",".join(map(str, TASKS)))
    parser.add_argument("--version", default="4.3.0", help="of the brokers")
    arguments = parser.parse_args()
    numbers = [int(number) for number in arguments.tasks.split(",")]
    properties = {"transaction.state.log.num.partitions": 50}
    with start_kafka(BROKERS, arguments.version, properties=properties) as kafka:
        bench = Bench(kafka, Notebook("settle", arguments.version, {"rounds": arguments.rounds}))
        bench.warm_up()
        # In turns, so that what the machine does meanwhile is in all of them.
        for _ in range(arguments.rounds):
            for what, step, many in bench.steps(numbers):
                step(many)
                bench.notebook.result().write(RESULTS / "settle.json")
                to_stderr(f"{what} {many}")
        bench.close()
    return 0


class Bench:
    """One query: its planner and its committer, as in two processes of Spark."""

    def __init__(self, kafka: KafkaCluster, notebook: Notebook) -> None:
        assert isinstance(kafka, LocalCluster)
        self.notebook = notebook
        topic = f"settle-{uuid.uuid4().hex[:8]}"
        kafka.create_topic(topic, PARTITIONS)
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "eos.id": topic}
        self._options = parse_options({**given, "topic": topic})
        self._places = [(topic, number) for number in range(WRITTEN)]
        self._logs = kafka.directory
        self._watch = Stopwatch()
        self._maker = ConfluentKafka(self._options)
        self._of_plan = WatchedKafka(self._options, self._watch)
        self._of_commit = WatchedKafka(self._options, self._watch)
        self._planner = Planner(self._of_plan, self._options)
        self._committer = Committer(self._of_commit, self._options)
        self._batch = 0
        brokers = [Account(node.pid) for node in kafka.nodes]
        own = [Account(os.getpid(), Part.OWN)]
        self._cpu = CpuClock({"driver": own, "brokers": brokers})

    def steps(self, tasks: Sequence[int]) -> Iterator[tuple[str, Callable[[int], None], int]]:
        """A round: the measurements and their sizes."""
        for lanes in (1, control._LANES):
            yield "connections", self.over, lanes
        for many in tasks:
            yield "committed", self.committed, many
            yield "failed", self.failed, many
        for many in IDLE:
            yield "idle", self.idle, many
        for many in LOST:
            yield "refused", self.lost, many

    def warm_up(self) -> None:
        """Warm up connections and the brokers' compiler."""
        notebook, self.notebook = self.notebook, Notebook("warm", "", {})
        for tasks in (1, 50, 200, 200):
            self.committed(tasks)
        self.notebook = notebook

    def committed(self, tasks: int) -> None:
        """A batch in which every task has rows, and the plan after it."""
        plan, before = self._plan(), self._coordinators_log()
        reports = self._reports(plan, tasks)
        with self._measured("commit", tasks=tasks):
            self._committer.commit(reports)
        began = time.perf_counter()
        self._wait_ended(_ids(reports))
        self.notebook.note("markers", "s", time.perf_counter() - began, tasks=tasks)
        grown = self._coordinators_log() - before
        self.notebook.note("coordinator's log", "B", grown, tasks=tasks)
        with self._measured("plan", tasks=tasks):
            plan = self._planner.plan()
        assert plan.decision is not None
        size = len(encode(_alone(plan.decision)))
        self.notebook.note("decision size", "B", size, tasks=tasks)

    def failed(self, tasks: int) -> None:
        """A failed batch: its transactions are listed, fenced and aborted."""
        plan = self._plan()
        reports = self._reports(plan, tasks)
        with self._measured("abort", tasks=tasks):
            self._committer.abort(reports[:1])
        self._wait_ended(_ids(reports))

    def idle(self, idle: int) -> None:
        """A batch of one task with a row and others without."""
        plan = self._plan()
        reports = [
            *self._reports(plan, 1),
            *(_empty(plan, self._batch, 1 + n) for n in range(idle)),
        ]
        with self._measured("commit", idle=idle):
            self._committer.commit(reports)

    def lost(self, tasks: int) -> None:
        """The driver's work if each EndTxn is refused: it reads all witnesses."""
        names = [self._options.names.task(0, number) for number in range(tasks)]
        opened = self._open(names)
        ended = [each.transaction for each in opened]
        self._maker.control().end(ended, False, Deadline(_LONG_S))
        self._wait_ended(names)
        with self._measured("look", tasks=tasks):
            seen = self._of_commit.visibility([each.witness for each in opened], Deadline(_LONG_S))
        assert len(seen) == tasks, f"{len(seen)} of {tasks} witnesses were read"

    def over(self, lanes: int) -> None:
        """200 transactions, over so many connections to each coordinator."""
        names = [self._options.names.task(0, number) for number in range(200)]
        ended = [each.transaction for each in self._open(names)]
        usual, control._LANES = control._LANES, lanes
        try:
            with self._measured("lanes", lanes=lanes):
                self._of_commit.control().end(ended, True, Deadline(_LONG_S))
        finally:
            control._LANES = usual
        self._wait_ended(names)

    def close(self) -> None:
        self._planner.close()
        for kafka in (self._maker, self._of_plan, self._of_commit):
            kafka.close()

    def _coordinators_log(self) -> int:
        """Bytes of one replica of __transaction_state."""
        logs = self._logs.glob("node-*/data/__transaction_state-*/*.log")
        return sum(log.stat().st_size for log in logs) // BROKERS

    def _plan(self) -> Plan:
        self._batch += 1
        return self._planner.plan()

    def _open(self, names: Sequence[str]) -> list[Opened]:
        return open_transactions(self._maker.control(), names, self._places)

    def _reports(self, plan: Plan, tasks: int) -> list[TaskReport]:
        slot = assign(plan, BatchId("bench", self._batch), 0).slot
        names = [self._options.names.task(slot, number) for number in range(tasks)]
        return [
            _report(plan, self._batch, slot, number, opened)
            for number, opened in enumerate(self._open(names))
        ]

    def _wait_ended(self, names: Sequence[str]) -> None:
        """Wait until every reader can see it and all markers are written."""
        ended = {TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT}
        deadline = Deadline(_LONG_S)
        while True:
            states = self._maker.control().describe(names, deadline).values()
            if {state.status for state in states} <= ended:
                return
            if deadline.passed:
                raise RuntimeError("the markers do not arrive")

    @contextmanager
    def _measured(self, what: str, **labels: int) -> Iterator[None]:
        """Seconds of the step and of what it waits for, and the CPU seconds of all."""
        self._watch.begin()
        cpu, began = self._cpu.read(), time.perf_counter()
        yield
        self.notebook.note(what, "s", time.perf_counter() - began, **labels)
        for part, seconds in self._watch.seconds.items():
            self.notebook.note(f"{what}: {part}", "s", seconds, **labels)
        for whose, seconds in self._cpu.since(cpu).items():
            self.notebook.note(f"{what}: CPU of {whose}", "s", seconds, **labels)


def _report(plan: Plan, batch: int, slot: int, partition: int, opened: Opened) -> TaskReport:
    found = opened.transaction
    digest = RowDigest(6, 600, hash(found) % 2**64)
    prepared = Prepared(partition, found.producer_id, found.epoch, digest, opened.witness)
    return TaskReport(plan.token, BatchId("bench", batch), partition, slot, False, digest, prepared)


def _empty(plan: Plan, batch: int, partition: int) -> TaskReport:
    slot = assign(plan, BatchId("bench", batch), 0).slot
    return TaskReport(
        plan.token, BatchId("bench", batch), partition, slot, False, RowDigest(), None
    )


def _ids(reports: Sequence[TaskReport]) -> list[str]:
    return [report.token.names.task(report.slot, report.partition) for report in reports]


def _alone(decision: Decision) -> LogRecord:
    return LogRecord(1, decision, uuid.uuid4().hex)


if __name__ == "__main__":
    sys.exit(main())
