"""`eos-sink transactions`: list the queries' transactions, and end single ones."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from eos_sink.cli.admin_client import connect
from eos_sink.cli.arguments import (
    add_changes_timeout,
    add_connection,
    add_timeout,
    command_line,
)
from eos_sink.cli.command_parser import CommandParser
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.live_run import add_take_over, check_driver
from eos_sink.cli.output import Cell, CommandError, Mood, Report, TableRow, span
from eos_sink.cli.query_name import add_yes, confirm
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.documents import batch_document, transaction_document
from eos_sink.ops.observer import Observer, now_ms
from eos_sink.ops.status import Driver, QueryStatus, QueryTransaction, Snapshot
from eos_sink.ops.transactions import (
    abort_undecided,
    check_decided,
    check_undecided,
    commit_decided,
    list_transactions,
)
from eos_sink.protocol.values import EndOutcome
from eos_sink.shell import sink_command

NAME = "transactions"
HELP = "List the queries' transactions, describe one, or end single ones."
EXAMPLES = """\
examples:
  eos-sink transactions list --open --bootstrap-server kafka:9092
  eos-sink transactions describe eos-sink-readings-1f0c9a7e42-0-3 --bootstrap-server kafka:9092

A transaction that the latest decision names is committed, never aborted. One that it does not name
is aborted. `eos-sink transactions ACTION --help` has options, examples and exit codes of an action.
"""
EXIT_CODES = {
    ExitCode.OK: "the action is done",
    ExitCode.FAILED: "a transaction was not ended, or not all could be read",
}

_LIST = """\
examples:
  eos-sink transactions list --bootstrap-server kafka:9092           every id that Kafka knows
  eos-sink transactions list --bootstrap-server kafka:9092 --open    what is open now
"""
_DESCRIBE = """\
examples:
  eos-sink transactions describe eos-sink-readings-1f0c9a7e42-0-3 --bootstrap-server kafka:9092
"""
_ABORT = """\
examples:
  eos-sink transactions abort eos-sink-readings-1f0c9a7e42-1-3 --bootstrap-server kafka:9092

As a new start of the query does, it ends the right of every older run of the query to write. The
next start writes the batch again.
"""
_COMMIT = """\
examples:
  eos-sink transactions commit eos-sink-readings-1f0c9a7e42-0-3 --bootstrap-server kafka:9092
