"""A query that has stopped: the evidence, an operator's choice, and one record that carries it out.

Looking changes nothing. A choice is written as every decision is: join the query's group, open the
log, compare, write. Every run that is still alive is refused from then on. What is open is ended by
the steps of the query's next start, so nothing decided is ever aborted, and nothing else committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.decision_log import Entry
from eos_sink.driver.evidence import ask_all
from eos_sink.driver.reconcile import Actor, bring_to_rest, list_undecided
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin, MemberDescription
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Unseen
from eos_sink.kafka.topic_traces import PartitionTail, Trace
from eos_sink.ops import RefusedChoice
from eos_sink.ops.operator_run import join_as_operator, moved, read_log
from eos_sink.protocol.model import (
    Change,
    Decision,
    Override,
    Prepared,
    RowDigest,
    Run,
)
from eos_sink.protocol.outcome import Evidence, Outcome, evidence_in_log, outcome
from eos_sink.protocol.reconcile import Role, View
from eos_sink.protocol.values import ProducerIdentity, Transaction
from eos_sink.rows.fingerprint import RowDigester
from eos_sink.rows.rows import Row

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


@dataclass(frozen=True)
class TransactionEvidence:
    """The evidence about one transaction of the decision.

    Attributes:
        trace: what the ends of its topic's partitions still have of it, added up.
        found: the readable rows among them.
    """

    evidence: Evidence
    trace: Trace
    found: RowDigest

    @property
    def entry(self) -> Prepared:
        return self.evidence.entry

    @property
    def outcome(self) -> Outcome:
        return outcome(self.evidence)

    @property
    def same_rows(self) -> bool:
        """True if the end of the topic holds exactly the rows that were decided."""
        return self.trace.rows > 0 and self.found == self.entry.digest

    @property
    def marker(self) -> bool | None:
        """True if its marker commits, behind the witness or at the end of the topic."""
        return self.trace.committed if self.evidence.marker is None else self.evidence.marker


@dataclass(frozen=True)
class QueryEvidence:
    """The evidence about a query that needs an operator.

    Attributes:
        log: the topic of the decision log.
        entry: its latest record; None if there is no log.
        transactions: those of the decision.
        undecided: open transactions that the decision does not name.
        committed: ids that were committed although the log has no record.
        members: of the group.
    """

    log: str
    entry: Entry | None
    transactions: tuple[TransactionEvidence, ...] = ()
    tails: tuple[PartitionTail, ...] = ()
    undecided: tuple[Transaction, ...] = ()
    committed: tuple[str, ...] = ()
    members: tuple[MemberDescription, ...] | Unseen = ()

    @property
    def seq(self) -> int:
        return self.entry.seq if self.entry else 0

    @property
    def decision(self) -> Decision | None:
        return self.entry.decision if self.entry else None

    @property
    def run(self) -> Run | None:
        return self.entry.record.run if self.entry else None

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """Those of the group's members; None if the group could not be read."""
        if isinstance(self.members, Unseen):
            return None
        return tuple(sorted(member.host for member in self.members))

    @property
    def untraced(self) -> bool:
        """True if neither the log nor Kafka has a trace of the query."""
        return not (self.seq or self.committed)

    @property
    def in_doubt(self) -> list[TransactionEvidence]:
        """Those that wait for an operator's choice."""
        return [each for each in self.transactions if each.outcome is Outcome.IN_DOUBT]

    @property
    def not_ended(self) -> list[TransactionEvidence]:
        """Those that are decided and may be open."""
        unended = (Outcome.OPEN, Outcome.UNKNOWN)
        return [each for each in self.transactions if each.outcome in unended]

    @property
    def lost(self) -> list[TransactionEvidence]:
        """Those that a replay of the batch writes again."""
        return [each for each in self.transactions if each.outcome is Outcome.LOST]


def gather_evidence(
    admin: Admin, names: QueryNames, most: int, deadline: Deadline
) -> QueryEvidence:
    """Gather the evidence; reads the last `most` offsets of each partition."""
    kafka = admin.kafka
    entry = read_log(kafka, names, deadline)
    decision = entry.decision if entry else None
    committed: list[str] = []
    if entry is None or not entry.seq:
        committed = kafka.control().list_committed(f"{names.group}-", deadline)
    found: list[TransactionEvidence] = []
    tails: list[PartitionTail] = []
    if entry and decision:
        known = evidence_in_log(names, decision, settled=entry.record.settled)
        known = ask_all(kafka, known, deadline)
        found, tails = _read_tails(kafka, known, most, deadline)
    return QueryEvidence(
        log=kafka.log_topic,
        entry=entry,
        transactions=tuple(found),
        tails=tuple(tails),
        undecided=tuple(list_undecided(kafka, names, decision, deadline)),
        committed=tuple(sorted(committed)),
        members=admin.describe_groups([names.group], deadline)[names.group],
    )


def _read_tails(
    kafka: Kafka, known: Sequence[Evidence], most: int, deadline: Deadline
) -> tuple[list[TransactionEvidence], list[PartitionTail]]:
    """Read the ends of topics, and digest the rows of the decision's producers."""
    producers = {
        each: ProducerIdentity(each.transaction.producer_id, each.transaction.epoch)
        for each in known
    }
    # The log does not say whether the query gives each row its topic: one of the two fits.
    digesters = {
        producer: (RowDigester(topic_varies=False), RowDigester(topic_varies=True))
        for producer in producers.values()
    }

    def add_row(producer: ProducerIdentity, row: Row) -> None:
        for digester in digesters[producer]:
            digester.add_row(row)

    tails: list[PartitionTail] = []
    for topic in sorted({each.entry.witness.topic for each in known}):
        tails += kafka.scan_topic(topic, frozenset(digesters), most, add_row, deadline)
    found = []
    for each, producer in producers.items():
        traces = [tail.traces[producer] for tail in tails if producer in tail.traces]
        markers = [trace.committed for trace in traces if trace.committed is not None]
        trace = Trace(sum(trace.rows for trace in traces), markers[0] if markers else None)
        fixed, varying = (digester.digest for digester in digesters[producer])
        rows = varying if varying == each.entry.digest else fixed
        found.append(TransactionEvidence(each, trace, rows))
    return found, tails


