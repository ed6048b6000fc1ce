"""Where a query may begin or go on: each row of the checks, and which one comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos_sink.errors import ConfigurationError, EosSinkError, OperatorNeededError
from eos_sink.messages import Reason, Text
from eos_sink.protocol.handover import (
    Handover,
    check_foreign_group,
    check_replay,
    first_position,
    judge,
    of_old_topics,
)
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Numbering,
    Prepared,
    RowDigest,
    SourcePosition,
    StartNote,
)
from eos_sink.protocol.source_rules import SourceBatch, SourceLogs
from eos_sink.protocol.values import Offsets, Place, Position

A, B, NEW = ("in", 0), ("in", 1), ("in", 2)
OTHER = ("else", 0)
ENTRIES = tuple(Prepared(p, 1, 1, RowDigest(1), Position("t", p, 0)) for p in (1, 2))
DECIDED = Decision(BatchId("s", 4), 0, 2, RowDigest(2), ENTRIES)
KNOWN = SourcePosition("g", DECIDED.batch, {A: 1, B: 2}, {A: 10, B: 20}, topics={"in": "id"})
RECORD = LogRecord(9, DECIDED, "w", source=KNOWN)
FIRST = SourceBatch("g", BatchId("z", 0), KNOWN.end, {A: 15, B: 25}, {"in": "id"})
NEXT = replace(FIRST, batch=BatchId("s", 5))
FRAME = replace(NEXT, batch=BatchId.numbered_by(Numbering.FOREACH, "s", 5))
BOUNDS = {A: (0, 100), B: (0, 100), NEW: (3, 100), OTHER: (3, 100)}
LOGS = SourceLogs({"in": "id", "else": "2"}, BOUNDS)
BEGUN = Handover(RECORD, FIRST, "g", committed=KNOWN.end, logs=LOGS)
NONE_YET = LogRecord(0, None, "")
AGAIN = {"in": "other"}


def record(source: SourcePosition | None = KNOWN, **changes: Any) -> LogRecord:
    return replace(RECORD, source=source, **changes)


def known(**changes: Any) -> LogRecord:
    return record(replace(KNOWN, **changes))


def starts(batch: SourceBatch = FIRST, **at: int) -> SourceBatch:
    return replace(batch, start={**batch.start, **places(**at)})


def places(**at: int) -> dict[Place, int]:
    return {{"a": A, "b": B, "new": NEW, "other": OTHER}[name]: n for name, n in at.items()}


def numbered(batch: SourceBatch, number: int) -> SourceBatch:
    return replace(batch, batch=replace(batch.batch, batch=number))


def frames(number: int, source: SourcePosition = KNOWN) -> LogRecord:
    """A record of frames up to this batch."""
    batch = replace(FRAME.batch, batch=number)
    return record(replace(source, batch=batch), decision=replace(DECIDED, batch=batch))


AGAIN_A = replace(LOGS, ids=AGAIN)
ABSENT_TOPICS = {"now": replace(NEXT, topics={}), "logs": SourceLogs({}, {})}
GONE_A = replace(LOGS, bounds={**BOUNDS, A: (11, 100)})
SHORT_A = replace(LOGS, bounds={**BOUNDS, A: (0, 9)})
STATEFUL = replace(KNOWN, stateful=True)
UNWRITTEN = replace(frames(-1), decision=None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"now": NEXT}, None),
        ({"now": None}, None),
        # Nothing tells where the query stands.
        ({"record": record(None)}, Reason.POSITION_UNKNOWN),
        ({"record": known(stale=True)}, Reason.POSITION_UNKNOWN),
        ({"record": record(None), "now": None}, Reason.POSITION_UNKNOWN),
        ({"record": record(None), "now": NEXT}, None),
        ({"record": NONE_YET}, None),
        ({"record": NONE_YET, "now": None}, Reason.POSITION_UNKNOWN),
        # A topic was made again.
        ({"now": replace(FIRST, topics=AGAIN)}, Reason.ROWS_GONE),
        ({"now": replace(NEXT, topics=AGAIN)}, Reason.ROWS_GONE),
        ({"now": replace(FIRST, topics={})}, None),
        (
            {"now": replace(NEXT, topics=AGAIN), "record": known(stale=True)},
            Reason.POSITION_OF_OLD_TOPIC,
        ),
        ({"now": NEXT, "record": known(stale=True)}, None),
        (
            {"now": replace(NEXT, topics=AGAIN), "record": known(stateful=True)},
            Reason.ROWS_GONE_UNDER_STATE,
        ),
        (
            {"now": replace(FIRST, topics=AGAIN), "record": known(stateful=True)},
            Reason.ROWS_GONE_UNDER_STATE,
        ),
        ({"now": replace(starts(a=9), topics=AGAIN)}, Reason.ROWS_GONE),
        ({"now": replace(FIRST, topics=AGAIN), "lost": frozenset({1})}, Reason.ROWS_GONE),
        # Only the old checkpoint has it.
        ({"record": known(stateful=True)}, Reason.LOST_STATE),
        ({"record": known(others=True)}, Reason.OTHER_SOURCES),
        ({"record": known(stateful=True, others=True)}, Reason.LOST_STATE),
        ({"record": known(stateful=True, given_up=True)}, None),
        ({"record": known(others=True, given_up=True)}, None),
        ({"record": known(stateful=True), "now": NEXT}, None),
        ({"record": known(stateful=True), "now": starts(a=9)}, Reason.BEGINS_ELSEWHERE),
        ({"record": known(stateful=True), "committed": {}}, Reason.GROUP_DIFFERS),
        ({"record": known(stateful=True), "now": starts(new=4)}, Reason.LOST_STATE),
        ({"record": known(stateful=True), "now": None}, Reason.LOST_STATE),
        (
            {"record": known(stateful=True), "now": None, "lost": frozenset({1})},
            Reason.HALF_VISIBLE,
        ),
        ({"now": None, "lost": frozenset({1})}, Reason.HALF_VISIBLE),
        ({"now": None, "lost": frozenset({1, 2})}, None),
        ({"now": None, "lost": frozenset({1}), "logs": GONE_A}, Reason.HALF_VISIBLE),
        # It begins elsewhere.
        ({"now": starts(a=9)}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(a=11)}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(NEXT, a=9)}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(NEXT, a=11)}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(numbered(NEXT, 6), a=11)}, None),
        ({"now": starts(numbered(NEXT, 6), a=9)}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(numbered(FIRST, 6), a=11)}, Reason.BEGINS_ELSEWHERE),
        ({"now": replace(starts(a=12), end={A: 10, B: 25})}, None),
        ({"now": starts(a=9), "logs": GONE_A}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(FRAME, a=11), "record": frames(4)}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(FRAME, a=11), "record": frames(3)}, Reason.BATCHES_LEFT_OUT),
        ({"now": FRAME, "record": frames(3)}, None),
        (
            {"now": starts(FRAME, a=11), "record": frames(3, STATEFUL)},
            Reason.BATCHES_LEFT_OUT_OF_STATE,
        ),
        ({"now": starts(numbered(FRAME, 0), a=9), "record": UNWRITTEN}, None),
        ({"now": starts(numbered(FRAME, 0), a=11), "record": UNWRITTEN}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(numbered(FRAME, 0), a=9), "record": frames(-1)}, Reason.BEGINS_ELSEWHERE),
        (
            {"now": starts(numbered(FRAME, 1), a=9), "record": replace(frames(0), decision=None)},
            Reason.BEGINS_ELSEWHERE,
        ),
        (
            {
                "now": starts(FRAME, a=9),
                "record": replace(frames(4), decision=None),
            },
            Reason.BEGINS_ELSEWHERE,
        ),
        (
            {
                "now": starts(numbered(NEXT, 0), a=9),
                "record": record(
                    replace(KNOWN, batch=BatchId("s", -1)),
                    decision=None,
                ),
            },
            Reason.BEGINS_ELSEWHERE,
        ),
        # Its rows are gone.
        ({"logs": GONE_A}, Reason.ROWS_GONE),
        ({"logs": SHORT_A}, Reason.ROWS_CUT),
        ({"logs": GONE_A, "now": NEXT}, None),
        ({"logs": GONE_A, "now": None}, Reason.ROWS_GONE),
        ({"logs": GONE_A, "record": known(stateful=True)}, Reason.LOST_STATE),
        (
            {"logs": GONE_A, "record": known(stateful=True, given_up=True)},
            Reason.ROWS_GONE_UNDER_STATE,
        ),
        (
            {"logs": AGAIN_A, "now": None, "record": known(others=True)},
            Reason.ROWS_GONE_UNDER_STATE,
        ),
        ({"logs": GONE_A, "committed": {A: 9, B: 20}}, Reason.ROWS_GONE),
        # The group is elsewhere.
        ({"committed": {A: 9, B: 20}}, Reason.GROUP_DIFFERS),
        ({"committed": {A: 10}}, Reason.GROUP_DIFFERS),
        ({"committed": {A: 9, B: 20}, "now": NEXT}, None),
        ({"group": "h", "committed": {}}, None),
        ({"group": "h", "committed": {A: 9}}, Reason.FOREIGN_GROUP),
        ({"group": "h", "committed": {A: 9}, "now": NEXT}, Reason.FOREIGN_GROUP),
        ({"group": "h", "committed": {A: 9}, "now": None}, Reason.FOREIGN_GROUP),
        ({"group": "h", "committed": {A: 11}, "now": starts(numbered(NEXT, 6), a=11)}, None),
        ({"record": NONE_YET, "committed": {A: 9}}, Reason.FOREIGN_GROUP),
        ({"committed": {A: 9}, "now": starts(new=4)}, Reason.GROUP_DIFFERS),
        # Another cluster; or the first rows of a partition are left out.
        ({"record": NONE_YET, "logs": SHORT_A}, Reason.OTHER_CLUSTER),
        ({"record": NONE_YET, "now": starts(a=100), "committed": {}}, None),
        ({"record": record(None), "now": NEXT, "logs": SHORT_A}, Reason.OTHER_CLUSTER),
        ({"record": known(stale=True), "now": NEXT, "logs": SHORT_A}, Reason.OTHER_CLUSTER),
        ({"now": starts(new=3)}, None),
        ({"now": starts(new=4)}, Reason.BEGINS_ELSEWHERE),
        # What was given up since; Spark begins new partitions at their first rows.
        ({"now": starts(NEXT, new=4)}, Reason.BEGINS_ELSEWHERE),
        ({"now": starts(NEXT, new=0)}, None),
        # Nothing is known of other sources, whose topics may be named later.
        ({"now": starts(NEXT, new=4), "record": known(others=True)}, None),
        ({"now": starts(numbered(NEXT, 6), new=4)}, None),
        # A topic that is gone, or whose id is not shown.
        (ABSENT_TOPICS, Reason.ROWS_GONE),
        (
            {**ABSENT_TOPICS, "record": known(stateful=True)},
            Reason.ROWS_GONE_UNDER_STATE,
        ),
        ({**ABSENT_TOPICS, "record": known(stale=True)}, Reason.POSITION_OF_OLD_TOPIC),
        ({"now": replace(NEXT, topics={})}, None),
        ({"now": starts(other=4)}, None),
        (
            {"now": starts(new=4), "logs": replace(LOGS, bounds={A: (0, 50), B: (0, 50)})},
            Reason.OTHER_CLUSTER,
        ),
    ],
)
def test_the_first_check_that_fails_tells(changes: dict[str, Any], reason: Text | None) -> None:
    handover = replace(BEGUN, **changes)
    if handover.now:
        # A batch ends in all partitions in which it begins.
        end = {**dict.fromkeys(handover.now.start, 25), **handover.now.end}
        handover = replace(handover, now=replace(handover.now, end=end))
    if reason is None:
        judge(handover)
        return
    with pytest.raises(EosSinkError) as raised:
        judge(handover)
    assert raised.value.stop
    assert raised.value.stop[0] is reason


def test_what_is_gone_is_named_by_partition() -> None:
    both = known(end={**KNOWN.end, OTHER: 5}, topics={"in": "id", "else": "2"})
    again = replace(FIRST, topics={"in": "id", "else": "3"})
    with pytest.raises(OperatorNeededError) as raised:
        judge(replace(BEGUN, record=both, now=again))
    assert raised.value.stop
    assert raised.value.stop[1]["places_gone"].keys() == {OTHER}
    bounds = {A: (0, 9)}
    with pytest.raises(ConfigurationError) as elsewhere:
        judge(replace(BEGUN, record=NONE_YET, logs=SourceLogs({}, bounds)))
    assert elsewhere.value.stop
    assert elsewhere.value.stop[1]["places_gone"] == {
        A: "is at 10, and the partition ends at 9",
        B: "is at 20, and the partition does not exist",
    }


def test_the_position_is_after_the_batch_or_where_the_next_one_begins() -> None:
    assert judge(BEGUN) == FIRST.moves(KNOWN)
    assert judge(replace(BEGUN, now=None)) == KNOWN
    lost = replace(BEGUN, now=None, lost=frozenset({1, 2}))
    assert judge(lost) == replace(KNOWN, end=KNOWN.start)


@pytest.mark.parametrize(
    ("ids", "left", "reads", "passes"),
    [
        ({"in": "id"}, False, True, False),
        ({"in": "id"}, False, False, True),
        ({}, False, False, False),
        ({}, True, True, True),
    ],
)
def test_only_what_the_query_goes_on_to_read_has_to_be_there(
    ids: dict[str, str], left: bool, reads: bool, passes: bool
) -> None:
    source = replace(KNOWN, end={B: 20}, left={A: 10}) if left else KNOWN
    logs = SourceLogs(ids, {B: (0, 100)})
    here = replace(BEGUN, record=record(source), now=None, logs=logs, reads=lambda _: reads)
    if passes:
        assert judge(here) == source
        return
    with pytest.raises(OperatorNeededError):
        judge(here)


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({}, True),
        ({"now": None}, True),
        ({"now": NEXT}, False),
        ({"now": NEXT, "record": record(None)}, True),
        ({"now": replace(NEXT, topics={})}, True),
    ],
)
def test_the_source_is_asked_unless_a_query_goes_on_in_topics_that_show_their_ids(
    changes: dict[str, Any], needed: bool
) -> None:
    assert replace(BEGUN, **changes).needs_logs is needed


# --- what is noted before anything is written


@pytest.mark.parametrize(
    ("before", "follows"), [(None, False), (replace(KNOWN, stale=True), False), (KNOWN, True)]
)
@pytest.mark.parametrize(
    ("number", "keeps", "kept"), [(0, True, False), (3, True, True), (3, False, False)]
)
def test_a_query_without_a_position_begins_where_its_first_batch_does(
    before: SourcePosition | None, follows: bool, number: int, keeps: bool, kept: bool
) -> None:
    now = replace(numbered(FIRST, number), others=keeps, stateful=keeps)
    moved = now.moves(None)
    noted = first_position(record(before), now, moved, follows=follows)
    begins = replace(moved, batch=BatchId("z", number - 1), end=KNOWN.end)
    assert noted == replace(begins, others=kept, stateful=kept)


def test_of_a_position_only_new_partitions_of_a_new_checkpoint_are_noted() -> None:
    def note(now: SourceBatch) -> SourcePosition | None:
        return first_position(RECORD, now, now.moves(KNOWN), follows=False)

    assert note(FIRST) is None
    assert note(starts(NEXT, other=4)) is None
    now = replace(starts(other=4), group="h", topics={"in": "now", "else": "2"})
    assert note(now) == replace(KNOWN, group="h", left={OTHER: 4}, topics={"in": "id", "else": "2"})
    left = record(replace(KNOWN, left={NEW: 7}))
    noted = first_position(left, now, now.moves(KNOWN), follows=False)
    assert noted
    assert noted.left == {NEW: 7, OTHER: 4}


# --- a replay, and a group that others use


@pytest.mark.parametrize(
    ("source", "batch", "end", "passes"),
    [
        (KNOWN, DECIDED.batch, KNOWN.end, True),
        (KNOWN, DECIDED.batch, None, True),
        (KNOWN, DECIDED.batch, {A: 10, B: 21}, False),
        (KNOWN, NEXT.batch, {A: 10, B: 21}, True),
        (None, DECIDED.batch, {A: 10}, True),
    ],
)
def test_a_decided_batch_is_repeated_with_its_offsets(
    source: SourcePosition | None, batch: BatchId, end: Offsets | None, passes: bool
) -> None:
    if passes:
        check_replay(record(source), batch, end)
        return
    with pytest.raises(OperatorNeededError) as raised:
        check_replay(record(source), batch, end)
    assert raised.value.stop
    assert raised.value.stop[1]["wrong"] == {B: (20, 21)}


NOTE = StartNote("", 0, topics={"in": "old", "unread": "x"})


@pytest.mark.parametrize(
    ("latest", "note", "reason"),
    [
        (NONE_YET, NOTE, Reason.FIRST_OF_OLD_TOPIC),
        (record(None), NOTE, Reason.POSITION_OF_OLD_TOPIC),
        (NONE_YET, replace(NOTE, topics={"in": "id"}), None),
        (record(None), replace(NOTE, topics={"in": "id"}), None),
        (record(None), replace(NOTE, topics={}), None),
        # The position has the ids itself.
        (RECORD, NOTE, None),
        (known(stale=True), NOTE, None),
    ],
)
def test_offsets_of_topics_that_a_start_has_seen_are_not_of_later_ones(
    latest: LogRecord, note: StartNote, reason: Text | None
) -> None:
    error = of_old_topics(latest, starts(other=5), note)
    text, facts = error.stop if error and error.stop else (None, {})
    assert text is reason
    assert facts.get("places_gone", {A: 0, B: 0}).keys() == {A, B}


def test_a_group_has_no_other_offsets_where_the_query_begins() -> None:
    check_foreign_group(KNOWN.end, {})
    check_foreign_group(KNOWN.end, {A: 10, OTHER: 3})
    with pytest.raises(ConfigurationError) as raised:
        check_foreign_group(KNOWN.end, {A: 10, B: 21})
    assert raised.value.stop
    assert raised.value.stop[1]["wrong"] == {B: (20, 21)}
