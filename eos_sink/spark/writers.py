"""The writers of a stream and of a batch, which Spark ships to tasks and to the commit process.

They do the same with the rows. Who numbers the batch differs: Spark does for a query, also for one
whose `foreachBatch` writes. The user may number a batch write.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from eos_sink.errors import ConfigurationError, EosSinkError, without_frames
from eos_sink.options import SinkOptions, Version
from eos_sink.protocol.model import BatchId, Numbering, Plan, TaskReport
from eos_sink.spark.client_cache import ClientCache

if TYPE_CHECKING:
    import pyarrow as pa

    from eos_sink.driver.committer import Committer
    from eos_sink.kafka.interfaces import Kafka

Connect = Callable[[SinkOptions], "Kafka"]
CheckSettings = Callable[[Mapping[str, str]], None]
"""Refuses settings of the session that were not applied; see `eos_sink.spark.session_defaults`."""

# Spark's local properties, which tasks see: StreamExecution.QUERY_ID_KEY,
# MicroBatchExecution.BATCH_ID_KEY, and the job group, which is the query's run id.
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
_RUN = "spark.jobGroup.id"

# After the second use nothing more is loaded, and what is frozen is never freed.
_LOADED_AFTER = 2

_committers: ClientCache[Committer] = ClientCache()


_uses = count(1)


def spare_collections() -> None:
    """Exempt what a process has loaded from garbage collection. Call it before anything else at
    each use of the process: the first two count.

    Spark's daemon collects all garbage of a worker after each task, and the worker takes the next
    one only then: 40 ms for the modules of pandas, pyarrow and this package (measured), for which
    there is nothing to free. At the first use that are Spark's modules, which imports would
    otherwise go through several times: 20 ms or more of a start (measured). At the second use it is
    the rest, whose garbage Spark has just collected.
    """
    if next(_uses) <= _LOADED_AFTER:
        gc.freeze()


@contextlib.contextmanager
def in_this_python() -> Iterator[None]:
    """Explain a missing or old library: workers often run another Python than the driver."""
    try:
        yield
    except ImportError as error:
        problem = (
            f"has no module {error.name!r}"
            if isinstance(error, ModuleNotFoundError)
            else f"cannot load what eos-sink needs: {error}"
        )
        raise ConfigurationError(
            f"The Python that Spark's workers run, {sys.executable}, {problem}.",
            remedy="Install eos-sink for it with its libraries (pip install --upgrade eos-sink), "
            "or set PYSPARK_PYTHON to the Python that has them. Nothing was written.",
        ) from error


@dataclass(frozen=True)
class Report(WriterCommitMessage):
    """Carries a task's report to the driver."""

    report: TaskReport


class SinkWriter:
    """The common part of both writers."""

    def __init__(
        self,
        options: SinkOptions,
        connect: Connect,
        plan: Plan | None,
        check_settings: CheckSettings | None = None,
    ) -> None:
        self._options = options
        self._connect = connect
        self._plan = plan
        self._check_settings = check_settings

    def _write(
        self, context: TaskContext, batch: BatchId, spark_run: str, rows: Iterator[pa.RecordBatch]
    ) -> Report:
        spare_collections()
        with in_this_python():
            from eos_sink.task.writer import TaskWriter

        assert self._plan is not None
        if self._check_settings is not None:
            # The public API reads a setting by its name, and not all names are known here.
            self._check_settings(getattr(context, "_localProperties", None) or {})
        # Spark trims a setting and takes it in any case.
        if (context.getLocalProperty("spark.speculation") or "").strip().lower() == "true":
            # Two attempts of a task fence each other, and the later one can abort what the earlier
            # one has prepared.
            raise ConfigurationError(
                "spark.speculation is on: a second attempt of a task would abort what the first "
                "one has written.",
                remedy="Start the session with spark.speculation=false. Nothing was written.",
            )
        with contextlib.closing(self._connect(self._options)) as kafka:
            attempt = context.attemptNumber()
            task = TaskWriter(kafka, self._options, self._plan, attempt=attempt)
            return Report(task.write(batch, context.partitionId(), rows, spark_run))

    def _commit(self, messages: list[WriterCommitMessage | None]) -> None:
        spare_collections()
        reports = _reports(messages)
        if len(reports) != len(messages):
            raise EosSinkError(
                f"Spark commits a batch with {len(messages) - len(reports)} tasks unreported.",
                remedy="Start the query again: Spark replays the batch.",
            )
        self._committer().commit(reports)

    def _committer(self) -> Committer:
        from eos_sink.driver.committer import Committer

        return _committers.get(
            self._options, lambda: Committer(self._connect(self._options), self._options)
        )


