"""What Spark does around a sink, as far as exactly once depends on it.

A run of the query plans in one process, writes in others, commits in a third, and keeps its two
logs in the checkpoint. It replays a batch that is in the offset log but not in the commit log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.log.record import decode
from eos_sink.model import BatchId, Decision, Plan, TaskReport, Transaction
from eos_sink.options import SinkOptions, parse_options
from eos_sink.task.writer import TaskWriter
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeKafka
from tests.fakes.log import Outcome
from tests.fakes.process import Killed, Moment, Process
from tests.protocol.actor import Actor

T = TypeVar("T")
Batch = list[list[bytes]]
"""Rows by Spark partition."""

TOPIC = "out"
TASK_ATTEMPTS = 2


def options(**extra: str) -> SinkOptions:
    return parse_options(
        {
            "kafka.bootstrap.servers": "nowhere:1",
            "topic": TOPIC,
            "eos.id": "story",
            "eos.transaction.timeout.ms": "60000",
            **extra,
        }
    )


class QueryFailed(Exception):
    """A run has ended with an error; `error` is what the sink said, if it was the sink."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


@dataclass
class Checkpoint:
    """What survives a run."""

    stream: str = "stream-1"
    offsets: int = 0
    """Batches in the offset log."""
    commits: int = 0
    """Batches in the commit log."""


@dataclass
class World:
    """Kafka, the query's input and its checkpoint."""

    batches: list[Batch]
    partitions: int = 2
    cluster: FakeCluster = field(default_factory=FakeCluster)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    options: SinkOptions = field(default_factory=options)

    def __post_init__(self) -> None:
        self.cluster.create_topic(TOPIC, self.partitions)
        self.judge = Judge(self)

    @property
    def done(self) -> bool:
        return self.checkpoint.commits == len(self.batches)

    def visible(self) -> list[bytes]:
        """What a read_committed reader has got, sorted."""
        return sorted(entry.value or b"" for entry in self.cluster.read_committed(TOPIC))

    def rows(self, batches: int | None = None) -> list[bytes]:
        """The rows of the first batches, sorted."""
        return sorted(row for batch in self.batches[:batches] for part in batch for row in part)


Step = Callable[["Run", str, Moment], None]


class Judge:
    """Watches what must hold, whatever crashes; what did not hold is in `violations`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.violations: list[str] = []
        world.cluster.coordinator.on_end = self._at_end_txn

    def batch_is_past(self, number: int) -> None:
        """Spark has written its commit log: each row up to here is visible once, or will be as
        soon as a zombie's open transaction before it has ended."""
        settled = self._world.cluster.topics[TOPIC].settled()
        expected, seen = self._world.rows(number + 1), Counter(e.value for e in settled)
        wrong = {row: seen[row] for row in expected if seen[row] != 1}
        if wrong:
            self.violations.append(f"the query went past batch {number} with {wrong}")

    def at_the_end(self) -> None:
        """No row twice; and all of them if the query has come to the end of its input."""
        doubled = {row: n for row, n in Counter(self._world.visible()).items() if n > 1}
        if doubled:
            self.violations.append(f"rows are visible twice: {doubled}")
        if self._world.done and self._world.visible() != self._world.rows():
            self.violations.append(f"visible at the end: {self._world.visible()}")
        for former, latter in pairwise(self._decisions()):
            if former.batch == latter.batch and former != latter:
                self._check_replacement(former, latter)

    def _check_replacement(self, former: Decision, latter: Decision) -> None:
        names = self._world.options.names
        gone = former.transactions(names).keys() - latter.transactions(names).keys()
        for txn in self._world.cluster.coordinator.history:
            if txn.identity in gone and txn.outcome is not Outcome.ABORTED:
                self.violations.append(f"{txn} was decided, then replaced")

    def _at_end_txn(self, transaction: Transaction, commit: bool) -> None:
        names = self._world.options.names
        if names.parse_task(transaction.transactional_id) is None:
            return
        decided = any(transaction in d.transactions(names) for d in self._decisions())
        if commit != decided:
            when = "committed before its decision" if commit else "aborted after its decision"
            self.violations.append(f"{transaction} was {when}")

    def _decisions(self) -> list[Decision]:
        """Every decision that the log ever held, in order."""
        log = self._world.cluster.topics.get(self._world.options.log_topic)
        records = [decode(entry.value or b"", "") for entry in log.committed()] if log else []
        return [record.decision for record in records if record.decision is not None]


