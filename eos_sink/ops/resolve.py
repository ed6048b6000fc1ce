"""What a person sees and does where the sink has stopped: evidence, a choice, one record.

Looking changes nothing. A choice is carried out as every decision is: join as the query's member,
open the log, compare, write. Whatever still runs is refused from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.decision_log import DecisionRegister, Entry
from eos_sink.driver.abort import list_undecided
from eos_sink.driver.evidence import ask_all
from eos_sink.driver.processes import this_process
from eos_sink.kafka.admin_interface import Admin, PartitionTail, Trace
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import (
    EndOutcome,
    Headers,
    Kafka,
    MemberRefused,
    ProducerIdentity,
    Transaction,
    Unseen,
)
from eos_sink.options import SinkOptions
from eos_sink.protocol.model import Decision, Earlier, PlanToken, Prepared, RowDigest, Run
from eos_sink.protocol.outcome import Evidence, Outcome, evidence_in_log, outcome
from eos_sink.task.fingerprint import RowDigester

SESSION_MS = 30_000
TOOL = "eos-sink resolve"


class RefusedChoice(Exception):
    """What is known forbids the choice; says why."""


class Choice(Enum):
    """What a person can choose."""

    VISIBLE = "visible"
    LOST = "lost"
    ACCEPT = "accept"
    FORGET = "forget"


@dataclass(frozen=True)
class Account:
    """All that can be told of one transaction of the decision.

    Attributes:
        trace: what the ends of its topic's partitions show of it, together.
        found: the rows behind `trace` as far as they could be looked at.
    """

    evidence: Evidence
    trace: Trace
    found: RowDigest

    @property
    def entry(self) -> Prepared:
        return self.evidence.entry

    @property
    def transaction(self) -> Transaction:
        return self.evidence.transaction

    @property
    def outcome(self) -> Outcome:
        return outcome(self.evidence)

    @property
    def same_rows(self) -> bool:
        """The topic's end holds exactly the rows that were decided."""
        return self.trace.rows > 0 and self.found == self.entry.tally


@dataclass(frozen=True)
class Found:
    """What there is to see.

    Attributes:
        entry: the log's latest record; None if the log's topic is not there.
        undecided: open transactions that the decision does not name.
        committed: where the log has no record, the ids that were committed all the same.
        members: hosts of the group's members.
    """

    entry: Entry | None
    accounts: tuple[Account, ...]
    tails: tuple[PartitionTail, ...]
    undecided: tuple[Transaction, ...]
    committed: tuple[str, ...]
    members: tuple[str, ...]

    @property
    def seq(self) -> int:
        return self.entry.seq if self.entry else 0

    @property
    def decision(self) -> Decision | None:
        return self.entry.decision if self.entry else None

    @property
    def owner(self) -> Run | None:
        return self.entry.record.owner if self.entry else None

    @property
    def in_doubt(self) -> list[Account]:
        """Those that wait for a person's ruling."""
        return [each for each in self.accounts if each.outcome is Outcome.IN_DOUBT]


def look(admin: Admin, options: SinkOptions, most: int, deadline: Deadline) -> Found:
    """Gather the evidence; `most` offsets of each partition's end are read for traces."""
    names = options.names
    entry = read_log(admin.kafka, options, deadline)
    decision = entry.decision if entry else None
    committed = (
        ()
        if entry and entry.seq
        else admin.kafka.control().list_committed(f"{names.group}-", deadline)
    )
    accounts: list[Account] = []
    tails: list[PartitionTail] = []
    if entry and decision:
        known = evidence_in_log(names, decision, settled=entry.record.settled)
        accounts, tails = _accounts(admin, known, most, deadline)
    members = admin.describe_groups([names.group], deadline)[names.group]
    return Found(
        entry=entry,
        accounts=tuple(accounts),
        tails=tuple(tails),
        undecided=tuple(list_undecided(admin.kafka, names, decision, deadline)),
        committed=tuple(sorted(committed)),
        members=() if isinstance(members, Unseen) else tuple(sorted(each.host for each in members)),
    )


