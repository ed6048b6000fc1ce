"""How a batch moves the position of its source, and what is gone of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Numbering,
    Prepared,
    RowDigest,
    SourcePosition,
)
from eos_sink.protocol.source_rules import (
    MADE_AGAIN,
    SourceBatch,
    SourceLogs,
    has_gone_on,
    is_new_stream,
    is_untracked,
    last_stream,
    returns_to_start,
)
from eos_sink.protocol.values import Place, Position

A, B, OTHER = ("in", 0), ("in", 1), ("else", 0)
BATCH, ONCE = BatchId("s", 4), BatchId.numbered_by(Numbering.ONCE, "", 4)
ENTRY = Prepared(1, 1, 1, RowDigest(1), Position("t", 1, 0))
DECIDED = Decision(BATCH, 0, 2, RowDigest(1), (ENTRY,))
KNOWN = SourcePosition("g", BATCH, {A: 1}, {A: 10, OTHER: 5}, {B: 7}, {"in": "1", "else": "2"})
RECORD = LogRecord(9, DECIDED, "w", source=KNOWN)
NOW = SourceBatch("h", BatchId("s", 5), {A: 10}, {A: 15}, {"in": "3"}, stateful=True, others=True)
MOVED = SourcePosition("h", NOW.batch, NOW.start, NOW.end, stateful=True, others=True)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (RECORD, False),
        (replace(RECORD, source=None), True),
        (replace(RECORD, source=replace(KNOWN, stale=True)), True),
        # It has gone on elsewhere; has written nothing, or no batch of a query.
        (replace(RECORD, source=None, retired=(BATCH,)), False),
        (replace(RECORD, source=None, decision=None), False),
        (replace(RECORD, source=None, decision=replace(DECIDED, batch=ONCE)), False),
    ],
)
def test_a_position_that_only_the_checkpoint_knows(record: LogRecord, expected: bool) -> None:
    assert is_untracked(record) is expected


@pytest.mark.parametrize(("at", "expected"), [(9, True), (10, False), (11, False)])
def test_rows_that_a_batch_would_read_again(at: int, expected: bool) -> None:
    assert KNOWN.is_beyond({A: at, B: 7}) is expected
    assert not KNOWN.is_beyond({("new", 0): 0})


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ({A: (0, 9)}, {A: 9}),
        ({A: (0, 10), B: (0, 6)}, {B: 6}),
        ({A: (0, 9), OTHER: (0, 4)}, {A: 9}),
    ],
    ids=["one that is there", "up to the position", "made again"],
)
def test_a_log_that_ends_before_the_position_was_cut_off(
    logs: dict[Place, tuple[int, int]], expected: dict[Place, int]
) -> None:
    found = SourceLogs({"in": "1", "else": "new"}, logs).find_cut(KNOWN, frozenset({"in", "else"}))
    assert found == expected
    assert SourceLogs({"in": "1"}, logs).find_cut(KNOWN, frozenset({"else"})) == {}


def test_a_batch_leaves_what_is_not_read_any_more_where_it_was() -> None:
    assert NOW.moves(KNOWN) == replace(
        MOVED, left={B: 7, OTHER: 5}, topics={"in": "3", "else": "2"}
    )
    assert NOW.moves(replace(KNOWN, left={})).left == {OTHER: 5}


def test_a_position_that_is_not_known_leaves_nothing() -> None:
    assert NOW.moves(None) == replace(MOVED, topics={"in": "3"})
    stale = replace(KNOWN, stale=True)
    assert NOW.moves(stale) == replace(MOVED, topics={"in": "3"})
    assert replace(NOW, topics={}).moves(stale).topics == {"in": "1"}
    assert replace(NOW, topics={}).moves(None).topics == {}


@pytest.mark.parametrize(
    ("ids", "bounds", "why"),
    [
        ({"in": "1"}, {A: (0, 10)}, None),
        ({"in": "1"}, {A: (10, 20)}, None),
        ({"in": "2"}, {A: (0, 10)}, MADE_AGAIN),
        ({"in": "2"}, {}, MADE_AGAIN),
        ({"in": "1"}, {}, "does not exist any more"),
        ({}, {}, "does not exist any more"),
        ({"in": "1"}, {A: (11, 20)}, "is at 10, and its log begins at 11"),
        ({"in": "1"}, {A: (0, 9)}, "is at 10, and its log ends at 9"),
    ],
)
def test_what_is_gone_says_why(
    ids: dict[str, str], bounds: dict[tuple[str, int], tuple[int, int]], why: str | None
) -> None:
    source = SourcePosition("g", BATCH, {}, {A: 10}, topics={"in": "1"})
    gone = SourceLogs(ids, bounds).find_gone(source, lambda _: True)
    assert gone == ({A: why} if why else {})
    without_id = SourceLogs(ids, {A: (0, 10)}).find_gone(replace(source, topics={}), lambda _: True)
    assert without_id == {}


@pytest.mark.parametrize(
    ("record", "lost", "returns"),
    [
        (RECORD, {1}, True),
        (RECORD, set(), False),
        (replace(RECORD, source=None), {1}, False),
        (replace(RECORD, source=replace(KNOWN, stale=True)), {1}, False),
        (replace(RECORD, source=replace(KNOWN, batch=NOW.batch)), {1}, False),
        (replace(RECORD, decision=None), {1}, False),
    ],
)
def test_a_decision_that_is_invisible_as_a_whole_takes_its_position_back(
    record: LogRecord, lost: set[int], returns: bool
) -> None:
    expected = replace(KNOWN, end=KNOWN.start) if returns else None
    assert returns_to_start(record, frozenset(lost)) == expected


WITHOUT = replace(RECORD, source=None)
BEGUN = LogRecord(2, None, "w", source=KNOWN)
STALE = replace(RECORD, source=replace(KNOWN, batch=BatchId("y", 1), stale=True))


@pytest.mark.parametrize(
    ("record", "stream", "is_new"),
    [
        (RECORD, "s", False),
        (RECORD, "z", True),
        (replace(RECORD, decision=replace(DECIDED, batch=BatchId("z", 0))), "z", True),
        (WITHOUT, "s", False),
        (WITHOUT, "z", True),
        (STALE, "s", False),
        (STALE, "y", True),
        (LogRecord(0, None, ""), "s", True),
    ],
)
def test_a_stream_is_new_that_has_not_moved_the_position_last(
    record: LogRecord, stream: str, is_new: bool
) -> None:
    assert is_new_stream(record, BatchId(stream, 0)) is is_new


@pytest.mark.parametrize(
    ("record", "number", "gone_on"),
    [
        (BEGUN, KNOWN.batch.batch + 1, False),
        (BEGUN, KNOWN.batch.batch + 2, True),
        (replace(BEGUN, source=None), KNOWN.batch.batch + 2, False),
        (RECORD, RECORD.decided[-1].batch + 2, False),
        # Of another stream.
        (replace(BEGUN, decision=replace(DECIDED, batch=BatchId("a", 9))), 9, True),
    ],
)
def test_a_stream_has_gone_on_that_was_only_begun_here(
    record: LogRecord, number: int, gone_on: bool
) -> None:
    assert has_gone_on(record, BatchId(KNOWN.batch.stream, number)) is gone_on


def test_the_last_stream_is_one_of_a_query() -> None:
    write = replace(DECIDED, batch=ONCE)
    assert last_stream(LogRecord(1, write, "w", (BatchId("a", 1), BatchId("b", 2)))) == "b"
    assert last_stream(LogRecord(1, DECIDED, "w", (BatchId("a", 1),))) == "s"
    assert last_stream(LogRecord(1, write, "w")) is None