def apply_choice(
    evidence: QueryEvidence,
    choice: Choice,
    partitions: Sequence[int] = (),
) -> Decision | None:
    """The decision after the choice, None if it is dropped.

    Args:
        partitions: those that VISIBLE and LOST are about; empty for all that are in doubt.

    Raises:
        RefusedChoice: the evidence forbids it.
    """
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


_REFUSALS = {
    Outcome.COMMITTED: "is committed and needs no choice",
    Outcome.OPEN: "is decided and open: the next start of the query commits it",
    Outcome.LOST: "was aborted: a replay of the batch writes it again without a choice",
    Outcome.UNKNOWN: "has not been seen yet: an open transaction may hide its witness. Look again",
}


def _find_doubts(evidence: QueryEvidence, override: Override, choice: Choice) -> frozenset[int]:
    """Return the partitions of a choice that names none: never what an earlier one was about."""
    found = frozenset(each.entry.partition for each in evidence.in_doubt)
    if not found and (override.visible or override.lost):
        raise RefusedChoice(
            f"An earlier choice stands, and the next start acts on it: partitions "
            f"{sorted(override.visible)} are visible, {sorted(override.lost)} lost. To change it, "
            f"name the partitions: --{choice.value} --partitions P,P."
        )
    if not found:
        raise RefusedChoice("Nothing is in doubt: the query can be started without a choice.")
    return found


def _check_doubts(evidence: QueryEvidence, decision: Decision, chosen: Iterable[int]) -> None:
    """An earlier choice can be changed: without it the transaction is in doubt."""
    inlined = {each.partition for each in decision.inlined}
    known = {each.entry.partition: each.evidence for each in evidence.transactions}
    for partition in sorted(chosen):
        if partition in inlined:
            raise RefusedChoice(
                f"The rows of partition {partition} are in the transaction of the decision: they "
                "are visible and need no choice. Name partitions that are in doubt."
            )
        if partition not in known:
            raise RefusedChoice(f"The decision has no transaction of partition {partition}.")
        without = outcome(replace(known[partition], override=None, accepted=False))
        if without is not Outcome.IN_DOUBT:
            raise RefusedChoice(f"Partition {partition} {_REFUSALS[without]}.")


def write_choice(
    kafka: Kafka,
    names: QueryNames,
    evidence: QueryEvidence,
    decision: Decision | None,
    deadline: Deadline,
) -> Entry:
    """Write the record of a choice; every older run is refused from then on.

    Args:
        decision: from `apply_choice`.

    Raises:
        RefusedChoice: the log or a transaction has changed since the evidence was gathered.
        UnfinishedError: the batch is to be accepted or dropped, and a transaction of it is open.
    """
    entry = _read_again(kafka, names, evidence, deadline)
    with join_as_operator(kafka, names, entry, _TOOL, deadline) as (register, token):
        register.expect(token, deadline)
        if decision is None or decision.override.accepted:
            # No start would commit what is open after the choice.
            view = bring_to_rest(kafka, View.of(names, entry), deadline)
            known = {each.entry.partition for each in (*evidence.lost, *evidence.in_doubt)}
            if new := sorted((view.lost | view.doubtful) - known):
                raise RefusedChoice(f"Partitions {new} were not seen lost before. Look again.")
        return register.append(token, Change(decision), deadline)


def end_open(kafka: Kafka, names: QueryNames, evidence: QueryEvidence, deadline: Deadline) -> View:
    """End what is open as the query's next start does: commit what is decided; then, if there is
    more, fence the plans and abort it.

    Raises:
        RefusedChoice: the log has changed since the evidence was gathered, or has no record of the
            query, so that it is unknown what is decided.
        UnfinishedError, OutcomeUnknownError: something is still open at the deadline.
    """
    if evidence.untraced:
        raise RefusedChoice(f"Nothing is ended. {UNTRACED}")
    if not evidence.seq:
        # A new record in a log that has lost the query's records would hide the loss.
        raise RefusedChoice(
            "Nothing is ended: the log has no record of the query, and transactions of it were "
            "committed before, so it is unknown what is decided. Give the query's own --log-topic."
        )
    entry = _read_again(kafka, names, evidence, deadline)
    view = View.of(names, entry)
    if not evidence.undecided:
        return bring_to_rest(kafka, view, deadline)
    with join_as_operator(kafka, names, entry, _TOOL, deadline) as (register, token):
        register.expect(token, deadline)

        def fence(view: View) -> Entry:
            return register.append(token, Change(view.decision), deadline)

        return bring_to_rest(kafka, view, deadline, Actor(Role.GIVE_UP, fence))


def _read_again(
    kafka: Kafka, names: QueryNames, evidence: QueryEvidence, deadline: Deadline
) -> Entry:
    """The latest record, which has to be the one that the evidence is about."""
    entry = read_log(kafka, names, deadline, create=not evidence.seq)
    if entry is None:
        raise RefusedChoice(f"The decision log {kafka.log_topic} has gone meanwhile. Look again.")
    if entry.seq != evidence.seq:
        raise moved(evidence.seq, entry)
    return entry
