"""`eos-sink resolve`: show why a query has stopped, and carry out an operator's choice."""

from __future__ import annotations

import argparse
from dataclasses import replace

from eos_sink.cli import batch_report
from eos_sink.cli.admin_client import connect
from eos_sink.cli.arguments import add_connection, partition, whole
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.live_run import add_change, check_driver, describe_run
from eos_sink.cli.output import Report
from eos_sink.cli.query_name import add_query, confirm, find_history
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.batch_record import find_batch
from eos_sink.ops.evidence import BatchEvidence, gather_evidence
from eos_sink.ops.operator_run import may_be_alive
from eos_sink.ops.pending import Need
from eos_sink.ops.resolve import (
    UNTRACED,
    Choice,
    apply_choice,
    end_open,
    write_choice,
)

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
_ENDED = {Need.COMMIT, Need.ANSWER, Need.ABORT}
_CHOICES = {
    _END: "What is open ends as at the query's next start: decided transactions are committed, all "
    "others are aborted.",
    "visible": "What is in doubt is in Kafka: it is not written again.",
    "lost": "What is in doubt is not in Kafka: the replay of the batch writes it again.",
    "accept": "The decided batch stays as it is in Kafka: a replay writes nothing, even if it "
    "has other rows, and partitions that were lost stay lost.",
    "forget": "The decision is dropped: what Spark runs next is written, even if Kafka has it.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_connection(parser)
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
    add_change(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Show the evidence, or carry out a choice."""
    with connect(arguments, arguments.timeout) as admin:
        return resolve(admin, arguments)


def resolve(admin: Admin, arguments: argparse.Namespace) -> Report:
    """Show the evidence about the latest decision, or carry out a choice about it."""
    evidence, option = look(admin, arguments), arguments.choice
    if option is None:
        return make_report(evidence)
    if option == _END:
        return _end(admin, evidence, arguments)
    decision = apply_choice(evidence, Choice(option), arguments.partitions)
    check_choice(arguments, evidence, fences=True)
    written = write_choice(admin, evidence, decision, Deadline(arguments.timeout))
    return make_report(evidence, option, written.seq)


def look(admin: Admin, arguments: argparse.Namespace) -> BatchEvidence:
    """Gather the evidence about the latest decision."""
    deadline = Deadline(arguments.timeout)
    names, history = find_history(admin, arguments.query, arguments.prefix, deadline)
    tail = 0 if arguments.choice == _END else arguments.tail
    return gather_evidence(admin, find_batch(names, history), tail, deadline)


def _end(admin: Admin, evidence: BatchEvidence, arguments: argparse.Namespace) -> Report:
    """End what is open, if something is; then look again."""
    seq = None
    if evidence.needs.keys() & _ENDED or evidence.unseen or not evidence.history.seq:
        check_choice(arguments, evidence, fences=bool(evidence.undecided))
        view = end_open(admin, evidence, Deadline(arguments.timeout))
        seq = view.entry.seq if view.fenced else None
        evidence = look(admin, arguments)
    return make_report(evidence, _END, seq)


def check_choice(arguments: argparse.Namespace, evidence: BatchEvidence, *, fences: bool) -> None:
    """Ask before a choice is carried out.

    Args:
        fences: a run that is alive is refused from then on.

    Raises:
        CommandError: such a run may be alive, or the choice is not confirmed.
    """
    names = evidence.names
    warnings = [f"--{arguments.choice}: {_CHOICES[arguments.choice]}"]
    if evidence.decision is not None:
        # Another one may have been decided since the error was read.
        warnings.append(f"The latest decided batch is {evidence.decision.batch}.")
    if fences:
        check_driver(names, evidence.history.run, evidence.hosts, take_over=arguments.take_over)
        warnings.append(f"A run of {names.shown} that is alive is refused from then on.")
    if not arguments.yes:
        confirm(warnings, names.shown)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(partition(part) for part in text.split(","))


def make_report(
    evidence: BatchEvidence, option: str | None = None, seq: int | None = None
) -> Report:
    """The evidence, and what was done or what can be.

    Args:
        option: what is carried out.
        seq: of the record that it wrote; None: none was needed.
    """
    report, run = batch_report.make_report(evidence), evidence.history.run
    notes = [*report.notes, *describe_run(evidence.names, run, evidence.hosts)]
    if may_be_alive(run, evidence.hosts):
        notes.append("So a choice needs --take-over, or that the query is stopped first.")
    if option is not None:
        notes.append(f"--{option} is carried out{'' if seq is None else f': seq {seq}'}.")
    is_chosen = option not in (None, _END)
    notes.append("Start the query again." if is_chosen else _advise(evidence))
    needs_choice = evidence.needs.keys() & {Need.CHOICE, Need.ANSWER}
    is_seen = not (evidence.committed or evidence.untraced or evidence.unseen)
    return replace(
        report,
        notes=notes,
        ok=is_chosen or (is_seen and not needs_choice),
        unseen=False,
        document={**report.document, "carried_out": option, "written_seq": seq},
    )


def _advise(evidence: BatchEvidence) -> str:
    """Return what the operator can do next."""
    needs = evidence.needs
    not_ended = sorted([*needs.get(Need.COMMIT, ()), *needs.get(Need.ANSWER, ())])
    advice = (
        (
            any(tail.unread for tail in evidence.tails),
            "Nothing can be chosen before all is seen. Repair it, or leave out the ends of the "
            "topics with --tail 0, and look again.",
        ),
        (evidence.unseen, "Nothing can be chosen before all is seen. Repair it, and look again."),
        (
            Need.CHOICE in needs,
            "To continue: --visible if what is in doubt is or was there, --lost if it never was, "
            "--accept or --forget for the whole batch.",
        ),
        (Need.REPLAY in needs, "A part is lost: a replay writes it again. Start the query."),
        (
            evidence.committed,
            "To continue: the right --log-topic; or restore the topic; or --forget.",
        ),
        (evidence.untraced, UNTRACED),
        (
            not_ended,
            f"Partitions {not_ended} are decided, and not seen as ended: start the query, which "
            "commits what is open. If it stops, repair what its error names, and look again.",
        ),
        (True, "Nothing is in doubt. If the query still stops: --accept or --forget."),
    )
    return next(text for applies, text in advice if applies)
