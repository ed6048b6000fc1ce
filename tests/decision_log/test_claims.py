"""Who has written a stream, and who has moved a consumer group, as the log tells."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from eos_sink.decision_log.claims import check_claims, read_claims
from eos_sink.decision_log.codec import encode, is_claim
from eos_sink.errors import CommitFailedError, OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import (
    NO_CLAIMS,
    BatchId,
    Change,
    Claim,
    Decision,
    KnownClaims,
    LogRecord,
    Numbering,
    PlanToken,
    RowDigest,
    SourcePosition,
    claims_of,
    group_subject,
    stream_subject,
)
from tests.decision_log.writer import Writer, append
from tests.fakes.cluster import FakeCluster

NAMES, OTHER = QueryNames("p-", "q-0123456789"), QueryNames("team-", "r-0123456789")
NONE = LogRecord(0, None, "")
FRAMES = f"{Numbering.FOREACH.value}s"


def decision(stream: str, batch: int = 0) -> Decision:
    return Decision(BatchId(stream, batch), 0, 0, RowDigest(), ())


def position(group: str) -> SourcePosition:
    return SourcePosition(group, BatchId("s", 0), {("in", 0): 0}, {("in", 0): 5})


def write(
    writer: Writer,
    stream: str,
    source: SourcePosition | None = None,
    known: tuple[QueryNames, ...] = (),
) -> None:
    entry = writer.register.read(writer.deadline)
    token = PlanToken(writer.names, entry.seq, entry.position, writer.join())
    change = Change(decision(stream), source=source)
    writer.register.append(token, change, writer.deadline, known=KnownClaims("", known))


def test_the_first_decision_of_a_stream_and_the_first_move_of_a_group_claim_them() -> None:
    first = NONE.next(Change(decision("s"), source=position("g")), "w")
    claimed = [Claim(NAMES, each, Numbering.STREAM) for each in ("stream s", "group g")]
    assert list(claims_of(NAMES, NONE, first)) == claimed
    later = first.next(Change(decision("s", 1), source=position("g")), "v")
    assert not list(claims_of(NAMES, first, later))
    moved = first.next(Change(decision("t"), source=position("h")), "v")
    assert [each.subject for each in claims_of(NAMES, first, moved)] == ["stream t", "group h"]


def test_writes_that_spark_does_not_number_claim_no_stream() -> None:
    for numbering in (Numbering.VERSION, Numbering.ONCE):
        record = NONE.next(Change(decision(f"{numbering.value}app")), "w")
        assert not list(claims_of(NAMES, NONE, record))


def test_a_stream_is_claimed_for_all_its_ways_of_writing() -> None:
    assert stream_subject(BatchId(FRAMES, 3)) == stream_subject(BatchId("s", 0)) == "stream s"


def test_claims_are_read_by_their_subject_with_the_identity_and_its_way_of_writing() -> None:
    cluster = FakeCluster()
    one, other = Writer(cluster, NAMES), Writer(cluster, OTHER)
    write(one, "s", position("g"))
    write(other, FRAMES, known=(NAMES,))
    write(other, "t", position("stream s"))
    found = read_claims(one.kafka, "stream s", Deadline(30))
    assert [(each.names, each.numbering) for each in found] == [
        (NAMES, Numbering.STREAM),
        (OTHER, Numbering.FOREACH),
    ]
    assert [each.names for each in read_claims(one.kafka, group_subject("g"), Deadline(30))] == [
        NAMES
    ]
    assert read_claims(one.kafka, "stream u", Deadline(30)) == []


def test_a_write_that_is_not_committed_claims_nothing() -> None:
    cluster = FakeCluster()
    writer = Writer(cluster)
    entry = writer.register.read(writer.deadline)
    token = PlanToken(writer.names, entry.seq, entry.position, writer.join())

    def refuse(_: float) -> float:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the vote's own error
        writer.register.append(token, Change(decision("s")), writer.deadline, vote=refuse)
    assert read_claims(writer.kafka, "stream s", Deadline(30)) == []


@pytest.mark.parametrize(
    "value",
    [
        b"junk",
        b"{}",
        b'{"format": 99, "subject": "stream s"}',
        encode(Claim(OTHER, "stream s", Numbering.STREAM)),
        encode(Claim(NAMES, "stream t", Numbering.STREAM)),
    ],
)
def test_a_claim_that_cannot_be_read_stops_and_is_not_passed_over(value: bytes) -> None:
    """It may be that of an identity that has written the very batch."""
    writer = Writer(FakeCluster())
    append(writer, f"{NAMES.group} claims stream s.", value)
    with pytest.raises(OperatorNeededError):
        read_claims(writer.kafka, "stream s", Deadline(30))


def test_a_tombstone_is_no_claim() -> None:
    writer = Writer(FakeCluster())
    append(writer, f"{NAMES.group} claims stream s.", b"")
    assert read_claims(writer.kafka, "stream s", Deadline(30)) == []


def test_a_claim_is_no_record_and_its_key_no_query_s_name() -> None:
    claim = Claim(NAMES, "group x-0123456789", Numbering.FOREACH)
    assert is_claim(encode(claim))
    assert not any(map(is_claim, (b"", b"junk", b"[]", encode(replace(NONE, seq=1)))))
    assert QueryNames.of_shown(claim.key) is None


ROWS, FRAME = Numbering.STREAM, Numbering.FOREACH


@pytest.mark.parametrize(
    ("names", "theirs", "mine", "known", "passes"),
    [
        (NAMES, ROWS, ROWS, (), True),
        (OTHER, ROWS, ROWS, (), False),
        (OTHER, ROWS, ROWS, (OTHER,), True),
        (OTHER, FRAME, FRAME, (), True),
        (OTHER, FRAME, ROWS, (), False),
        (OTHER, ROWS, FRAME, (), False),
    ],
)
def test_another_identity_that_has_claimed_the_stream_since_stops(
    names: QueryNames,
    theirs: Numbering,
    mine: Numbering,
    known: tuple[QueryNames, ...],
    passes: bool,
) -> None:
    claim = Claim(names, "stream s", theirs)
    kafka: Any = SimpleNamespace(claim_records=lambda *_: ({claim.key: encode(claim)}, 0))
    wanted = Claim(NAMES, "stream s", mine)
    if passes:
        check_claims(kafka, wanted, KnownClaims("", known), None, Deadline(1))
        return
    with pytest.raises(CommitFailedError):
        check_claims(kafka, wanted, KnownClaims("", known), None, Deadline(1))


def test_frames_may_claim_one_stream_and_no_group() -> None:
    claim = Claim(OTHER, "group g", FRAME)
    kafka: Any = SimpleNamespace(claim_records=lambda *_: ({claim.key: encode(claim)}, 0))
    with pytest.raises(CommitFailedError, match="has claimed group g at the same time"):
        check_claims(kafka, Claim(NAMES, "group g", FRAME), NO_CLAIMS, None, Deadline(1))
