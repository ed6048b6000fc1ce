"""Making a decided batch visible: EndTxn(commit) for each of its transactions.

A refused EndTxn says nothing about the outcome, since a late attempt of a task may have taken the
id after the commit. The witness tells: a read_committed reader finds it or passes it by.
"""

from __future__ import annotations

from collections.abc import Iterable

from eos_sink.deadline import Deadline
from eos_sink.errors import UnfinishedError
from eos_sink.identity import QueryNames
from eos_sink.model import Decision, Transaction
from eos_sink.ports import EndOutcome, Kafka
from eos_sink.verdicts import Settling, lost_partitions, settling


def settle(
    kafka: Kafka, names: QueryNames, decision: Decision, deadline: Deadline, *, just_decided: bool
) -> frozenset[int]:
    """Commit what the decision names; repeating it is harmless.

    Args:
        just_decided: all of it is open still; otherwise the coordinators are asked first, which is
            cheaper than ending again what has ended.

    Returns:
        The partitions that were aborted after the decision, by a time-out or a late attempt.

    Raises:
        UnfinishedError: some are open still at the deadline.
        OperatorNeededError: a witness is unreadable.
    """
    transactions = decision.transactions(names)
    ending, looking = list(transactions), list[Transaction]()
    if not just_decided:
        states = kafka.control().describe([t.transactional_id for t in transactions], deadline)
        steps = {t: settling(t, states[t.transactional_id]) for t in transactions}
        ending = [t for t, step in steps.items() if step is Settling.END]
        looking = [t for t, step in steps.items() if step is Settling.LOOK]
    outcomes = kafka.control().end(ending, commit=True, deadline=deadline)
    looking += [t for t, outcome in outcomes.items() if outcome is EndOutcome.REFUSED]
    by_witness = {transactions[t].witness: t for t in looking}
    found = kafka.visibility(list(by_witness), deadline) if by_witness else {}
    seen = {by_witness[witness]: visibility for witness, visibility in found.items()}
    unfinished = [t for t in ending if t not in outcomes] + [t for t in looking if t not in seen]
    if unfinished:
        raise _unfinished(names, decision, unfinished, deadline)
    return lost_partitions(names, decision, seen)


def _unfinished(
    names: QueryNames, decision: Decision, open_: Iterable[Transaction], deadline: Deadline
) -> UnfinishedError:
    ids = sorted(t.transactional_id for t in open_)
    return UnfinishedError(
        f"Query {names.query}: {decision.batch} is decided, but {len(ids)} of its "
        f"{len(decision.prepared)} transactions could not be finished within "
        f"{deadline.seconds:.0f} s: {', '.join(ids[:5])}{' ...' if len(ids) > 5 else ''}. "
        "Their rows become visible when they are.",
        remedy="Check the brokers and the topic __transaction_state, then start the query again: "
        "the batch is finished before anything else.",
        data={"batch": decision.batch.batch, "transactions": ids},
    )
