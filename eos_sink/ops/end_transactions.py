"""A person ends transactions of a query: what is decided is committed, what is not is voided first.

A decided transaction may be committed at any time: it has to be. Any other is ended as a driver
would end it, under the query's membership and behind a void, so that nobody can decide it any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eos_sink.decision_log import DecisionRegister, Entry
from eos_sink.driver.abort import void
from eos_sink.driver.processes import this_process
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import (
    EndOutcome,
    Kafka,
    MemberRefused,
    Transaction,
    TransactionStatus,
)
from eos_sink.ops.resolve import SESSION_MS, RefusedChoice, read_log
from eos_sink.options import SinkOptions
from eos_sink.protocol.model import PlanToken

TOOL = "eos-sink transactions"


def commit_decided(
    kafka: Kafka, options: SinkOptions, transactions: Sequence[Transaction], deadline: Deadline
) -> Mapping[Transaction, EndOutcome]:
    """Commit what the latest decision names, by (id, producer id, epoch); fences nobody.

    Raises:
        RefusedChoice: it does not name one of them.
    """
    entry = read_log(kafka, options, deadline)
    decided = _decided(entry, options)
    for transaction in transactions:
        if transaction not in decided:
            raise RefusedChoice(
                f"{_shown(transaction)} has no decision behind it: to commit it would make rows "
                "visible that a replay of their batch writes again."
            )
    return kafka.control().end(transactions, commit=True, deadline=deadline)


def end_undecided(  # noqa: PLR0913
    kafka: Kafka,
    options: SinkOptions,
    seq: int,
    transactions: Sequence[Transaction],
    deadline: Deadline,
    *,
    commit: bool = False,
) -> tuple[Entry, Mapping[Transaction, EndOutcome]]:
    """Void, then end exactly these; every older run of the query is refused from here on.

    Args:
        seq: of the log's latest record when the person looked.
        transactions: as their coordinators described them before, all of this one query.
        commit: commit them, without any decision: their rows become visible, and are written again
            if their batch is replayed.

    Returns:
        The void, and what became of each.

    Raises:
        RefusedChoice: one is decided, or the log or a transaction has moved.
        SupersededError: the log has moved while this was under way.
    """
    names, register = options.names, DecisionRegister(kafka, options.names)
    entry = _checked(kafka, options, read_log(kafka, options, deadline), seq, deadline)
    _check_undecided(entry, options, transactions)
    _check_open(kafka, transactions, deadline)
    member = kafka.member(names.group, names.driver, SESSION_MS)
    try:
        owner = replace(this_process(options), tool=TOOL)
        metadata = member.join(deadline)
        token = PlanToken(names, entry.seq, entry.position, metadata, owner, SESSION_MS)
        # In this order: what was described before the void belongs to a plan before it.
        written = void(register, token, entry, deadline)
        return written, kafka.control().end(transactions, commit=commit, deadline=deadline)
    except MemberRefused as refused:
        raise RefusedChoice(f"A run of the query has started meanwhile: {refused}") from refused
    finally:
        member.close()
        register.close()


def _checked(
    kafka: Kafka, options: SinkOptions, entry: Entry | None, seq: int, deadline: Deadline
) -> Entry:
    """A void in a log that has lost the query's record would hide that."""
    if entry is None:
        raise RefusedChoice(
            f"There is no decision log {options.log_topic}, so nobody can tell what is decided. "
            "Give the query's own --log-topic; or let the transactions' time-out end them."
        )
    if entry.seq != seq:
        raise RefusedChoice(
            f"The log has moved from seq {seq} to {entry.seq} meanwhile, so a run of the query is "
            "alive. Look again."
        )
    if not entry.seq and kafka.control().list_committed(f"{options.names.group}-", deadline):
        raise RefusedChoice(
            "The log has no record of the query, but transactions of it were committed before: see "
            f"eos-sink resolve {options.names.query}."
        )
    return entry


def _check_undecided(
    entry: Entry, options: SinkOptions, transactions: Iterable[Transaction]
) -> None:
    decided = _decided(entry, options)
    for transaction in transactions:
        if options.names.parse_task(transaction.transactional_id) is None:
            raise RefusedChoice(
                f"{transaction.transactional_id} is of no task of {options.names.query}. The "
                "driver's own ends within 30 s by itself."
            )
        if transaction in decided:
            raise RefusedChoice(
                f"{_shown(transaction)} is decided: it must become visible and is never aborted. "
                "Commit it (eos-sink transactions commit), or start the query."
            )


def _check_open(kafka: Kafka, transactions: Sequence[Transaction], deadline: Deadline) -> None:
    states = kafka.control().describe([t.transactional_id for t in transactions], deadline)
    for transaction in transactions:
        state = states[transaction.transactional_id]
        if state.transaction != transaction or state.status is not TransactionStatus.ONGOING:
            raise RefusedChoice(
                f"{_shown(transaction)} is not open any more: its coordinator says "
                f"{state.status.value}, producer id {state.transaction.producer_id}, epoch "
                f"{state.transaction.epoch}. Look again."
            )


def _decided(entry: Entry | None, options: SinkOptions) -> frozenset[Transaction]:
    decision = entry.decision if entry else None
    return frozenset(decision.transactions(options.names) if decision else ())


def _shown(transaction: Transaction) -> str:
    return (
        f"{transaction.transactional_id} (producer id {transaction.producer_id}, epoch "
        f"{transaction.epoch})"
    )
