"""Tallies add up the same in any order, and a decision finds its transactions."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink.identity import QueryNames
from eos_sink.protocol.model import (
    BatchId,
    Change,
    Decision,
    LogRecord,
    Numbering,
    Override,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.values import Position, Transaction

words = st.integers(0, 2**64 - 1)
digests = st.builds(RowDigest, st.integers(0, 10**9), st.integers(0, 10**12), words)
NAMES = QueryNames("p-", "q-0123456789")


@given(st.lists(digests), st.randoms(use_true_random=False))
def test_a_total_does_not_depend_on_the_order(parts: list[RowDigest], chance: object) -> None:
    shuffled = list(parts)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert RowDigest.total(shuffled) == RowDigest.total(parts)


@given(st.lists(digests), st.lists(digests))
def test_a_total_does_not_depend_on_the_grouping(
    some: list[RowDigest], others: list[RowDigest]
) -> None:
    assert RowDigest.total(some) + RowDigest.total(others) == RowDigest.total([*some, *others])


@given(digests)
def test_nothing_adds_nothing(digest: RowDigest) -> None:
    assert digest + RowDigest() == digest == RowDigest() + digest
    assert RowDigest.total([]) == RowDigest()


@given(digests, digests)
def test_a_fingerprint_stays_within_64_bits(one: RowDigest, other: RowDigest) -> None:
    assert 0 <= (one + other).fingerprint < 2**64


def test_batches_of_different_streams_are_different_batches() -> None:
    assert BatchId("old", 0) != BatchId("new", 0)
    assert BatchId("old", 0) == BatchId("old", 0)


def test_a_decision_names_each_transaction_by_id_producer_and_epoch() -> None:
    entries = tuple(
        Prepared(p, 100 + p, 3, RowDigest(1, 2, 3), Position("t", p, 7)) for p in (0, 2)
    )
    decision = Decision(BatchId("s", 4), 1, 3, RowDigest(2, 4, 6), entries)
    assert decision.transactions(NAMES) == {
        Transaction("p-q-0123456789-1-0", 100, 3): entries[0],
        Transaction("p-q-0123456789-1-2", 102, 3): entries[1],
    }
    assert pickle.loads(pickle.dumps(decision)) == decision


def decided(stream: str, batch: int) -> Decision:
    return Decision(BatchId(stream, batch), 0, 1, RowDigest(), ())


def test_a_record_retires_a_stream_that_another_one_follows() -> None:
    record = LogRecord(0, None, "")
    for stream, batch in [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]:
        record = record.next(Change(decided(stream, batch)), "w")
    assert record.retired == (BatchId("a", 1), BatchId("b", 1))
    assert record.decided == (*record.retired, BatchId("c", 0))
    assert record.seq == 5


def test_a_fence_forgets_no_stream() -> None:
    record = LogRecord(1, decided("b", 0), "w", (BatchId("a", 7),))
    assert record.next(Change(record.decision), "v") == LogRecord(
        2, record.decision, "v", record.retired
    )


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


def test_a_record_forgets_no_stream() -> None:
    record = LogRecord(0, None, "")
    for number in range(100):
        record = record.next(Change(decided(f"stream-{number}", 0)), "w")
    assert [each.stream for each in record.retired] == [f"stream-{n}" for n in range(99)]


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


@given(st.sampled_from(list(Numbering)), st.uuids().map(str), st.integers(0, 2**63 - 1))
def test_who_numbers_a_batch_is_read_from_its_stream(
    numbering: Numbering, source: str, number: int
) -> None:
    batch = BatchId.numbered_by(numbering, source, number)
    assert (batch.numbering, batch.batch) == (numbering, number)
    assert numbering is Numbering.ONCE or source in str(batch)
    assert str(number) in str(batch)


@pytest.mark.parametrize("source", ["once:1", "foreach:1", "txn:1", ":", ""])
def test_no_name_of_an_application_passes_for_another_numbering(source: str) -> None:
    batch = BatchId.numbered_by(Numbering.VERSION, source, 1)
    assert batch.numbering is Numbering.VERSION