class Run:
    """One run of the query: a driver JVM with its worker processes.

    Args:
        world: what it shares with other runs.
        on_step: called around each port call of any of its processes.
        before: an earlier run in the same JVM, whose worker processes are used again.
    """

    def __init__(
        self, world: World, on_step: Step | None = None, before: Run | None = None
    ) -> None:
        self.world = world
        self.on_step = on_step
        self.actor = Actor(self.work)
        self.aside: list[Actor] = []
        """Calls that hang; the run has gone on without them."""
        self.processes: list[Process] = []
        self._calls: list[Actor] = []
        self._plans: FakeKafka
        self._planner: Planner
        self._commits: FakeKafka
        self._committer: Committer
        if before is not None and before._plans.process.alive:
            self._plans, self._planner = self._adopt(before._plans), before._planner
        else:
            self._replace_planner()
        if before is not None and before._commits.process.alive:
            self._commits, self._committer = self._adopt(before._commits), before._committer
        else:
            self._replace_committer()

    def process(self) -> FakeKafka:
        return self._adopt(FakeKafka(self.world.cluster, Process()))

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def work(self) -> None:
        """Run to the end of the input.

        Raises:
            QueryFailed: the query has stopped with an error.
            Killed: the driver JVM has died.
        """
        log = self.world.checkpoint
        while not self.world.done:
            number = log.commits
            log.offsets = max(log.offsets, number + 1)
            self._batch(number)
            if log.commits != number:
                raise QueryFailed(RuntimeError("another run writes to the checkpoint"))
            log.commits = number + 1
            self.world.judge.batch_is_past(number)

    def leave(self, *, whole: bool) -> Actor:
        """From inside a call: the actor to park, so that the call hangs and the run goes on
        without it; or so that the whole run hangs, unless it has gone on without this call."""
        call = next((call for call in self.aside if call.here), None)
        if call is None and whole:
            return self.actor
        if call is None:
            call = self._calls[-1]
            self.aside.append(call)
        return call

    def _batch(self, number: int) -> None:
        plan = self._plan()
        reports: list[TaskReport] = []
        try:
            for partition, rows in enumerate(self.world.batches[number]):
                reports.append(self._task(plan, number, partition, rows))
            self._call(partial(self._committer.commit, reports))
        except QueryFailed as failed:
            if not self._commits.process.alive or isinstance(failed.error, TimeoutError):
                self._replace_committer()
            self._call(partial(self._committer.abort, reports))
            raise

    def _plan(self) -> Plan:
        try:
            return self._call(self._planner.plan)
        except QueryFailed as failed:
            if isinstance(failed.error, TimeoutError):
                self._replace_planner()
            raise

    def _task(self, plan: Plan, number: int, partition: int, rows: list[bytes]) -> TaskReport:
        batch = BatchId(self.world.checkpoint.stream, number)
        data = [pa.RecordBatch.from_pydict({"value": rows[n : n + 1]}) for n in range(len(rows))]
        for attempt in range(TASK_ATTEMPTS):
            writer = TaskWriter(self.process(), self.world.options, plan)
            try:
                return self._call(partial(writer.write, batch, partition, data))
            except QueryFailed:
                if attempt == TASK_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _call(self, work: Callable[[], T]) -> T:
        """One call into a worker process, which may die, fail or be left behind."""
        results: list[T] = []
        call = Actor(lambda: results.append(work()))
        self._calls.append(call)
        finished = call.go()
        self._calls.remove(call)
        if not finished:
            raise QueryFailed(TimeoutError("the call hangs"))
        if isinstance(call.error, EosSinkError):
            raise QueryFailed(call.error) from call.error
        if isinstance(call.error, Killed):
            if all(not process.alive for process in self.processes):
                raise call.error
            raise QueryFailed(call.error) from call.error
        if call.error is not None:
            raise call.error
        return results[0]

    def _replace_planner(self) -> None:
        self._plans = self.process()
        self._planner = Planner(self._plans, self.world.options)

    def _replace_committer(self) -> None:
        self._commits = self.process()
        now_ms = partial(getattr, self.world.cluster.clock, "ms")
        self._committer = Committer(self._commits, self.world.options, now_ms)

    def _adopt(self, kafka: FakeKafka) -> FakeKafka:
        process = kafka.process
        self.processes.append(process)

        def hook(name: str, moment: Moment) -> None:
            if self.on_step is not None:
                self.on_step(self, name, moment)

        process.hook = hook
        return kafka
