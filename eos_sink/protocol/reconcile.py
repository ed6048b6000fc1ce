"""Finds what is left to do for a query, from all that is known of it. Pure.

Plans, commits, aborts and operators' commands do the next step until nothing is left. The order is
the safety: a decision is settled, then open transactions are listed, then a record fences their
plans, then exactly these are aborted. Transactions that begin later have another producer epoch or
another plan, and are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.identity import QueryNames
from eos_sink.protocol.model import Decision, LogEntry, LogRecord
from eos_sink.protocol.outcome import (
    Evidence,
    Outcome,
    Source,
    evidence_in_log,
    is_in_vain,
    is_proven,
    missing,
    outcome,
)
from eos_sink.protocol.values import Transaction


class Step(Enum):
    """A step towards a query of which nothing is open."""

    ASK_TOPIC_IDS = "ask for topic ids"
    ASK_COORDINATORS = "ask coordinators"
    COMMIT = "commit"
    """EndTxn(commit) for what is decided and open. Anyone may, at any time."""
    LOOK = "look for what hangs"
    """What Kafka has forgotten to end ends as it did elsewhere. Before the topics are asked, since
    no one can read past it there."""
    ASK_TOPICS = "ask topics"
    STOP = "stop"
    """Something decided is open still: it would be listed."""
    LIST = "list"
    FENCE = "fence"
    """The latest record again, under the next number: no older plan can be decided any more."""
    ABORT = "abort"
    WAIT = "wait"
    """Until the group has no pending offsets: a coordinator that moved while it was asked may have
    hidden a transaction."""
    REST = "rest"


class Role(Enum):
    """The aim of the one who acts, and what it may do."""

    SETTLE = "settle"
    """Without a membership."""
    REPAIR = "repair"
    """The plan after one that came to nothing."""
    START = "start"
    """The first plan of a process, or a new run."""
    GIVE_UP = "give up"
    """An abort of a plan, whose tasks' transactions are known; or of all plans of an identity."""

    @property
    def fences(self) -> bool:
        return self is not Role.SETTLE

    @property
    def fences_always(self) -> bool:
        """Also if nothing is listed."""
        return self in (Role.START, Role.GIVE_UP)

    @property
    def plans(self) -> bool:
        return self in (Role.REPAIR, Role.START)


_SETTLING = {Step.ASK_TOPIC_IDS, Step.ASK_COORDINATORS, Step.COMMIT, Step.ASK_TOPICS}


@dataclass(frozen=True)
class View:
    """The known state of a query.

    Attributes:
        entry: its latest record.
        evidence: about each transaction of the decision.
        just_decided: all of them are still open; so the coordinators are not asked.
        listed: open transactions that the decision does not name.
        fenced: a record was written since `entry` was read first.
        aborted: how many transactions were aborted.
        done: the steps that need not be done again.
    """

    names: QueryNames
    entry: LogEntry
    evidence: tuple[Evidence, ...] = ()
    just_decided: bool = False
    listed: frozenset[Transaction] = frozenset()
    fenced: bool = False
    aborted: int = 0
    done: frozenset[Step] = frozenset()

    @staticmethod
    def of(names: QueryNames, entry: LogEntry, *, just_decided: bool = False) -> View:
        """Return what the log tells. A record that is noted as settled needs no evidence:
        coordinators and topics forget."""
        decision = entry.decision
        evidence: tuple[Evidence, ...] = ()
        if decision is not None and not entry.record.settled:
            evidence = evidence_in_log(names, decision)
        return View(names, entry, evidence, just_decided)

    def at(self, entry: LogEntry) -> View:
        """The view when `entry` was read. A decision is settled once, but a doubt may be over: a
        topic could not be read, or an operator knows more."""
        if self.doubtful or entry.decision != self.entry.decision:
            return View.of(self.names, entry)
        done = self.done & _SETTLING
        return View(self.names, entry, self.evidence, self.just_decided, done=done)

    def listing(self, transactions: frozenset[Transaction]) -> View:
        """The same with transactions that are open, if the decision does not name them."""
        decided = self.decision.transactions(self.names).keys() if self.decision else frozenset()
        return replace(self, listed=self.listed | transactions - decided)

    def doing(self, step: Step) -> View:
        """The same while a step is done. What was open when it was looked for, and is not listed,
        may hang; where something is aborted so may something else, from an earlier attempt."""
        again = {Step.LOOK} if step in (Step.LIST, Step.ABORT) else set()
        return replace(self, done=(self.done | {step}) - again)

    def again(self) -> View:
        """The same with another look at what is open."""
        return replace(self, listed=frozenset(), done=self.done & _SETTLING)

    @property
    def record(self) -> LogRecord:
        return self.entry.record

    @property
    def decision(self) -> Decision | None:
        return self.entry.decision

    @property
    def to_commit(self) -> list[Transaction]:
        """The decided transactions that are open, or are taken to be."""
        presumed = self.presumes_open
        return [e.transaction for e in self.evidence if presumed or outcome(e) is Outcome.OPEN]

    @property
    def presumes_open(self) -> bool:
        return self.just_decided and not self.made_again

    @property
    def in_vain(self) -> list[Transaction]:
        """The open ones that would make no row visible. Open, they would hold up the group until
        they time out."""
        return [each.transaction for each in self.evidence if is_in_vain(each)]

    @property
    def unfinished(self) -> list[Evidence]:
        unended = Outcome.OPEN, Outcome.UNKNOWN
        return [each for each in self.evidence if outcome(each) in unended]

    @property
    def lost(self) -> frozenset[int]:
        """Partitions that were aborted after the decision, by a timeout or a late attempt."""
        return self.partitions_that_are(Outcome.LOST)

    @property
    def doubtful(self) -> frozenset[int]:
        """Partitions whose outcome is not known any more."""
        return self.partitions_that_are(Outcome.IN_DOUBT)

    @property
    def made_again(self) -> frozenset[str]:
        """The topics of witnesses that were deleted and made again since."""
        return frozenset(e.entry.witness.topic for e in self.evidence if e.made_again)

    @property
    def seen(self) -> bool:
        """All of the decision was seen visible, by Kafka's evidence alone: an operator may change
        an override."""
        if self.decision is None or self.record.settled:
            return self.record.settled
        alone = (replace(each, override=None, accepted=False) for each in self.evidence)
        return all(outcome(each) is Outcome.COMMITTED for each in alone)

    def partitions_that_are(self, which: Outcome) -> frozenset[int]:
        return frozenset(e.entry.partition for e in self.evidence if outcome(e) is which)


def next_step(view: View, role: Role) -> Step:
    """Return the first row that holds. `docs/design.md` shows it as a table."""
    asks = {missing(each) for each in view.evidence}
    fences = bool(view.listed) or (role.fences_always and not view.fenced)
    rows = (
        (Step.ASK_TOPIC_IDS, any(e.topic_id and not is_proven(e) for e in view.evidence)),
        (Step.ASK_COORDINATORS, Source.COORDINATOR in asks and not view.presumes_open),
        (Step.COMMIT, bool(view.to_commit or view.in_vain)),
        (Step.LOOK, role.plans),
        (Step.ASK_TOPICS, bool({Source.WITNESS, Source.MARKER} & asks)),
        (Step.STOP, bool(view.unfinished)),
        (Step.LIST, role.fences),
        (Step.FENCE, role.fences and fences),
        (Step.ABORT, role.fences and bool(view.listed)),
        (Step.WAIT, role is Role.START),
    )
    return next((step for step, holds in rows if holds and step not in view.done), Step.REST)
