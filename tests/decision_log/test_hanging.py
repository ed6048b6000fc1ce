"""How a transaction has ended that Kafka has forgotten to end in one partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.driver.hanging import was_committed
from eos_sink.identity import QueryNames
from eos_sink.options import parse_options
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Numbering,
    Override,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.values import (
    Hanging,
    Position,
    ProducerIdentity,
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

COMMIT, ABORT = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT
EMPTY = TransactionStatus.EMPTY


def state(transaction: Transaction, status: TransactionStatus, epochs: int = 0) -> TransactionState:
    now = replace(transaction, epoch=transaction.epoch + epochs)
    return TransactionState(now, status, -1, 60_000)


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
        (ABORT, 2, records(DECIDED), None),
        (EMPTY, 0, records(DECIDED), None),
        (EMPTY, 2, records(None, DECIDED, DECIDED, settled=True), True),
        (EMPTY, 2, records(ONCE, ANOTHER, settled=True), None),
        (COMMIT, 2, records(None, DECIDED, NEXT), True),
        (COMMIT, 2, records(DECIDED, replace(NEXT, batch=BatchId("z", 1))), None),
        (
            COMMIT,
            2,
            records(DECIDED, replace(DECIDED, override=Override(accepted=True)), NEXT),
            None,
        ),
    ],
)
def test_the_coordinator_and_the_log_tell_how_a_tasks_transaction_has_ended(
    status: TransactionStatus, epochs: int, kept: list[LogRecord], committed: bool | None
) -> None:
    found = hanging(state(TASK, status, epochs))
    assert was_committed(NAMES, found, kept) is committed


def written(*producers: tuple[int, int, int]) -> list[LogRecord]:
    """Records of these numbers, producer ids and epochs."""
    return [
        LogRecord(seq, DECIDED, "w", producer=ProducerIdentity(*producer))
        for seq, *producer in producers
    ]


@pytest.mark.parametrize(
    ("kept", "committed"),
    [
        ([], False),
        (written((1, 8, 5)), True),
        (written((1, 8, 3), (2, 8, 5), (3, 8, 7)), True),
        (written((1, 8, 3), (2, 8, 4)), False),
        (written((1, 8, 6)), False),
        (written((2, 8, 6)), None),
        (written((3, 8, 3), (4, 8, 6)), False),
        (written((3, 8, 3), (5, 8, 6)), None),
        (written((3, 8, 3), (5, 8, 4)), False),
        (written((3, 7, 30_000), (4, 8, 6)), False),
        (written((3, 7, 30_000), (5, 8, 6)), None),
        (written((3, 7, 30_000)), False),
        ([LogRecord(1, DECIDED, "w"), *written((2, 8, 6))], False),
    ],
)
def test_the_records_name_the_transactions_that_the_driver_has_committed(
    kept: list[LogRecord], committed: bool | None
) -> None:
    """Each number has one record, which compaction may have removed."""
    found = hanging(state(DRIVER, EMPTY, 2), DRIVER)
    assert was_committed(NAMES, found, kept) is committed
