"""End what Kafka has forgotten to end, before the next transaction of the same producer does.

Looked for only where it can have happened: at the first plan of a process, after a plan that came
to nothing, and in a later attempt of a task or of the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from eos_sink.errors import FailureKind, OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.protocol.model import Decision, Entry, LogRecord, Numbering, Override
from eos_sink.protocol.values import (
    COMMITTED,
    Hanging,
    Place,
    Position,
    ProduceFailed,
    ProducerIdentity,
    Transaction,
    TransactionStatus,
)
from eos_sink.sink_options import SinkOptions

_LOGGER = logging.getLogger("eos_sink.driver")
_ENDED = (
    "%s was %s, and Kafka forgot it there because the partition had no leader (KAFKA-20734). It is "
    "ended there now."
)

ReadRecords = Callable[[Deadline], Sequence[Entry]]


def topics_of(options: SinkOptions, decision: Decision | None) -> frozenset[str]:
    """The topics that the query is known to write. A column may name more."""
    return options.named_topics | frozenset(decision.topics if decision else ())


def end_hanging(  # noqa: PLR0913
    kafka: Kafka,
    names: QueryNames,
    read_records: ReadRecords,
    topics: frozenset[str],
    deadline: Deadline,
    *,
    only: str = "",
) -> tuple[frozenset[Place], frozenset[int]]:
    """End the query's hanging transactions as they ended elsewhere.

    Args:
        read_records: of the query, oldest first. Called if something hangs.
        topics: where to look.
        only: look for transactions of this id, not of all ids.

    Returns:
        The partitions that could not be looked at, and the producer ids of open transactions that
        may be the query's. Before another look nothing may be written there, or with these ids.

    Raises:
        OutcomeUnknownError: no answer about the driver's id or `only`, or from a broker.
        OperatorNeededError: nothing tells how one has ended.
        ClusterError: a permission is missing.
    """
    control = kafka.control()
    ids, prefix = ([only], "") if only else ([names.driver], f"{names.group}-")
    found, unknown, unnamed = control.find_hanging(topics, ids, prefix, deadline)
    records = [each.record for each in read_records(deadline)] if found else []
    for each in found:
        name = each.transaction.transactional_id
        if name != names.driver and names.parse_task(name) is None:
            continue
        commit = was_committed(names, each, records)
        if commit is None:
            from eos_sink.protocol.hanging_errors import outcome_unknown

            decisions = [record.decision for record in records if record.decision]
            last = last_decision(names, each.transaction, decisions)
            is_repeated = last is not None and last is decisions[-1]
            raise outcome_unknown(names, kafka.log_topic, each, last, is_repeated=is_repeated)
        if control.end_hanging(each, commit, deadline):
            _LOGGER.warning(_ENDED, each, "committed" if commit else "aborted")
        else:
            unknown |= {(each.topic, each.partition)}
    if unknown:
        _LOGGER.warning(
            "Query %s: %s: no leader, or no answer. Kafka may have forgotten to end an earlier "
            "transaction of the query there (KAFKA-20734), which holds readers up. It is ended "
            "when there is a leader; until then no transaction of the query writes to the topic.",
            names.query,
            ", ".join(f"{topic}[{number}]" for topic, number in sorted(unknown)),
        )
    return unknown, unnamed


def end_hanging_of(  # noqa: PLR0913, PLR0917
    kafka: Kafka,
    names: QueryNames,
    read_records: ReadRecords,
    transactional_id: str,
    topics: frozenset[str],
    deadline: Deadline,
) -> None:
    """End what an earlier attempt has left open, before the next one writes under its id.

    Raises:
        ProduceFailed: a partition could not be looked at.
    """
    unchecked, _ = end_hanging(kafka, names, read_records, topics, deadline, only=transactional_id)
    for topic, partition in sorted(unchecked):
        raise ProduceFailed(
            f"{topic}[{partition}] has no leader, and an earlier transaction of "
            f"{transactional_id} may be open there.",
            FailureKind.DELIVERY_FAILED,
            topic,
        )


def end_in_log(kafka: Kafka, names: QueryNames, home: Position, deadline: Deadline) -> None:
    """End the driver's last transaction in the decision log if Kafka has forgotten to, since no one
    can read past it there. Before the driver's id is initialised, which takes its state away, and
    ends what is open: so wait for the partition's leader.

    Args:
        home: in the query's partition of the log.

    Raises:
        OutcomeUnknownError: the partition has no leader, or there was no answer.
        ClusterError: a permission is missing.
    """
    from eos_sink.kafka.calls import retry_until

    control = kafka.control()
    look = retry_until(
        deadline,
        lambda: control.find_hanging([home.topic], [names.driver], "", deadline),
        lambda look: (home.topic, home.partition) not in look.unknown,
    )
    if (home.topic, home.partition) in look.unknown:
        raise OutcomeUnknownError(
            f"Partition {home.partition} of the decision log {home.topic} has no leader that "
            "answers, or the query's last record is still being committed there.",
            remedy="Start the partition's brokers, then start the query again.",
        )
    for each in look.hanging:
        ended = each.state.transaction
        if ended == each.transaction and each.state.status in COMMITTED:
            commit = True
        # Nothing has written there since, so it was this one that was aborted.
        elif each.state.status is TransactionStatus.COMPLETE_ABORT and ended in (
            each.transaction,
            _next_epoch(each.transaction),
        ):
            commit = False
        else:
            continue
        if control.end_hanging(each, commit, deadline):
            _LOGGER.warning(_ENDED, each, "committed" if commit else "aborted")


def was_committed(names: QueryNames, hanging: Hanging, records: Sequence[LogRecord]) -> bool | None:
    """Return how a hanging transaction has ended where Kafka did not forget it; None: nothing
    tells.

    Args:
        records: those that the log still has, oldest first. Later batches may have been decided
            since the transaction ended.
    """
    transaction, state = hanging.transaction, hanging.state
    decisions = [each.decision for each in records if each.decision]
    if transaction.transactional_id == names.driver:
        return _of_driver(transaction, records)
    is_latest = state.transaction == transaction
    if is_latest and state.status in COMMITTED:
        return True
    aborted = state.status is TransactionStatus.COMPLETE_ABORT
    if is_latest and aborted:
        return False
    last = last_decision(names, transaction, decisions)
    if last is None or transaction not in last.transactions(names):
        # It was decided by no one; or it was lost, and its rows were written again.
        return False
    if _is_settled(last, records):
        return True
    # Where the brokers abort, the id has the next epoch. So it has where another batch has used the
    # id since, and that was aborted.
    expired = aborted and state.transaction == _next_epoch(transaction)
    return False if expired and last is decisions[-1] else None


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


def _next_epoch(transaction: Transaction) -> Transaction:
    return replace(transaction, epoch=transaction.epoch + 1)


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
