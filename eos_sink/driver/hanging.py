"""End what Kafka has forgotten to end, before the next transaction of the same producer does.

Looked for only where it can have happened: at the first plan of a process, and after a plan that
came to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eos_sink.decision_log.hanging import LOOK_S, end_as_elsewhere, next_epoch
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.kafka.retry import retry_until
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Decision, LogEntry, LogRecord, Numbering, Override
from eos_sink.protocol.outcome import Evidence, Outcome, outcome
from eos_sink.protocol.values import (
    COMMITTED,
    Hanging,
    Place,
    ProducerIdentity,
    Transaction,
    TransactionStatus,
)

ReadRecords = Callable[[Deadline], Sequence[LogEntry]]


def end_hanging(
    kafka: Kafka,
    names: QueryNames,
    read_records: ReadRecords,
    topics: frozenset[str],
    deadline: Deadline,
) -> None:
    """End the query's hanging transactions as they ended elsewhere. Wait for partitions that cannot
    be looked at: what hangs there would end with the next transaction, and with its outcome.

    Args:
        read_records: of the query, oldest first. Called if something hangs.
        topics: where to look.

    Raises:
        OutcomeUnknownError: a partition could not be looked at in time; or no answer about the
            driver's id, or from a broker.
        OperatorNeededError: nothing tells how one has ended.
        ClusterError: a permission is missing.
    """
    answers = Deadline(deadline.left + LOOK_S)

    def end() -> frozenset[Place]:
        return _end_found(kafka, names, read_records, topics, answers)

    if unseen := retry_until(deadline, end, lambda places: not places):
        places = [f"{topic}[{partition}]" for topic, partition in sorted(unseen)]
        raise stop(Reason.UNSEEN_PARTITIONS, partitions=places)


def _end_found(
    kafka: Kafka,
    names: QueryNames,
    read_records: ReadRecords,
    topics: frozenset[str],
    deadline: Deadline,
) -> frozenset[Place]:
    """Return the partitions where something may hang still."""
    found, unknown = kafka.control().find_hanging(
        topics, [names.driver], f"{names.group}-", deadline
    )
    records = [each.record for each in read_records(deadline)] if found else []
    for each in found:
        name = each.transaction.transactional_id
        if name != names.driver and names.parse_task(name) is None:
            continue
        commit = was_committed(names, each, records)
        if commit is None:
            decisions = [record.decision for record in records if record.decision]
            last = last_decision(names, each.transaction, decisions)
            if last is None:
                raise stop(Reason.HANGING, hanging=each)
            raise stop(
                Reason.HANGING_REPEATED if last is decisions[-1] else Reason.HANGING_DECIDED,
                hanging=each,
                decision=last,
                task=names.parse_task(name),
            )
        if not end_as_elsewhere(kafka, each, commit, deadline):
            unknown |= {(each.topic, each.partition)}
    return unknown


def was_committed(names: QueryNames, hanging: Hanging, records: Sequence[LogRecord]) -> bool | None:
    """Return how a hanging transaction has ended where Kafka did not forget it; None: nothing
    tells.

    Args:
        records: those that the log still has, oldest first. Later batches may have been decided
            since the transaction ended.
    """
    transaction, state = hanging.transaction, hanging.state
    if transaction.transactional_id == names.driver:
        return _of_driver(transaction, records)
    decisions = [each.decision for each in records if each.decision]
    last = last_decision(names, transaction, decisions)
    entry = last.transactions(names).get(transaction) if last else None
    if last is None or entry is None:
        # It was decided by no one; or it was lost, and its rows were written again.
        return state.transaction == transaction and state.status in COMMITTED
    evidence = Evidence(transaction, entry, settled=_is_settled(last, records), state=state)
    if outcome(evidence) is Outcome.COMMITTED:
        return True
    # Where the brokers abort, the id has the next epoch. So it has where another batch has used the
    # id since, and that was aborted.
    expired = state.transaction == next_epoch(transaction) and last is decisions[-1]
    is_told = expired or state.transaction == transaction
    return False if is_told and state.status is TransactionStatus.COMPLETE_ABORT else None


def last_decision(
    names: QueryNames, transaction: Transaction, decisions: Sequence[Decision]
) -> Decision | None:
    """The last decision of the batch that a task's transaction belongs to; None: no decision has
    named it."""
    batches = [each.batch for each in decisions if transaction in each.transactions(names)]
    of_batch = (each for each in reversed(decisions) if each.batch == batches[-1])
    return next(of_batch) if batches else None


def _of_driver(transaction: Transaction, records: Sequence[LogRecord]) -> bool | None:
    """The driver commits a transaction with a record that names it, and each number has one record.
    So the log tells, unless compaction has removed records that were written then."""
    mine = ProducerIdentity(transaction.producer_id, transaction.epoch)
    before = 0
    for each in records:
        its = each.producer
        if its == mine:
            return True
        if its and its.producer_id == mine.producer_id and its.epoch > mine.epoch:
            return None if each.seq > before + 1 else False
        before = each.seq
    return False


def _is_settled(decision: Decision, records: Sequence[LogRecord]) -> bool:
    """True if the log shows that all transactions which the decision names were committed."""
    batch = decision.batch
    same = [each for each in records if each.decision and each.decision.repeats(decision)]
    overridden = any(each.decision and each.decision.override != Override() for each in same)
    # A stream's next batch is planned when the one before is visible.
    follows = batch.numbering is Numbering.STREAM and any(
        each.decision
        and each.decision.batch.stream == batch.stream
        and each.decision.batch.batch > batch.batch
        for each in records
    )
    return any(each.settled for each in same) or (follows and not overridden)
