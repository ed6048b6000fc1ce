"""Writes a batch in tasks and commits it in the driver, for streams and for batches.

Streams and batches do the same with the rows. Who numbers the batch differs: Spark does for a
query, also for one whose `foreachBatch` writes. The user may number a batch write. This module
needs no Python data source, which Spark 3.5 does not have.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING
from zipimport import zipimporter

from pyspark import TaskContext

from eos_sink.errors import EosSinkError
from eos_sink.messages import Reason, named, run_again, stop
from eos_sink.protocol.model import BatchId, LogEntry, Numbering, Plan, TaskReport
from eos_sink.protocol.values import MemberRefused
from eos_sink.protocol.written import draw_number
from eos_sink.sink_options import SinkOptions, Version
from eos_sink.spark.client_cache import Connect, explain_missing_library

if TYPE_CHECKING:
    import pyarrow as pa

    from eos_sink.driver.committer import Committer

CheckSettings = Callable[[Mapping[str, str]], None]
"""Refuses settings of the session that were not applied; see `eos_sink.spark.session_defaults`."""

# Spark's local properties, which tasks see: StreamExecution.QUERY_ID_KEY,
# MicroBatchExecution.BATCH_ID_KEY, and the job group, which is the query's run id.
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
RUN = "spark.jobGroup.id"

# After the second use nothing more is loaded, and what is frozen is never freed.
_LOADED_AFTER = 2

_SPARKS_ARCHIVE = re.compile(r"(?:pyspark|py4j-[^/\\]*)\.zip$")

_uses = count(1)
_LOGGER = logging.getLogger("eos_sink.driver")


def freeze_garbage_collector() -> None:
    """Exempt what a process has loaded from garbage collection. Call it before anything else at
    each use of a process of Spark's, never in a user's own: the first two count.

    Spark's daemon collects all garbage of a worker after each task, and the worker takes the next
    one only then: 40 ms for the modules of pandas, pyarrow and this package (measured), for which
    there is nothing to free. At the first use that are Spark's modules, which imports would
    otherwise go through several times: 20 ms or more of a start (measured). At the second use it is
    the rest, whose garbage Spark has just collected.
    """
    if next(_uses) <= _LOADED_AFTER:
        gc.freeze()
    _spare_archives()


def _spare_archives() -> None:
    """Keep a worker from reading the directories of Spark's archives again before each task.

    It invalidates the caches of all importers then, and before Python 3.13 that of an archive reads
    the directory at once: 65 ms of CPU time for `pyspark.zip` (measured). Spark's archives do not
    change. An importer that is missing is made again by the next import that looks for it, from
    `zipimport`'s own cache of directories.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter) and _SPARKS_ARCHIVE.search(importer.archive):
            sys.path_importer_cache.pop(path, None)


def is_speculative(settings: Callable[[str], str | None]) -> bool:
    """True if Spark may run two attempts of a task. Spark trims a setting and takes it in any
    case."""
    return (settings("spark.speculation") or "").strip().lower() == "true"


class SinkWriter:
    """The common part of all writers. Spark ships it to the tasks and to the commit process."""

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
    ) -> TaskReport:
        freeze_garbage_collector()
        with explain_missing_library():
            from eos_sink.task.writer import TaskWriter

        assert self._plan is not None
        if self._check_settings is not None:
            # The public API reads a setting by its name, and not all names are known here.
            self._check_settings(getattr(context, "_localProperties", None) or {})
        if is_speculative(context.getLocalProperty):
            # Two attempts of a task fence each other, and the later one can abort what the earlier
            # one has prepared.
            raise stop(Reason.SPECULATION)
        with contextlib.closing(self._connect(self._options)) as kafka:
            attempt = context.attemptNumber()
            task = TaskWriter(kafka, self._options, self._plan, attempt=attempt)
            return task.write(batch, context.partitionId(), rows, spark_run)

    def make_committer(self) -> Committer:
        """A committer with clients of its own."""
        from eos_sink.driver.committer import Committer

        return Committer(self._connect(self._options), self._options)


