"""The evidence about one batch, task by task, as `status QUERY BATCH` and `resolve` show it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone

from eos_sink.cli.arguments import command_line
from eos_sink.cli.output import CommandError, Report, TableRow
from eos_sink.cli.query_name import find_history
from eos_sink.cli.query_table import outcome_cell
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.messages import as_json
from eos_sink.ops.alerts import options_for
from eos_sink.ops.batch_record import BatchRecord, RecordState, find_batch
from eos_sink.ops.documents import MARKER, WITNESS, evidence_document
from eos_sink.ops.evidence import (
    BatchEvidence,
    OtherTask,
    TaskState,
    TransactionEvidence,
    gather_evidence,
)
from eos_sink.ops.pending import Need
from eos_sink.protocol.model import Decision
from eos_sink.protocol.outcome import Outcome
from eos_sink.shell import sink_command

_GOOD = {Outcome.COMMITTED, TaskState.NO_ROWS, TaskState.REWRITTEN}
_SHOWN_IDS = 5
_HELD = "Its records behind an open transaction of the decision log are not seen: look again."


def report_batch(admin: Admin, arguments: argparse.Namespace) -> Report:
    """Report what became of a batch, for `status QUERY BATCH`.

    Raises:
        CommandError: there is no such query.
    """
    deadline = Deadline(arguments.timeout)
    names, history = find_history(admin, arguments.query, arguments.prefix, deadline)
    if history.held:
        # A choice reads the log again, and waits; this command does not.
        history = replace(history, unread=f"{history.unread} {_HELD}".strip())
    if not history.is_seen:
        what = f"the decision log {arguments.log_topic} has no query {names.shown}."
        raise CommandError(f"{what} {history.unread}".strip())
    batch = find_batch(names, history, arguments.batch, arguments.stream)
    evidence = gather_evidence(admin, batch, 0, deadline)
    report = make_report(evidence)
    if evidence.needs.keys() & {Need.CHOICE, Need.ANSWER}:
        options = options_for(names, command_line(arguments))
        command = sink_command("resolve", names.query, options=options)
        report = replace(report, notes=[*report.notes, f"See also: {command}"])
    return report


def make_report(evidence: BatchEvidence) -> Report:
    """A row for each task; below them what the log has of the batch."""
    is_followed = evidence.state is RecordState.GONE and evidence.latest != evidence.batch
    is_certain = evidence.decision is not None or is_followed
    rows: tuple[TableRow, ...] = tuple(
        {
            "task": str(task.partition),
            "rows": "-" if task.rows is None else f"{task.rows:,}",
            "outcome": outcome_cell(task.outcome.value),
            "known from": "; ".join(list_facts(evidence, task)) or "nothing",
        }
        for task in evidence.tasks
    )
    return Report(
        rows,
        [*_list_notes(evidence), *evidence.unseen],
        ok=is_certain
        and not evidence.dropped
        and all(task.outcome in _GOOD for task in evidence.tasks),
        unseen=bool(evidence.unseen),
        document=evidence_document(evidence),
        left=4,
    )


def list_facts(batch: BatchRecord, task: TransactionEvidence | OtherTask) -> Iterator[str]:
    """Say from what it is known what became of a task; nothing if it is not known."""
    if isinstance(task, TransactionEvidence):
        yield from _list_evidence(batch, task)
    elif task.replaced is not None:
        yield (
            f"an earlier decision of the batch names it with epoch {task.replaced.epoch}, the "
            "latest one does not: only lost partitions are written again"
        )
    elif task.state is not None:
        yield f"coordinator: {task.state.status.value}, epoch {task.state.transaction.epoch}"
    elif task.outcome is Outcome.COMMITTED:
        yield "its rows are in the transaction of the decision"
    else:
        yield "the decision has no rows of it"


def _list_evidence(batch: BatchRecord, task: TransactionEvidence) -> Iterator[str]:
    evidence, state = task.evidence, task.evidence.state
    if evidence.settled and batch.written is not None:
        yield f"the log: all of it was seen visible (seq {batch.written.record.seq})"
    if state is not None:
        is_other = state.is_not(evidence.transaction)
        other = f" (of another, epoch {state.transaction.epoch})" if is_other else ""
        yield f"coordinator: {state.status.value}{other}"
    if evidence.witness is not None:
        yield f"witness {task.entry.witness}: {WITNESS[evidence.witness]}"
    if task.marker is not None:
        yield f"marker: {MARKER[task.marker]}"
    if task.trace is not None:
        end = f"at the topic's end: {task.trace.rows:,} of its rows"
        if task.same_rows:
            end += ", the decided ones"
        yield end
    if evidence.override is not None:
        yield f"an operator's choice: {'visible' if evidence.override else 'lost'}"
    if evidence.accepted:
        yield "an operator has accepted the batch as it is"
    if batch.later is not None:
        yield f"a later batch was decided (seq {batch.later.record.seq})"


def _list_notes(evidence: BatchEvidence) -> Iterator[str]:
    written, latest, source = evidence.written, evidence.history.latest, evidence.source
    which = "" if evidence.batch is None else f", {evidence.batch}"
    yield f"Query {evidence.names.shown}{which}: {evidence.state.value}."
    if written is not None and written.decision is not None:
        total = written.decision.total
        at = datetime.fromtimestamp(written.at_ms / 1000, timezone.utc)
        yield (
            f"Decided in seq {written.record.seq} at {written.position}, {at:%Y-%m-%d %H:%M:%S} "
            f"UTC: slot {written.decision.slot}, {written.decision.partitions} partitions, "
            f"{total.rows:,} rows, {total.bytes:,} bytes, fingerprint {total.fingerprint:016x}."
        )
        yield from _describe_decision(written.decision)
    elif not evidence.history.log:
        yield f"There is no topic {evidence.log}, which would be the decision log."
    elif evidence.batch is None and latest is not None:
        yield f"The latest record is seq {latest.record.seq} at {latest.position}."
    if source is not None:
        start, end = (json.dumps(as_json(offsets)) for offsets in (source.start, source.end))
        yield f"It has read from {start} to {end}, committed to group {source.group}."
    yield from _explain(evidence)
    for tail in evidence.tails:
        unread = f"; not all was read: {tail.unread}" if tail.unread else ""
        yield (
            f"{tail.topic}[{tail.partition}]: offsets {tail.start} to {tail.end} are kept, stable "
            f"to {tail.stable}, read from {tail.read_from}{unread}."
        )
    if evidence.committed:
        ids = ", ".join(evidence.committed[:_SHOWN_IDS])
        yield f"No record, but transactions were committed before: {ids}."
    if evidence.undecided:
        yield (
            f"Open and undecided: {len(evidence.undecided)}. A run that is alive decides them; "
            f"otherwise they are aborted by {Need.ABORT.value}."
        )
    if evidence.other_streams:
        streams = ", ".join(evidence.other_streams)
        yield f"Other streams of this query have batches of their own (--stream): {streams}."


def _describe_decision(decision: Decision) -> Iterator[str]:
    """Say where its rows are, and what a replay or an operator has changed."""
    if decision.inlined:
        some, every = len(decision.inlined), len(decision.digests)
        rows = f"{decision.inlined_total.rows:,} rows, of {some} of the {every} tasks with rows,"
        what = "All its rows" if some == every else rows
        yield f"{what} are in the transaction of the decision and became visible with it."
    if decision.dead_letters:
        tasks = ", ".join(str(letters.partition) for letters in decision.dead_letters)
        yield (
            f"{decision.dead_letter_rows:,} of its rows, of the tasks {tasks}, are in the dead "
            f"letter topic {decision.dead_letter_topic}."
        )
    override = decision.override
    if override.accepted:
        yield "An operator has accepted it as it is."
    if decision.by_row and not decision.completed:
        yield "A replay has other partitions: the next one writes the rows that are not visible."
    if decision.by_partition:
        yield f"Lost partitions have to be written as they were: {decision.by_partition}."
    if decision.completed:
        yield "It was completed by a replay in other partitions, which are numbered last."
    if override.visible:
        yield f"Visible by an operator's choice: partitions {sorted(override.visible)}."
    if override.lost:
        yield f"Lost by an operator's choice: partitions {sorted(override.lost)}."


def _explain(batch: BatchEvidence) -> Iterator[str]:
    """Say what follows from the state of the batch."""
    if batch.dropped and batch.state is not RecordState.DROPPED:
        yield (
            "An operator has dropped an earlier decision of it (eos-sink resolve --forget): what "
            "was visible of that one is still there, besides the rows of this one."
        )
    if batch.state is RecordState.LATEST and Need.COMMIT in batch.needs:
        yield f"What is decided and open is committed by {Need.COMMIT.value}."
    elif batch.state is RecordState.NOT_DECIDED and not _is_of_write(batch):
        latest = batch.latest.batch if batch.latest else None
        yield (
            f"The stream's latest decided batch is {latest}. Nothing of a later one is visible, "
            "unless an operator has dropped its decision: it is being written, was aborted, or has "
            "not begun. Kafka does not know which batch an undecided transaction belongs to; the "
            "table shows those of the next batch's slot. A task whose rows the driver writes has "
            "none."
        )
    elif batch.state is RecordState.GONE and not _is_of_write(batch):
        yield _explain_gone(batch)
    elif batch.state in _MEANINGS:
        yield _MEANINGS[batch.state]


_MEANINGS = {
    RecordState.DROPPED: "By eos-sink resolve --forget: the batch is written whole if Spark runs "
    "it again. What was visible of it stays visible; look for its rows in the topic.",
    RecordState.FORGOTTEN: "Its number is below all those that the log keeps. Look for its rows in "
    "the topic.",
    RecordState.NO_STREAM: "The log has no decided batch of this stream, so nothing of it is "
    "visible.",
    # Of writes; other batches have more to say.
    RecordState.NOT_DECIDED: "Its number is not among those that were written: nothing of it is "
    "visible, unless an operator has dropped its decision.",
    RecordState.GONE: "It is among the numbers that were written: its rows are visible.",
}


def _is_of_write(batch: BatchRecord) -> bool:
    return batch.batch is not None and batch.batch.numbering.is_of_write


def _explain_gone(batch: BatchRecord) -> str:
    if batch.latest == batch.batch:
        return (
            "It is the last decided batch of its stream. Other batches of the query were decided "
            "later, and a batch is planned only after the one before it is settled: its rows are "
            "visible, unless an operator has given them up (eos-sink resolve)."
        )
    latest = batch.latest.batch if batch.latest else None
    return (
        f"Batch {latest} of the same stream is decided, and a batch is planned only after the one "
        "before it is settled: all rows of this one are visible once, or it had none. An "
        "operator's choice (eos-sink resolve) is the exception; compaction would have dropped it "
        "too."
    )
