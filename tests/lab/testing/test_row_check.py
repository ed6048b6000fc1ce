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


@pytest.mark.parametrize(
    ("rows", "lost", "doubled", "foreign", "disorder"),
    [
        (ALL, 0, 0, 0, 0),
        # Keys do not wait for each other.
        ((ALL[1], ALL[3], ALL[0], ALL[2], ALL[4]), 0, 0, 0, 0),
        ((*ALL[:4], ALL[3]), 1, 1, 0, 0),
        # Of the second time, row 0 comes after row 2 of its key; rows 1 and 2 are merely repeated.
        ((*ALL[:3], *ALL[:3], *ALL[3:]), 0, 3, 0, 1),
        ((*ALL[:2], ALL[4], ALL[2], ALL[3]), 0, 0, 0, 1),
        # The key changes its partition.
        ((*ALL[:4], (1, b"a", 4)), 0, 0, 0, 1),
        ((*ALL, (0, b"a", 7), (0, b"c", -1)), 0, 0, 2, 0),
    ],
)
def test_each_flaw_is_counted(
    rows: tuple[tuple[int, bytes, int], ...], lost: int, doubled: int, foreign: int, disorder: int
) -> None:
    found = count(5, *rows)
    assert (found.lost, found.doubled, found.foreign) == (lost, doubled, foreign)
    assert found.out_of_order == disorder
    assert found.perfect is not any((lost, doubled, foreign, disorder))
    assert found.records == len(rows)


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
