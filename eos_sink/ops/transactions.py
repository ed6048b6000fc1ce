"""The transactions of the queries: list them with what the log says, and end single ones.

A decided transaction must be committed, so that is always safe. Any other is ended as a driver
does it: as the group's member and after a record that fences the plan, so that it can no longer be
decided. Nothing else is ever committed: its rows would come twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eos_sink.decision_log import Entry
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import command
from eos_sink.ops import RefusedChoice
from eos_sink.ops.operator_run import join_as_operator, moved, read_log
from eos_sink.ops.status import QueryStatus, QueryTransaction, Snapshot, group_by_query
from eos_sink.protocol.model import Change, Decision
from eos_sink.protocol.values import EndOutcome, Transaction, TransactionState, TransactionStatus
from eos_sink.shell import sink_command

TOOL = "eos-sink transactions"


def list_transactions(
    admin: Admin,
    snapshot: Snapshot,
    prefixes: Iterable[str],
    deadline: Deadline,
    *,
    open_only: bool = False,
) -> list[QueryTransaction]:
    """The transactional ids with these prefixes, sorted, and what the log says about each."""
    states: list[TransactionState] = []
    for prefix in prefixes:
        states += admin.list_transactions(prefix, deadline, ended=not open_only)
    found: list[QueryTransaction] = []
    names = {status.query: status.names for status in snapshot.queries}
    for query, mine in group_by_query(states, names).items():
        status = snapshot.query(query) if query is not None else None
        if status is None:
            found += map(QueryTransaction, mine)
            continue
        found += (
            _look_up(QueryTransaction(each, status.query, status.names), status) for each in mine
        )
    return sorted(found, key=lambda each: each.transactional_id)


def _look_up(found: QueryTransaction, status: QueryStatus) -> QueryTransaction:
    for written in reversed(status.history.records):
        if written.decision is not None and found.names is not None:
            entry = written.decision.transactions(found.names).get(found.transaction)
            if entry is not None:
                decided = written.decision == status.decision
                return replace(found, decided=decided, written=written, entry=entry)
    return found


def commit_decided(
    kafka: Kafka, names: QueryNames, transactions: Sequence[Transaction], deadline: Deadline
) -> Mapping[Transaction, EndOutcome]:
    """Commit transactions that the latest decision names by (id, producer id, epoch). Fences no
    run.

    Raises:
        RefusedChoice: the decision does not name one of them.
    """
    entry = read_log(kafka, names, deadline)
    check_decided(names, entry.decision if entry else None, transactions)
    return kafka.control().end(transactions, commit=True, deadline=deadline)


def abort_undecided(
    kafka: Kafka,
    names: QueryNames,
    seq: int,
    transactions: Sequence[Transaction],
    deadline: Deadline,
) -> tuple[Entry, Mapping[Transaction, EndOutcome]]:
    """Fence the plan, then abort these transactions and no others.

    Args:
        seq: of the log's latest record when the operator looked.
        transactions: of this query, as their coordinators described them.

    Returns:
        The record that fences the plan, and the outcome of each transaction.

    Raises:
        RefusedChoice: one is decided, or the log or a transaction has changed.
    """
    entry = read_log(kafka, names, deadline)
    if entry is None:
        raise RefusedChoice(
            f"There is no decision log {kafka.log_topic}, so it is unknown what is decided. Give "
            "the query's own --log-topic; or let the transactions time out."
        )
    if entry.seq != seq:
        raise moved(seq, entry)
    # A new record in a log that has lost the query's records would hide the loss.
    if not entry.seq and kafka.control().list_committed(f"{names.group}-", deadline):
        raise RefusedChoice(
            "The log has no record of the query, but transactions of it were committed before: see "
            f"{command('resolve', names, kafka.log_topic)}"
        )
    check_undecided(names, entry.decision, transactions)
    _check_open(kafka, transactions, deadline)
    with join_as_operator(kafka, names, entry, TOOL, deadline) as (register, token):
        # In this order: what was described before the record belongs to a plan before it.
        written = register.append(token, Change(entry.decision), deadline)
        return written, kafka.control().end(transactions, commit=False, deadline=deadline)


def check_decided(
    names: QueryNames, decision: Decision | None, transactions: Iterable[Transaction]
) -> None:
    """Raises RefusedChoice: the decision does not name one of them."""
    decided = decision.transactions(names) if decision else {}
    for transaction in transactions:
        if transaction not in decided:
            raise RefusedChoice(
                f"No decision names {_describe(transaction)}: once committed, its rows would come "
                "twice when its batch is replayed. Abort it, or start the query."
            )


def check_undecided(
    names: QueryNames,
    decision: Decision | None,
    transactions: Iterable[Transaction],
    reach: str = "",
) -> None:
    """Check that these are transactions of tasks that may be ended.

    Args:
        reach: options with which a printed command reaches the same cluster.

    Raises:
        RefusedChoice: one is decided, or no task's.
    """
    decided = decision.transactions(names) if decision else {}
    for transaction in transactions:
        name = transaction.transactional_id
        if names.parse_task(name) is None:
            raise RefusedChoice(
                f"{name} belongs to no task of {names.query}. The driver's own transaction ends "
                "within 40 s."
            )
        if transaction in decided:
            raise RefusedChoice(
                f"{_describe(transaction)} is decided: it must become visible, and is never "
                "aborted. Start the query, or commit it: "
                + sink_command("transactions", "commit", name, options=reach)
            )


def _check_open(kafka: Kafka, transactions: Sequence[Transaction], deadline: Deadline) -> None:
    states = kafka.control().describe([t.transactional_id for t in transactions], deadline)
    for transaction in transactions:
        state = states[transaction.transactional_id]
        if state.transaction != transaction or state.status is not TransactionStatus.ONGOING:
            raise RefusedChoice(
                f"{_describe(transaction)} is no longer open: its coordinator reports "
                f"{state.status.value}, producer id {state.transaction.producer_id}, epoch "
                f"{state.transaction.epoch}. Look again."
            )


def _describe(transaction: Transaction) -> str:
    return (
        f"{transaction.transactional_id} (producer id {transaction.producer_id}, epoch "
        f"{transaction.epoch})"
    )
