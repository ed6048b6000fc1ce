"""Make a decided batch visible: EndTxn(commit) for each of its transactions.

A refused EndTxn does not tell the outcome: a late attempt of a task may have taken the id after the
commit. The witness does: a read_committed reader gets that record or skips it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eos_sink.driver.evidence import ask_coordinators, ask_topic_ids, ask_topics
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Decision, LogRecord
from eos_sink.protocol.outcome import (
    Evidence,
    Outcome,
    Source,
    evidence_in_log,
    is_in_vain,
    missing,
    outcome,
)
from eos_sink.protocol.values import EndOutcome, Place, Transaction

# For the text of an error, after the step's own deadline.
_EXPLAIN_S = 5.0


@dataclass(frozen=True)
class Settlement:
    """The outcome of a decision.

    Attributes:
        lost: partitions that were aborted after the decision, by a timeout or a late attempt.
        doubtful: partitions whose outcome is not known any more.
        made_again: the topics of their witnesses that were deleted and made again since.
        seen: all of it was seen visible; an operator's override does not count.
    """

    lost: frozenset[int] = frozenset()
    doubtful: frozenset[int] = frozenset()
    made_again: frozenset[str] = frozenset()
    seen: bool = False


def settle(
    kafka: Kafka, names: QueryNames, record: LogRecord, deadline: Deadline, *, just_decided: bool
) -> Settlement:
    """Commit the transactions of a record's decision; repeating it is harmless. A record that is
    noted as settled needs no evidence: coordinators and topics forget.

    Args:
        just_decided: all transactions are still open. Otherwise the coordinators are asked first,
            which costs less than ending transactions again; and if a topic was made again.

    Raises:
        UnfinishedError: some are still open at the deadline.
    """
    decision = record.decision
    if decision is None or record.settled:
        return Settlement(seen=record.settled)
    known = commit_open(kafka, names, record, deadline, just_decided=just_decided)
    # Of a transaction whose EndTxn has no answer the topics are not asked.
    known = ask_topics(kafka, known, deadline)
    found = [(each, outcome(each)) for each in known]
    if unfinished := [e for e, became in found if became in (Outcome.OPEN, Outcome.UNKNOWN)]:
        if hidden := [each for each in unfinished if missing(each) is Source.WITNESS]:
            raise _hidden(kafka, decision, hidden, deadline)
        ids = sorted(each.transaction.transactional_id for each in unfinished)
        raise stop(Reason.UNFINISHED, decision=decision, transactions=ids, seconds=deadline.seconds)
    return Settlement(
        lost=frozenset(e.entry.partition for e, became in found if became is Outcome.LOST),
        doubtful=frozenset(e.entry.partition for e, became in found if became is Outcome.IN_DOUBT),
        made_again=frozenset(e.entry.witness.topic for e in known if e.made_again),
        seen=all(_seen(each) for each in known),
    )


def commit_open(
    kafka: Kafka, names: QueryNames, record: LogRecord, deadline: Deadline, *, just_decided: bool
) -> tuple[Evidence, ...]:
    """Commit what is open of a record's decision, without a look at its rows; see `settle`."""
    if record.decision is None or record.settled:
        return ()
    known = ask_topic_ids(kafka, evidence_in_log(names, record.decision), deadline)
    if just_decided and not any(each.made_again for each in known):
        open_ = [each.transaction for each in known]
    else:
        known = ask_coordinators(kafka, known, deadline)
        open_ = [each.transaction for each in known if outcome(each) is Outcome.OPEN]
    control = kafka.control()
    ended = control.end(open_, commit=True, deadline=deadline)
    if in_vain := [each.transaction for each in known if is_in_vain(each)]:
        # Open, they would hold up the group until they time out.
        aborted = control.end(in_vain, commit=False, deadline=deadline)
        ended |= {each: end for each, end in aborted.items() if end is EndOutcome.REFUSED}
    return tuple(replace(each, end=ended.get(each.transaction)) for each in known)


def _seen(evidence: Evidence) -> bool:
    """Committed by Kafka's evidence alone: an operator may change an override."""
    return outcome(replace(evidence, override=None, accepted=False)) is Outcome.COMMITTED


def _hidden(
    kafka: Kafka, decision: Decision, hidden: Sequence[Evidence], deadline: Deadline
) -> EosSinkError:
    """They have ended, but an open transaction keeps readers from seeing how."""
    witnesses = [each.entry.witness for each in hidden]
    places = sorted({(each.topic, each.partition) for each in witnesses})
    holders: dict[Place, Transaction] = {}
    with contextlib.suppress(EosSinkError):
        holders = kafka.control().find_holders(places, Deadline(_EXPLAIN_S))
    waits = {f"{t}[{n}]": _name(holders.get((t, n))) for t, n in places}
    return stop(
        Reason.HIDDEN,
        decision=decision,
        transactions=sorted(each.transaction.transactional_id for each in hidden),
        seconds=deadline.seconds,
        waits=", ".join(f"in {place} for {holder}" for place, holder in waits.items()),
        waits_for=waits,
    )


def _name(holder: Transaction | None) -> str:
    if holder is None:
        return "a leader"
    name = holder.transactional_id or "that no coordinator names"
    return f"the open transaction {name} (producer id {holder.producer_id})"
