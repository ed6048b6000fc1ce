"""An operator's choice about a query that has stopped, and one record that carries it out.

A choice is written as every decision is: join the query's group, open the log, compare, write.
Every run that is still alive is refused from then on. What is open is ended by the steps of the
query's next start, so nothing decided is ever aborted, and nothing else committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum

from eos_sink.decision_log import LogEntry
from eos_sink.driver.reconcile import Actor, bring_to_rest
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.ops import RefusedChoice
from eos_sink.ops.evidence import BatchEvidence
from eos_sink.ops.operator_run import join_as_operator, read_again
from eos_sink.protocol.model import Change, Decision, Override
from eos_sink.protocol.outcome import Outcome, outcome
from eos_sink.protocol.reconcile import Role, View

_TOOL = "eos-sink resolve"
UNTRACED = (
    "The log has no record of the query, and Kafka knows no committed transaction of it: check "
    "that --bootstrap-server, --log-topic and --prefix are the query's own."
)


class Choice(Enum):
    """A choice of the operator."""

    VISIBLE = "visible"
    LOST = "lost"
    ACCEPT = "accept"
    FORGET = "forget"


def apply_choice(
    evidence: BatchEvidence,
    choice: Choice,
    partitions: Sequence[int] = (),
) -> Decision | None:
    """The decision after the choice, None if it is dropped.

    Args:
        partitions: those that VISIBLE and LOST are about; empty for all that are in doubt.

    Raises:
        RefusedChoice: the evidence forbids it.
    """
    _check_seen(evidence)
    decision = evidence.decision
    about_partitions = choice in (Choice.VISIBLE, Choice.LOST)
    if partitions and not about_partitions:
        raise RefusedChoice(f"--{choice.value} concerns the whole batch, not partitions.")
    if choice is Choice.FORGET:
        if evidence.untraced:
            raise RefusedChoice(f"There is nothing to drop. {UNTRACED}")
        return None
    if decision is None:
        raise RefusedChoice("The log has no decision of this query to choose about.")
    override = decision.override
    if choice is Choice.ACCEPT:
        return replace(decision, override=replace(override, accepted=True))
    chosen = frozenset(partitions) or _find_doubts(evidence, override, choice)
    _check_doubts(evidence, decision, chosen)
    visible, lost = override.visible - chosen, override.lost - chosen
    if choice is Choice.VISIBLE:
        visible |= chosen
    else:
        lost |= chosen
    return replace(decision, override=replace(override, visible=visible, lost=lost))


def _check_seen(evidence: BatchEvidence) -> None:
    """Nothing is chosen while a part of the evidence is missing."""
    if evidence.unseen:
        raise RefusedChoice(f"Nothing was changed: not all was seen. {' '.join(evidence.unseen)}")


_REFUSALS = {
    Outcome.COMMITTED: "is committed and needs no choice",
    Outcome.OPEN: "is decided and open: the next start of the query commits it",
    Outcome.LOST: "was aborted: a replay of the batch writes it again without a choice",
    Outcome.UNKNOWN: "has not been seen yet: an open transaction may hide its witness. Look again",
}


def _find_doubts(evidence: BatchEvidence, override: Override, choice: Choice) -> frozenset[int]:
    """Return the partitions of a choice that names none: never what an earlier one was about."""
    doubtful = evidence.view.doubtful
    if not doubtful and (override.visible or override.lost):
        raise RefusedChoice(
            f"An earlier choice stands, and the next start acts on it: partitions "
            f"{sorted(override.visible)} are visible, {sorted(override.lost)} lost. To change it, "
            f"name the partitions: --{choice.value} --partitions P,P."
        )
    if not doubtful:
        raise RefusedChoice("Nothing is in doubt: the query can be started without a choice.")
    return doubtful


def _check_doubts(evidence: BatchEvidence, decision: Decision, chosen: Iterable[int]) -> None:
    """An earlier choice can be changed: without it the transaction is in doubt."""
    inlined = {entry.partition for entry in decision.inlined}
    transactions = {task.partition: task.evidence for task in evidence.transactions}
    for partition in sorted(chosen):
        if partition in inlined:
            raise RefusedChoice(
                f"The rows of partition {partition} are in the transaction of the decision: they "
                "are visible and need no choice. Name partitions that are in doubt."
            )
        if partition not in transactions:
            raise RefusedChoice(f"The decision has no transaction of partition {partition}.")
        without = outcome(replace(transactions[partition], override=None, accepted=False))
        if without is not Outcome.IN_DOUBT:
            raise RefusedChoice(f"Partition {partition} {_REFUSALS[without]}.")


def write_choice(
    kafka: Kafka, evidence: BatchEvidence, decision: Decision | None, deadline: Deadline
) -> LogEntry:
    """Write the record of a choice; every older run is refused from then on.

    Args:
        decision: from `apply_choice`.

    Raises:
        RefusedChoice: the log or a transaction has changed since the evidence was gathered.
        UnfinishedError: the batch is to be accepted or dropped, and a transaction of it is open.
    """
    names = evidence.names
    entry = _read_again(kafka, evidence, deadline)
    with join_as_operator(kafka, names, entry, _TOOL, deadline) as append:
        if decision is None or decision.override.accepted:
            # No start would commit what is open after the choice.
            view = bring_to_rest(kafka, View.of(names, entry), deadline)
            seen = evidence.view
            if new := sorted((view.lost | view.doubtful) - (seen.lost | seen.doubtful)):
                raise RefusedChoice(f"Partitions {new} were not seen lost before. Look again.")
        return append(Change(decision))


def end_open(kafka: Kafka, evidence: BatchEvidence, deadline: Deadline) -> View:
    """End what is open as the query's next start does: commit what is decided; then, if there is
    more, fence the plans and abort it.

    Raises:
        RefusedChoice: the log has changed since the evidence was gathered, or has no record of the
            query, so that it is unknown what is decided.
        UnfinishedError, OutcomeUnknownError: something is still open at the deadline.
    """
    _check_seen(evidence)
    if evidence.untraced:
        raise RefusedChoice(f"Nothing is ended. {UNTRACED}")
    if not evidence.history.seq:
        # A new record in a log that has lost the query's records would hide the loss.
        raise RefusedChoice(
            "Nothing is ended: the log has no record of the query, and transactions of it were "
            "committed before, so it is unknown what is decided. Give the query's own --log-topic."
        )
    names = evidence.names
    entry = _read_again(kafka, evidence, deadline)
    view = View.of(names, entry)
    if not evidence.undecided:
        return bring_to_rest(kafka, view, deadline)
    with join_as_operator(kafka, names, entry, _TOOL, deadline) as append:
        fencing = Actor(Role.GIVE_UP, lambda view: append(Change(view.decision)))
        return bring_to_rest(kafka, view, deadline, fencing)


def _read_again(kafka: Kafka, evidence: BatchEvidence, deadline: Deadline) -> LogEntry:
    seq = evidence.history.seq
    return read_again(kafka, evidence.names, seq, deadline, create=not seq)
