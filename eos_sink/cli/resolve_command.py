"""`eos-sink resolve`: show why a query has stopped, and carry out an operator's choice."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from eos_sink.cli.admin_client import connect
from eos_sink.cli.arguments import add_changes_timeout, add_connection, partition, whole
from eos_sink.cli.batch_text import (
    describe_coordinator,
    describe_decision,
    describe_marker,
    describe_rows,
    describe_witness,
    outcome_cell,
)
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.live_run import add_take_over, check_driver
from eos_sink.cli.output import Report, TableRow
from eos_sink.cli.query_name import add_query, add_yes, confirm, read_query
from eos_sink.decision_log import Entry
from eos_sink.driver.processes import is_alive_here
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.documents import (
    MARKER,
    batch_document,
    decision_document,
    evidence_document,
    rows_document,
    run_document,
)
from eos_sink.ops.operator_run import may_be_alive
from eos_sink.protocol.outcome import Outcome

if TYPE_CHECKING:
    from eos_sink.ops.resolve import Choice, QueryEvidence, TransactionEvidence

NAME = "resolve"
HELP = "Show why a query needs an operator, and carry out the operator's choice."
EXAMPLES = """\
examples:
  eos-sink resolve readings --bootstrap-server kafka:9092             the evidence; changes nothing
  eos-sink resolve readings --bootstrap-server kafka:9092 --visible   what is in doubt is there
  eos-sink resolve readings --bootstrap-server kafka:9092 --lost --partitions 0,2 --yes
"""
EXIT_CODES = {
    ExitCode.OK: "no choice is needed, or the choice is carried out",
    ExitCode.FAILED: "a choice is needed, not all was seen, or there is no trace of the query",
}

_TAIL = 100_000
_CHOICES = {
    "visible": "What is in doubt is in Kafka: it is not written again.",
    "lost": "What is in doubt is not in Kafka: the replay of the batch writes it again.",
    "accept": "The decided batch stays as it is in Kafka: a replay writes nothing, even if it "
    "has other rows, and partitions that were lost stay lost.",
    "forget": "The decision is dropped: what Spark runs next is written, even if Kafka has it.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_connection(parser)
    add_changes_timeout(parser)
    add = parser.add_argument
    help_ = "Offsets to read at the end of each partition of the topic. Default: %(default)s."
    add("--tail", type=whole, default=_TAIL, metavar="N", help=help_)
    choice = parser.add_mutually_exclusive_group()
    for name, meaning in _CHOICES.items():
        choice.add_argument(
            f"--{name}", dest="choice", action="store_const", const=name, help=meaning
        )
    help_ = "Partitions of the batch that --visible or --lost is about. Default: all in doubt."
    add("--partitions", type=_numbers, default=(), metavar="P,P", help=help_)
    add_yes(parser)
    add_take_over(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Show the evidence, or carry out a choice."""
    from eos_sink.ops.resolve import Choice, apply_choice, gather_evidence, write_choice

    deadline = Deadline(arguments.timeout)
    with connect(arguments, arguments.timeout) as admin:
        names = read_query(admin, arguments.query, arguments.prefix, deadline)
        evidence = gather_evidence(admin, names, arguments.tail, deadline)
        if arguments.choice is None:
            return make_report(names, evidence)
        choice = Choice(arguments.choice)
        decision = apply_choice(evidence, choice, arguments.partitions)
        take_over = arguments.take_over
        check_driver(names, evidence.run, evidence.hosts, take_over=take_over)
        confirm_choice(arguments, names.shown)
        deadline = Deadline(arguments.timeout)
        written = write_choice(admin.kafka, names, evidence, decision, deadline)
        return make_report(names, evidence, choice, written)


def confirm_choice(arguments: argparse.Namespace, query: str) -> None:
    """Raises CommandError: the choice is not confirmed."""
    if arguments.yes:
        return
    warnings = (
        f"--{arguments.choice}: {_CHOICES[arguments.choice]}",
        f"A run of {query} that is alive is refused from then on.",
    )
    confirm(warnings, query)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(partition(part) for part in text.split(","))


def make_report(
    names: QueryNames,
    evidence: QueryEvidence,
    choice: Choice | None = None,
    written: Entry | None = None,
) -> Report:
    """A row for each transaction of the decision; and the choice, if one was written."""
    notes = [*_list_notes(names, evidence)]
    if choice is not None and written is not None:
        notes.append(f"--{choice.value} is carried out: seq {written.seq}. Start the query again.")
    elif evidence.in_doubt:
        notes.append(
            "To continue: --visible if what is in doubt is or was there, --lost if it never was, "
            "--accept or --forget for the whole batch."
        )
    elif evidence.lost:
        notes.append("A part is lost: a replay writes it again. Start the query.")
    elif evidence.committed:
        notes.append("To continue: the right --log-topic; or restore the topic; or --forget.")
    elif evidence.untraced:
        from eos_sink.ops.resolve import UNTRACED

        notes.append(UNTRACED)
    elif evidence.not_ended:
        partitions = sorted(each.entry.partition for each in evidence.not_ended)
        notes.append(
            f"Partitions {partitions} are decided, and not seen as ended: start the query, which "
            "commits what is open. If it stops, repair what its error names, and look again."
        )
    else:
        notes.append("Nothing is in doubt. If the query still stops: --accept or --forget.")
    return Report(
        tuple(map(_make_row, evidence.transactions)),
        notes,
        ok=written is not None
        or not (
            evidence.in_doubt
            or evidence.committed
            or evidence.untraced
            or any(each.outcome is Outcome.UNKNOWN for each in evidence.transactions)
        ),
        document=_document(names, evidence, choice, written),
    )


