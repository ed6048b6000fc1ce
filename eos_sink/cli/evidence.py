"""What `eos-sink resolve` has found, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eos_sink.cli.report import Cell, Mood, Report
from eos_sink.decision_log import Entry
from eos_sink.driver.processes import runs_here
from eos_sink.kafka.admin_interface import PartitionTail
from eos_sink.kafka.interfaces import Visibility
from eos_sink.ops.resolve import Account, Choice, Found
from eos_sink.options import SinkOptions
from eos_sink.protocol.model import Decision, RowDigest
from eos_sink.protocol.outcome import Outcome

_WITNESS = {
    Visibility.COMMITTED: "there",
    Visibility.ABORTED: "skipped",
    Visibility.UNREADABLE: "unreadable",
}
_MOODS = {Outcome.COMMITTED: Mood.GOOD, Outcome.IN_DOUBT: Mood.BAD, Outcome.LOST: Mood.BAD}
_MARKERS = {True: "commit", False: "abort", None: "none"}
_COLUMNS = ("partition", "rows", "coordinator", "witness", "rows at the end", "marker", "outcome")


def report_of(
    options: SinkOptions,
    evidence: Found,
    choice: Choice | None = None,
    written: Entry | None = None,
) -> Report:
    """The evidence; and what was carried out, if anything was."""
    rows = tuple(_row(account) for account in evidence.accounts)
    notes = [*_notes(options, evidence), *_next(evidence, choice, written)]
    waiting = written is None and bool(evidence.in_doubt or evidence.committed)
    document = _document(options, evidence, choice, written)
    return Report(_COLUMNS, rows, tuple(notes), not waiting, document)


def _row(account: Account) -> tuple[Cell, ...]:
    trace, state, known = account.trace, account.evidence.state, account.evidence
    at_end = f"{trace.rows}"
    if account.same_rows:
        at_end += ", the decided ones"
    other = " (of another)" if state and state.is_not(account.transaction) else ""
    return (
        Cell(str(account.entry.partition)),
        Cell(f"{account.entry.tally.rows}"),
        Cell(f"{state.status.value}{other}" if state else "not asked"),
        Cell(_WITNESS[known.witness] if known.witness else "not asked"),
        Cell(at_end),
        Cell(_MARKERS[_marker(account)]),
        Cell(account.outcome.value, _MOODS.get(account.outcome, Mood.PLAIN)),
    )


def _notes(options: SinkOptions, evidence: Found) -> Iterator[str]:
    names, entry, decision = options.names, evidence.entry, evidence.decision
    yield f"Query {names.query}, group {names.group}"
    if entry is None:
        yield f"Decision log: there is no topic {options.log_topic}."
    else:
        place = entry.position
        where = f"{place.topic}[{place.partition}]"
        yield f"Decision log {where}: " + (
            f"seq {entry.seq} at offset {place.offset}." if entry.seq else "no record."
        )
    if evidence.owner is not None:
        alive = ", alive" if runs_here(evidence.owner) else ""
        yield f"Last written by {evidence.owner}{alive}."
    if evidence.members:
        yield f"Group member, alive or not long gone: {', '.join(evidence.members)}."
    if decision is not None:
        yield (
            f"Decision: {decision.batch}, slot {decision.slot}, {decision.partitions} partitions, "
            f"{_shown(decision.total)}."
        )
        yield from _ruling(decision)
    for account in evidence.in_doubt:
        yield _doubt(account)
    for tail in evidence.tails:
        yield _tail(tail)
    if evidence.committed:
        yield (
            "No record, but transactions were committed before: "
            f"{', '.join(evidence.committed[:5])}."
        )
    if evidence.undecided:
        yield f"Open and undecided: {len(evidence.undecided)}; the next start aborts them."


def _ruling(decision: Decision) -> Iterator[str]:
    ruling = decision.ruling
    if ruling.accepted:
        yield "A person has accepted it as it is."
    if ruling.visible:
        yield f"Visible by a person's ruling: partitions {sorted(ruling.visible)}."
    if ruling.lost:
        yield f"Lost by a person's ruling: partitions {sorted(ruling.lost)}."


def _doubt(account: Account) -> str:
    entry, trace = account.entry, account.trace
    place = f"{entry.witness.topic}[{entry.witness.partition}]@{entry.witness.offset}"
    seen = f"{trace.rows} of its {entry.tally.rows} rows are at the topic's end"
    if account.same_rows:
        seen += ", with its fingerprint"
    elif trace.rows:
        seen += f" ({_shown(account.found)}; decided: {_shown(entry.tally)})"
    hidden = f", {trace.hidden} of them too compressed to look at" if trace.hidden else ""
    return f"In doubt: partition {entry.partition}, witness {place} unreadable; {seen}{hidden}."


def _tail(tail: PartitionTail) -> str:
    unread = f"; not all was read: {tail.unread}" if tail.unread else ""
    return (
        f"{tail.topic}[{tail.partition}]: offsets {tail.start} to {tail.end} are kept, stable to "
        f"{tail.stable}, read from {tail.read_from}{unread}."
    )


def _next(evidence: Found, choice: Choice | None, written: Entry | None) -> Iterator[str]:
    if choice is not None and written is not None:
        yield f"--{choice.value} is carried out: seq {written.seq}. Start the query again."
    elif evidence.in_doubt:
        yield (
            "To go on: --visible if what is in doubt is or was there, --lost if it never was, "
            "--accept or --forget for the whole batch."
        )
    elif evidence.committed:
        yield "To go on: the right --log-topic; or restore the topic; or --forget."
    else:
        yield "Nothing is in doubt. If the query stops all the same: --accept or --forget."


def _shown(tally: RowDigest) -> str:
    return f"{tally.rows} rows, {tally.bytes} bytes, fingerprint {tally.fingerprint:016x}"


def _document(
    options: SinkOptions, evidence: Found, choice: Choice | None, written: Entry | None
) -> dict[str, Any]:
    entry, decision, owner = evidence.entry, evidence.decision, evidence.owner
    return {
        "query": options.names.query,
        "group": options.names.group,
        "log": {
            "topic": options.log_topic,
            "partition": entry.position.partition if entry else None,
            "offset": entry.position.offset if entry and entry.seq else None,
            "seq": evidence.seq,
        },
        "owner": None
        if owner is None
        else {
            "host": owner.host,
            "pid": owner.pid,
            "started_ms": owner.started_ms,
            "known_as": owner.tool or str(owner.origin),
            "alive_here": runs_here(owner),
        },
        "members": list(evidence.members),
        "decision": _decision(decision) if decision else None,
        "transactions": [_account(account) for account in evidence.accounts],
        "topics": [
            {
                "topic": tail.topic,
                "partition": tail.partition,
                "start": tail.start,
                "stable": tail.stable,
                "end": tail.end,
                "read_from": tail.read_from,
                "unread": tail.unread or None,
            }
            for tail in evidence.tails
        ],
        "in_doubt": [account.entry.partition for account in evidence.in_doubt],
        "undecided": [t.transactional_id for t in evidence.undecided],
        "committed_without_record": list(evidence.committed),
        "carried_out": choice.value if choice and written else None,
        "written_seq": written.seq if written else None,
    }


def _decision(decision: Decision) -> dict[str, Any]:
    ruling = decision.ruling
    return {
        "stream": decision.batch.stream,
        "batch": decision.batch.batch,
        "slot": decision.slot,
        "partitions": decision.partitions,
        **_tally(decision.total),
        "ruling": {
            "visible": sorted(ruling.visible),
            "lost": sorted(ruling.lost),
            "accepted": ruling.accepted,
        },
    }


def _marker(account: Account) -> bool | None:
    """What the marker says, behind the witness or at the end of the topic."""
    marker = account.evidence.marker
    return account.trace.committed if marker is None else marker


def _account(account: Account) -> dict[str, Any]:
    entry, known, state = account.entry, account.evidence, account.evidence.state
    return {
        "partition": entry.partition,
        "transactional_id": account.transaction.transactional_id,
        "producer_id": entry.producer_id,
        "epoch": entry.epoch,
        **_tally(entry.tally),
        "outcome": account.outcome.value,
        "coordinator": state
        and {
            "state": state.status.value,
            "producer_id": state.transaction.producer_id,
            "epoch": state.transaction.epoch,
        },
        "witness": {
            "topic": entry.witness.topic,
            "partition": entry.witness.partition,
            "offset": entry.witness.offset,
            "found": _WITNESS[known.witness] if known.witness else None,
        },
        "at_the_end": {
            **_tally(account.found),
            "rows": account.trace.rows,
            "hidden": account.trace.hidden,
            "marker": _MARKERS[_marker(account)],
            "same_rows": account.same_rows,
        },
    }


def _tally(tally: RowDigest) -> dict[str, Any]:
    return {
        "rows": tally.rows,
        "bytes": tally.bytes,
        "fingerprint": f"{tally.fingerprint:016x}",
    }
