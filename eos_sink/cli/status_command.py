"""`eos-sink status`: the queries of a cluster and what needs an operator, or one batch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain

from eos_sink.cli.admin_client import connect
from eos_sink.cli.arguments import add_connection, add_timeout, command_line, whole
from eos_sink.cli.batch_report import outcome_cell, report_batch
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import Cell, CommandError, Report, TableRow, span
from eos_sink.cli.query_name import add_query, find_query
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.alerts import AlertKind, find_alerts
from eos_sink.ops.documents import query_document, transaction_document
from eos_sink.ops.observer import Observer
from eos_sink.ops.status import QueryStatus, QueryTransaction, Snapshot
from eos_sink.protocol.model import BatchId, Numbering

NAME = "status"
HELP = "Show what each query has decided, what is open, and what needs an operator."
EXAMPLES = """\
examples:
  eos-sink status --bootstrap-server kafka:9092             all queries
  eos-sink status readings --bootstrap-server kafka:9092    one, by the name in its error
  eos-sink status --bootstrap-server kafka:9092 --json      the same for a program
  eos-sink status --bootstrap-server kafka:9092 --transactions
                                   what is open, transaction by transaction
  eos-sink status readings 41 --bootstrap-server kafka:9092
                                   one batch, task by task, with the evidence for its outcome
"""
EXIT_CODES = {
    ExitCode.OK: "no action is needed; with BATCH, each task is committed or had no rows",
    ExitCode.FAILED: (
        "something needs an operator, as the lines below the table say; with BATCH, a task is not "
        "committed, or its outcome is not known"
    ),
    ExitCode.NOT_SEEN: "nothing does in what could be seen, and something could not",
}

SOURCE_LAG = "source lag"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_query(parser, nargs="?")
    add = parser.add_argument
    help_ = "Show this batch, task by task: Spark's number of it, or its txnVersion."
    add("batch", nargs="?", metavar="BATCH", type=whole, help=help_)
    help_ = "Spark's id of the query that wrote BATCH, if a checkpoint was replaced."
    add("--stream", metavar="ID", help=help_)
    help_ = "Show the open transactions instead of the queries."
    add("--transactions", action="store_true", help=help_)
    add_connection(parser)
    add_timeout(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Take one snapshot, or read what became of one batch.

    Raises:
        CommandError: `--stream` without a batch, `--transactions` with one, or there is no such
            query.
    """
    if arguments.stream is not None and arguments.batch is None:
        raise CommandError("--stream is for a BATCH, and none is given")
    if arguments.transactions and arguments.batch is not None:
        raise CommandError("Kafka does not tell the transactions of a BATCH: leave it out")
    with connect(arguments, arguments.timeout) as admin:
        if arguments.batch is not None:
            return report_batch(admin, arguments)
        found = Observer(admin, arguments.prefix).look(Deadline(arguments.timeout))
    return make_report(found, arguments)


def make_report(found: Snapshot, arguments: argparse.Namespace) -> Report:
    """A row for each query, or for each open transaction; below them the alerts.

    Raises:
        CommandError: there is no such query.
    """
    queries = () if arguments.query is None else (arguments.query,)
    found = select_queries(found, queries, arguments.prefix)
    alerts = find_alerts(found, command_line(arguments))
    sourced = any(each.source for each in found.queries)
    log, notes = arguments.log_topic, [str(each) for each in alerts]
    if not found.log and found.unrecorded:
        notes[:0] = [f"There is no decision log {log}."]
    elif not found.log:
        notes[:0] = [
            f"There is no decision log {log}: no query has written to this cluster yet, or its "
            "eos.log.topic is another one (--log-topic)."
        ]
    elif not (found.queries or found.problems or found.unrecorded):
        notes[:0] = [f"The decision log {log} has no query yet."]
    elif found.queries and not alerts:
        notes = ["No action needed."]
    notes += [
        f"{each.names.query}: {each.dead_letter_rows:,} rows so far are in a dead letter topic"
        + (
            f", {each.decision.dead_letter_topic}."
            if each.decision and each.decision.dead_letters
            else "."
        )
        for each in found.queries
        if each.dead_letter_rows
    ]
    document = {
        "at_ms": found.at_ms,
        "log": found.log,
        "queries": [query_document(each, found.at_ms) for each in found.queries],
        "open_of_no_query": [transaction_document(each, found.at_ms) for each in found.unknown],
        "unreadable": [
            {"key": each.key, "at": str(each.position), "why": each.why}
            for each in found.unreadable
        ],
        "not_seen": found.problems,
        "alerts": alerts,
    }
    rows = [_make_row(each, found.at_ms, sourced=sourced) for each in found.queries]
    if arguments.transactions:
        open_ = [*chain.from_iterable(each.open for each in found.queries), *found.unknown]
        rows = [_make_transaction_row(each, found.at_ms) for each in open_]
        decided = sum(each.decided for each in open_)
        notes[:0] = [f"{len(open_)} open transactions, {decided} of them decided."]
    return Report(
        rows,
        notes,
        ok=all(each.kind is AlertKind.UNSEEN for each in alerts),
        unseen=bool(alerts),
        document=document,
    )