def ruled(evidence: Found, choice: Choice, partitions: Sequence[int]) -> Decision | None:
    """The decision as the choice leaves it; None: it is dropped.

    Args:
        partitions: those that VISIBLE and LOST are about; none: all that are in doubt.

    Raises:
        RefusedChoice: what is known says otherwise.
    """
    decision = evidence.decision
    if partitions and choice not in (Choice.VISIBLE, Choice.LOST):
        raise RefusedChoice(f"--{choice.value} is about the whole batch, not about partitions.")
    if choice is Choice.FORGET:
        return None
    if decision is None:
        raise RefusedChoice("The log has no decision of this query that could be ruled about.")
    if choice is Choice.ACCEPT:
        return replace(decision, ruling=replace(decision.ruling, accepted=True))
    chosen = frozenset(partitions or (a.entry.partition for a in evidence.in_doubt))
    if not chosen:
        raise RefusedChoice("Nothing is in doubt: the next start of the query needs no person.")
    accounts = {account.entry.partition: account for account in evidence.accounts}
    for partition in sorted(chosen):
        if partition not in accounts:
            raise RefusedChoice(f"The decision has no transaction of partition {partition}.")
        _check_doubt(accounts[partition])
    ruling = decision.ruling
    visible, lost = (chosen, frozenset()) if choice is Choice.VISIBLE else (frozenset(), chosen)
    ruling = replace(
        ruling, visible=ruling.visible - chosen | visible, lost=ruling.lost - chosen | lost
    )
    return replace(decision, ruling=ruling)


def ruled_about(
    evidence: Found, choice: Choice, partitions: Sequence[int], stream: str
) -> tuple[Decision | None, tuple[Earlier, ...] | None]:
    """The decision and the earlier streams' batches as a choice about one stream leaves them; the
    decision's own stream may be named as well.

    Raises:
        RefusedChoice: the log knows no batch of the stream, or the choice is about partitions.
    """
    decision = evidence.decision
    if decision is not None and decision.batch.stream == stream:
        return ruled(evidence, choice, partitions), None
    known = evidence.entry.record.earlier_of(stream) if evidence.entry else None
    if evidence.entry is None or known is None:
        raise RefusedChoice(f"The log knows no decided batch of stream {stream}.")
    if partitions or choice not in (Choice.ACCEPT, Choice.FORGET):
        raise RefusedChoice(f"--{choice.value} is about the latest decision, not about a stream.")
    accepted = replace(known, accepted=True, dropped=False)
    changed = accepted if choice is Choice.ACCEPT else None
    return decision, evidence.entry.record.earlier_with(stream, changed)


def carry_out(  # noqa: PLR0913, PLR0917
    kafka: Kafka,
    options: SinkOptions,
    evidence: Found,
    decision: Decision | None,
    deadline: Deadline,
    earlier: tuple[Earlier, ...] | None = None,
) -> Entry:
    """Write the record that follows from a choice; every older run is refused from here on.

    Args:
        earlier: what is kept of other streams; None: what there was.

    Raises:
        RefusedChoice: the log or a transaction has moved since the evidence was gathered.
        SupersededError: it has moved while this was under way.
    """
    names, register = options.names, DecisionRegister(kafka, options.names)
    member = kafka.member(names.group, names.driver, SESSION_MS)
    try:
        entry = register.read(deadline)
        if entry.seq != evidence.seq:
            raise RefusedChoice(
                f"The log has moved from seq {evidence.seq} to {entry.seq} meanwhile, so a run of "
                "the query is alive. Stop it, then look again."
            )
        owner = replace(this_process(options), tool=TOOL)
        metadata = member.join(deadline)
        token = PlanToken(names, entry.seq, entry.position, metadata, owner, SESSION_MS)
        register.expect(token, deadline)
        if decision is None:
            _end_what_is_decided(kafka, evidence, deadline)
        return register.write(token, decision, deadline, earlier=earlier)
    except MemberRefused as refused:
        raise RefusedChoice(f"A run of the query has started meanwhile: {refused}") from refused
    finally:
        member.close()
        register.close()


