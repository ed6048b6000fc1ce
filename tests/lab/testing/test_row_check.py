"""The row check finds each flaw, and only flaws."""

from __future__ import annotations

import json

import pytest

from eos_sink_lab.testing.row_check import Bits, Count, KeyOrder, RowCheck, json_field
from tests.lab.testing.fake_row import FakeRow

identify = json_field("row")


def record(row: object, offset: int, partition: int = 0, key: bytes | None = b"k") -> FakeRow:
    return FakeRow(key, json.dumps({"row": row}).encode(), place=(partition, offset))


def check(*records: FakeRow) -> RowCheck:
    checked = RowCheck()
    for each in records:
        checked.add(each, identify(each))
    return checked


def count(expected: int, *rows: tuple[int, bytes, int]) -> Count:
    """Of rows given as partition, key and row."""
    records = [record(row, n, partition, key) for n, (partition, key, row) in enumerate(rows)]
    return check(*records).count(expected)


def test_every_row_once_is_perfect() -> None:
    found = check(*(record(row, row) for row in range(100))).count(expected=100)
    assert found.perfect
    assert (found.records, found.lost, dict(found.examples)) == (100, 0, {})


def test_a_lost_row_is_named() -> None:
    found = check(record(0, 0), record(2, 1)).count(expected=4)
    assert (found.lost, found.examples["lost"]) == (2, ("row 1", "row 3"))
    assert not found.perfect


def test_a_doubled_row_is_not_the_first_of_its_row() -> None:
    checked = check(record(0, 0), record(1, 1))
    again = record(1, 5)
    assert not checked.add(again, identify(again))
    found = checked.count(expected=2)
    assert (found.doubled, found.lost, found.examples["doubled"]) == (1, 0, ("row 1 at 0:5",))


@pytest.mark.parametrize("value", [b"", b"no json", b"[1]", b'{"row": "1"}', b"{}"])
def test_a_record_without_a_row_is_foreign(value: bytes) -> None:
    strange = FakeRow(b"k", value, place=(0, 1))
    checked = check(record(0, 0))
    checked.add(strange, identify(strange))
    assert checked.count(expected=1).foreign == 1


def test_a_row_that_the_input_does_not_have_is_foreign() -> None:
    found = check(record(0, 0), record(7, 1), record(-1, 2)).count(expected=1)
    assert (found.foreign, found.lost) == (2, 0)


def test_a_key_whose_rows_fall_back_is_out_of_order() -> None:
    assert check(record(0, 0), record(2, 1), record(1, 2)).count(expected=3).out_of_order == 1


def test_a_key_that_changes_its_partition_is_out_of_order() -> None:
    assert check(record(0, 0), record(1, 0, partition=1)).count(expected=2).out_of_order == 1


def test_keys_do_not_wait_for_each_other() -> None:
    found = check(record(5, 0), *(record(row, row + 1, key=b"other") for row in range(5)))
    assert found.count(expected=6).perfect


def test_rows_are_whole_up_to_the_first_gap() -> None:
    checked = check(record(0, 0), record(1, 1), record(3, 2))
    assert checked.whole() == 2
    late = record(2, 3)
    checked.add(late, identify(late))
    assert checked.whole() == 4


def test_records_that_only_one_reader_got_are_found_by_offsets() -> None:
    live = check(record(0, 0), record(1, 1), record(1, 4, partition=1))
    fresh = check(record(0, 0), record(1, 9))
    assert (live.beyond(fresh), fresh.beyond(live)) == (2, 1)


def test_bits_are_a_set() -> None:
    bits = Bits()
    numbers = [0, 7, 8, 1000, 65_537]
    assert all(bits.add(number) for number in numbers)
    assert not any(bits.add(number) for number in numbers)
    assert len(bits) == len(numbers)
    assert [number for number in range(70_000) if number in bits] == numbers
    assert list(bits.missing(10)) == [1, 2, 3, 4, 5, 6, 9]


@pytest.mark.parametrize("first", range(0, 20, 3))
def test_bits_are_counted_within_bounds(first: int) -> None:
    bits = Bits()
    numbers = {0, 3, 7, 8, 15, 16, 17, 30}
    for number in numbers:
        bits.add(number)
    for beyond in range(first, 40):
        assert bits.count(first, beyond) == len(numbers & set(range(first, beyond)))


ALL = ((0, b"a", 0), (1, b"b", 1), (0, b"a", 2), (1, b"b", 3), (0, b"a", 4))


def test_rows_of_different_keys_may_come_in_any_order() -> None:
    assert count(5, ALL[1], ALL[3], ALL[0], ALL[2], ALL[4]).perfect


def test_a_lost_row_does_not_make_up_for_a_doubled_one() -> None:
    found = count(5, *ALL[:4], ALL[3])
    assert (found.records, found.lost, found.doubled) == (5, 1, 1)


def test_a_batch_written_again_is_doubled_and_out_of_order() -> None:
    found = count(5, *ALL[:3], *ALL[:3], *ALL[3:])
    # Of the second time, row 0 comes after row 2 of its key; rows 1 and 2 are merely repeated.
    assert (found.doubled, found.out_of_order) == (3, 1)


def test_a_row_behind_a_later_one_of_its_key_is_out_of_order() -> None:
    order = KeyOrder()
    for offset, (key, place) in enumerate([(b"a", 1), (b"b", 5), (b"a", 3), (b"a", 2), (b"b", 5)]):
        order.add(0, offset, key, place)
    assert (order.wrong, order.examples) == (1, [(0, 3, b"a", 2, 3)])
    assert order.find_split_keys() == set()


def test_order_holds_within_a_partition_and_keys_in_several_are_counted() -> None:
    order = KeyOrder()
    order.add(0, 0, b"a", 9)
    order.add(1, 0, b"a", 1)
    assert (order.wrong, order.find_split_keys()) == (0, {b"a"})


def test_what_cannot_be_compared_is_counted_and_not_judged() -> None:
    order = KeyOrder()
    for place in (1, "x", None, 2):
        order.add(0, 0, b"a", place)
    assert (order.wrong, order.silent) == (0, 2)


def test_no_more_keys_are_remembered_than_there_is_room_for() -> None:
    order = KeyOrder(most_keys=2)
    for key in (b"a", b"b", b"c", b"c", b"a"):
        order.add(0, 0, key, 1)
    assert order.unfollowed == 2
