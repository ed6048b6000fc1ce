"""Tells what became of a decided transaction, and of a decided batch. Pure.

The sink, `eos-sink status` and `resolve` all call these functions, so they agree.
`docs/design.md` shows `outcome` as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from eos_sink.identity import QueryNames
from eos_sink.protocol.model import BatchId, Decision, Prepared
from eos_sink.protocol.values import (
    EndOutcome,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)


class Outcome(Enum):
    """The outcome of one decided transaction, or of all transactions of a batch."""

    COMMITTED = "committed"
    OPEN = "open"
    """EndTxn(commit) has to be sent: the driver, or the next start, does it."""
    LOST = "lost"
    """Aborted after the decision: a replay of the batch writes its rows again."""
    IN_DOUBT = "in doubt"
    """Kafka has no evidence any more: `eos-sink resolve`."""
    ACCEPTED = "accepted"
    """Lost or in doubt, but an operator has accepted the decision as it is."""
    UNKNOWN = "unknown"
    """There is evidence that was not asked for, or did not arrive."""


class Source(Enum):
    """The sources of evidence, in the order in which they are asked."""

    COORDINATOR = auto()
    WITNESS = auto()
    MARKER = auto()


@dataclass(frozen=True)
class Evidence:
    """The evidence about one transaction of a decision.

    Attributes:
        topic_id: of the witness's topic when the batch was decided; "": not known.
        settled: the log says that the whole decision was seen visible.
        later: a later batch proves that the decision was settled.
        state: the coordinator's answer; None: it was not asked.
        end: the answer to EndTxn(commit); None: it was not sent, or not answered.
        witness: what a read_committed reader finds there; None: not asked, or no answer yet.
        marker: whether the marker behind the witness commits; None: not asked, or not found.
        override: an operator's choice whether the partition counts as committed.
        accepted: an operator has accepted the decision as it is.
        made_again: the witness's topic has another id now.
    """

    transaction: Transaction
    entry: Prepared
    topic_id: str = ""
    settled: bool = False
    later: bool = False
    state: TransactionState | None = None
    end: EndOutcome | None = None
    witness: Visibility | None = None
    marker: bool | None = None
    override: bool | None = None
    accepted: bool = False
    made_again: bool = False


def evidence_in_log(
    names: QueryNames, decision: Decision, *, settled: bool = False, later: bool = False
) -> tuple[Evidence, ...]:
    """Return the evidence about each transaction of a decision before anything is asked."""
    override = decision.override
    chosen = dict.fromkeys(override.lost, False) | dict.fromkeys(override.visible, True)
    return tuple(
        Evidence(
            transaction,
            entry,
            decision.topics.get(entry.witness.topic, ""),
            settled=settled,
            later=later,
            override=chosen.get(entry.partition),
            accepted=override.accepted,
        )
        for transaction, entry in decision.transactions(names).items()
    )


def outcome(evidence: Evidence) -> Outcome:
    """Return the outcome of the transaction."""
    certain = _without_topic(evidence)
    if certain is not None:
        return certain
    committed = _VISIBLE.get(evidence.witness, evidence.marker)
    if committed is None:
        if evidence.witness is None and not evidence.later:
            return Outcome.UNKNOWN
        committed = evidence.override
    if committed is None:
        if evidence.accepted:
            return Outcome.ACCEPTED
        return Outcome.COMMITTED if evidence.later else Outcome.IN_DOUBT
    if committed:
        return Outcome.COMMITTED
    return Outcome.ACCEPTED if evidence.accepted else Outcome.LOST


def missing(evidence: Evidence) -> Source | None:
    """Return the source to ask next; None: all is known that can be, or the transaction is open.

    Where a witness is still hidden from readers, its marker may tell before.
    """
    if _without_topic(evidence) is not None:
        return None
    if evidence.state is None and evidence.end is None:
        return Source.COORDINATOR
    if evidence.marker is not None or evidence.witness in _VISIBLE:
        return None
    return Source.WITNESS if evidence.witness is None else Source.MARKER


def is_proven(evidence: Evidence) -> bool:
    """True if it is committed, whatever became of its topic."""
    return _without_topic(evidence) is Outcome.COMMITTED


def is_in_vain(evidence: Evidence) -> bool:
    """True if it is open, and a commit would make no row visible in the topic of that name; or was
    aborted for that."""
    state = evidence.state
    if state is None or state.transaction != evidence.transaction:
        return False
    is_open_or_aborted = state.status in (
        TransactionStatus.ONGOING,
        TransactionStatus.COMPLETE_ABORT,
    )
    return is_open_or_aborted and evidence.made_again and not evidence.accepted


def batch_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a batch is that of its worst transaction."""
    found = set(outcomes)
    return next((each for each in _WORST_FIRST if each in found), Outcome.COMMITTED)


def proves_commit(now: BatchId, decided: BatchId) -> bool:
    """True if a batch that is written now proves that `commit()` has returned for a decided one.

    Spark runs a stream's next batch only after it has written the one before into its commit log,
    and calls `foreachBatch` again only after it has returned. A program may write a later version,
    or another frame, although the write before has failed.
    """
    by_spark = decided.numbering.is_by_spark
    return by_spark and now.stream == decided.stream and now.batch > decided.batch


def _without_topic(evidence: Evidence) -> Outcome | None:
    """The outcome by log, EndTxn and coordinator. The coordinator's answer counts only for the same
    producer id and epoch, otherwise it is about a later attempt's transaction. An open state counts
    only until EndTxn was refused: the transaction has ended since."""
    if evidence.settled or evidence.end is EndOutcome.DONE:
        return Outcome.COMMITTED
    state = evidence.state
    if state is None or state.transaction != evidence.transaction:
        return None
    if state.status is TransactionStatus.COMPLETE_COMMIT:
        return Outcome.COMMITTED
    if evidence.end is not None:
        return None
    if is_in_vain(evidence):
        return Outcome.LOST
    is_open = state.status in (TransactionStatus.ONGOING, TransactionStatus.PREPARE_COMMIT)
    return Outcome.OPEN if is_open else None


_VISIBLE: dict[Visibility | None, bool] = {Visibility.COMMITTED: True, Visibility.ABORTED: False}
_WORST_FIRST = (
    Outcome.OPEN,
    Outcome.IN_DOUBT,
    Outcome.LOST,
    Outcome.UNKNOWN,
    Outcome.ACCEPTED,
)
