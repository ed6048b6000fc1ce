"""What a query has decided under an identity that it had before, and what it may do then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.errors import OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.messages import Reason, Text
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Numbering,
    Route,
    RowDigest,
    SourcePosition,
)
from eos_sink.protocol.rules import check_former

FORMER = QueryNames("p-", "q-0123456789")
TOTAL = RowDigest(2, 20, 111)
MOVED, RETIRED = Reason.MOVED_CHECKPOINT, Reason.MOVED_AND_RETIRED
FOLLOWED = Reason.MOVED_AND_FOLLOWED


def decided(number: int, stream: str = "s", topic: str | None = "t", run: str = "") -> Decision:
    route = Route(topic)
    return Decision(BatchId(stream, number), 0, 1, TOTAL, (), spark_run=run, route=route)


def frame(number: int, stream: str = "s", run: str = "now") -> Decision:
    batch = BatchId.numbered_by(Numbering.FOREACH, stream, number)
    return replace(decided(number, run=run), batch=batch)


def there(
    decision: Decision | None, *retired: BatchId, dropped: BatchId | None = None
) -> LogRecord:
    return LogRecord(9, decision, "w", retired, dropped=dropped)


def moves(latest: LogRecord, group: str = "g", *, stale: bool = False) -> LogRecord:
    """The identity moves a consumer group."""
    assert latest.latest
    return replace(latest, source=SourcePosition(group, latest.latest, {}, {}, stale=stale))


ROW, FRAME = decided(5), frame(5)
OTHERS = frame(5, "z", "before")
OTHER_DIGEST = replace(frame(5, run="before"), digest=0)


@pytest.mark.parametrize(
    ("decision", "record", "expected"),
    [
        (ROW, there(None), None),
        (ROW, there(decided(5, "z")), None),
        (ROW, there(decided(4)), BatchId("s", 4)),
        (ROW, there(decided(5)), MOVED),
        (ROW, there(decided(6)), MOVED),
        (ROW, there(decided(6), BatchId("s", 3)), RETIRED),
        (ROW, there(decided(4, "z"), BatchId("s", 4)), None),
        (ROW, there(decided(4, "z"), BatchId("s", 5)), FOLLOWED),
        (ROW, there(None, BatchId("s", 5)), RETIRED),
        # Two checkpoints of one query, or two queries.
        (ROW, moves(there(decided(4, "z"), BatchId("s", 4))), Reason.MOVED_GROUP),
        (ROW, moves(there(decided(4, "z"), BatchId("s", 4)), "another"), None),
        (ROW, moves(there(decided(4), BatchId("s", 4))), None),
        (ROW, moves(there(decided(4))), BatchId("s", 4)),
        (ROW, there(None, dropped=BatchId("s", 5)), BatchId("s", 5)),
        # Another copy of the rows.
        (ROW, there(decided(5, topic="u")), None),
        (ROW, there(decided(5, topic=None)), MOVED),
        (decided(5, topic=None), there(decided(5, topic="u")), MOVED),
        (ROW, there(decided(5, "z", "u"), BatchId("s", 5)), FOLLOWED),
        # Frames, and a change from or to them.
        (ROW, there(frame(5)), MOVED),
        (ROW, there(frame(4)), BatchId("foreach:s", 4)),
        (FRAME, there(decided(5)), MOVED),
        (FRAME, there(frame(4)), None),
        (FRAME, there(frame(5)), None),
        (FRAME, there(frame(5, run="before")), MOVED),
        (FRAME, there(replace(frame(5, run="before"), total=RowDigest(1))), None),
        (FRAME, there(replace(frame(5, run="before"), total=RowDigest(2, 20, 9))), None),
        # As many rows that cannot be compared may be the same ones.
        (FRAME, there(replace(OTHER_DIGEST, total=RowDigest(2, 20, 9))), MOVED),
        (FRAME, there(replace(OTHER_DIGEST, total=RowDigest(2, 21, 111))), None),
        (FRAME, there(frame(6)), MOVED),
        (FRAME, there(OTHERS, FRAME.batch), None),
        (FRAME, there(None, FRAME.batch), None),
        # Its other identities go their own ways, also with the group of all.
        (FRAME, moves(there(frame(4, "z"), frame(4).batch)), None),
    ],
)
def test_what_was_decided_there_stops_a_batch_or_is_retired_there(
    decision: Decision, record: LogRecord, expected: BatchId | Text | None
) -> None:
    if not isinstance(expected, Text):
        assert check_former(decision, FORMER, record, "g") == expected
        return
    with pytest.raises(OperatorNeededError) as raised:
        check_former(decision, FORMER, record, "g")
    assert raised.value.stop
    assert raised.value.stop[0] is expected


@pytest.mark.parametrize(
    ("group", "stale", "is_same"),
    [
        ("g", False, True),
        ("g", True, True),
        ("", False, True),
        ("", True, False),
        ("h", False, False),
    ],
)
def test_another_checkpoint_of_one_query_is_told_by_its_group(
    group: str, *, stale: bool, is_same: bool
) -> None:
    followed = moves(there(decided(4, "z"), BatchId("s", 4)), stale=stale)
    if not is_same:
        assert check_former(ROW, FORMER, followed, group) is None
        return
    with pytest.raises(OperatorNeededError, match="another query uses its group g"):
        check_former(ROW, FORMER, followed, group)
