"""What a person sees and does where the sink has stopped: evidence, a choice, one record.

Looking changes nothing. A choice is carried out as every decision is: join as the query's member,
open the log, compare, write. Whatever still runs is refused from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.deadline import Deadline
from eos_sink.driver.processes import this_process
from eos_sink.driver.sweep import list_undecided
from eos_sink.log import DecisionRegister, Entry
from eos_sink.model import Decision, Owner, PlanToken, Prepared, Tally, Transaction
from eos_sink.options import SinkOptions
from eos_sink.ports import (
    EndOutcome,
    Headers,
    Inspection,
    MemberRefused,
    PartitionTail,
    ProducerIdentity,
    Trace,
    TransactionState,
    Visibility,
)
from eos_sink.task.fingerprint import Tallier
from eos_sink.verdicts import Settling, settling

SESSION_MS = 30_000
_LOOK_S = 10.0
TOOL = "eos-sink resolve"


class RefusedChoice(Exception):
    """What is known forbids the choice; says why."""


class Choice(Enum):
    """What a person can choose."""

    VISIBLE = "visible"
    LOST = "lost"
    ACCEPT = "accept"
    FORGET = "forget"


class Standing(Enum):
    """What is known of one transaction of the decision."""

    COMMITTED = "committed"
    OPEN = "open"
    """Decided and not ended yet: the next start of the query commits it."""
    LOST = "lost"
    """Aborted: a replay of the batch writes its partition again."""
    IN_DOUBT = "in doubt"


@dataclass(frozen=True)
class Account:
    """All that can be told of one transaction of the decision.

    Attributes:
        witness: what a read_committed reader finds there; None: it was not asked or waits.
        trace: what the ends of its topic's partitions show of it, together.
        found: the rows behind `trace` as far as they could be looked at.
    """

    entry: Prepared
    transaction: Transaction
    state: TransactionState
    standing: Standing
    witness: Visibility | None
    trace: Trace
    found: Tally

    @property
    def same_rows(self) -> bool:
        """The topic's end holds exactly the rows that were decided."""
        return self.trace.rows > 0 and self.found == self.entry.tally


@dataclass(frozen=True)
class Evidence:
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
    def owner(self) -> Owner | None:
        return self.entry.record.owner if self.entry else None

    @property
    def in_doubt(self) -> list[Account]:
        """Those that nobody has ruled about yet."""
        if self.decision is None or self.decision.ruling.accepted:
            return []
        ruled = self.decision.ruling.visible | self.decision.ruling.lost
        return [
            account
            for account in self.accounts
            if account.standing is Standing.IN_DOUBT and account.entry.partition not in ruled
        ]


def look(kafka: Inspection, options: SinkOptions, most: int, deadline: Deadline) -> Evidence:
    """Gather the evidence; `most` offsets of each partition's end are read for traces."""
    names = options.names
    control = kafka.control()
    entry = read_log(kafka, options, deadline)
    decision = entry.decision if entry else None
    committed = () if entry and entry.seq else control.list_committed(f"{names.group}-", deadline)
    accounts, tails = (
        accounts_of(kafka, options, decision, most, deadline) if decision else ([], [])
    )
    return Evidence(
        entry=entry,
        accounts=tuple(accounts),
        tails=tuple(tails),
        undecided=tuple(list_undecided(kafka, names, decision, deadline)),
        committed=tuple(sorted(committed)),
        members=tuple(kafka.members(names.group, deadline)),
    )


def ruled(evidence: Evidence, choice: Choice, partitions: Sequence[int]) -> Decision | None:
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
        _check_doubt(accounts[partition], choice)
    ruling = decision.ruling
    visible, lost = (chosen, frozenset()) if choice is Choice.VISIBLE else (frozenset(), chosen)
    ruling = replace(
        ruling, visible=ruling.visible - chosen | visible, lost=ruling.lost - chosen | lost
    )
    return replace(decision, ruling=ruling)


def carry_out(
    kafka: Inspection,
    options: SinkOptions,
    evidence: Evidence,
    decision: Decision | None,
    deadline: Deadline,
) -> Entry:
    """Write the record that follows from a choice; every older run is refused from here on.

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
        return register.write(token, decision, deadline)
    except MemberRefused as refused:
        raise RefusedChoice(f"A run of the query has started meanwhile: {refused}") from refused
    finally:
        member.close()
        register.close()


def read_log(kafka: Inspection, options: SinkOptions, deadline: Deadline) -> Entry | None:
    """The query's latest record; None, without making it, where there is no log."""
    if kafka.queries(deadline) is None:
        return None
    register = DecisionRegister(kafka, options.names)
    try:
        return register.read(deadline)
    finally:
        register.close()