def select_queries(found: Snapshot, queries: Sequence[str], prefix: str) -> Snapshot:
    """Keep these queries only, or all if none is named.

    Raises:
        CommandError: there is no such query.
    """
    if not queries:
        return found
    known = [each.names for each in found.queries]
    named = {find_query(name, known if found.log else None, prefix) for name in queries}
    missing = sorted(names.shown for names in named.difference(known))
    if missing and not found.is_whole:
        unread = " ".join(each.what for each in found.problems)
        raise CommandError(f"of {', '.join(missing)} nothing is seen. {unread}")
    if missing:
        raise CommandError(f"the decision log has no query {', '.join(missing)}")
    return found.select(tuple(each for each in found.queries if each.names in named))


def _make_row(status: QueryStatus, now_ms: int, *, sourced: bool) -> TableRow:
    oldest = max((each.age_ms(now_ms) for each in status.open), default=None)
    return {
        "query": status.names.query,
        "batch": name_batch(status.batch),
        "state": state_cell(status),
        "rows": f"{status.total.rows:,}" if status.decision else "-",
        "decided": decided_ago(status, now_ms),
        "driver": status.driver.value,
        "open decided": str(status.open_decided),
        "undecided": str(len(status.undecided)),
        "oldest": "-" if oldest is None else span(oldest),
        "time left": time_left(status, now_ms),
        **({SOURCE_LAG: source_lag(status)} if sourced else {}),
        "prefix": status.names.prefix,
    }


def _make_transaction_row(each: QueryTransaction, now_ms: int) -> TableRow:
    task = each.task
    return {
        "transactional id": each.transactional_id,
        "task": str(task.partition) if task else "driver" if each.names else "-",
        "decision": "decided" if each.decided else "undecided" if task else "-",
        "age": span(each.age_ms(now_ms)),
        "time left": span(each.left_ms(now_ms)),
    }


def decided_ago(status: QueryStatus, now_ms: int) -> str:
    """The time since the latest decision."""
    at_ms = status.decided_at_ms
    return "-" if at_ms is None else f"{span(max(0, now_ms - at_ms))} ago"


def source_lag(status: QueryStatus) -> str:
    """How far the query is behind the end of its source, for the column `SOURCE_LAG`, which is
    shown if a query has `eos.source.group.id`."""
    if status.source is None:
        return "-"
    return "?" if status.source_lag is None else f"{status.source_lag:,}"


def time_left(status: QueryStatus, now_ms: int) -> str:
    """The time until Kafka aborts the first of the open transactions."""
    left = status.left_ms(now_ms)
    return "-" if left is None else span(left)


def state_cell(status: QueryStatus) -> Cell:
    """The outcome of the latest decision."""
    return outcome_cell(status.state or "-")


def name_batch(batch: BatchId | None) -> str:
    """The name of a batch in a table that does not show its stream."""
    if batch is None:
        return "-"
    if batch.numbering is Numbering.ONCE:
        return str(batch)
    return f"version {batch.batch}" if batch.numbering is Numbering.VERSION else str(batch.batch)
