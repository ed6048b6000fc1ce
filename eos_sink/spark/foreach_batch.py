"""The sink without Spark's Python data source API: a `foreachBatch` that writes through Arrow.

For Spark 3.5, which has no such API, and for what that API refuses, such as output mode `update`.
What Spark 4 does around a writer is done here: plan, one job over `mapInArrow` whose tasks report,
commit or abort. Planner and committer live in the user's own driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.messages import Reason, named, stop
from eos_sink.options import check_names, parse_batch_options
from eos_sink.sink_options import BatchOptions, SinkOptions
from eos_sink.spark.classic_session import check_threads, is_classic, read_settings
from eos_sink.spark.client_cache import ClientCache, Connect, connect
from eos_sink.spark.session_defaults import Defaults
from eos_sink.spark.sink_writer import (
    BATCH,
    QUERY,
    RUN,
    SingleWriter,
    is_speculative,
    log_errors_of_abort,
    task_context,
)
from eos_sink.task.schema import check_columns, used_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from eos_sink.protocol.model import TaskReport


class _Clients:
    """The planner and the committer of one run of a query."""

    def __init__(self, connect: Connect, options: SinkOptions) -> None:
        self.planner = Planner(connect(options), options)
        self.committer = Committer(connect(options), options)

    def close(self) -> None:
        self.planner.close()
        self.committer.close()


_clients: ClientCache[_Clients] = ClientCache()


def make_foreach_batch(
    options: Mapping[str, str], connect: Connect = connect
) -> Callable[[DataFrame, int], None]:
    """See `eos_sink.foreach_batch`."""
    from pyspark.sql import SparkSession

    _check_own(options)
    active = SparkSession.getActiveSession()
    if active is not None and is_classic(active):
        _parse(active, options)
    latest: tuple[str, BatchOptions] | None = None

    def write_batch(frame: DataFrame, number: int) -> None:
        nonlocal latest
        spark = _classic_session(frame)
        properties = spark.sparkContext.getLocalProperty
        query = properties(QUERY)
        if query is None or properties(BATCH) != str(number):
            raise stop(Reason.QUERY_NOT_SEEN)
        run, known = properties(RUN) or "", latest
        if known is None or known[0] != run:
            # The settings of the session count when a query starts.
            known = latest = run, _parse(spark, options)
        _write(frame, known[1], query, run, connect)

    return write_batch


def write_frame(frame: DataFrame, options: Mapping[str, str], connect: Connect = connect) -> None:
    """See `eos_sink.write`."""
    spark = _classic_session(frame)
    parsed = _parse(spark, options)
    check_threads(parsed.version)
    properties = spark.sparkContext.getLocalProperty
    # Outside a query the job group is the user's.
    query = properties(QUERY)
    run = properties(RUN) if query else None
    _write(frame, parsed, query, run or "", connect)


def _check_own(options: Mapping[str, str]) -> None:
    """Check what holds for `foreach_batch` only."""
    given = {name.lower(): value for name, value in options.items()}
    if given.keys() & {"txnappid", "txnversion", "eos.write.id"}:
        raise stop(Reason.NUMBERED_TWICE)
    if not given.get("eos.id", "").strip():
        raise stop(Reason.NO_EOS_ID)


def _classic_session(frame: DataFrame) -> SparkSession:
    if not is_classic(frame):
        # There a batch runs in another process, which sees neither the query nor its run.
        raise stop(Reason.NO_CONNECT)
    return frame.sparkSession


def _parse(spark: SparkSession, options: Mapping[str, str]) -> BatchOptions:
    settings = read_settings(spark)
    if is_speculative(settings.get):
        raise stop(Reason.SPECULATION)
    defaults = Defaults.of_settings(settings)
    check_names(defaults.values)
    return parse_batch_options(defaults.fill_in(options))


def _write(
    frame: DataFrame, options: BatchOptions, query: str | None, run: str, connect: Connect
) -> None:
    sink = options.sink
    if query is None and sink.source is not None:
        # A plan would take the position of the query that has the checkpoint.
        raise stop(Reason.NO_QUERY_OF_SOURCE)
    types = dict(frame.dtypes)
    check_columns(types, sink.topic, sink.timestamp_column)
    used = used_columns(types, sink.topic, sink.timestamp_column)
    # One thread from plan to commit: the clients are not made for two. A run that is started while
    # the one before still commits has its own plan, and Kafka refuses one of them.
    with _clients.lease(sink, lambda: _Clients(connect, sink), run) as clients:
        with named(sink.names, sink.log_topic, write=None):
            plan = clients.planner.plan(query)
        writer = SingleWriter(sink, connect, plan, options.version)
        reports: list[TaskReport | None] = []
        try:
            reports = _run_tasks(frame, used, writer)
            writer.commit_reports(clients.committer, reports)
        except BaseException:
            with log_errors_of_abort():
                given_up = writer.abort_reports(clients.committer, reports)
                if given_up is not None:
                    clients.planner.refuse_tasks(given_up)
            raise


def _run_tasks(
    frame: DataFrame, columns: Sequence[str], writer: SingleWriter
) -> list[TaskReport | None]:
    """Write these columns of all partitions in one job; the frame is never computed twice."""
    # In Spark a dot in a name means the field of a struct, and mapInArrow cannot quote it. So the
    # columns have other names on their way to the tasks.
    quoted = [name.replace("`", "``") for name in columns]
    rows = frame.selectExpr(*(f"`{name}` AS c{i}" for i, name in enumerate(quoted)))

    def write_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        # What a batch completes has other numbers of partitions than Spark's.
        report = pickle.dumps((task_context().partitionId(), writer.write_partition(batches)))
        yield pa.RecordBatch.from_pydict({"report": pa.array([report], pa.binary())})

    def write_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        def rename(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.RecordBatch.from_arrays(batch.columns, names=columns)

        # A generator would keep a batch while Spark reads the next one.
        return write_partition(map(rename, batches))

    def write_nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_partition(batch.slice(0, 0) for batch in batches)

    reported = rows.mapInArrow(write_rows, "report binary").rdd
    if not reported.getNumPartitions():
        # As Spark's own writers have it: without a task there would be no report to commit. The
        # task is of another frame: where Spark knows that this one is empty, it has no partition
        # after coalesce(1) either (PropagateEmptyRelation).
        one_row = rows.sparkSession.range(0, 1, 1, 1)
        reported = one_row.mapInArrow(write_nothing, "report binary").rdd
    # The plan's own number of partitions: a report that is missing is noticed.
    reports: list[TaskReport | None] = [None] * reported.getNumPartitions()
    for row in reported.collect():
        # As Spark does with the commit messages of its writers.
        partition, report = pickle.loads(row.report)  # noqa: S301
        reports[partition] = report
    return reports
