"""What Spark does around a sink, as far as exactly once depends on it.

A run of the query plans in one process, writes in others, commits in a third, and keeps its two
logs in the checkpoint. It replays a batch that is in the offset log but not in the commit log.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import pyarrow as pa

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.protocol.model import BatchId, Numbering, Plan, TaskReport
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import Killed, Moment, Process
from tests.protocol.actor import Actor
from tests.protocol.world import World

T = TypeVar("T")

TASK_ATTEMPTS = 2
_RUNS = itertools.count(1)


class QueryFailed(Exception):
    """A run has ended with an error; `error` is what the sink said, if it was the sink."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


Step = Callable[["Run", "Gate", Process], None]


class Gate(NamedTuple):
    """Where a fault can strike: before or after a port call."""

    call: str
    moment: Moment


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
        self._checkpoint = world.checkpoint
        foreach = BatchId(world.checkpoint.stream, 0).numbering is Numbering.FOREACH
        self._run_id = str(next(_RUNS)) if foreach else ""
        self._calls: list[Actor] = []
        self._hung: list[Process] = []
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
        log = self._checkpoint
        while not self.world.is_done(log):
            number = log.commits
            log.offsets = max(log.offsets, number + 1)
            self._batch(number)
            if log.commits != number:
                raise QueryFailed(RuntimeError("another run writes to the checkpoint"))
            log.commits = number + 1
            self.world.judge.batch_is_past(number)

    def leave(self, process: Process, *, whole: bool) -> Actor:
        """From inside a call in the process: the actor to park, so that the call hangs and the run
        goes on without it; or so that the whole run hangs, unless it has gone on already."""
        call = next((call for call in self.aside if call.here), None)
        if call is None and whole:
            return self.actor
        if call is None:
            call = self._calls[-1]
            self.aside.append(call)
            self._hung.append(process)
        return call

    def _batch(self, number: int) -> None:
        try:
            plan = self._call(self._planner.plan)
        except QueryFailed:
            self._replace_if_hung(self._plans, self._replace_planner)
            raise
        reports: list[TaskReport] = []
        try:
            for partition, rows in enumerate(self.world.batches[number]):
                reports.append(self._task(plan, number, partition, rows))
            self._call(partial(self._committer.commit, reports))
        except QueryFailed:
            self._replace_if_hung(self._commits, self._replace_committer)
            try:
                token = plan.token if self.world.options.origin.batch else None
                self._call(partial(self._committer.abort, reports, token))
            finally:
                self._replace_if_hung(self._commits, self._replace_committer)
            raise

    def _replace_if_hung(self, kafka: FakeKafka, replace: Callable[[], None]) -> None:
        """A worker process with a call that hangs, or a dead one, is not used again."""
        if not kafka.process.alive or kafka.process in self._hung:
            replace()

    def _task(self, plan: Plan, number: int, partition: int, rows: list[bytes]) -> TaskReport:
        batch = BatchId(self._checkpoint.stream, number)
        data = [pa.RecordBatch.from_pydict({"value": rows[n : n + 1]}) for n in range(len(rows))]
        for attempt in range(TASK_ATTEMPTS):
            writer = TaskWriter(self.process(), self.world.options, plan)
            try:
                return self._call(partial(writer.write, batch, partition, data, self._run_id))
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
                self.on_step(self, Gate(name, moment), process)

        process.hook = hook
        return kafka