"""


def add_arguments(parser: CommandParser) -> None:
    """Declare a parser for each action."""
    # What an action has no option for. A positional or option of it overrides these.
    parser.set_defaults(ids=[], open=False)
    parser.add_commands("action", required=True)
    codes = {
        ExitCode.OK: "all transactions were read",
        ExitCode.NOT_SEEN: "not all could be read, as the lines below the table say",
    }
    action = parser.add_command("list", "List the queries' transactions.", _LIST, codes)
    action.add_argument("--open", action="store_true", help="List open transactions only.")
    add_connection(action)
    add_timeout(action)

    help_ = "Describe a transaction, and print the command that ends it."
    codes = {ExitCode.OK: "the transaction was found"}
    action = parser.add_command("describe", help_, _DESCRIBE, codes)
    _add_ids(action, 1)
    add_connection(action)
    add_timeout(action)

    help_ = "Abort transactions that the latest decision does not name."
    _add_change(parser.add_command("abort", help_, _ABORT, _ended("aborted")))

    help_ = "Commit transactions that the latest decision names."
    _add_change(parser.add_command("commit", help_, _COMMIT, _ended("committed")))


def _ended(how: str) -> dict[ExitCode, str]:
    return {
        ExitCode.OK: f"each transaction was {how}",
        ExitCode.FAILED: f"a transaction was not {how}, or its coordinator has not answered yet",
    }


def _add_ids(action: argparse.ArgumentParser, number: int | str) -> None:
    action.add_argument("ids", nargs=number, metavar="ID", help="Transactional id, from the list.")


def _add_change(action: argparse.ArgumentParser) -> None:
    _add_ids(action, "+")
    add_connection(action)
    add_changes_timeout(action)
    add_yes(action)
    add_take_over(action)


def run(arguments: argparse.Namespace) -> Report:
    """Show, or show and carry out."""
    with connect(arguments, arguments.timeout) as admin:
        return carry_out(admin, arguments)


def carry_out(
    admin: Admin, arguments: argparse.Namespace, clock_ms: Callable[[], int] = now_ms
) -> Report:
    """Look, and do what is asked for.

    Args:
        admin: of the cluster.
        clock_ms: now, milliseconds since the epoch.

    Raises:
        CommandError, RefusedChoice, EosSinkError: nothing was done.
    """
    deadline, prefix = Deadline(arguments.timeout), arguments.prefix
    snapshot = Observer(admin, prefix, clock_ms).look(deadline)
    prefixes = [prefix, *(each for each in arguments.ids if not each.startswith(prefix))]
    listed = list_transactions(admin, snapshot, prefixes, deadline, open_only=arguments.open)
    if arguments.action == "list":
        return _report_list(snapshot, listed)
    chosen = [_find(each, listed) for each in arguments.ids]
    if arguments.action == "describe":
        return _report_one(snapshot, chosen[0], command_line(arguments))
    return _end(admin, snapshot, chosen, arguments)


def _find(transactional_id: str, listed: Sequence[QueryTransaction]) -> QueryTransaction:
    known = {each.transactional_id: each for each in listed}
    if transactional_id in known:
        return known[transactional_id]
    near = difflib.get_close_matches(transactional_id, list(known), n=3, cutoff=0.6)
    hint = f"; similar: {', '.join(near)}" if near else ""
    raise CommandError(
        f"no coordinator knows the transactional id {transactional_id}: it was never used, or has "
        f"expired (transactional.id.expiration.ms){hint}"
    )


def _end(
    admin: Admin,
    snapshot: Snapshot,
    chosen: Sequence[QueryTransaction],
    arguments: argparse.Namespace,
) -> Report:
    """Commit what is decided, or abort what is not."""
    commit = arguments.action == "commit"
    status = _find_query(snapshot, chosen)
    transactions = [each.state.transaction for each in chosen]
    if commit:
        check_decided(status.names, status.decision, transactions)
    else:
        check_undecided(status.names, status.decision, transactions, command_line(arguments))
        check_driver(status.names, status.run, status.hosts, take_over=arguments.take_over)
    if not arguments.yes:
        what = (
            "makes the rows of a decided batch visible"
            if commit
            else "discards their rows; the query's next start writes the batch again"
        )
        warning = f"{arguments.action} {len(chosen)} of {status.query}: {what}."
        confirm([warning], status.names.shown)
    names, kafka, deadline = status.names, admin.kafka, Deadline(arguments.timeout)
    seq = None
    if commit:
        outcomes = commit_decided(kafka, names, transactions, deadline)
    else:
        entry, outcomes = abort_undecided(kafka, names, status.seq, transactions, deadline)
        seq = entry.seq
    shown = {
        EndOutcome.DONE: Cell("committed" if commit else "aborted", Mood.GOOD),
        EndOutcome.REFUSED: Cell("refused: it has ended, or its id is in use again", Mood.WARN),
        None: Cell("no answer yet: look again", Mood.BAD),
    }
    cells = {each.transactional_id: shown[outcomes.get(each)] for each in transactions}
    return Report(
        [{"transactional id": name, "outcome": outcome} for name, outcome in cells.items()],
        () if seq is None else (f"Seq {seq} of the log fences all plans before it.",),
        ok=all(outcomes.get(each) is EndOutcome.DONE for each in transactions),
        document={
            "seq": seq,
            "transactions": [
                {"transactional_id": name, "outcome": outcome.text}
                for name, outcome in cells.items()
            ],
        },
        left=2,
    )


def _find_query(snapshot: Snapshot, chosen: Sequence[QueryTransaction]) -> QueryStatus:
    """The query that all the transactions belong to."""
    found: dict[str, QueryStatus] = {}
    for each in chosen:
        status = snapshot.query(each.query)
        if status is None:
            raise CommandError(
                f"{each.transactional_id} belongs to no query of this decision log: give the "
                "--log-topic of its query. Transactions of other programs are not ended here "
                "(use Kafka's kafka-transactions)"
            )
        found[status.query] = status
    if len(found) > 1:
        raise CommandError(f"the IDs are of several queries, give one's only: {', '.join(found)}")
    (status,) = found.values()
    hidden = status.history.hidden
    if hidden is not None:
        raise CommandError(
            f"the latest record of {status.query}, at {hidden.position}, cannot be read by this "
            f"version ({hidden.why}), so it is unknown what is decided"
        )
    return status


def _report_list(snapshot: Snapshot, listed: Sequence[QueryTransaction]) -> Report:
    open_ = [each for each in listed if each.open]
    decided = f", {sum(each.decided for each in open_)} of them decided" if open_ else ""
    problems = [problem.what for problem in snapshot.problems]
    return Report(
        [_make_row(each, snapshot.at_ms) for each in listed],
        (
            f"{len(listed)} transactional ids, {len(open_)} with an open transaction{decided}.",
            *problems,
        ),
        ok=True,
        unseen=bool(problems),
        document={
            "at_ms": snapshot.at_ms,
            "transactions": [_document(each, snapshot.at_ms) for each in listed],
            "not_seen": problems,
        },
    )


def _report_one(snapshot: Snapshot, each: QueryTransaction, reach: str) -> Report:
    """All that is known of one id, and the command that ends it."""
    notes = [*_describe(snapshot, each), *(problem.what for problem in snapshot.problems)]
    if each.open and each.task:
        action, why = ("commit", "make it visible") if each.decided else ("abort", "end it")
        command = sink_command("transactions", action, each.transactional_id, options=reach)
        status = snapshot.query(each.query)
        runs = status is not None and status.driver is Driver.LIVE
        notes.append(
            "It ends with its batch, or at the query's next start."
            if runs and not each.decided
            else f"To {why}: start the query, or {command}"
        )
    row, document = _make_row(each, snapshot.at_ms), _document(each, snapshot.at_ms)
    return Report([row], notes, True, document)


def _make_row(each: QueryTransaction, now_ms: int) -> TableRow:
    task, decided = each.task, "undecided" if each.open and each.task else "-"
    if each.written and each.written.decision:
        decided = f"decided ({each.written.decision.batch.batch})"
    return {
        "transactional id": each.transactional_id,
        "state": Cell(each.state.status.value, Mood.WARN if each.open else Mood.PLAIN),
        "age": span(each.age_ms(now_ms)) if each.open else "-",
        "time left": span(each.left_ms(now_ms)) if each.open else "-",
        "slot": str(task.slot) if task else "-",
        "task": str(task.partition) if task else "driver" if each.names else "-",
        "decision": decided,
    }


def _describe(snapshot: Snapshot, each: QueryTransaction) -> Iterator[str]:
    state, transaction = each.state, each.state.transaction
    yield (
        f"Coordinator: {state.status.value}, producer id {transaction.producer_id}, epoch "
        f"{transaction.epoch}, timeout {span(state.timeout_ms)}."
    )
    status = snapshot.query(each.query)
    if each.names is None or status is None:
        yield "It belongs to no query of the decision log."
        return
    yield f"Query {each.names.query}; its driver is {status.driver.value}."
    written, entry = each.written, each.entry
    if written is not None and written.decision is not None and entry is not None:
        age = span(max(0, snapshot.at_ms - written.at_ms))
        yield (
            f"Decided with {written.decision.batch} in seq {written.record.seq} at "
            f"{written.position}, {age} ago: {entry.digest.rows:,} rows, {entry.digest.bytes:,} "
            f"bytes, witness {entry.witness}."
        )
    elif each.task is None:
        yield (
            "It is the driver's own transaction, which writes the log and the rows of small "
            "partitions; it takes 40 s at most."
        )
    elif each.open:
        yield "No decision names it: it is being written, or its driver died before the decision."
    else:
        yield "No kept decision names this epoch of it."


def _document(each: QueryTransaction, now_ms: int) -> dict[str, Any]:
    decision = each.written.decision if each.written else None
    return {
        **transaction_document(each, now_ms),
        "state": each.state.status,
        "timeout_ms": each.state.timeout_ms,
        **batch_document(decision.batch if decision else None),
        "seq": each.written.record.seq if each.written else None,
        "rows": each.entry.digest.rows if each.entry else None,
    }
