"""The checker finds what it is there to find, and nothing else."""

from __future__ import annotations

import pytest

from eos_sink.demo.ledger import Count, Ledger

BATCHES = (3, 2)


def counted(*records: tuple[int, bytes, int]) -> Count:
    ledger = Ledger(BATCHES)
    for partition, key, row in records:
        ledger.add(partition, key, row)
    return ledger.count()


ALL = ((0, b"a", 0), (1, b"b", 1), (0, b"a", 2), (1, b"b", 3), (0, b"a", 4))


def test_every_row_once_and_in_order_is_perfect() -> None:
    count = counted(*ALL)

    assert count == Count(expected=5, records=5, lost=0, doubled=0, foreign=0, out_of_order=0)
    assert count.perfect


def test_rows_of_different_keys_may_come_in_any_order() -> None:
    assert counted(ALL[1], ALL[3], ALL[0], ALL[2], ALL[4]).perfect


def test_a_row_that_never_comes_is_lost() -> None:
    count = counted(*ALL[:4])

    assert count.lost == 1
    assert not count.perfect


def test_a_row_that_comes_twice_is_doubled_although_nothing_is_lost() -> None:
    count = counted(*ALL, ALL[4])

    assert (count.lost, count.doubled, count.out_of_order) == (0, 1, 0)
    assert not count.perfect


def test_a_lost_row_does_not_make_up_for_a_doubled_one() -> None:
    count = counted(*ALL[:4], ALL[3])

    assert (count.records, count.lost, count.doubled) == (5, 1, 1)
    assert not count.perfect


def test_a_batch_written_again_is_doubled_and_goes_back_in_time() -> None:
    count = counted(*ALL[:3], *ALL[:3], *ALL[3:])

    # Of the second time, row 0 comes after row 2 of its key; rows 1 and 2 are merely repeated.
    assert (count.doubled, count.out_of_order) == (3, 1)


def test_a_row_before_an_older_one_of_its_key_is_out_of_order() -> None:
    count = counted(ALL[2], ALL[0], ALL[1], ALL[3], ALL[4])

    assert (count.lost, count.doubled, count.out_of_order) == (0, 0, 1)
    assert not count.perfect


def test_a_key_in_two_partitions_has_no_order() -> None:
    count = counted((0, b"a", 0), (1, b"a", 2))

    assert count.out_of_order == 1


@pytest.mark.parametrize("row", [-1, 5, 10**9])
def test_a_row_that_the_input_does_not_have_is_foreign(row: int) -> None:
    count = counted(*ALL, (0, b"a", row))

    assert (count.foreign, count.doubled, count.lost) == (1, 0, 0)
    assert not count.perfect


def test_rows_are_told_by_batch() -> None:
    ledger = Ledger(BATCHES)
    for partition, key, row in ALL[:4]:
        ledger.add(partition, key, row)

    assert [ledger.batch_of(row) for row in range(-1, 6)] == [None, 0, 0, 0, 1, 1, None]
    assert [ledger.seen_of(batch) for batch in range(2)] == [3, 1]
    assert ledger.seen_whole(0)
    assert not ledger.seen_whole(1)
    assert ledger.whole_batches == 1
