"""`eos-sink status`: the queries of a cluster and what needs an operator, or one batch."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain

from eos_sink.cli.admin_client import connect
from eos_sink.cli.arguments import add_connection, add_timeout, command_line, whole
from eos_sink.cli.batch_report import report_batch
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import CommandError, Report, TableRow
from eos_sink.cli.query_name import add_query, find_query
from eos_sink.cli.query_table import make_rows, make_transaction_row
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.alerts import AlertKind, find_alerts
from eos_sink.ops.documents import open_document, query_document
from eos_sink.ops.observer import Observer
from eos_sink.ops.status import Snapshot

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
    alerts, now_ms = find_alerts(found, command_line(arguments)), found.at_ms
    notes = [*_describe_log(found, arguments.log_topic), *map(str, alerts)]
    if not notes:
        notes = ["No action needed."]
    rows: Sequence[TableRow] = make_rows(found.queries, now_ms)
    if arguments.transactions:
        seen = found.unknown is not None
        every = (*(each.open or () for each in found.queries), found.unknown or ())
        open_ = [*chain.from_iterable(every)]
        rows = [make_transaction_row(each, now_ms) for each in open_]
        decided = sum(each.decided for each in open_)
        notes[:0] = [f"{len(open_)} open transactions, {decided} of them decided."] * seen
    return Report(
        rows,
        [*notes, *_describe_dead_letters(found)],
        ok=all(each.kind is AlertKind.UNSEEN for each in alerts),
        unseen=bool(alerts),
        document={
            "at_ms": now_ms,
            "log": found.log,
            "queries": [query_document(each, now_ms) for each in found.queries],
            "open_of_no_query": open_document(found.unknown, now_ms),
            "unreadable": [
                {"key": each.key, "at": str(each.position), "why": each.why}
                for each in found.unreadable
            ],
            "not_seen": found.problems,
            "alerts": alerts,
        },
    )


def _describe_log(found: Snapshot, log: str) -> Iterator[str]:
    if not found.log and found.unrecorded:
        yield f"There is no decision log {log}."
    elif not found.log:
        yield (
            f"There is no decision log {log}: no query has written to this cluster yet, or its "
            "eos.log.topic is another one (--log-topic)."
        )
    elif not (found.queries or found.problems or found.unrecorded):
        yield f"The decision log {log} has no query yet."


def _describe_dead_letters(found: Snapshot) -> Iterator[str]:
    for each in found.queries:
        if each.dead_letter_rows:
            latest = each.decision.dead_letter_topic if each.decision else ""
            topic = f", {latest}" if latest else ""
            rows = f"{each.dead_letter_rows:,} rows so far are in a dead letter topic{topic}."
            yield f"{each.names.query}: {rows}"


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
