"""`eos_sink.status`: one query as `eos-sink status` sees it, next to what Spark says about it."""

from __future__ import annotations

import html
import re
from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from eos_sink.cli.arguments import command_line
from eos_sink.cli.output import Report, render, span
from eos_sink.cli.query_table import figure
from eos_sink.errors import ConfigurationError
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.alerts import find_alerts
from eos_sink.ops.documents import query_document
from eos_sink.ops.history import History
from eos_sink.ops.status import QueryStatus, Snapshot
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import BatchId
from eos_sink.sink_options import SinkOptions
from eos_sink.spark.classic_session import read_settings, to_dict
from eos_sink.spark.session_defaults import Defaults

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_FORMAT, _FOREACH_BATCH = "kafka-eos", "ForeachBatchSink"
_ERROR = re.compile(r"eos_sink\.errors\.(\w+: .+?\(\S*docs/errors\.md#\w+\))", re.DOTALL)
_LOGIN = ("sasl.", "security.", "ssl.")
_INITIALISED_MS = 60_000
_WIDTH = 80


@dataclass(frozen=True)
class SparkSide:
    """A query as Spark describes it.

    Attributes:
        name, id, run_id, active: as of the `StreamingQuery`.
        error: the error that ended it.
        committed: the latest batch in the commit log of its checkpoint, -1 if there is none; None
            if Spark does not say.
    """

    name: str | None
    id: str
    run_id: str
    active: bool
    error: str | None
    committed: int | None


@dataclass(frozen=True, repr=False)
class SinkStatus(SparkSide):
    """One query at one moment, without any setting of its clients. Its `repr` is a table, which
    Jupyter shows as HTML; `dataclasses.asdict` makes a dictionary.

    Attributes:
        at: when the cluster was read, by the local clock.
        query, prefix, group: the sink's name of the query, `eos.transactional.id.prefix`, and both
            together: the consumer group and the start of each transactional id.
        log_topic: the decision log.
        batch: number of the latest decided batch; None before the first one.
        stream: Spark's id of the query that wrote it; another one than `id` after a start with a
            new checkpoint.
        outcome: as in `eos-sink status`; None before the first one.
        rows, bytes: of the batch.
        partitions: of the batch, in Spark.
        transactions: partitions of the batch that have their own transaction.
        inline_partitions, inline_rows: those in the decision's transaction.
        decided_at: when the batch was decided, by the driver's clock.
        behind: the batch is decided and not yet in Spark's commit log. If the query ends now, its
            next start repeats the batch, and the sink writes nothing again. None: not known.
        driver: whether a driver runs the query: "live", "ended", "gone" or "unknown".
        open_decided, undecided: open transactions of the batch, and of one that is being written;
            None: they could not be listed.
        left_ms: milliseconds until Kafka aborts the first of them; None if none is open.
        steps: seconds of each step, the latest time of each (docs/metrics.md).
        counts: since the query's first batch (docs/metrics.md).
        source: where it stands in its source, as in `eos-sink status --json`; None without
            `eos.source.group.id`.
        alerts: what needs an operator, with the command that helps.
    """

    at: datetime
    query: str
    prefix: str
    group: str
    log_topic: str
    batch: int | None
    stream: str | None
    outcome: str | None
    rows: int
    bytes: int
    partitions: int
    transactions: int
    inline_partitions: int
    inline_rows: int
    decided_at: datetime | None
    behind: bool | None
    driver: str
    open_decided: int | None
    undecided: int | None
    left_ms: int | None
    steps: Mapping[str, float]
    counts: Mapping[str, int]
    source: Mapping[str, Any] | None
    alerts: tuple[str, ...]

    def __repr__(self) -> str:
        head, *lines = self._lines()
        rows = [dict(zip(head, line, strict=True)) for line in lines]
        notes = self.alerts or (() if self.error else ("No action needed.",))
        report = Report(rows, notes, ok=not notes, document={}, left=2, wrap=_WIDTH)
        return render(report).strip("\n")

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self._lines()
        )
        return f"<table>{rows}</table>" + "".join(f"<p>{html.escape(a)}</p>" for a in self.alerts)

    def _lines(self) -> list[tuple[str, str]]:
        spark = "running" if self.active else "stopped"
        lines = [("query", self.query), ("group", self.group), ("in Spark", f"{spark}, {self.id}")]
        if self.batch is not None:
            tasks = f"{self.transactions} with a transaction, {self.inline_partitions} inline"
            lines += [
                ("batch", f"{self.batch}: {self.outcome}"),
                ("rows", f"{self.rows:,}"),
                ("partitions", f"{self.partitions}: {tasks}"),
            ]
        if self.decided_at is not None:
            ago_ms = (self.at - self.decided_at).total_seconds() * 1000
            lines.append(("decided", f"{span(max(0, int(ago_ms)))} ago"))
        if self.behind is not None:
            lines.append(("in Spark's commit log", "not yet" if self.behind else "yes"))
        decided, undecided = map(figure, (self.open_decided, self.undecided))
        opened = f"{decided} decided, {undecided} undecided"
        if self.left_ms is not None:
            opened += f"; Kafka aborts the first in {span(self.left_ms)}"
        lines += [("driver", self.driver), ("open transactions", opened)]
        if self.source is not None:
            lag = self.source["lag"]
            behind = "its lag is not known" if lag is None else f"{lag:,} offsets behind the end"
            lines.append(("source", f"group {self.source['group']}, {behind}"))
        if self.steps:
            took = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in self.steps.items())
            lines.append(("latest steps", took))
        if self.counts:
            counted = ", ".join(f"{name} {count:,}" for name, count in self.counts.items() if count)
            lines.append(("since the first batch", counted))
        return [*lines, ("error", self.error)] if self.error else lines