class StreamWriter(SinkWriter, DataSourceStreamArrowWriter):
    """Runs in tasks (`write`) and in the commit process (`commit`, `abort`)."""

    @without_frames
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Report:
        context = _task_context()
        stream, number = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if stream is None or number is None:
            raise ConfigurationError(
                "The task does not belong to a micro-batch of a streaming query.",
                remedy="Write with df.writeStream and a micro-batch trigger (continuous and "
                "real-time mode have no batches to commit). Nothing was written.",
            )
        return self._write(context, BatchId(stream, int(number)), "", iterator)

    @without_frames
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if messages and not _reports(messages):
            # In continuous mode Spark does not run the writers of Python sources at all.
            raise ConfigurationError(
                f"Spark commits epoch {batchId} without having run any of its tasks, as it does "
                "in continuous mode.",
                remedy="Use a micro-batch trigger (processingTime, availableNow). Nothing was "
                "written.",
            )
        self._commit(messages)

    @without_frames
    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803, ARG002
    ) -> None:
        self._committer().abort(_reports(messages))


class BatchWriter(SinkWriter, DataSourceArrowWriter):
    """The writer of `df.write`. Spark creates one for each write, when it runs."""

    def __init__(
        self,
        options: SinkOptions,
        connect: Connect,
        plan: Plan,
        version: Version | None,
        check_settings: CheckSettings | None = None,
    ) -> None:
        super().__init__(options, connect, plan, check_settings)
        self._token = plan.token
        self._version = version
        # Its number is that of its record in the log, if it gets one.
        self._once = BatchId.numbered_by(Numbering.ONCE, uuid.uuid4().hex, plan.token.seq + 1)

    @without_frames
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Report:
        from eos_sink.spark.remedies import Stage, add_batch_remedy

        context = _task_context()
        batch, spark_run = self._numbered(context)
        with add_batch_remedy(Stage.TASK, batch, self._token):
            return self._write(context, batch, spark_run, iterator)

    @without_frames
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from eos_sink.spark.remedies import Stage, add_batch_remedy

        reports = _reports(messages)
        batch = reports[0].batch if reports else None
        with add_batch_remedy(Stage.COMMIT, batch, self._token):
            self._commit(messages)

    @without_frames
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        # The next plan under this identity may be days away, so abort what is open now.
        self._committer().abort(_reports(messages), self._token)

    def _numbered(self, context: TaskContext) -> tuple[BatchId, str]:
        """The batch, and Spark's run id of the query whose `foreachBatch` writes."""
        if self._version is not None:
            named = BatchId.numbered_by(Numbering.VERSION, self._version.app, self._version.number)
            return named, ""
        query, number = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if query is None or number is None:
            if self._options.source is not None:
                raise ConfigurationError(
                    "Option eos.source.group.id is for the batches of a streaming query, and this "
                    "write is of none.",
                    remedy="Remove it. Nothing was written.",
                )
            return self._once, ""
        return BatchId.numbered_by(Numbering.FOREACH, query, int(number)), _run(context)


def _run(context: TaskContext) -> str:
    run = context.getLocalProperty(_RUN)
    try:
        return str(uuid.UUID(run))
    except (TypeError, ValueError, AttributeError):
        # Without it a second frame of a batch would look like a replay of the first.
        raise ConfigurationError(
            f"The job group was changed inside foreachBatch, to {run!r}: Spark's own, the run id "
            "of the query, tells a repeated batch from another frame of the same batch.",
            remedy="Remove setJobGroup, or give the write txnAppId and txnVersion. Nothing of the "
            "batch is visible.",
        ) from None


def _task_context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context


def _reports(messages: list[WriterCommitMessage | None]) -> list[TaskReport]:
    return [message.report for message in messages if isinstance(message, Report)]