def read_log(kafka: Kafka, options: SinkOptions, deadline: Deadline) -> Entry | None:
    """The query's latest record; None, without making it, where there is no log."""
    log = kafka.describe_topics([options.log_topic], deadline)[options.log_topic]
    if log is None:
        return None
    register = DecisionRegister(kafka, options.names)
    try:
        return register.read(deadline)
    finally:
        register.close()


def _accounts(
    admin: Admin, known: Sequence[Evidence], most: int, deadline: Deadline
) -> tuple[list[Account], list[PartitionTail]]:
    """What can be told of a decision's transactions, and the ends of topics that were read.

    Args:
        known: what the log says of them.
    """
    known = ask_all(admin.kafka, known, deadline)
    reading = _Reading(admin, [each.transaction for each in known], most, deadline)
    topics = sorted({each.entry.witness.topic for each in known})
    tails = [tail for topic in topics for tail in reading.read(topic)]
    accounts = [
        Account(
            each,
            reading.trace(each.transaction, tails),
            reading.tally(each.transaction, each.entry),
        )
        for each in known
    ]
    return accounts, tails


class _Reading:
    """The ends of topics, with the rows of the decision's producers added up."""

    def __init__(
        self, admin: Admin, transactions: list[Transaction], most: int, deadline: Deadline
    ) -> None:
        self._admin, self._most, self._deadline = admin, most, deadline
        self._ids = {t: ProducerIdentity(t.producer_id, t.epoch) for t in transactions}
        # Whether the query gives each row its topic is not recorded: one of the two fits.
        self._talliers = {
            producer: (RowDigester(topic_varies=False), RowDigester(topic_varies=True))
            for producer in self._ids.values()
        }

    def read(self, topic: str) -> list[PartitionTail]:
        producers = frozenset(self._ids.values())
        return self._admin.scan_topic(topic, producers, self._most, self._on_row, self._deadline)

    def trace(self, transaction: Transaction, tails: list[PartitionTail]) -> Trace:
        found = [tail.traces.get(self._ids[transaction], Trace()) for tail in tails]
        markers = [trace.committed for trace in found if trace.committed is not None]
        return Trace(
            sum(trace.rows for trace in found),
            sum(trace.hidden for trace in found),
            markers[0] if markers else None,
        )

    def tally(self, transaction: Transaction, entry: Prepared) -> RowDigest:
        fixed, varying = (t.tally for t in self._talliers[self._ids[transaction]])
        return varying if varying == entry.tally else fixed

    def _on_row(
        self,
        producer: ProducerIdentity,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers | None,
    ) -> None:
        row = (value, key, topic, list(headers) if headers else None, None, None)
        for tallier in self._talliers[producer]:
            tallier.add_row(row)


_REFUSALS = {
    Outcome.COMMITTED: "is committed, and needs no ruling",
    Outcome.OPEN: "is decided and open: the next start of the query commits it",
    Outcome.LOST: "was aborted: a replay of the batch writes it again without a ruling",
    Outcome.UNKNOWN: "has not been seen yet: an open transaction may hide its witness. Look again",
}


def _check_doubt(account: Account) -> None:
    """A ruling that was made before can be changed: without it there is doubt."""
    unruled = outcome(replace(account.evidence, ruling=None, accepted=False))
    if unruled is not Outcome.IN_DOUBT:
        raise RefusedChoice(f"Partition {account.entry.partition} {_REFUSALS[unruled]}.")


def _end_what_is_decided(kafka: Kafka, evidence: Found, deadline: Deadline) -> None:
    """What is decided is never aborted: without its decision the next start would."""
    unended = (Outcome.OPEN, Outcome.UNKNOWN)
    open_ = [each.transaction for each in evidence.accounts if each.outcome in unended]
    outcomes = kafka.control().end(open_, commit=True, deadline=deadline)
    if any(outcomes.get(transaction) is not EndOutcome.DONE for transaction in open_):
        raise RefusedChoice(
            "A transaction of the decision is open and could not be committed, which comes before "
            "the decision can be dropped. Start the query, or look again."
        )
