"""List, void, abort: how transactions that will never be decided are ended.

The order carries the safety. What is listed before the void was begun under a plan that the void
makes undecidable; what begins after it has another producer epoch or another plan, and is not
touched: abort exactly what was listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eos_sink.decision_log import DecisionRegister, Entry, check_forward
from eos_sink.errors import OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Transaction
from eos_sink.metrics.stats import Stats
from eos_sink.protocol.model import Decision, PlanToken
from eos_sink.protocol.rules import undecided


def list_undecided(
    kafka: Kafka, names: QueryNames, decision: Decision | None, deadline: Deadline
) -> list[Transaction]:
    """The query's open transactions that the decision does not name."""
    control = kafka.control()
    ids = [
        name for name in control.list_open(f"{names.group}-", deadline) if names.parse_task(name)
    ]
    return undecided(names, control.describe(ids, deadline).values(), decision)


def void(  # noqa: PLR0913
    register: DecisionRegister,
    token: PlanToken,
    entry: Entry,
    deadline: Deadline,
    figures: Stats | None = None,
    *,
    settled: bool = False,
) -> Entry:
    """Repeat the latest record with the next seq: what was planned before cannot be decided.

    Args:
        figures: what the record adds to the query's figures, which it keeps.
        settled: the decision was seen visible as a whole.

    Raises:
        OperatorNeededError: the log has lost what the token's plan saw; a void would begin it anew.
    """
    check_forward(token, entry)
    current = replace(token, seq=entry.seq, position=entry.position)
    return register.write(current, entry.decision, deadline, figures, settled=settled)


def abort_all(kafka: Kafka, transactions: Iterable[Transaction], deadline: Deadline) -> None:
    """EndTxn(abort) for exactly these. A refusal is fine: it has ended, or is another's now."""
    wanted = set(transactions)
    answered = kafka.control().end(wanted, commit=False, deadline=deadline)
    silent = sorted(t.transactional_id for t in wanted - answered.keys())
    if silent:
        raise OutcomeUnknownError(
            f"{len(silent)} transactions that were given up are open still, and hold up readers "
            f"until they time out: {', '.join(silent[:5])}.",
            remedy="Check the brokers and the topic __transaction_state, then start the query "
            "again: its start aborts them.",
        )
