"""What the log has of a batch, and what became of its tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos_sink.cli.batch_report import list_evidence
from eos_sink.identity import QueryNames
from eos_sink.ops.explain import (
    Explanation,
    Fate,
    Known,
    decided_fates,
    find_batch,
    undecided_fates,
)
from eos_sink.ops.history import History, Written
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Override,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.outcome import Evidence, Outcome
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


WHOLE = history((1, None), (2, decision(0)), (3, decision(1)), (4, decision(3)), (5, decision(3)))
DROPPED = history((1, None), (2, decision(1)), (3, None), (4, decision(3)))
COMPACTED = history((40, decision(7)))
FORGOTTEN = BatchId("s", 7)
TWO_STREAMS = history((9, decision(2, "new")), retired=(BatchId("old", 40),))


@pytest.mark.parametrize(
    ("log", "batch", "stream", "known", "seq"),
    [
        (WHOLE, 3, None, Known.LATEST, 5),
        (WHOLE, 1, None, Known.EARLIER, 3),
        (WHOLE, 2, None, Known.NOTHING, None),
        (WHOLE, 4, None, Known.NOT_DECIDED, None),
        (WHOLE, 3, "other", Known.NO_STREAM, None),
        (COMPACTED, 7, None, Known.LATEST, 40),
        (COMPACTED, 6, None, Known.GONE, None),
        (COMPACTED, 8, None, Known.NOT_DECIDED, None),
        (history((1, None)), 0, None, Known.NO_STREAM, None),
        (TWO_STREAMS, 40, "old", Known.GONE, None),
        (TWO_STREAMS, 41, "old", Known.NOT_DECIDED, None),
        (TWO_STREAMS, 40, None, Known.NOT_DECIDED, None),
        # A gap in the numbers: what was written there is gone.
        (history((1, None), (2, decision(1)), (4, decision(3))), 2, None, Known.GONE, None),
        (DROPPED, 2, None, Known.GONE, None),
        (DROPPED, 1, None, Known.DROPPED, 2),
        (history((3, None), dropped=FORGOTTEN), 7, None, Known.DROPPED, None),
    ],
)
def test_what_the_log_says_of_a_batch(
    log: History, batch: int, stream: str | None, known: Known, seq: int | None
) -> None:
    case = find_batch(log, batch, stream)
    assert case.known is known
    assert (case.written.record.seq if case.written else None) == seq


def known_of(case: Explanation) -> list[Evidence]:
    return [*case.evidence(NAMES)]


def fate(case: Explanation, **found: Any) -> tuple[Outcome | Fate, str]:
    known = [replace(each, **found) for each in known_of(case)]
    first = decided_fates(case, known)[0]
    return first.fate, "; ".join(list_evidence(case, first))


LATEST = find_batch(history((2, decision(7))), 7)
EARLIER = find_batch(history((2, decision(7)), (3, decision(8))), 7)
T = known_of(LATEST)[0].transaction
OWN = TransactionState(T, TransactionStatus.COMPLETE_COMMIT, -1, 60_000)
OPEN = replace(OWN, status=TransactionStatus.ONGOING)
OTHERS = replace(OWN, transaction=replace(T, epoch=9))
UNREADABLE = {"state": OTHERS, "witness": Visibility.UNREADABLE}


@pytest.mark.parametrize(
    ("case", "found", "expected", "evidence"),
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
def test_a_fate_and_its_evidence(
    case: Explanation, found: dict[str, Any], expected: Outcome, evidence: str
) -> None:
    assert fate(case, **found)[0] is expected
    assert evidence in fate(case, **found)[1]


def test_an_id_that_the_coordinator_has_forgotten_is_no_later_attempts() -> None:
    gone = replace(OTHERS, status=TransactionStatus.MISSING, transaction=replace(T, epoch=-1))
    assert fate(LATEST, state=gone)[1] == "coordinator: missing"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (Override(visible=frozenset({0})), Outcome.COMMITTED),
        (Override(lost=frozenset({0})), Outcome.LOST),
        (Override(accepted=True), Outcome.ACCEPTED),
    ],
)
def test_a_ruling_goes_before_what_follows_from_a_later_decision(
    override: Override, expected: Outcome
) -> None:
    log = history((2, decision(7, override=override)), (3, decision(8)))
    assert fate(find_batch(log, 7))[0] is expected


def test_a_decision_that_was_dropped_proves_nothing() -> None:
    log = history((2, decision(7)), (3, None), (4, decision(8)))
    assert fate(find_batch(log, 7))[0] is Outcome.UNKNOWN


@pytest.mark.parametrize("stream", ["once:", "txn:app"])
def test_a_write_is_known_by_its_number(stream: str) -> None:
    kept = WrittenNumbers(((20, 20), (30, 30)), forgotten_below=10)
    log = history((9, decision(25, stream)), written=kept)
    known = {n: find_batch(log, n, stream).known for n in (25, 20, 21, 99, 9)}
    assert known == {
        25: Known.LATEST,
        20: Known.GONE,
        21: Known.NOT_DECIDED,
        99: Known.NOT_DECIDED,
        9: Known.FORGOTTEN,
    }


def test_what_was_lost_and_written_again_shows_both_and_tasks_without_rows() -> None:
    log = history((2, decision(7, "s", 1, 2)), (3, decision(7, "s", 1, 9)))
    case = find_batch(log, 7)
    found = decided_fates(case, known_of(case))
    assert [(each.partition, each.fate) for each in found] == [
        (0, Outcome.UNKNOWN),
        (1, Outcome.UNKNOWN),
        (1, Fate.REWRITTEN),
        (2, Fate.NO_ROWS),
    ]


def test_what_an_operator_has_dropped_is_not_said_to_be_written_again() -> None:
    """It may have been visible."""
    log = history((2, decision(7, "s", 1, 2)), (3, None), (4, decision(7, "s", 8, 9)))
    case = find_batch(log, 7)
    assert (case.known, case.dropped, case.replaced) == (Known.LATEST, True, ())
    assert not find_batch(log, 8).dropped


def test_undecided_tasks_are_those_of_the_next_slot() -> None:
    states = [
        TransactionState(Transaction(NAMES.task(slot, 0), 1, 0), TransactionStatus.ONGOING, 0, 1)
        for slot in (0, 1)
    ]
    states.append(replace(states[0], status=TransactionStatus.COMPLETE_ABORT))
    states.append(replace(states[0], status=TransactionStatus.COMPLETE_COMMIT))
    found = undecided_fates(NAMES, decision(7), states)
    assert [each.fate for each in found] == [Fate.UNDECIDED, Fate.ABORTED]
    assert len(undecided_fates(NAMES, None, states)) == 3
