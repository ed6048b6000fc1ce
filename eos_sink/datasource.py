"""`format("kafka-eos")`: Spark's Python data source API around the protocol.

Spark creates the source anew for each plan, ships the writer to the tasks, and unpickles an earlier
instance in the process that runs `commit()` and `abort()`; that is how the two are told apart
(pyspark.sql.worker.write_into_data_source, python_streaming_sink_runner).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from eos_sink.errors import ConfigurationError, EosSinkError
from eos_sink.model import BatchId, Plan, TaskReport
from eos_sink.options import SinkOptions, parse_options

if TYPE_CHECKING:
    import pyarrow as pa

    from eos_sink.driver.committer import Committer
    from eos_sink.driver.planner import Planner
    from eos_sink.ports import Kafka

FORMAT = "kafka-eos"

Connect = Callable[[SinkOptions], "Kafka"]

# One process serves all queries of a session and their restarts, so what it keeps is keyed by the
# query; changed options make it anew.
_planners: dict[str, tuple[SinkOptions, Planner]] = {}
_committers: dict[str, tuple[SinkOptions, Committer]] = {}


def connect(options: SinkOptions) -> Kafka:
    """The real clients. Imported here, since Spark imports this module to look the format up."""
    with _in_this_python():
        from eos_sink.clients.cluster import ConfluentKafka

    return ConfluentKafka(options)


@contextmanager
def _in_this_python() -> Iterator[None]:
    """Spark's workers often run another Python than the driver's program."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"The Python that Spark's workers run, {sys.executable}, has no module "
            f"{missing.name!r}.",
            remedy="Install eos-sink for it, or set PYSPARK_PYTHON to the Python that has it. "
            "Nothing was written.",
        ) from missing


@dataclass(frozen=True)
class Report(WriterCommitMessage):
    """A task's report on its way to the driver."""

    report: TaskReport


class KafkaEosDataSource(DataSource):
    """The exactly-once Kafka sink. See docs/options.md for its options."""

    connect: Connect = staticmethod(connect)

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._options = parse_options(options)
        self._unpickled = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._unpickled = True

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        raise ConfigurationError(
            f"format('{FORMAT}') writes streams, not batches.",
            remedy="Use df.writeStream, with trigger(availableNow=True) for a run that ends. "
            "Nothing was written.",
        )

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> StreamWriter:
        if self._unpickled:
            # The process of commit() and abort() must not join, recover or sweep.
            return StreamWriter(self._options, type(self).connect, None)
        # Imported here: Spark imports this module to look the format up, and pyarrow is slow.
        with _in_this_python():
            from eos_sink.task.columns import check_columns

        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        check_columns(types, self._options.topic, self._options.timestamp_column)
        plan = _planner(self._options, type(self).connect).plan()
        return StreamWriter(self._options, type(self).connect, plan)


class StreamWriter(DataSourceStreamArrowWriter):
    """Runs in tasks (`write`) and in the process of commits (`commit`, `abort`)."""

    def __init__(self, options: SinkOptions, connect: Connect, plan: Plan | None) -> None:
        self._options = options
        self._connect = connect
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Report:
        with _in_this_python():
            from eos_sink.task.writer import TaskWriter

        assert self._plan is not None
        context = TaskContext.get()
        assert context is not None
        stream = context.getLocalProperty("sql.streaming.queryId")
        number = context.getLocalProperty("streaming.sql.batchId")
        if stream is None or number is None:
            raise ConfigurationError(
                "The task does not belong to a micro-batch of a streaming query.",
                remedy="Write with df.writeStream and a micro-batch trigger (continuous and "
                "real-time mode have no batches to commit). Nothing was written.",
            )
        if context.getLocalProperty("spark.speculation") == "true":
            # Two attempts of a task would take one transactional id from each other, and the
            # later one can abort what the earlier one has prepared.
            raise ConfigurationError(
                "spark.speculation is on: a second attempt of a task would abort what the first "
                "one has written.",
                remedy="Start the session with spark.speculation=false. Nothing was written.",
            )
        task = TaskWriter(self._connect(self._options), self._options, self._plan)
        return Report(task.write(BatchId(stream, int(number)), context.partitionId(), iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        reports = _reports(messages)
        if messages and not reports:
            # In continuous mode Spark does not run the writers of Python sources at all.
            raise ConfigurationError(
                f"Spark commits epoch {batchId} without having run any of its tasks, as it does "
                "in continuous mode.",
                remedy="Use a micro-batch trigger (processingTime, availableNow). Nothing was "
                "written.",
            )
        if len(reports) != len(messages):
            raise EosSinkError(
                f"Spark commits batch {batchId} with {len(messages) - len(reports)} tasks "
                "unreported.",
                remedy="Start the query again: Spark replays the batch.",
            )
        _committer(self._options, self._connect).commit(reports)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803, ARG002
    ) -> None:
        _committer(self._options, self._connect).abort(_reports(messages))


def _reports(messages: list[WriterCommitMessage | None]) -> list[TaskReport]:
    return [message.report for message in messages if isinstance(message, Report)]


def _planner(options: SinkOptions, connect: Connect) -> Planner:
    from eos_sink.driver.planner import Planner

    key = options.names.group
    if key in _planners and _planners[key][0] != options:
        _planners.pop(key)[1].close()
    if key not in _planners:
        _planners[key] = (options, Planner(connect(options), options))
    return _planners[key][1]


def _committer(options: SinkOptions, connect: Connect) -> Committer:
    from eos_sink.driver.committer import Committer

    key = options.names.group
    if key not in _committers or _committers[key][0] != options:
        _committers[key] = (options, Committer(connect(options), options))
    return _committers[key][1]
