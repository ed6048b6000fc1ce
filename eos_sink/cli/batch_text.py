"""Words a decided batch and its evidence for `status` and `resolve`."""

from __future__ import annotations

from collections.abc import Iterator

from eos_sink.cli.output import Cell, Mood
from eos_sink.ops.documents import MARKER, WITNESS
from eos_sink.protocol.model import Decision, RowDigest
from eos_sink.protocol.outcome import Evidence, Outcome

_MOODS = {
    Outcome.COMMITTED.value: Mood.GOOD,
    Outcome.OPEN.value: Mood.WARN,
    Outcome.UNKNOWN.value: Mood.WARN,
    "aborted": Mood.WARN,
    Outcome.LOST.value: Mood.BAD,
    Outcome.IN_DOUBT.value: Mood.BAD,
    "unreadable": Mood.BAD,
}


def outcome_cell(outcome: str) -> Cell:
    """Return the outcome of a transaction or a batch."""
    return Cell(outcome, _MOODS.get(outcome, Mood.PLAIN))


def describe_decision(decision: Decision) -> Iterator[str]:
    """Say what was decided, where its rows are, and what an operator has chosen about it."""
    yield (
        f"Decision: {decision.batch}, slot {decision.slot}, {decision.partitions} partitions, "
        f"{describe_rows(decision.total)}."
    )
    yield from _describe_places(decision)
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


def describe_rows(rows: RowDigest) -> str:
    return f"{rows.rows:,} rows, {rows.bytes:,} bytes, fingerprint {rows.fingerprint:016x}"


def _describe_places(decision: Decision) -> Iterator[str]:
    """Say where rows of the batch are, if not in the transactions of its tasks and in their
    topics."""
    if decision.inlined:
        some, every = len(decision.inlined), len(decision.digests)
        rows = f"{decision.inlined_total.rows:,} rows, of {some} of the {every} tasks with rows,"
        what = "All its rows" if some == every else rows
        yield f"{what} are in the transaction of the decision and became visible with it."
    if decision.dead_letters:
        tasks = ", ".join(str(each.partition) for each in decision.dead_letters)
        yield (
            f"{decision.dead_letter_rows:,} of its rows, of the tasks {tasks}, are in the dead "
            f"letter topic {decision.dead_letter_topic}."
        )


def describe_coordinator(evidence: Evidence) -> str:
    """Return the coordinator's answer; "not asked" without one."""
    state = evidence.state
    if state is None:
        return "not asked"
    other = state.is_not(evidence.transaction)
    return state.status.value + (f" (of another, epoch {state.transaction.epoch})" if other else "")


def describe_witness(evidence: Evidence) -> str:
    return WITNESS[evidence.witness] or "not asked"


def describe_marker(marker: bool | None) -> str:
    return MARKER[marker] or "none"