def accounts_of(
    kafka: Inspection, options: SinkOptions, decision: Decision, most: int, deadline: Deadline
) -> tuple[list[Account], list[PartitionTail]]:
    """What can be told of a decision's transactions, and the ends of topics that were read."""
    entries = decision.transactions(options.names)
    states = kafka.control().describe([t.transactional_id for t in entries], deadline)
    steps = {t: settling(t, states[t.transactional_id]) for t in entries}
    looking = {entries[t].witness: t for t, step in steps.items() if step is Settling.LOOK}
    # Whoever waits behind an open transaction waits for a time-out; a person does not.
    soon = deadline.within(_LOOK_S)
    seen = kafka.visibility(list(looking), soon) if looking else {}
    found = {looking[witness]: visibility for witness, visibility in seen.items()}
    reading = _Reading(kafka, list(entries), most, deadline)
    tails = [tail for topic in decision.topics for tail in reading.read(topic)]
    accounts = [
        Account(
            entry,
            transaction,
            states[transaction.transactional_id],
            _standing(steps[transaction], found.get(transaction)),
            found.get(transaction),
            reading.trace(transaction, tails),
            reading.tally(transaction, entry),
        )
        for transaction, entry in entries.items()
    ]
    return accounts, tails


class _Reading:
    """The ends of topics, with the rows of the decision's producers added up."""

    def __init__(
        self, kafka: Inspection, transactions: list[Transaction], most: int, deadline: Deadline
    ) -> None:
        self._kafka, self._most, self._deadline = kafka, most, deadline
        self._ids = {t: ProducerIdentity(t.producer_id, t.epoch) for t in transactions}
        # Whether the query gives each row its topic is not recorded: one of the two fits.
        self._talliers = {
            producer: (Tallier(topic_varies=False), Tallier(topic_varies=True))
            for producer in self._ids.values()
        }

    def read(self, topic: str) -> list[PartitionTail]:
        producers = frozenset(self._ids.values())
        return self._kafka.tails(topic, producers, self._most, self._on_row, self._deadline)

    def trace(self, transaction: Transaction, tails: list[PartitionTail]) -> Trace:
        found = [tail.traces.get(self._ids[transaction], Trace()) for tail in tails]
        markers = [trace.committed for trace in found if trace.committed is not None]
        return Trace(
            sum(trace.rows for trace in found),
            sum(trace.hidden for trace in found),
            markers[0] if markers else None,
        )

    def tally(self, transaction: Transaction, entry: Prepared) -> Tally:
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


def _standing(step: Settling, witness: Visibility | None) -> Standing:
    if step is Settling.COMMITTED or witness is Visibility.COMMITTED:
        return Standing.COMMITTED
    if witness is Visibility.ABORTED:
        return Standing.LOST
    return Standing.IN_DOUBT if witness is Visibility.UNREADABLE else Standing.OPEN


_REFUSALS = {
    Standing.COMMITTED: "is committed, and needs no ruling",
    Standing.OPEN: "is decided and open: the next start of the query commits it",
    Standing.LOST: "was aborted: a replay of the batch writes it again without a ruling",
}


def _check_doubt(account: Account, choice: Choice) -> None:
    partition = account.entry.partition
    if account.standing is not Standing.IN_DOUBT:
        raise RefusedChoice(f"Partition {partition} {_REFUSALS[account.standing]}.")
    marker = account.trace.committed
    if marker is not None and marker is not (choice is Choice.VISIBLE):
        raise RefusedChoice(
            f"Partition {partition} was {'committed' if marker else 'aborted'}: the topic has the "
            f"marker of its transaction. --{choice.value} would be wrong."
        )


def _end_what_is_decided(kafka: Inspection, evidence: Evidence, deadline: Deadline) -> None:
    """What is decided is never aborted: without its decision the next start would."""
    open_ = [a.transaction for a in evidence.accounts if a.standing is Standing.OPEN]
    outcomes = kafka.control().end(open_, commit=True, deadline=deadline)
    if any(outcomes.get(transaction) is not EndOutcome.DONE for transaction in open_):
        raise RefusedChoice(
            "A transaction of the decision is open and could not be committed, which comes before "
            "the decision can be dropped. Start the query, or look again."
        )
