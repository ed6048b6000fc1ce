"""A reader's account finds each flaw, and only flaws."""

from __future__ import annotations

import json

import pytest

from eos_sink.testing.account import Account, Bits, Record, json_field

identify = json_field("row")


def record(row: object, offset: int, partition: int = 0, key: bytes | None = b"k") -> Record:
    return Record(partition, offset, key, json.dumps({"row": row}).encode())


def account(*records: Record) -> Account:
    kept = Account()
    for each in records:
        kept.add(each, identify(each))
    return kept


def test_every_row_once_is_perfect() -> None:
    count = account(*(record(row, row) for row in range(100))).count(expected=100)
    assert count.perfect
    assert (count.records, count.lost, dict(count.examples)) == (100, 0, {})


def test_a_lost_row_is_named() -> None:
    count = account(record(0, 0), record(2, 1)).count(expected=4)
    assert (count.lost, count.examples["lost"]) == (2, ("row 1", "row 3"))
    assert not count.perfect


def test_a_doubled_row_is_not_the_first_of_its_row() -> None:
    kept = account(record(0, 0), record(1, 1))
    again = record(1, 5)
    assert not kept.add(again, identify(again))
    count = kept.count(expected=2)
    assert (count.doubled, count.lost, count.examples["doubled"]) == (1, 0, ("row 1 at 0:5",))


@pytest.mark.parametrize("value", [b"", b"no json", b"[1]", b'{"row": "1"}', b"{}"])
def test_a_record_without_a_row_is_foreign(value: bytes) -> None:
    strange = Record(0, 1, b"k", value)
    kept = account(record(0, 0))
    kept.add(strange, identify(strange))
    assert kept.count(expected=1).foreign == 1


def test_a_row_that_the_input_does_not_have_is_foreign() -> None:
    count = account(record(0, 0), record(7, 1), record(-1, 2)).count(expected=1)
    assert (count.foreign, count.lost) == (2, 0)


def test_a_key_whose_rows_fall_back_is_out_of_order() -> None:
    assert account(record(0, 0), record(2, 1), record(1, 2)).count(expected=3).out_of_order == 1


def test_a_key_that_changes_its_partition_is_out_of_order() -> None:
    assert account(record(0, 0), record(1, 0, partition=1)).count(expected=2).out_of_order == 1


def test_keys_do_not_wait_for_each_other() -> None:
    count = account(record(5, 0), *(record(row, row + 1, key=b"other") for row in range(5)))
    assert count.count(expected=6).perfect


def test_rows_are_whole_up_to_the_first_gap() -> None:
    kept = account(record(0, 0), record(1, 1), record(3, 2))
    assert kept.whole() == 2
    late = record(2, 3)
    kept.add(late, identify(late))
    assert kept.whole() == 4


def test_what_one_reader_was_given_and_another_was_not_is_told_by_offsets() -> None:
    live = account(record(0, 0), record(1, 1), record(1, 4, partition=1))
    fresh = account(record(0, 0), record(1, 9))
    assert (live.beyond(fresh), fresh.beyond(live)) == (2, 1)


def test_bits_are_a_set() -> None:
    bits = Bits()
    numbers = [0, 7, 8, 1000, 65_537]
    assert all(bits.add(number) for number in numbers)
    assert not any(bits.add(number) for number in numbers)
    assert len(bits) == len(numbers)
    assert [number for number in range(70_000) if number in bits] == numbers
    assert list(bits.missing(10)) == [1, 2, 3, 4, 5, 6, 9]
