"""What the log has of a batch, and what became of its tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos_sink.cli.batch_report import list_facts
from eos_sink.identity import QueryNames
from eos_sink.ops.batch_record import BatchRecord, RecordState
from eos_sink.ops.batch_record import find_batch as find
from eos_sink.ops.evidence import TaskState, TransactionEvidence, list_others
from eos_sink.ops.history import History, Written
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Override,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.outcome import Outcome
from eos_sink.protocol.values import (
    Position,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)
from eos_sink.protocol.written import WrittenNumbers

NAMES = QueryNames("eos-sink-", "orders-0123456789")


def decision(
    batch: int, stream: str = "s", *producers: int, override: Override | None = None
) -> Decision:
    entries = tuple(
        Prepared(p, producer, 0, RowDigest(1, 2, 3), Position("out", 0, batch))
        for p, producer in enumerate(producers or (1,))
    )
    total = RowDigest(len(entries), 2, 3)
    chosen = override or Override()
    return Decision(
        BatchId(stream, batch), batch % 2, 3, total, entries, chosen, topics={"out": "1"}
    )


def history(
    *decided: tuple[int, Decision | None],
    retired: tuple[BatchId, ...] = (),
    dropped: BatchId | None = None,
    written: WrittenNumbers = WrittenNumbers(),  # noqa: B008 - frozen
) -> History:
    """Of records with these seqs."""
    return History(
        NAMES.query,
        tuple(
            Written(
                NAMES.query,
                LogRecord(seq, each, f"w{seq}", retired, dropped=dropped, written=written),
                Position("log", 0, seq),
                seq * 1000,
            )
            for seq, each in decided
        ),
    )


def find_batch(log: History, number: int, stream: str | None = None) -> BatchRecord:
    return find(NAMES, log, number, stream)


WHOLE = history((1, None), (2, decision(0)), (3, decision(1)), (4, decision(3)), (5, decision(3)))
DROPPED = history((1, None), (2, decision(1)), (3, None), (4, decision(3)))
COMPACTED = history((40, decision(7)))
FORGOTTEN = BatchId("s", 7)
TWO_STREAMS = history((9, decision(2, "new")), retired=(BatchId("old", 40),))


@pytest.mark.parametrize(
    ("log", "batch", "stream", "state", "seq"),
    [
        (WHOLE, 3, None, RecordState.LATEST, 5),
        (WHOLE, 1, None, RecordState.EARLIER, 3),
        (WHOLE, 2, None, RecordState.GONE, None),
        (WHOLE, 4, None, RecordState.NOT_DECIDED, None),
        (WHOLE, 3, "other", RecordState.NO_STREAM, None),
        (COMPACTED, 7, None, RecordState.LATEST, 40),
        (COMPACTED, 6, None, RecordState.GONE, None),
        (COMPACTED, 8, None, RecordState.NOT_DECIDED, None),
        (history((1, None)), 0, None, RecordState.NO_STREAM, None),
        (TWO_STREAMS, 40, "old", RecordState.GONE, None),
        (TWO_STREAMS, 41, "old", RecordState.NOT_DECIDED, None),
        (TWO_STREAMS, 40, None, RecordState.NOT_DECIDED, None),
        # A gap in the numbers: what was written there is gone.
        (history((1, None), (2, decision(1)), (4, decision(3))), 2, None, RecordState.GONE, None),
        (DROPPED, 2, None, RecordState.GONE, None),
        (DROPPED, 1, None, RecordState.DROPPED, 2),
        (history((3, None), dropped=FORGOTTEN), 7, None, RecordState.DROPPED, None),
    ],
)
def test_what_the_log_says_of_a_batch(
    log: History, batch: int, stream: str | None, state: RecordState, seq: int | None
) -> None:
    case = find_batch(log, batch, stream)
    assert case.state is state
    assert (case.written.record.seq if case.written else None) == seq


def judge(case: BatchRecord, **asked: Any) -> tuple[Outcome, str]:
    """The outcome of its first transaction, with this evidence, and what it is known from."""
    task = TransactionEvidence(replace(case.evidence[0], **asked))
    return task.outcome, "; ".join(list_facts(case, task))


LATEST = find_batch(history((2, decision(7))), 7)
EARLIER = find_batch(history((2, decision(7)), (3, decision(8))), 7)
T = LATEST.evidence[0].transaction
OWN = TransactionState(T, TransactionStatus.COMPLETE_COMMIT, -1, 60_000)
OPEN = replace(OWN, status=TransactionStatus.ONGOING)
OTHERS = replace(OWN, transaction=replace(T, epoch=9))
UNREADABLE = {"state": OTHERS, "witness": Visibility.UNREADABLE}


@pytest.mark.parametrize(
    ("case", "asked", "expected", "facts"),
    [
        (LATEST, {"state": OWN}, Outcome.COMMITTED, "coordinator: CompleteCommit"),
        (LATEST, {"state": OPEN}, Outcome.OPEN, "coordinator: Ongoing"),
        (LATEST, {"state": OTHERS}, Outcome.UNKNOWN, "CompleteCommit (of another, epoch 9)"),
        (LATEST, {"state": OTHERS, "witness": Visibility.ABORTED}, Outcome.LOST, ": skipped"),
        (LATEST, UNREADABLE, Outcome.IN_DOUBT, "unreadable"),
        (LATEST, {**UNREADABLE, "marker": True}, Outcome.COMMITTED, "marker: commit"),
        (LATEST, {**UNREADABLE, "marker": False}, Outcome.LOST, "marker: abort"),
        (EARLIER, UNREADABLE, Outcome.COMMITTED, "a later batch was decided (seq 3)"),
        (EARLIER, {"state": OTHERS}, Outcome.COMMITTED, "a later batch was decided (seq 3)"),
        (EARLIER, {"state": OPEN}, Outcome.OPEN, "coordinator: Ongoing"),
        (LATEST, {}, Outcome.UNKNOWN, ""),
        (EARLIER, {}, Outcome.COMMITTED, "a later batch was decided"),
        (LATEST, {"settled": True}, Outcome.COMMITTED, "the log: all of it was seen visible"),
    ],
)
def test_an_outcome_and_its_evidence(
    case: BatchRecord, asked: dict[str, Any], expected: Outcome, facts: str
) -> None:
    assert judge(case, **asked)[0] is expected
    assert facts in judge(case, **asked)[1]


def test_an_id_that_the_coordinator_has_forgotten_is_no_later_attempts() -> None:
    gone = replace(OTHERS, status=TransactionStatus.MISSING, transaction=replace(T, epoch=-1))
    assert judge(LATEST, state=gone)[1] == "coordinator: missing"


def test_a_decision_that_was_dropped_proves_nothing() -> None:
    log = history((2, decision(7)), (3, None), (4, decision(8)))
    assert judge(find_batch(log, 7))[0] is Outcome.UNKNOWN


@pytest.mark.parametrize("stream", ["once:", "txn:app"])
def test_a_write_is_known_by_its_number(stream: str) -> None:
    kept = WrittenNumbers(((20, 20), (30, 30)), forgotten_below=10)
    log = history((9, decision(25, stream)), written=kept)
    known = {n: find_batch(log, n, stream).state for n in (25, 20, 21, 99, 9)}
    assert known == {
        25: RecordState.LATEST,
        20: RecordState.GONE,
        21: RecordState.NOT_DECIDED,
        99: RecordState.NOT_DECIDED,
        9: RecordState.FORGOTTEN,
    }


def test_what_was_lost_and_written_again_shows_both_and_tasks_without_rows() -> None:
    log = history((2, decision(7, "s", 1, 2)), (3, decision(7, "s", 1, 9)))
    case = find_batch(log, 7)
    assert [evidence.entry.partition for evidence in case.evidence] == [0, 1]
    assert [(task.partition, task.outcome) for task in list_others(case, ())] == [
        (1, TaskState.REWRITTEN),
        (2, TaskState.NO_ROWS),
    ]


def test_what_an_operator_has_dropped_is_not_said_to_be_written_again() -> None:
    """It may have been visible."""
    log = history((2, decision(7, "s", 1, 2)), (3, None), (4, decision(7, "s", 8, 9)))
    case = find_batch(log, 7)
    assert (case.state, case.dropped, case.replaced) == (RecordState.LATEST, True, ())
    assert not find_batch(log, 8).dropped


def test_undecided_tasks_are_those_of_the_next_slot() -> None:
    states = [
        TransactionState(Transaction(NAMES.task(slot, 0), 1, 0), TransactionStatus.ONGOING, 0, 1)
        for slot in (0, 1)
    ]
    states.append(replace(states[0], status=TransactionStatus.COMPLETE_ABORT))
    states.append(replace(states[0], status=TransactionStatus.COMPLETE_COMMIT))
    tasks = list_others(find_batch(history((2, decision(7))), 8), states)
    assert [task.outcome for task in tasks] == [TaskState.UNDECIDED, TaskState.ABORTED]
