"""What Spark does around a sink, as far as exactly once depends on it.

A session plans in one process, writes in others and commits in a third. It repeats a failed task,
and aborts a failed batch. A query's run writes one batch after the other and notes them in its
checkpoint.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.messages import named
from eos_sink.ops.starting_offsets import find_starting_offsets
from eos_sink.protocol.model import BatchId, Numbering, Plan, Run, TaskReport
from eos_sink.protocol.values import ProduceFailed, ProducerFenced
from eos_sink.sink_options import SinkOptions
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import Killed, Moment, Process
from tests.protocol.actor import Actor
from tests.protocol.checkpoint import INPUT, AnotherRun, Checkpoint, Ends, Progress
from tests.protocol.driver import Driver
from tests.protocol.scene import Gate, Scene
from tests.protocol.world import OWN_SINK, TOPIC

T = TypeVar("T")
Parts = Sequence[Sequence[bytes]]

TASK_ATTEMPTS = 2
FAILURES = (EosSinkError, Killed, TimeoutError)
"""How a batch ends that Spark does not commit: with an error of the sink, by the death of a worker
process, of which Spark says no more than that, or because a call hangs."""
_NUMBERS = itertools.count(1)
_MOST_LATE_S = 10


class SessionDied(BaseException):
    """The driver JVM is gone, with all its processes."""


class Session:
    """A driver JVM of Spark, with the worker processes that it keeps for later batches.

    Args:
        options: of a sink that is not the world's.
        files: its checkpoint.

    Attributes:
        run: the run of a query that takes place in it, if it can be left hanging.
    """

    def __init__(
        self, scene: Scene, options: SinkOptions | None = None, files: Checkpoint | None = None
    ) -> None:
        self.run: Actor | None = None
        self._scene = scene
        self._name = f"session {next(_NUMBERS)}"
        self._drivers: dict[int, Driver] = {}
        self._processes: list[Process] = []
        self._calls: list[Actor] = []
        self._left: list[Actor] = []
        self._hung: list[Process] = []
        self._alive = True
        self._files, self._of_query = files, options
        # Spark's thread that writes the checkpoint: files, and when they are written.
        self._late: list[tuple[float, Callable[[], None]]] = []
        self._refused: AnotherRun | None = None

    def kill(self) -> None:
        self._alive = False
        for process in self._processes:
            process.kill()

    def leave(self, process: Process, *, whole: bool) -> Actor:
        """From inside a call in the process: the actor to park, so that the call hangs and its
        run goes on without it; or so that the whole run hangs, unless it has gone on already."""
        call = next((call for call in self._left if call.here), None)
        if call is None and whole and self.run is not None:
            return self.run
        if call is None:
            call = self._calls[-1]
            self._left.append(call)
            self._hung.append(process)
        return call

    def run_query(self, checkpoint: Checkpoint, starting: Ends | None = None) -> None:
        """Run the query of the world to the end of its input.

        Raises:
            AnotherRun: another run of it has gone on.
            Incomplete, DataLoss: a part of the checkpoint, or of the input, is missing.
            EosSinkError, Killed, TimeoutError: a batch has failed.
            SessionDied: this session has died.
        """
        clock = self._scene.world.cluster.clock
        if self._scene.late:
            clock.listen(self._write_due)
        try:
            self._run_batches(checkpoint, starting)
        finally:
            # Spark waits for its thread when a query stops, though not for ever.
            self._write_due(clock() + _MOST_LATE_S)
            self._late.clear()

    def _write_later(self, file: Callable[[], None]) -> None:
        """Asynchronous progress tracking: in order, beside the batch."""
        if not self._scene.late:
            file()
            return
        now = self._scene.world.cluster.clock()
        delay_s = next(self._scene.late)
        self._late.append((max([now + delay_s, *(due for due, _ in self._late)]), file))
        self._write_due()

    def _write_due(self, until: float | None = None) -> None:
        now = self._scene.world.cluster.clock() if until is None else until
        moves = self._alive and (self.run is None or self.run.moves)
        while moves and self._refused is None and self._late and self._late[0][0] <= now:
            try:
                self._late.pop(0)[1]()
            except AnotherRun as error:
                self._refused = error

    def _run_batches(self, checkpoint: Checkpoint, starting: Ends | None) -> None:
        # Tasks of an earlier run may hang in processes of their own, which outlive this one.
        kept = [
            each for driver in self._drivers.values() for each in (driver.plans, driver.commits)
        ]
        self._processes = [kafka.process for kafka in kept]
        world, spark_run = self._scene.world, str(next(_NUMBERS))
        end, progress = world.end, Progress(checkpoint, starting, self._write_later)
        self._files, self._of_query = checkpoint, world.options
        while True:
            if self._refused is not None:
                raise self._refused
            before = progress.before
            ends = progress.ends or world.next_ends(before, end)
            if ends == before:
                return
            batch = progress.begin(ends)
            world.check_input(before, ends)
            # Its input may be made again while a zombie has it.
            expected = world.rows(ends)
            if self._of_query.origin.batch:
                batch = BatchId.numbered_by(Numbering.FOREACH, batch.source, batch.batch)
            late = progress.check_alone if self._scene.late else None
            self.write(batch, world.read(before, ends), spark_run, late)
            progress.commit()
            world.judge.batch_is_past(ends, world.judged(expected))

    def run_own_sink(self, checkpoint: Checkpoint) -> None:
        """Run it with Spark's own sink, which writes each partition at once."""
        world, progress = self._scene.world, Progress(checkpoint)
        kafka = FakeKafka(world.cluster, self._new_process())
        producer = kafka.producer(f"{OWN_SINK}{next(_NUMBERS)}", 60_000)

        def write(rows: Sequence[bytes]) -> None:
            try:
                producer.begin()
                for each in rows:
                    producer.produce(TOPIC, each)
                producer.commit(Deadline(30))
            except (ProduceFailed, ProducerFenced) as error:
                raise Killed("a task") from error

        self._call(partial(producer.init, Deadline(30)))
        while True:
            ends = progress.ends or world.next_ends(progress.before, world.end)
            if ends == progress.before:
                return
            progress.begin(ends)
            world.check_input(progress.before, ends)
            for rows in world.read(progress.before, ends):
                if rows:
                    self._call(partial(write, rows))
            progress.commit()

    def find_start(
        self, given: Mapping[str, str], checkpoint: Checkpoint, default: str = "earliest"
    ) -> Ends:
        """What the program of a query does before it starts it: `eos_sink.starting_offsets`.

        Raises:
            EosSinkError, Killed, TimeoutError: it has failed.
        """
        world, process = self._scene.world, self._new_process()

        def connect(_: ClusterConfig) -> FakeKafka:
            return FakeKafka(world.cluster, process, log_topic=world.options.log_topic)

        work = partial(find_starting_offsets, given, default, connect, checkpoint)
        found: dict[str, int] = json.loads(self._call(work))[INPUT]
        # A negative one stands for the first row.
        return {int(partition): max(at, 0) for partition, at in found.items()}

    def _named(self, batch: BatchId | None) -> contextlib.AbstractContextManager[None]:
        """What the writers of a batch write tell its user."""
        options = self._of_query or self._scene.world.options
        return named(options.names, options.log_topic, write=batch)

    def write(
        self,
        batch: BatchId,
        parts: Parts,
        spark_run: str = "",
        check_plan: Callable[[], None] | None = None,
    ) -> None:
        """One `df.write`, or a batch of a query, with what Spark does after an error.

        Args:
            parts: the rows of each partition.
            spark_run: of the query whose `foreachBatch` writes.
            check_plan: ends the run of a batch that is planned.

        Raises:
            EosSinkError, Killed, TimeoutError: what the user sees.
            SessionDied: this session has died.
        """
        stream = batch.numbering is Numbering.STREAM
        if stream:
            # Only foreachBatch can write a second frame.
            spark_run = ""
        driver = self._living()
        with contextlib.nullcontext() if stream else self._named(None):
            plan = self._call(driver.planner.plan)
        if check_plan is not None:
            check_plan()
        reports: list[TaskReport] = []
        driver = self._living()
        try:
            with self._named(batch):
                for partition, rows in enumerate(parts):
                    task = partial(driver.task, plan, batch, partition, rows, spark_run)
                    reports.append(self._repeat(task))
            self._check_results(reports)
            with self._named(batch):
                self._call(partial(driver.committer.commit, reports))
            if batch.numbering.is_by_spark:
                with contextlib.suppress(*FAILURES):
                    self._call(driver.committer.prepare)
        except FAILURES:
            with contextlib.suppress(*FAILURES):
                if stream:
                    self._call(partial(self._living().committer.abort, reports))
                else:
                    self._abort_write(reports, plan, len(parts))
            raise

    def _abort_write(self, reports: Sequence[TaskReport], plan: Plan, tasks: int) -> None:
        driver = self._living()
        given_up = self._call(partial(driver.committer.abort, reports, plan.token))
        if given_up is not None and len(reports) < tasks:
            planner = Planner(driver.commits, driver.options, plan.token.run, self._files)
            self._call(partial(planner.refuse_tasks, given_up))

    def _repeat(self, task: Callable[[], T]) -> T:
        for _ in range(TASK_ATTEMPTS - 1):
            with contextlib.suppress(*FAILURES):
                return self._call(task)
        return self._call(task)

    def _check_results(self, reports: Sequence[TaskReport]) -> None:
        most = self._scene.result_bytes
        inlined = sum(len(each.inline) + len(each.inline_dead_letters) for each in reports)
        if most is not None and inlined > most:
            raise Killed("the job, whose results are larger than spark.driver.maxResultSize")

    def _call(self, work: Callable[[], T]) -> T:
        """One call into a worker process, which may die, fail or be left behind."""
        results: list[T] = []
        call = Actor(lambda: results.append(work()))
        self._calls.append(call)
        finished = call.go()
        self._calls.remove(call)
        if not finished:
            raise TimeoutError("the call hangs")
        if not self._alive:
            raise SessionDied
        if call.error is not None:
            raise call.error
        return results[0]

    def _living(self) -> Driver:
        """The processes that Spark uses now. A dead one is replaced, and one in which a call hangs,
        or that has other options."""
        turn, options = self._scene.turns % 2, self._of_query or self._scene.world.options
        now = self._drivers.get(turn)
        if now is None or now.options != options:
            now = self._drivers[turn] = self._new_driver()
        if not self._is_usable(now.plans):
            fresh = self._new_driver()
            now.plans, now.planner = fresh.plans, fresh.planner
        if not self._is_usable(now.commits):
            fresh = self._new_driver()
            now.commits, now.committer = fresh.commits, fresh.committer
        return now

    def _is_usable(self, kafka: FakeKafka) -> bool:
        return kafka.process.alive and kafka.process not in self._hung

    def _new_driver(self) -> Driver:
        world, options = self._scene.world, self._of_query or self._scene.world.options
        run = Run("host-a", next(_NUMBERS), 0, options.origin, session=self._name)
        return Driver(
            world,
            run=run,
            clock=world.cluster.clock,
            new_process=self._new_process,
            files=self._files,
            options=options,
        )

    def _new_process(self) -> Process:
        process = Process()

        def hook(name: str, moment: Moment) -> None:
            self._scene.step(self, Gate(name, moment), process)

        process.hook = hook
        self._processes.append(process)
        return process
