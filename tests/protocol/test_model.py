"""Tallies add up the same in any order, and a decision finds its transactions."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink.identity import QueryNames
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    Numbering,
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
