"""`eos-sink status QUERY BATCH`: the outcome of one batch, task by task, and the evidence."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from eos_sink.cli.arguments import command_line
from eos_sink.cli.batch_text import (
    describe_coordinator,
    describe_decision,
    describe_marker,
    describe_witness,
    outcome_cell,
)
from eos_sink.cli.output import CommandError, Report, TableRow
from eos_sink.cli.query_name import find_query
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.messages import as_json
from eos_sink.ops.alerts import options_for
from eos_sink.ops.documents import batch_document, decision_document, evidence_document
from eos_sink.ops.explain import Explanation, Fate, Known, TaskFate, explain_batch, find_batch
from eos_sink.ops.history import read_histories
from eos_sink.protocol.model import SourcePosition
from eos_sink.protocol.outcome import Outcome
from eos_sink.shell import sink_command


def report_batch(admin: Admin, arguments: argparse.Namespace) -> Report:
    """A row for each task; below them what the log has of the batch.

    Raises:
        CommandError: there is no such query.
    """
    deadline = Deadline(arguments.timeout)
    known = read_histories(admin, arguments.prefix, deadline)
    names = find_query(arguments.query, known, arguments.prefix)
    history = (known or {}).get(names)
    if history is None:
        log = arguments.log_topic
        raise CommandError(f"the decision log {log} has no query {names.shown}.")
    batch = find_batch(history, arguments.batch, arguments.stream)
    found = explain_batch(admin, names, history, batch, deadline)
    written, decision = found.written, found.decision
    others = [stream for stream in history.streams if stream != found.batch.stream]
    rows: tuple[TableRow, ...] = tuple(
        {
            "task": str(each.partition),
            "rows": "-" if each.rows is None else f"{each.rows:,}",
            "outcome": outcome_cell(each.fate.value),
            "known from": "; ".join(list_evidence(found, each)) or "nothing",
        }
        for each in found.fates
    )
    good = {Outcome.COMMITTED, Fate.NO_ROWS, Fate.REWRITTEN}
    is_followed = found.known is Known.GONE and found.latest != found.batch
    certain = decision is not None or is_followed or found.known is Known.NOTHING
    document = {
        "query": names.query,
        **batch_document(found.batch),
        "known": found.known,
        "latest": found.latest.batch if found.latest else None,
        "dropped": found.dropped,
        "seq": written.record.seq if written else None,
        "later_seq": found.later.record.seq if found.later else None,
        "decided_at_ms": written.at_ms if written else None,
        "rows": decision.total.rows if decision else None,
        **decision_document(decision),
        "source": _source_document(found.source),
        "tasks": [_task_document(each) for each in found.fates],
        "other_streams": others,
        "not_seen": found.unseen,
    }
    notes = [*_list_notes(names, found, command_line(arguments)), *found.unseen]
    if others:
        streams = ", ".join(others)
        notes.append(
            f"Other streams of this query have batches of their own (--stream): {streams}."
        )
    return Report(
        rows,
        notes,
        ok=certain and not found.dropped and all(each.fate in good for each in found.fates),
        document=document,
        left=4,
    )


def _source_document(source: SourcePosition | None) -> dict[str, Any] | None:
    """The offsets that a batch has read."""
    if source is None:
        return None
    return {"group": source.group, "start": as_json(source.start), "end": as_json(source.end)}


def _task_document(task: TaskFate) -> dict[str, Any]:
    known = evidence_document(task.evidence) if task.evidence else {}
    if task.state:
        known = {**vars(task.state.transaction), "coordinator": {"state": task.state.status.value}}
    return {
        **known,
        "partition": task.partition,
        "rows": task.rows,
        "outcome": task.fate.value,
        "inline": task.inline,
    }


def list_evidence(batch: Explanation, task: TaskFate) -> Iterator[str]:
    """Say from what it is known what became of a task; nothing if it is not known."""
    known = task.evidence
    if task.inline:
        yield "its rows are in the transaction of the decision"
    elif task.fate is Fate.NO_ROWS:
        yield "the decision has no rows of it"
    elif task.replaced is not None:
        yield (
            f"an earlier decision of the batch names it with epoch {task.replaced.epoch}, the "
            "latest one does not: only lost partitions are written again"
        )
    elif task.state is not None:
        yield f"coordinator: {task.state.status.value}, epoch {task.state.transaction.epoch}"
    if known is None:
        return
    if known.settled and batch.written is not None:
        yield f"the log: all of it was seen visible (seq {batch.written.record.seq})"
    if known.state is not None:
        yield f"coordinator: {describe_coordinator(known)}"
    if known.witness is not None:
        yield f"witness {known.entry.witness}: {describe_witness(known)}"
    if known.marker is not None:
        yield f"marker: {describe_marker(known.marker)}"
    if known.override is not None:
        yield f"an operator's choice: {'visible' if known.override else 'lost'}"
    if known.accepted:
        yield "an operator has accepted the batch as it is"
    if batch.later is not None:
        yield f"a later batch was decided (seq {batch.later.record.seq})"


def _list_notes(names: QueryNames, batch: Explanation, reach: str) -> Iterator[str]:
    yield f"Query {names.shown}, {batch.batch}: {batch.known.value}."
    if batch.written is not None and batch.decision is not None:
        at = datetime.fromtimestamp(batch.written.at_ms / 1000, timezone.utc)
        yield (
            f"Decided in seq {batch.written.record.seq} at {batch.written.position}, "
            f"{at:%Y-%m-%d %H:%M:%S} UTC."
        )
        yield from describe_decision(batch.decision)
        if batch.source is not None:
            start, end = (json.dumps(as_json(at)) for at in (batch.source.start, batch.source.end))
            yield f"It has read from {start} to {end}, committed to group {batch.source.group}."
    outcomes = {each.fate for each in batch.fates}
    if batch.dropped and batch.known is not Known.DROPPED:
        yield (
            "An operator has dropped an earlier decision of it (eos-sink resolve --forget): what "
            "was visible of that one is still there, besides the rows of this one."
        )
    if batch.known is Known.LATEST and Outcome.OPEN in outcomes:
        yield "The driver, or the query's next start, commits what is decided and open."
    elif batch.known is Known.DROPPED:
        yield (
            "By eos-sink resolve --forget: the batch is written whole if Spark runs it again. What "
            "was visible of it stays visible; look for its rows in the topic."
        )
    elif batch.known is Known.GONE:
        yield _explain_gone(batch)
    elif batch.known is Known.NOTHING:
        yield (
            "The log has every record from the batch before to the batch after it: it had no rows, "
            "so nothing had to be decided."
        )
    elif batch.known is Known.FORGOTTEN:
        yield "Its number is below all those that the log keeps. Look for its rows in the topic."
    elif batch.known is Known.NOT_DECIDED and batch.batch.numbering.is_of_write:
        yield (
            "Its number is not among those that were written: nothing of it is visible, unless an "
            "operator has dropped its decision."
        )
    elif batch.known is Known.NOT_DECIDED:
        latest = batch.latest.batch if batch.latest else None
        yield (
            f"The stream's latest decided batch is {latest}. Nothing of a later one is visible, "
            "unless an operator has dropped its decision: it is being written, was aborted, or has "
            "not begun. Kafka does not know which batch an undecided transaction belongs to; the "
            "table shows those of the next batch's slot. A task whose rows the driver writes has "
            "none."
        )
    elif batch.known is Known.NO_STREAM:
        yield "The log has no decided batch of this stream, so nothing of it is visible."
    if outcomes & {Outcome.IN_DOUBT, Outcome.UNKNOWN}:
        options = options_for(names, reach)
        command = sink_command("resolve", names.query, options=options)
        yield f"See also: {command}"


def _explain_gone(batch: Explanation) -> str:
    latest = batch.latest.batch if batch.latest else None
    if latest == batch.batch.batch:
        return (
            "It is the last decided batch of its stream. Other batches of the query were decided "
            "later, and a batch is planned only after the one before it is settled: its rows are "
            "visible, unless an operator has given them up (eos-sink resolve)."
        )
    if batch.batch.numbering.is_of_write:
        return "It is among the numbers that were written: its rows are visible."
    return (
        f"Batch {latest} of the same stream is decided, and a batch is planned only after the one "
        "before it is settled: all rows of this one are visible once, or it had none. An "
        "operator's choice (eos-sink resolve) is the exception; compaction would have dropped it "
        "too."
    )
