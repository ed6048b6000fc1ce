"""What `eos-sink transactions` has found or done, as a table and as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eos_sink.cli.arguments import command_line
from eos_sink.cli.output import Cell, Mood, Report, span

if TYPE_CHECKING:
    from eos_sink.kafka.interfaces import EndOutcome, Transaction
    from eos_sink.ops.snapshot import Snapshot
    from eos_sink.ops.transactions import Line

_COLUMNS = ("transactional id", "state", "age", "time left", "slot", "task", "decision")


def list_report(snapshot: Snapshot, lines: Sequence[Line]) -> Report:
    """A row an id."""
    now_ms = snapshot.at_ms
    rows = tuple(_row(line, now_ms) for line in lines)
    open_ = [line for line in lines if line.open]
    decided = sum(line.decided for line in open_)
    notes = [
        f"{len(lines)} transactional ids, {len(open_)} with an open transaction"
        + (f", {decided} of them decided." if open_ else ".")
    ]
    notes += [problem.what for problem in snapshot.problems]
    document = {
        "at_ms": now_ms,
        "transactions": [_document(line, now_ms) for line in lines],
        "not_seen": [problem.what for problem in snapshot.problems],
    }
    return Report(_COLUMNS if rows else (), rows, tuple(notes), not snapshot.problems, document)


def _row(line: Line, now_ms: int) -> tuple[Cell, ...]:
    state, task = line.state, line.task
    age = max(0, now_ms - state.started_ms)
    mood = Mood.WARN if line.open else Mood.PLAIN
    return (
        Cell(state.transaction.transactional_id),
        Cell(state.status.value, mood),
        Cell(span(age) if line.open else "-"),
        Cell(span(state.timeout_ms - age) if line.open else "-"),
        Cell(str(task.slot) if task else "-"),
        Cell(str(task.partition) if task else ("driver" if line.names else "-")),
        Cell(line.said),
    )


def describe_report(snapshot: Snapshot, line: Line, arguments: argparse.Namespace) -> Report:
    """All that is known of one id, and what can be done."""
    now_ms = snapshot.at_ms
    notes = (*_told(snapshot, line, now_ms), *_next(line, arguments))
    notes += tuple(problem.what for problem in snapshot.problems)
    return Report(_COLUMNS, (_row(line, now_ms),), notes, True, _document(line, now_ms))


def _told(snapshot: Snapshot, line: Line, now_ms: int) -> Iterator[str]:
    state, transaction = line.state, line.state.transaction
    yield (
        f"Coordinator: {state.status.value}, producer id {transaction.producer_id}, epoch "
        f"{transaction.epoch}, time-out {span(state.timeout_ms)}."
    )
    if line.names is None:
        yield "The decision log knows no query that it could be of."
        return
    status = snapshot.query(line.query)
    driver = f"; its driver is {status.driver.value}" if status else ""
    yield f"Query {line.names.query}{driver}."
    written, entry = line.written, line.entry
    decision = written.record.decision if written else None
    if written is not None and decision is not None and entry is not None:
        place = written.position
        witness = f"{entry.witness.topic}[{entry.witness.partition}]@{entry.witness.offset}"
        yield (
            f"Decided with {decision.batch} in seq {written.record.seq} at {place.topic}"
            f"[{place.partition}]@{place.offset}, {span(max(0, now_ms - written.at_ms))} ago: "
            f"{entry.digest.rows:,} rows, {entry.digest.bytes:,} bytes, witness {witness}."
        )
    elif line.task is None:
        yield "It is the driver's own, which writes the log; it lasts 30 s at most."
    elif line.open:
        yield "No decision names it: it is being written, or its driver died before the decision."
    else:
        yield "No kept decision names this epoch of it."


def _next(line: Line, arguments: argparse.Namespace) -> Iterator[str]:
    reach = command_line(arguments)
    name = line.state.transaction.transactional_id
    if not line.open or line.task is None:
        return
    if line.decided:
        yield (
            "To make it visible: start the query, or "
            + f"eos-sink transactions commit {name} {reach}".rstrip()
        )
    else:
        yield (
            "To end it: start the query, or "
            + f"eos-sink transactions abort {name} {reach}".rstrip()
        )


def done_report(
    done: str,
    transactions: Sequence[Transaction],
    outcomes: Mapping[Transaction, EndOutcome],
    seq: int | None,
) -> Report:
    """What became of each.

    Args:
        done: what was done to those that have answered.
        seq: of the void before it, if there was one.
    """
    from eos_sink.kafka.interfaces import EndOutcome

    said = {
        EndOutcome.DONE: (done, Mood.GOOD),
        EndOutcome.REFUSED: ("refused: it has ended, or its id is another's now", Mood.WARN),
        None: ("no answer yet: look again", Mood.BAD),
    }
    rows = tuple(
        (Cell(each.transactional_id), Cell(*said[outcomes.get(each)])) for each in transactions
    )
    ok = all(outcomes.get(each) is EndOutcome.DONE for each in transactions)
    notes = [] if seq is None else [f"Seq {seq} of the log voids what was planned before."]
    document = {
        "seq": seq,
        "transactions": [{"transactional_id": row[0].text, "outcome": row[1].text} for row in rows],
    }
    return Report(("transactional id", "outcome"), rows, tuple(notes), ok, document, left=2)


def _document(line: Line, now_ms: int) -> dict[str, Any]:
    state, written, entry = line.state, line.written, line.entry
    decision = written.record.decision if written else None
    age = now_ms - state.started_ms
    return {
        "transactional_id": state.transaction.transactional_id,
        "producer_id": state.transaction.producer_id,
        "epoch": state.transaction.epoch,
        "state": state.status.value,
        "age_ms": age if line.open else None,
        "left_ms": state.timeout_ms - age if line.open else None,
        "timeout_ms": state.timeout_ms,
        "query": line.names.query if line.names else None,
        "slot": line.task.slot if line.task else None,
        "partition": line.task.partition if line.task else None,
        "decided": line.decided,
        "batch": decision.batch.batch if decision else None,
        "stream": decision.batch.stream if decision else None,
        "seq": written.record.seq if written else None,
        "rows": entry.digest.rows if entry else None,
    }
