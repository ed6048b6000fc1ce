"""How a transaction has ended that Kafka has forgotten to end in one partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.decision_log.hanging import was_committed
from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import (
    Hanging,
    Transaction,
    TransactionState,
    TransactionStatus,
    Witness,
)
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, Decision, Prepared, RowDigest

NAMES: QueryNames = parse_options(
    {"kafka.bootstrap.servers": "x:1", "eos.id": "q", "topic": "t"}
).names
TASK = Transaction(NAMES.task(1, 0), 7, 3)
DRIVER = Transaction(NAMES.driver, 8, 5)
WITNESS = Witness("t", 0, 0)
PREPARED = Prepared(0, TASK.producer_id, TASK.epoch, RowDigest(), WITNESS)
DECIDED = Decision(BatchId("s", 0), 1, 1, RowDigest(), (PREPARED,))
INLINED = replace(DECIDED, prepared=(), inlined_topics=("t",))

COMMIT, ABORT = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT
EMPTY, ONGOING = TransactionStatus.EMPTY, TransactionStatus.ONGOING


def state(transaction: Transaction, status: TransactionStatus, epochs: int = 0) -> TransactionState:
    now = replace(transaction, epoch=transaction.epoch + epochs)
    return TransactionState(now, status, -1, 60_000)


def hanging(now: TransactionState, transaction: Transaction = TASK) -> Hanging:
    return Hanging(transaction, "t", 0, 10, -1, now)


@pytest.mark.parametrize(
    ("status", "epochs", "decision", "settled", "committed"),
    [
        (COMMIT, 0, None, False, True),
        (COMMIT, 0, DECIDED, False, True),
        (COMMIT, 2, None, False, False),
        (ABORT, 0, None, False, False),
        (ABORT, 0, DECIDED, False, False),
        (ABORT, 1, DECIDED, False, False),
        (EMPTY, 2, None, False, False),
        (EMPTY, 2, DECIDED, False, None),
        (EMPTY, 2, DECIDED, True, True),
    ],
)
def test_the_coordinator_and_the_log_tell_how_a_tasks_transaction_has_ended(
    status: TransactionStatus,
    epochs: int,
    decision: Decision | None,
    settled: bool,
    committed: bool | None,
) -> None:
    found = hanging(state(TASK, status, epochs))
    assert was_committed(NAMES, found, decision, settled=settled) is committed


@pytest.mark.parametrize(
    ("before", "decision", "committed"),
    [
        (state(DRIVER, COMMIT), INLINED, True),
        (state(DRIVER, TransactionStatus.PREPARE_COMMIT), None, True),
        (state(DRIVER, ONGOING), INLINED, False),
        (state(DRIVER, ABORT, 1), INLINED, False),
        (state(DRIVER, ABORT), INLINED, None),
        (state(DRIVER, COMMIT, 2), INLINED, None),
        (state(DRIVER, COMMIT, 2), DECIDED, False),
        (None, INLINED, None),
        (None, None, False),
    ],
)
def test_the_state_of_the_drivers_id_before_it_was_initialised_tells_how_its_transaction_has_ended(
    before: TransactionState | None, decision: Decision | None, committed: bool | None
) -> None:
    found = hanging(state(DRIVER, EMPTY, 2), DRIVER)
    assert was_committed(NAMES, found, decision, driver=before) is committed