def read_status(
    query: StreamingQuery, options: Mapping[str, str] | None, timeout: float
) -> SinkStatus:
    """Implements `eos_sink.status`, which documents it."""
    from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
    from eos_sink.ops.observer import Observer

    spark, parsed = _ask_spark(query, options)
    with closing(ConfluentAdmin(parsed.cluster, timeout)) as admin:
        found = Observer(admin, parsed.names.prefix).look(Deadline(timeout))
    return make_status(spark, parsed, found)


def make_status(spark: SparkSide, options: SinkOptions, found: Snapshot) -> SinkStatus:
    """Select the query of these options from a snapshot."""
    names = options.names
    status = found.query(names.shown) or QueryStatus(History(names.shown, ()), names)
    batch = status.batch
    document = query_document(status, found.at_ms)
    behind = None
    if spark.committed is not None and batch is not None and _is_of(batch, spark.id):
        behind = batch.batch > spark.committed
    return SinkStatus(
        **vars(spark),
        at=_time(found.at_ms),
        log_topic=options.log_topic,
        decided_at=None if status.decided_at_ms is None else _time(status.decided_at_ms),
        behind=behind,
        **{each.name: document[each.name] for each in fields(SinkStatus) if each.name in document},
        alerts=tuple(str(alert) for alert in find_alerts(found.select((status,)), _reach(options))),
    )


def _is_of(batch: BatchId, query: str) -> bool:
    """True if a query of Spark has numbered the batch, also in `foreachBatch`."""
    numbering = batch.numbering
    return numbering.is_by_spark and batch.stream == f"{numbering.value}{query}"


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


def _reach(options: SinkOptions) -> str:
    """The options of a command about this query. The login has to come from a file."""
    login = any(name.startswith(_LOGIN) for name in options.cluster.client.settings)
    arguments = Namespace(
        bootstrap_server=options.cluster.servers,
        command_config="FILE" if login else None,
        log_topic=options.log_topic,
        prefix=options.names.prefix,
    )
    return command_line(arguments)


def _ask_spark(
    query: StreamingQuery, given: Mapping[str, str] | None
) -> tuple[SparkSide, SinkOptions]:
    """Return what Spark says, and the options of the query's sink with the session's defaults.

    A classic session has the options in the query's plan, in the JVM and not redacted. A client of
    Spark Connect cannot see them, and a function of `foreachBatch` has them in itself.
    """
    from pyspark.sql import SparkSession

    java: Any = getattr(query, "_jsq", None)
    error = _find_error(query)
    committed: int | None = None
    options: dict[str, str] = {}
    foreach = False
    if java is None:
        if given is None:
            raise ConfigurationError(
                "A client of Spark Connect does not see a query's options.",
                remedy="Pass those of its writer: eos_sink.status(query, options).",
            )
        session = SparkSession.getActiveSession()
        settings = read_settings(session) if session else {}
    else:
        execution = java.streamingQuery()
        settings = to_dict(execution.sparkSession().conf().getAll())
        foreach = execution.sink().getClass().getSimpleName() == _FOREACH_BATCH
        if not (foreach and given):
            options = _plan_options(execution, error)
        committed = _last_commit(execution)
    known = SparkSide(query.name, str(query.id), str(query.runId), query.isActive, error, committed)
    every = Defaults(Defaults.of_settings(settings).fill_in(options)).fill_in(given or {})
    return known, parse_batch_options(every).sink if foreach else parse_options(every)


def _plan_options(execution: Any, error: str | None) -> dict[str, str]:
    """The options in the plan of a query (`MicroBatchExecution`).

    Raises:
        ConfigurationError: it writes with another sink, or ended before it had a plan.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    sink = execution.sink()
    # Sinks of other kinds, foreachBatch among them, may not even have a name.
    if sink.getClass().getSimpleName() != "PythonTable" or sink.name() != _FORMAT:
        raise ConfigurationError(
            f"The query does not write with format({_FORMAT!r}).",
            remedy="If it writes inside foreachBatch, pass the options of that write: "
            "eos_sink.status(query, options). Batch writes are shown by: eos-sink status.",
        )
    try:
        # It raises the error of a query that has one.
        error or execution.awaitInitialization(_INITIALISED_MS)
        return to_dict(execution.logicalPlan().writeOptions())
    except (Py4JError, PySparkException) as ended:
        raise ConfigurationError(
            f"The query ended before Spark had planned it: {error or ended}.",
            remedy="Resolve that error and start the query again.",
        ) from ended


def _last_commit(execution: Any) -> int | None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        latest = execution.commitLog().getLatestBatchId()
        return int(latest.get()) if latest.isDefined() else -1
    except (Py4JError, PySparkException):
        # Spark deletes a temporary checkpoint with its query.
        return None


def _find_error(query: StreamingQuery) -> str | None:
    """The sink's own error as a whole, else the first line of Spark's, which has the plan below."""
    exception = query.exception()
    if exception is None:
        return None
    own = _ERROR.findall(str(exception))
    return own[-1] if own else str(exception).partition("\n")[0]
