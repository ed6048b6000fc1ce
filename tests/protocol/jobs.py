"""Sessions of Spark that write for the users of `tests.protocol.users`, under one identity."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.options import SinkOptions
from eos_sink.protocol.model import BatchId, Numbering, Plan, Run, TaskReport
from eos_sink.spark.remedies import Stage, add_batch_remedy
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import Killed
from tests.protocol.scene import Scene

Parts = Sequence[Sequence[bytes]]
TASK_ATTEMPTS = 2
_NUMBERS = itertools.count(1)


@dataclass
class _Processes:
    """A planner's and a committer's process, which Spark keeps for later batches."""

    options: SinkOptions
    plans: FakeKafka
    planner: Planner
    commits: FakeKafka
    committer: Committer


class Session:
    """A session of Spark, with the processes that it keeps."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._name = f"session {next(_NUMBERS)}"
        self._processes: dict[int, _Processes] = {}

    def write(
        self, numbering: Numbering, source: str, number: int, parts: Parts, spark_run: str = ""
    ) -> None:
        """One `df.write`, or a batch of a query, with what Spark does after an error.

        Args:
            spark_run: of the query whose `foreachBatch` writes.

        Raises:
            EosSinkError: what the user sees.
            Killed: a worker process has died, of which Spark says no more than that.
        """
        processes = self._living()
        plan = self._plan(processes, numbering)
        once = numbering is Numbering.ONCE
        batch = BatchId.numbered_by(numbering, source, plan.token.seq + 1 if once else number)
        reports: list[TaskReport] = []
        processes = self._living()
        try:
            with add_batch_remedy(Stage.TASK, batch, plan.token):
                for partition, rows in enumerate(parts):
                    reports.append(self._task(processes, plan, batch, partition, rows, spark_run))
            self._check_results(reports)
            with add_batch_remedy(Stage.COMMIT, batch, plan.token):
                processes.committer.commit(reports)
        except (EosSinkError, Killed):
            processes = self._living()
            token = None if numbering is Numbering.STREAM else plan.token
            with contextlib.suppress(EosSinkError, Killed):
                processes.committer.abort(reports, token)
            raise

    @staticmethod
    def _plan(processes: _Processes, numbering: Numbering) -> Plan:
        if numbering is Numbering.STREAM:
            return processes.planner.plan()
        with add_batch_remedy(Stage.PLAN):
            return processes.planner.plan()

    def _task(
        self,
        processes: _Processes,
        plan: Plan,
        batch: BatchId,
        partition: int,
        rows: Sequence[bytes],
        spark_run: str,
    ) -> TaskReport:
        data = [pa.RecordBatch.from_pydict({"value": list(rows)})] if rows else []
        for attempt in range(TASK_ATTEMPTS):
            task = TaskWriter(self._scene.process(), processes.options, plan)
            try:
                return task.write(batch, partition, data, spark_run)
            except (EosSinkError, Killed):
                if attempt == TASK_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _check_results(self, reports: Sequence[TaskReport]) -> None:
        most = self._scene.plot.result_bytes
        inlined = sum(len(each.inline) + len(each.inline_dead_letters) for each in reports)
        if most is not None and inlined > most:
            raise Killed("the job, whose results are larger than spark.driver.maxResultSize")

    def _living(self) -> _Processes:
        """The processes that Spark uses now; a dead one, or one for other options, is replaced."""
        turn, options = self._scene.turns % 2, self._scene.world.options
        now = self._processes.get(turn)
        if now is None or now.options != options:
            now = self._processes[turn] = _Processes(
                options, *self._new_planner(options), *self._new_committer(options)
            )
        if not now.plans.process.alive:
            now.plans, now.planner = self._new_planner(options)
        if not now.commits.process.alive:
            now.commits, now.committer = self._new_committer(options)
        return now

    def _new_planner(self, options: SinkOptions) -> tuple[FakeKafka, Planner]:
        process = self._scene.process()
        run = Run("host-a", next(_NUMBERS), 0, options.origin, session=self._name)
        return process, Planner(process, options, run)

    def _new_committer(self, options: SinkOptions) -> tuple[FakeKafka, Committer]:
        process, clock = self._scene.process(), self._scene.world.cluster.clock
        return process, Committer(process, options, partial(getattr, clock, "ms"), clock)
