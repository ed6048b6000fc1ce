"""The record that follows another one, and what it keeps of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.metrics.names import Count
from eos_sink.metrics.stats import Stats
from eos_sink.protocol.model import (
    BatchId,
    Change,
    Decision,
    LogRecord,
    Numbering,
    Override,
    Prepared,
    RowDigest,
    Run,
    SourcePosition,
)
from eos_sink.protocol.values import Offsets, Position
from eos_sink.protocol.written import WrittenNumbers


def decided(stream: str, batch: int) -> Decision:
    return Decision(BatchId(stream, batch), 0, 1, RowDigest(), ())


def test_a_record_retires_a_stream_that_another_one_follows() -> None:
    record = LogRecord(0, None, "")
    for stream, batch in [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]:
        record = record.next(Change(decided(stream, batch)), "w")
    assert record.retired == (BatchId("a", 1), BatchId("b", 1))
    assert record.decided == (*record.retired, BatchId("c", 0))
    assert record.seq == 5


def test_a_record_counts_the_plans_that_were_given_up_since_the_decision() -> None:
    record = LogRecord(1, decided("b", 0), "w")
    assert record.next(Change(record.decision), "v").given_up == 0
    record = record.next(Change(record.decision, gives_up=True), "v")
    assert record.given_up == 1
    # A note that the decision is settled, or what an operator says about it.
    record = record.next(Change(replace(decided("b", 0), override=Override(accepted=True))), "v")
    record = record.next(Change(record.decision, gives_up=True), "v")
    assert record.given_up == 2
    assert record.next(Change(decided("b", 1)), "v").given_up == 0
    first = LogRecord(0, None, "").next(Change(None, gives_up=True), "v")
    assert first.next(Change(None, gives_up=True), "v").given_up == 2
    assert first.next(Change(None), "v").given_up == 1
    assert first.next(Change(decided("b", 0)), "v").given_up == 0


def test_a_stream_whose_decision_was_dropped_is_retired_by_another_one_only() -> None:
    record = LogRecord(1, decided("b", 3), "w", (BatchId("a", 7),)).next(Change(None), "v")
    assert record == LogRecord(2, None, "v", (BatchId("a", 7),), dropped=BatchId("b", 3))
    again = record.next(Change(None), "v").next(Change(decided("b", 2)), "u")
    assert (again.retired, again.dropped) == ((BatchId("a", 7),), None)
    other = record.next(Change(decided("c", 0)), "u")
    # Its dropped batch may still be written under another identity.
    assert other.retired == (BatchId("a", 7), BatchId("b", 2))


def test_a_stream_that_has_gone_on_elsewhere_is_retired_once() -> None:
    before = LogRecord(1, decided("a", 3), "w")
    left = before.next(Change(before.decision, retires=BatchId("a", 3)), "v")
    assert left.next(Change(decided("b", 0)), "u").retired == (BatchId("a", 3),)


def test_batch_writes_retire_nothing() -> None:
    record = LogRecord(1, decided("once:1", 1), "w")
    assert record.next(Change(decided("once:2", 2)), "v").retired == ()


BATCH = BatchId("s", 5)
PREPARED = Prepared(1, 100, 4, RowDigest(1, 2, 3), Position("t", 0, 9))
DECIDED = Decision(BATCH, 1, 4, PREPARED.digest, (PREPARED,))
PLACE = ("in", 0)
RUN, NEXT_RUN = Run("host", 1, 5), Run("host", 2, 6)
OFFSETS: Offsets = {PLACE: 4}
SOURCE = SourcePosition("g", BATCH, {PLACE: 1}, OFFSETS)
RECORD = LogRecord(
    7,
    DECIDED,
    "w",
    (BatchId("a", 3),),
    RUN,
    "p-",
    Stats({Count.BATCHES: 2}),
    settled=True,
    given_up=2,
    source=SOURCE,
    written=WrittenNumbers(((1, 1),)),
)
NEXT = replace(DECIDED, batch=BatchId("s", 6))


def test_the_next_decision_keeps_what_is_of_the_query_and_not_of_the_batch() -> None:
    change = Change(NEXT, Stats({Count.BATCHES: 1}))
    after = RECORD.next(change, "v", NEXT_RUN, "q-")
    assert after == LogRecord(
        8,
        NEXT,
        "v",
        RECORD.retired,
        NEXT_RUN,
        source=replace(SOURCE, stale=True),
        written=RECORD.written,
    )
    assert (after.prefix, after.stats) == ("q-", Stats({Count.BATCHES: 3}))


def test_a_record_keeps_the_room_for_rows_until_it_changes() -> None:
    changed = RECORD.next(Change(NEXT, room=5_000), "v")
    assert (changed.room, changed.next(Change(NEXT), "v").room) == (5_000, 5_000)


def test_a_record_that_repeats_the_decision_keeps_what_was_seen_of_it() -> None:
    assert RECORD.next(Change(DECIDED), "v") == replace(RECORD, seq=8, writer="v", run=None)
    fresh = replace(RECORD, settled=False)
    assert not fresh.next(Change(DECIDED), "v").settled
    assert fresh.next(Change(DECIDED, settled=True), "v").settled
    assert RECORD.next(Change(NEXT, settled=True), "v").settled
    assert RECORD.next(Change(DECIDED, gives_up=True), "v").given_up == 3


def test_a_dropped_decision_leaves_its_batch() -> None:
    dropped = RECORD.next(Change(None), "v")
    assert (dropped.decision, dropped.dropped, dropped.given_up) == (None, BATCH, 0)
    assert not dropped.settled
    assert dropped.source == replace(SOURCE, stale=True)


def test_a_position_that_moves_is_taken_as_it_is() -> None:
    moved = replace(SOURCE, batch=NEXT.batch)
    assert RECORD.next(Change(NEXT, source=moved), "v").source == moved
    assert replace(RECORD, source=None).next(Change(NEXT), "v").source is None


@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [
        (DECIDED, NEXT, True),
        (DECIDED, DECIDED, False),
        (NEXT, NEXT, False),
        (DECIDED, replace(DECIDED, prepared=()), False),
        (None, NEXT, True),
        (DECIDED, None, True),
        (None, None, False),
        (DECIDED, replace(NEXT, batch=BatchId.numbered_by(Numbering.ONCE, "x", 6)), False),
        (DECIDED, replace(NEXT, batch=BatchId.numbered_by(Numbering.FOREACH, "x", 6)), True),
    ],
)
def test_a_position_ends_with_a_decision_that_does_not_move_it(
    before: Decision | None, after: Decision | None, ends: bool
) -> None:
    assert SOURCE.after(after, before) == replace(SOURCE, stale=ends)


@pytest.mark.parametrize(("group", "stale"), [("g", False), ("other", True), ("", True)])
def test_a_stream_that_goes_on_elsewhere_takes_the_position_only_of_its_group(
    group: str, stale: bool
) -> None:
    left = RECORD.next(Change(DECIDED, retires=BATCH, group=group), "v")
    assert left.retired == (*RECORD.retired, BATCH)
    assert left.source == replace(SOURCE, stale=stale)
    without = replace(RECORD, source=None)
    assert without.next(Change(DECIDED, retires=BATCH, group=group), "v").source is None


def test_a_write_is_noted_when_the_next_one_follows() -> None:
    writes = [
        replace(DECIDED, batch=BatchId.numbered_by(Numbering.VERSION, "app", n)) for n in (4, 5)
    ]
    record = replace(RECORD, decision=writes[0])
    assert record.next(Change(writes[1]), "v").written == RECORD.written.add(4)
    assert record.next(Change(writes[0]), "v").written == RECORD.written
    assert record.next(Change(None), "v").written == RECORD.written
    assert replace(RECORD, decision=None).next(Change(writes[1]), "v").written == RECORD.written
    assert RECORD.next(Change(NEXT), "v").written == RECORD.written


WRITE = BatchId.numbered_by(Numbering.ONCE, "", 6)


@pytest.mark.parametrize(
    ("latest", "batch", "is_new"),
    [
        (None, BATCH, False),
        (BATCH, NEXT.batch, False),
        (BATCH, BatchId("z", 0), True),
        (BATCH, WRITE, False),
        (WRITE, BATCH, False),
    ],
)
def test_a_stream_is_new_after_another_one_of_a_query(
    latest: BatchId | None, batch: BatchId, is_new: bool
) -> None:
    assert LogRecord(1, None, "w", dropped=latest).is_new_stream(batch) is is_new