class SingleWriter(SinkWriter):
    """Writes a frame: that of a batch, or of a batch of a query whose `foreachBatch` writes."""

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
        self._is_numbered = version is not None
        if version is None:
            version = Version("", draw_number(int(time.time() * 1000), plan.highest_number))
        numbering = Numbering.VERSION if version.app else Numbering.ONCE
        self._batch = BatchId.numbered_by(numbering, version.app, version.number)

    def write_partition(self, rows: Iterator[pa.RecordBatch]) -> TaskReport:
        """Runs in a task."""
        context = task_context()
        batch, spark_run = self._numbered(context)
        with named(self._options.names, self._options.log_topic, write=batch):
            return self._write(context, batch, spark_run, rows)

    def commit_reports(self, committer: Committer, reports: Sequence[TaskReport | None]) -> None:
        """Make the rows of all tasks visible.

        Args:
            reports: of each task; None: it has not reported.
        """
        batch = _batch_of(reports)
        with named(self._options.names, self._options.log_topic, write=batch):
            committer.commit(check_all_reported(reports))
        if batch is not None and batch.numbering.is_by_spark:
            committer.prepare()

    def abort_reports(
        self, committer: Committer, reports: Sequence[TaskReport | None]
    ) -> LogEntry | None:
        """End what the tasks have left open: the next plan under this identity may be days away.

        Args:
            reports: as in `commit_reports`; empty: the job has returned none.

        Returns:
            The record that gives up the plan, if the job has failed, so that its other tasks may
            still run; None: they have ended, or a newer write goes on.
        """
        batch = _batch_of(reports)
        if batch is not None and batch.numbering is Numbering.ONCE:
            # The process of the commit may have died without an error of the sink's.
            _LOGGER.warning("%s has failed. %s", batch, run_again(batch))
        given_up = committer.abort([report for report in reports if report], self._token)
        return None if reports and all(reports) else given_up

    def _numbered(self, context: TaskContext) -> tuple[BatchId, str]:
        """The batch, and Spark's run id of the query whose `foreachBatch` writes."""
        query, number = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
        is_version = self._batch.numbering is Numbering.VERSION
        if is_version or query is None or number is None:
            if self._options.source is not None:
                raise stop(Reason.NO_QUERY_OF_SOURCE)
            return self._batch, ""
        if self._is_numbered:
            raise stop(Reason.WRITE_ID_IN_QUERY)
        if self._options.origin.eos_id is None:
            # Two queries that share an identity by accident would retire each other.
            raise stop(Reason.NO_EOS_ID)
        return BatchId.numbered_by(Numbering.FOREACH, query, int(number)), _run(context)


@contextlib.contextmanager
def log_errors_of_abort() -> Iterator[None]:
    """Log the error of an abort. If it were raised, Spark would tell the user "Writing job failed."
    instead of the error that has led to the abort, which says what to do."""
    try:
        yield
    except (EosSinkError, MemberRefused) as error:
        # The next plan, or the timeout, ends what is open.
        _LOGGER.warning("The abort of the batch has failed: %s", error)


def _batch_of(reports: Sequence[TaskReport | None]) -> BatchId | None:
    return next((report.batch for report in reports if report), None)


def check_all_reported(reports: Sequence[TaskReport | None]) -> list[TaskReport]:
    """The reports of all tasks.

    Raises:
        EosSinkError: one is missing.
    """
    found = [report for report in reports if report]
    if len(found) != len(reports):
        raise stop(Reason.UNREPORTED, missing_reports=len(reports) - len(found))
    return found


def _run(context: TaskContext) -> str:
    run = context.getLocalProperty(RUN)
    try:
        return str(uuid.UUID(run))
    except (TypeError, ValueError, AttributeError):
        # Without it a second frame of a batch would look like a replay of the first.
        raise stop(Reason.JOB_GROUP, run=run) from None


def task_context() -> TaskContext:
    """Of the task that runs."""
    context = TaskContext.get()
    assert context is not None
    return context
