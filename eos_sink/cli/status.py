"""`eos-sink status`: every query of a cluster, and what needs somebody."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eos_sink.cli.connection import add_connection, command_line, sink_options
from eos_sink.cli.names import meant
from eos_sink.cli.report import Cell, CommandError, Mood, Report
from eos_sink.cli.words import span
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, Numbering

if TYPE_CHECKING:
    from eos_sink.ops.alerts import Concern
    from eos_sink.ops.snapshot import OpenTransaction, QueryStatus, Snapshot

NAME = "status"
HELP = "Show what each query has decided, what is open, and what needs somebody."
EXAMPLES = """\
examples:
  eos-sink status --bootstrap-server kafka:9092             all queries
  eos-sink status readings --bootstrap-server kafka:9092    one, by the name that its error tells
  eos-sink status --bootstrap-server kafka:9092 --json      the same for a program

exit code: 0 nothing needs anybody; 1 something does, as the lines below the table say, or could
not be seen; 2 no broker answers, or there is no such query
"""

_COLUMNS = (
    "query",
    "batch",
    "state",
    "rows",
    "decided",
    "driver",
    "open decided",
    "undecided",
    "oldest",
    "time left",
    "prefix",
)
_MOODS = {
    "committed": Mood.GOOD,
    "open": Mood.WARN,
    "lost": Mood.BAD,
    "in doubt": Mood.BAD,
    "unknown": Mood.WARN,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("query", nargs="*", metavar="QUERY", help="these only")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Look once.

    Raises:
        CommandError: no broker answers, or there is no such query.
    """
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin
    from eos_sink.ops.observer import Observer

    admin = ConfluentAdmin(sink_options(arguments))
    try:
        found = Observer(admin, arguments.prefix).look(Deadline(arguments.timeout))
    except EosSinkError as error:
        raise CommandError(str(error)) from error
    finally:
        admin.close()
    return report_of(found, arguments)


def report_of(found: Snapshot, arguments: argparse.Namespace) -> Report:
    """A row a query; below it what needs somebody.

    Raises:
        CommandError: there is no such query.
    """
    from eos_sink.ops.alerts import concerns

    found = chosen(found, arguments.query, arguments.prefix)
    worries = concerns(found, command_line(arguments))
    rows = tuple(_row(each, found.at_ms) for each in found.queries)
    return Report(
        _COLUMNS if rows else (),
        rows,
        (*_summary(found, arguments, worries), *map(str, worries)),
        ok=not worries,
        document=_document(found, worries),
    )


def chosen(found: Snapshot, queries: Sequence[str], prefix: str) -> Snapshot:
    """The same with these queries only; with all if none is named.

    Raises:
        CommandError: there is no such query.
    """
    if not queries:
        return found
    known = [each.names for each in found.queries]
    named = {meant(name, known if found.log else None, prefix) for name in queries}
    missing = sorted(names.shown for names in named.difference(known))
    if missing:
        raise CommandError(f"the decision log knows no query {', '.join(missing)}")
    wanted = tuple(each for each in found.queries if each.names in named)
    hidden = tuple(each.hidden for each in wanted if each.hidden)
    return replace(found, queries=wanted, strangers=(), unreadable=hidden)


def _summary(
    found: Snapshot, arguments: argparse.Namespace, worries: tuple[Concern, ...]
) -> Iterator[str]:
    log = arguments.log_topic
    if not found.log:
        yield (
            f"There is no decision log {log}: no query has written to this cluster yet, or its "
            "eos.log.topic is another one (--log-topic)."
        )
    elif not found.queries and not found.problems:
        yield f"The decision log {log} has no query yet."
    elif found.queries and not worries:
        yield "Nothing needs anybody."


def _row(status: QueryStatus, now_ms: int) -> tuple[Cell, ...]:
    decided = [each for each in status.open if each.decided]
    oldest = max((each.age_ms(now_ms) for each in status.open), default=None)
    return (
        Cell(status.names.query),
        Cell(batch_name(status.batch)),
        state_of(status),
        Cell(f"{status.rows:,}" if status.decision else "-"),
        Cell(decided_ago(status, now_ms)),
        Cell(status.driver.value),
        Cell(str(len(decided))),
        Cell(str(len(status.undecided))),
        Cell("-" if oldest is None else span(oldest)),
        Cell(time_left(status, now_ms)),
        Cell(status.names.prefix),
    )


def decided_ago(status: QueryStatus, now_ms: int) -> str:
    """How long it is since the latest decision."""
    at_ms = status.decided_at_ms
    return "-" if at_ms is None else f"{span(max(0, now_ms - at_ms))} ago"


def time_left(status: QueryStatus, now_ms: int) -> str:
    """Until Kafka aborts the first of the open transactions."""
    left = min((each.left_ms(now_ms) for each in status.open), default=None)
    return "-" if left is None else span(left)


def state_of(status: QueryStatus) -> Cell:
    """What became of the latest decision."""
    if status.hidden is not None:
        return Cell("unreadable", Mood.BAD)
    state = status.outcome.value if status.outcome else "-"
    return Cell(state, _MOODS.get(state, Mood.PLAIN))


def batch_name(batch: BatchId | None) -> str:
    """A batch in a table; its stream is told elsewhere."""
    if batch is None:
        return "-"
    if batch.numbering is Numbering.ONCE:
        return "one write"
    return f"version {batch.batch}" if batch.numbering is Numbering.VERSION else str(batch.batch)


def _document(found: Snapshot, worries: tuple[Concern, ...]) -> dict[str, Any]:
    return {
        "at_ms": found.at_ms,
        "log": found.log,
        "queries": [query_document(each, found.at_ms) for each in found.queries],
        "open_of_no_query": [open_document(each, found.at_ms) for each in found.strangers],
        "unreadable": [
            {"key": each.key, "at": each.where, "why": each.why} for each in found.unreadable
        ],
        "not_seen": [{"what": each.what, "missing": list(each.missing)} for each in found.problems],
        "concerns": [
            {"kind": each.kind.value, "query": each.query, "text": each.text, "action": each.action}
            for each in worries
        ],
    }


def query_document(status: QueryStatus, now_ms: int) -> dict[str, Any]:
    """A query for a program."""
    batch, owner = status.batch, status.owner
    return {
        "query": status.names.query,
        "prefix": status.names.prefix,
        "group": status.names.group,
        "seq": status.seq,
        "batch": batch and {"stream": batch.stream, "number": batch.batch, "text": str(batch)},
        "rows": status.rows,
        "bytes": status.bytes,
        "partitions": status.partitions,
        "decided_at_ms": status.decided_at_ms,
        "outcome": status.outcome and status.outcome.value,
        "lost": list(status.lost),
        "in_doubt": list(status.doubtful),
        "driver": status.driver.value,
        "members": list(status.hosts),
        "owner": owner and str(owner),
        "open": [open_document(each, now_ms) for each in status.open],
        "unreadable_at": status.hidden and status.hidden.where,
    }


def open_document(each: OpenTransaction, now_ms: int) -> dict[str, Any]:
    """An open transaction for a program."""
    return {
        "transactional_id": each.transaction.transactional_id,
        "producer_id": each.transaction.producer_id,
        "epoch": each.transaction.epoch,
        "query": each.query or None,
        "slot": each.task.slot if each.task else None,
        "partition": each.task.partition if each.task else None,
        "decided": each.decided,
        "age_ms": each.age_ms(now_ms),
        "left_ms": each.left_ms(now_ms),
    }