def _make_row(each: TransactionEvidence) -> TableRow:
    same = ", the decided ones" if each.same_rows else ""
    return {
        "partition": str(each.entry.partition),
        "rows": f"{each.entry.digest.rows:,}",
        "coordinator": describe_coordinator(each.evidence),
        "witness": describe_witness(each.evidence),
        "rows at the end": f"{each.trace.rows:,}{same}",
        "marker": describe_marker(each.marker),
        "outcome": outcome_cell(each.outcome.value),
    }


def _list_notes(names: QueryNames, evidence: QueryEvidence) -> Iterator[str]:
    entry = evidence.entry
    yield f"Query {names.query}, group {names.group}"
    if entry is None:
        yield f"Decision log: there is no topic {evidence.log}."
    else:
        place = entry.position
        record = f"seq {entry.seq} at offset {place.offset}" if entry.seq else "no record"
        yield f"Decision log {place.topic}[{place.partition}]: {record}."
    if evidence.run is not None:
        alive = ", alive" if is_alive_here(evidence.run) else ""
        yield f"Last written by {evidence.run}{alive}."
    if evidence.hosts and not may_be_alive(evidence.run, evidence.hosts):
        yield (
            f"Group member: {', '.join(evidence.hosts)}. It is that command's, which has ended, "
            "unless a run has started since."
        )
    elif evidence.hosts:
        yield (
            f"Group member, alive or recently ended: {', '.join(evidence.hosts)}. While it is "
            "listed, a choice needs --take-over: stop the query first."
        )
    elif isinstance(evidence.members, Unseen):
        what = f"The group {names.group} cannot be seen, so a choice needs --take-over"
        yield str(evidence.members.error(what))
    if evidence.decision is not None:
        yield from describe_decision(evidence.decision)
    for each in evidence.in_doubt:
        yield _describe_doubt(each)
    for tail in evidence.tails:
        unread = f"; not all was read: {tail.unread}" if tail.unread else ""
        yield (
            f"{tail.topic}[{tail.partition}]: offsets {tail.start} to {tail.end} are kept, stable "
            f"to {tail.stable}, read from {tail.read_from}{unread}."
        )
    if evidence.committed:
        ids = ", ".join(evidence.committed[:5])
        yield f"No record, but transactions were committed before: {ids}."
    if evidence.undecided:
        yield f"Open and undecided: {len(evidence.undecided)}; the next start aborts them."


def _describe_doubt(each: TransactionEvidence) -> str:
    entry, trace = each.entry, each.trace
    seen = f"{trace.rows} of its {entry.digest.rows} rows are at the topic's end"
    if each.same_rows:
        seen += ", with its fingerprint"
    elif trace.rows:
        seen += f" ({describe_rows(each.found)}; decided: {describe_rows(entry.digest)})"
    doubt = f"In doubt: partition {entry.partition}, witness {entry.witness} unreadable"
    return f"{doubt}; {seen}."


def _document(
    names: QueryNames, evidence: QueryEvidence, choice: Choice | None, written: Entry | None
) -> dict[str, Any]:
    entry, decision = evidence.entry, evidence.decision
    return {
        "query": names.query,
        "group": names.group,
        "log": {
            "topic": evidence.log,
            "partition": entry.position.partition if entry else None,
            "offset": entry.position.offset if entry and entry.seq else None,
            "seq": evidence.seq,
        },
        "run": run_document(evidence.run),
        "members": evidence.hosts,
        "decision": decision
        and {
            **batch_document(decision.batch),
            "slot": decision.slot,
            **rows_document(decision.total),
            **decision_document(decision),
            "override": decision.override,
        },
        "tasks": [_task_document(each) for each in evidence.transactions],
        "topics": [
            {key: value for key, value in vars(tail).items() if key != "traces"}
            | {"unread": tail.unread or None}
            for tail in evidence.tails
        ],
        "in_doubt": [each.entry.partition for each in evidence.in_doubt],
        "undecided_ids": [each.transactional_id for each in evidence.undecided],
        "committed_without_record": evidence.committed,
        "carried_out": choice.value if choice and written else None,
        "written_seq": written.seq if written else None,
    }


def _task_document(each: TransactionEvidence) -> dict[str, Any]:
    return {
        **evidence_document(each.evidence),
        "at_the_end": {
            **rows_document(each.found),
            "rows": each.trace.rows,
            "marker": MARKER[each.marker],
            "same_rows": each.same_rows,
        },
    }
