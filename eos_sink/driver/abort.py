"""How transactions that will never be decided are ended: list, fence the plans, abort.

The order carries the safety. Listed transactions belong to plans that the new record makes
undecidable. Transactions that begin later have another producer epoch or another plan, and are not
touched: only listed ones are aborted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.driver_id import describe_driver
from eos_sink.decision_log.hanging import end_in_log
from eos_sink.decision_log.register import check_forward
from eos_sink.driver.settle import settle
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Change, Decision, Entry, PlanToken
from eos_sink.protocol.rules import undecided
from eos_sink.protocol.values import Transaction


def list_undecided(
    kafka: Kafka, names: QueryNames, decision: Decision | None, deadline: Deadline
) -> list[Transaction]:
    """The query's open transactions that the decision does not name."""
    control = kafka.control()
    ids = [
        name for name in control.list_open(f"{names.group}-", deadline) if names.parse_task(name)
    ]
    return undecided(names, control.describe(ids, deadline).values(), decision)


def settle_without_id(
    kafka: Kafka,
    names: QueryNames,
    register: DecisionRegister,
    deadline: Deadline,
    token: PlanToken | None = None,
) -> None:
    """Settle what the log says is decided, if the driver's id cannot be initialised yet: that may
    wait for a partition without a leader, and readers of other partitions need not. A decided
    transaction may be committed at any time, by anyone. And make sure that the log can be read.

    Args:
        token: of a plan whose record has to be in the log.

    Raises:
        UnfinishedError: as `settle`.
        OutcomeUnknownError, ClusterError: as `end_in_log`.
    """
    end_in_log(kafka, [names.driver], register.connect(deadline).home, deadline)
    if describe_driver(kafka, names, deadline).is_ending:
        settle(kafka, names, register.read(deadline, token).record, deadline, just_decided=False)


def fence_plans(
    register: DecisionRegister,
    token: PlanToken,
    entry: Entry,
    change: Change,
    deadline: Deadline,
) -> Entry:
    """Write the latest record again under the next seq: no older plan can be decided any more.

    Args:
        change: repeats the decision.

    Raises:
        OperatorNeededError: the log has lost the plan's record, and would start again at number 1.
        SupersededError: another driver has written, before this record or after it.
    """
    check_forward(token, entry)
    current = replace(token, seq=entry.seq, position=entry.position)
    return register.append(current, change, deadline)


def abort_all(kafka: Kafka, transactions: Iterable[Transaction], deadline: Deadline) -> None:
    """EndTxn(abort) for exactly these. A refusal is fine: the transaction has ended, or the id has
    a new one."""
    wanted = set(transactions)
    answered = kafka.control().end(wanted, commit=False, deadline=deadline)
    open_ = sorted(t.transactional_id for t in wanted - answered.keys())
    if open_:
        raise stop(Reason.STILL_OPEN, transactions=open_)
