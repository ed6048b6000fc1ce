"""Measures the driver's steps by the number of tasks: committed, idle and failed ones.

    python -m bench.settle [--rounds 5] [--tasks 1,10,200] [--version 4.3.0]

Three brokers with replication 3 and two copies in sync, as many partitions of __transaction_state
as Kafka has by default. The sink's own parts plan, write and commit, without Spark. Vote, decision
and settling are timed by the sink itself (docs/metrics.md). Writes bench/results/settle.json;
progress to standard error.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bench import RESULTS
from bench.cpu import Account, CpuClock, Part
from bench.query import Query, row_for_each
from bench.result import Notebook
from eos_sink.decision_log.codec import encode
from eos_sink.kafka.deadline import Deadline
from eos_sink.metrics.events import LOGGER
from eos_sink.metrics.names import Step
from eos_sink.protocol.model import LogRecord, TaskReport
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import start_kafka
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

TASKS = (1, 5, 10, 50, 200, 500, 1000)
IDLE = (0, 10, 100, 1000)
PARTITIONS, WRITTEN = 6, 2
BROKERS = 3
_LONG_S = 120.0
# As many as Kafka has by default.
COORDINATORS = {"transaction.state.log.num.partitions": 50}
TRANSACTIONS = {"eos.inline.bytes": "0"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", default=",".join(map(str, TASKS)))
    parser.add_argument("--version", default="4.3.0", help="of the brokers")
    arguments = parser.parse_args()
    numbers = [int(number) for number in arguments.tasks.split(",")]
    with start_kafka(BROKERS, arguments.version, properties=COORDINATORS) as kafka:
        assert isinstance(kafka, LocalCluster)
        bench = Batches(kafka, Notebook("settle", arguments.version, {"rounds": arguments.rounds}))
        bench.warm_up()
        # In turns, so that what the machine does meanwhile is in all of them.
        for _ in range(arguments.rounds):
            for step, many in bench.steps(numbers):
                step(many)
                bench.notebook.result().write(RESULTS / "settle.json")
                to_stderr(f"{step.__name__} {many}")
        bench.close()
    return 0


class StepTimes(logging.Handler):
    """Seconds of the steps of the last batch, from the sink's log lines."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[Step, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        line = json.loads(record.getMessage())
        took = {step: line.get(f"{step.label}_seconds") for step in Step}
        self.seconds = {step: seconds for step, seconds in took.items() if seconds is not None}


class Batches:
    """Two queries: one all of whose tasks have rows, and one with idle tasks."""

    def __init__(self, kafka: LocalCluster, notebook: Notebook) -> None:
        self.notebook = notebook
        self._query, self._sparse = (Query(kafka, PARTITIONS, TRANSACTIONS) for _ in range(2))
        self._logs = kafka.directory
        self._times = StepTimes()
        LOGGER.setLevel(logging.INFO)
        LOGGER.addHandler(self._times)
        brokers = [Account(node.pid) for node in kafka.nodes]
        self._cpu = CpuClock({"driver": [Account(os.getpid(), Part.OWN)], "brokers": brokers})

    def steps(self, tasks: Sequence[int]) -> Iterator[tuple[Callable[[int], None], int]]:
        """A round: the measurements and their sizes."""
        for many in tasks:
            yield self.committed, many
            yield self.failed, many
        for many in IDLE:
            yield self.idle, many

    def warm_up(self) -> None:
        """Warm up connections and the brokers' compiler."""
        notebook, self.notebook = self.notebook, Notebook("warm", "", {})
        for tasks in (1, 50, 200, 200):
            self.committed(tasks)
        self.notebook = notebook

    def committed(self, tasks: int) -> None:
        """A batch in which every task has rows, and the plan after it."""
        before = self._coordinators_log()
        reports = self._write(tasks)
        with self._measured("commit", tasks=tasks):
            self._query.committer.commit(reports)
        for step in (Step.VOTE, Step.DECIDE, Step.SETTLE):
            self.notebook.note(step.label, "s", self._times.seconds[step], tasks=tasks)
        self._wait_ended(reports)
        grown = self._coordinators_log() - before
        self.notebook.note("coordinator's log", "B", grown, tasks=tasks)
        with self._measured("plan", tasks=tasks):
            plan = self._query.planner.plan()
        assert plan.decision is not None
        size = len(encode(LogRecord(1, plan.decision, uuid.uuid4().hex)))
        self.notebook.note("decision size", "B", size, tasks=tasks)

    def failed(self, tasks: int) -> None:
        """A failed batch: its transactions are listed, fenced and aborted."""
        reports = self._write(tasks)
        with self._measured("abort", tasks=tasks):
            self._query.committer.abort(reports[:1])
        self._wait_ended(reports)

    def idle(self, idle: int) -> None:
        """A batch of one task with rows and others without."""
        plan = self._sparse.planner.plan()
        reports = self._sparse.write(plan, [row_for_each(WRITTEN), *([[]] * idle)])
        with self._measured("commit", idle=idle):
            self._sparse.committer.commit(reports)

    def close(self) -> None:
        self._query.close()
        self._sparse.close()

    def _write(self, tasks: int) -> list[TaskReport]:
        return self._query.write(self._query.planner.plan(), [row_for_each(WRITTEN)] * tasks)

    def _coordinators_log(self) -> int:
        """Bytes of one replica of __transaction_state."""
        logs = self._logs.glob("node-*/data/__transaction_state-*/*.log")
        return sum(log.stat().st_size for log in logs) // BROKERS

    def _wait_ended(self, reports: Sequence[TaskReport]) -> None:
        """Wait until every reader can see it and all markers are written."""
        names = [report.token.names.task(report.slot, report.partition) for report in reports]
        ended = {TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT}
        deadline = Deadline(_LONG_S)
        while True:
            states = self._query.clients.control().describe(names, deadline).values()
            if {state.status for state in states} <= ended:
                return
            if deadline.passed:
                raise RuntimeError("the markers do not arrive")

    @contextmanager
    def _measured(self, what: str, **labels: int) -> Iterator[None]:
        """Seconds of the step, and the CPU seconds of all."""
        cpu, began = self._cpu.read(), time.perf_counter()
        yield
        self.notebook.note(what, "s", time.perf_counter() - began, **labels)
        for whose, seconds in self._cpu.since(cpu).items():
            self.notebook.note(f"{what}: CPU of {whose}", "s", seconds, **labels)


if __name__ == "__main__":
    sys.exit(main())
