"""The writers of a stream and of a batch as Spark's Python data source API has them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from eos_sink.errors import without_frames
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.spark.client_cache import ClientCache
from eos_sink.spark.sink_writer import (
    BATCH,
    QUERY,
    SingleWriter,
    SinkWriter,
    check_all_reported,
    freeze_garbage_collector,
    log_errors_of_abort,
    task_context,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    from eos_sink.driver.committer import Committer
else:
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    except ImportError:
        # Spark 4.0 gives record batches to each writer that is an Arrow writer, a stream's too
        # (SPARK-50471).
        from pyspark.sql.datasource import DataSourceStreamWriter

        class DataSourceStreamArrowWriter(DataSourceArrowWriter, DataSourceStreamWriter):
            """Does what Spark 4.1 has under this name."""


_committers: ClientCache[Committer] = ClientCache()


@dataclass(frozen=True)
class Report(WriterCommitMessage):
    """Carries a task's report to the driver."""

    report: TaskReport


class StreamWriter(SinkWriter, DataSourceStreamArrowWriter):
    """Runs in tasks (`write`) and in the commit process (`commit`, `abort`)."""

    @without_frames
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Report:
        context = task_context()
        stream, number = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
        if stream is None or number is None:
            what = "the task does not belong to a micro-batch of a streaming query"
            raise stop(Reason.NO_MICRO_BATCH, what=what)
        return Report(self._write(context, BatchId(stream, int(number)), "", iterator))

    @without_frames
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        freeze_garbage_collector()
        reports = _reports(messages)
        if reports and not any(reports):
            # In continuous mode Spark does not run the writers of Python sources at all.
            what = f"Spark commits epoch {batchId} without having run any of its tasks"
            raise stop(Reason.NO_MICRO_BATCH, what=what)
        written = check_all_reported(reports)
        with _committers.lease(self._options, self.make_committer) as committer:
            committer.commit(written)
            committer.prepare()

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803, ARG002
    ) -> None:
        written = [report for report in _reports(messages) if report]
        leased = _committers.lease(self._options, self.make_committer)
        with log_errors_of_abort(), leased as committer:
            committer.abort(written)


class BatchWriter(SingleWriter, DataSourceArrowWriter):
    """The writer of `df.write`. Spark creates one for each write, when it runs."""

    @without_frames
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Report:
        return Report(self.write_partition(iterator))

    @without_frames
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        freeze_garbage_collector()
        with _committers.lease(self._options, self.make_committer) as committer:
            self.commit_reports(committer, _reports(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        with log_errors_of_abort():
            self._abort(_reports(messages))

    def _abort(self, reports: Sequence[TaskReport | None]) -> None:
        with _committers.lease(self._options, self.make_committer) as committer:
            given_up = self.abort_reports(committer, reports)
        if given_up is not None:
            from eos_sink.driver.planner import Planner

            run = self._token.run
            planner = Planner(self._connect(self._options), self._options, run)
            with contextlib.closing(planner):
                planner.refuse_tasks(given_up)


def _reports(messages: Sequence[WriterCommitMessage | None]) -> list[TaskReport | None]:
    return [each.report if isinstance(each, Report) else None for each in messages]
