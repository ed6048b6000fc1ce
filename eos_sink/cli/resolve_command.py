"""`eos-sink resolve`: show why a query has stopped, and carry out an operator's choice."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
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
from eos_sink.driver.processes import is_alive_here
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin
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
    from eos_sink.ops.resolve import QueryEvidence, TransactionEvidence

NAME = "resolve"
HELP = "Show why a query needs an operator, and carry out the operator's choice."
EXAMPLES = """\
examples:
  eos-sink resolve readings --bootstrap-server kafka:9092             the evidence; changes nothing
  eos-sink resolve readings --bootstrap-server kafka:9092 --end       commit or abort what is open
  eos-sink resolve readings --bootstrap-server kafka:9092 --visible   what is in doubt is there
  eos-sink resolve readings --bootstrap-server kafka:9092 --lost --partitions 0,2 --yes
"""
EXIT_CODES = {
    ExitCode.OK: "no choice is needed, or the choice is carried out",
    ExitCode.FAILED: "a choice is needed, not all was seen, or there is no trace of the query",
}

_TAIL = 100_000
_END = "end"
_CHOICES = {
    _END: "What is open ends as at the query's next start: decided transactions are committed, all "
    "others are aborted.",
    "visible": "What is in doubt is in Kafka: it is not written again.",
    "lost": "What is in doubt is not in Kafka: the replay of the batch writes it again.",
    "accept": "The decided batch stays as it is in Kafka: a replay writes nothing, even if it "
    "has other rows, and partitions that were lost stay lost.",
    "forget": "The decision is dropped: what Spark runs next is written, even if Kafka has it.",
}


@dataclass(frozen=True)
class Done:
    """What the command has done.

    Attributes:
        option: the operator's.
        seq: of the record that it wrote; None: none was needed.
    """

    option: str
    seq: int | None

    def __str__(self) -> str:
        written = "" if self.seq is None else f": seq {self.seq}"
        again = "" if self.option == _END else " Start the query again."
        return f"--{self.option} is carried out{written}.{again}"


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
        if arguments.choice == _END:
            return end(admin, names, arguments)
        evidence = gather_evidence(admin, names, arguments.tail, deadline)
        if arguments.choice is None:
            return make_report(names, evidence)
        choice = Choice(arguments.choice)
        decision = apply_choice(evidence, choice, arguments.partitions)
        check_choice(arguments, names, evidence, fences=True)
        deadline = Deadline(arguments.timeout)
        written = write_choice(admin.kafka, names, evidence, decision, deadline)
        return make_report(names, evidence, Done(choice.value, written.seq))


def end(admin: Admin, names: QueryNames, arguments: argparse.Namespace) -> Report:
    """End what is open, if something is; then look again."""
    from eos_sink.ops.resolve import end_open, gather_evidence

    evidence = gather_evidence(admin, names, 0, Deadline(arguments.timeout))
    seq = None
    if evidence.not_ended or evidence.undecided or not evidence.seq:
        check_choice(arguments, names, evidence, fences=bool(evidence.undecided))
        view = end_open(admin.kafka, names, evidence, Deadline(arguments.timeout))
        seq = view.entry.seq if view.fenced else None
        evidence = gather_evidence(admin, names, 0, Deadline(arguments.timeout))
    return make_report(names, evidence, Done(_END, seq))


def check_choice(
    arguments: argparse.Namespace, names: QueryNames, evidence: QueryEvidence, *, fences: bool
) -> None:
    """Ask before a choice is carried out.

    Args:
        fences: a run that is alive is refused from then on.

    Raises:
        CommandError: such a run may be alive, or the choice is not confirmed.
    """
    warnings = [f"--{arguments.choice}: {_CHOICES[arguments.choice]}"]
    if fences:
        take_over = arguments.take_over
        check_driver(names, evidence.run, evidence.hosts, take_over=take_over)
        warnings.append(f"A run of {names.shown} that is alive is refused from then on.")
    if not arguments.yes:
        confirm(warnings, names.shown)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(partition(part) for part in text.split(","))


def make_report(names: QueryNames, evidence: QueryEvidence, done: Done | None = None) -> Report:
    """A row for each transaction of the decision; and what was done, if something was."""
    chosen = done is not None and done.option != _END
    notes = [*_list_notes(names, evidence)]
    if done is not None:
        notes.append(str(done))
    if not chosen:
        notes.append(_advise(evidence))
    return Report(
        tuple(map(_make_row, evidence.transactions)),
        notes,
        ok=chosen
        or not (
            evidence.in_doubt
            or evidence.committed
            or evidence.untraced
            or any(each.outcome is Outcome.UNKNOWN for each in evidence.transactions)
        ),
        document=_document(names, evidence, done),
    )


def _advise(evidence: QueryEvidence) -> str:
    """What the operator can do next."""
    if evidence.in_doubt:
        return (
            "To continue: --visible if what is in doubt is or was there, --lost if it never was, "
            "--accept or --forget for the whole batch."
        )
    if evidence.lost:
        return "A part is lost: a replay writes it again. Start the query."
    if evidence.committed:
        return "To continue: the right --log-topic; or restore the topic; or --forget."
    if evidence.untraced:
        from eos_sink.ops.resolve import UNTRACED

        return UNTRACED
    if evidence.not_ended:
        partitions = sorted(each.entry.partition for each in evidence.not_ended)
        return (
            f"Partitions {partitions} are decided, and not seen as ended: start the query, which "
            "commits what is open. If it stops, repair what its error names, and look again."
        )
    return "Nothing is in doubt. If the query still stops: --accept or --forget."


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
        number = len(evidence.undecided)
        yield f"Open and undecided: {number}; the next start, or --end, aborts them."


def _describe_doubt(each: TransactionEvidence) -> str:
    entry, trace = each.entry, each.trace
    seen = f"{trace.rows} of its {entry.digest.rows} rows are at the topic's end"
    if each.same_rows:
        seen += ", with its fingerprint"
    elif trace.rows:
        seen += f" ({describe_rows(each.found)}; decided: {describe_rows(entry.digest)})"
    doubt = f"In doubt: partition {entry.partition}, witness {entry.witness} unreadable"
    return f"{doubt}; {seen}."


def _document(names: QueryNames, evidence: QueryEvidence, done: Done | None) -> dict[str, Any]:
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
        "carried_out": done and done.option,
        "written_seq": done and done.seq,
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
