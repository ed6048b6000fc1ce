"""Lines of the log become the histories of queries and a list of foreign records."""

from __future__ import annotations

from eos_sink.decision_log.codec import encode
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import LogLine
from eos_sink.ops.history import History, histories, read_records
from eos_sink.protocol.model import (
    BatchId,
    Claim,
    Decision,
    LogRecord,
    Numbering,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.values import Position

QUERY = "orders-0123456789"
KEY = f"eos-sink-{QUERY}"


def decision(batch: int, producer: int = 1) -> Decision:
    entry = Prepared(0, producer, 0, RowDigest(1, 2, 3), Position("out", 0, batch))
    topics = {"out": "1"}
    return Decision(BatchId("s", batch), batch % 2, 1, RowDigest(1, 2, 3), (entry,), topics=topics)


def line(offset: int, value: bytes, key: str = KEY) -> LogLine:
    return LogLine(key, Position("log", 3, offset), 1000 + offset, value)


def record(seq: int, decided: Decision | None) -> bytes:
    return encode(LogRecord(seq, decided, f"w{seq}"))


def history(*lines: LogLine, query: str = QUERY) -> History:
    return histories(*read_records(lines))[query]


def test_the_first_record_of_a_decision_says_when_it_was_made() -> None:
    one, two = decision(1), decision(2)
    lines = [record(1, None), record(2, one), record(3, two), record(4, two), record(5, two)]
    found = history(*(line(offset, value) for offset, value in enumerate(lines)))
    decided = found.decided()
    assert decided is not None
    assert (decided.record.seq, decided.at_ms) == (3, 1002)
    assert found.latest is not None
    assert found.latest.record.seq == 5


def test_a_rewritten_batch_is_a_new_decision() -> None:
    lines = [record(1, decision(1)), record(2, decision(1, producer=9))]
    found = history(*(line(offset, value) for offset, value in enumerate(lines)))
    decided = found.decided()
    assert decided is not None
    assert decided.record.seq == 2
    assert history(line(0, record(1, None))).decided() is None


def test_foreign_records_are_listed_with_their_position() -> None:
    newer = record(1, None).replace(b'"format":4', b'"format":5')
    lines = [
        line(0, b"hello", "garbage"),
        line(1, b"{}", "x"),
        line(2, b"", "gone"),
        line(3, newer, "eos-sink-other-0123456789"),
        # Not a key: no driver reads it.
        line(4, b"?", "orders-0123456789"),
    ]
    records, unreadable = read_records(lines)
    assert records == []
    assert [str(u.position) for u in unreadable] == [f"log[3]@{offset}" for offset in range(5)]
    assert unreadable[2].why == "a tombstone"
    assert unreadable[3].why == "format 5"
    # Only what carries a name that the sink makes is a query's.
    known = histories(records, unreadable)
    assert list(known) == ["other-0123456789"]
    assert known["other-0123456789"].latest is None


def test_an_unreadable_record_hides_a_query_only_where_it_is_the_latest() -> None:
    good = record(1, decision(1))
    hidden = history(line(0, good), line(1, b"?")).hidden
    assert hidden is not None
    assert hidden.position.offset == 1
    assert history(line(0, b"?"), line(1, good)).hidden is None


def test_a_claim_is_no_record_and_hides_none() -> None:
    names = QueryNames("team-", QUERY)
    one, two = (
        encode(LogRecord(seq, decision(seq), f"w{seq}", prefix=names.prefix)) for seq in (1, 2)
    )
    claim = Claim(names, "stream s", Numbering.STREAM)
    lines = [
        line(0, one, names.log_key),
        line(1, two, names.log_key),
        line(2, encode(claim), claim.key),
        line(3, b"?", "other-" + QUERY),
    ]
    found = histories(*read_records(lines))
    assert list(found) == ["other-" + QUERY, names.shown]
    assert [written.record.seq for written in found[names.shown].records] == [1, 2]
    assert found[names.shown].hidden is None
    hidden = found["other-" + QUERY].hidden
    assert hidden is not None
    assert hidden.position.offset == 3
