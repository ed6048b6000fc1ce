"""How a transaction has ended that Kafka has forgotten to end in one partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.decision_log.end_hanging import was_committed
from eos_sink.identity import QueryNames
from eos_sink.options import parse_options
from eos_sink.protocol.model import (
    BatchId,
    DeadLetters,
    Decision,
    LogRecord,
    Numbering,
    Override,
    Prepared,
    Route,
    RowDigest,
)
from eos_sink.protocol.values import (
    Hanging,
    Position,
    Transaction,
    TransactionState,
    TransactionStatus,
)

NAMES: QueryNames = parse_options(
    {"kafka.bootstrap.servers": "x:1", "eos.id": "q", "topic": "t"}
).names
TASK = Transaction(NAMES.task(1, 0), 7, 3)
DRIVER = Transaction(NAMES.driver, 8, 5)
WITNESS = Position("t", 0, 0)
PREPARED = Prepared(0, TASK.producer_id, TASK.epoch, RowDigest(), WITNESS)
DECIDED = Decision(BatchId("s", 0), 1, 1, RowDigest(), (PREPARED,))
NEXT = Decision(BatchId("s", 1), 0, 1, RowDigest(), ())
ONCE = replace(DECIDED, batch=BatchId.numbered_by(Numbering.ONCE, "x", 0))
ANOTHER = replace(NEXT, batch=BatchId.numbered_by(Numbering.ONCE, "y", 0))
FRAME = replace(DECIDED, batch=BatchId.numbered_by(Numbering.FOREACH, "s", 0))
INLINED = replace(DECIDED, prepared=(), inlined_topics=("t",))
LETTERS = replace(
    INLINED,
    inlined_topics=("other",),
    dead_letters=(DeadLetters(0, 1),),
    route=Route(dead_letters="t"),
)

COMMIT, ABORT = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT
EMPTY, ONGOING = TransactionStatus.EMPTY, TransactionStatus.ONGOING


def state(transaction: Transaction, status: TransactionStatus, epochs: int = 0) -> TransactionState:
    now = replace(transaction, epoch=transaction.epoch + epochs)
    return TransactionState(now, status, -1, 60_000)


def writing(partition: int) -> TransactionState:
    """The driver's id with an open transaction that has rows in one partition."""
    return replace(state(DRIVER, ONGOING), partitions=(("t", partition), ("log", 0)))


def hanging(now: TransactionState, transaction: Transaction = TASK) -> Hanging:
    return Hanging(transaction, "t", 0, 10, -1, now)


def records(*decisions: Decision | None, settled: bool = False) -> list[LogRecord]:
    """The last of them is noted as settled, or not."""
    last = len(decisions) - 1
    return [
        LogRecord(number, decision, "w", settled=settled and number == last)
        for number, decision in enumerate(decisions)
    ]


@pytest.mark.parametrize(
    ("status", "epochs", "kept", "committed"),
    [
        (COMMIT, 0, [], True),
        (COMMIT, 0, records(DECIDED), True),
        (COMMIT, 2, [], False),
        (ABORT, 0, [], False),
        (ABORT, 0, records(DECIDED), False),
        (ABORT, 1, [], False),
        (ABORT, 1, records(DECIDED), False),
        (ABORT, 1, records(DECIDED, settled=True), True),
        (ABORT, 1, records(DECIDED, NEXT), True),
        (ABORT, 1, records(FRAME, replace(NEXT, batch=replace(FRAME.batch, batch=1))), None),
        (EMPTY, 2, [], False),
        (EMPTY, 2, records(DECIDED), None),
        (EMPTY, 2, records(DECIDED, settled=True), True),
        (COMMIT, 2, records(None, NEXT), False),
        (COMMIT, 2, records(DECIDED, NEXT), True),
        (COMMIT, 2, records(replace(DECIDED, override=Override(accepted=True)), NEXT), None),
        (COMMIT, 2, records(ONCE, ANOTHER), None),
        (COMMIT, 2, [*records(ONCE, settled=True), *records(ANOTHER)], True),
        (COMMIT, 2, records(DECIDED, replace(DECIDED, prepared=()), NEXT), False),
    ],
)
def test_the_coordinator_and_the_log_tell_how_a_tasks_transaction_has_ended(
    status: TransactionStatus, epochs: int, kept: list[LogRecord], committed: bool | None
) -> None:
    found = hanging(state(TASK, status, epochs))
    assert was_committed(NAMES, found, kept) is committed


@pytest.mark.parametrize(
    ("before", "kept", "committed"),
    [
        (state(DRIVER, COMMIT), records(INLINED), True),
        (state(DRIVER, TransactionStatus.PREPARE_COMMIT), [], True),
        (writing(0), records(INLINED), False),
        (writing(1), records(INLINED), None),
        (writing(1), records(DECIDED), False),
        (state(DRIVER, ABORT, 1), records(INLINED), None),
        (state(DRIVER, ABORT, 1), records(DECIDED), False),
        (state(DRIVER, ABORT), records(INLINED), None),
        (state(DRIVER, COMMIT, 2), records(INLINED), None),
        (state(DRIVER, COMMIT, 2), records(DECIDED), False),
        (state(DRIVER, COMMIT, 2), records(INLINED, NEXT), None),
        (state(DRIVER, COMMIT, 2), records(LETTERS), None),
        (None, records(INLINED), None),
        (None, [], False),
    ],
)
def test_the_state_of_the_drivers_id_before_it_was_initialised_tells_how_its_transaction_has_ended(
    before: TransactionState | None, kept: list[LogRecord], committed: bool | None
) -> None:
    found = hanging(state(DRIVER, EMPTY, 2), DRIVER)
    assert was_committed(NAMES, found, kept, before) is committed
