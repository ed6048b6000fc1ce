"""A missing number is a loss only where nothing harmless explains it."""

from __future__ import annotations

from pathlib import Path

import pytest

from eos_sink_lab.testing.row_check import KeyOrder
from eos_sink_lab.verify.checks import check_lost, check_order
from eos_sink_lab.verify.count_rows import Bounds
from eos_sink_lab.verify.gap_scope import GapScope, find_scope, limit_to_seen
from eos_sink_lab.verify.row_columns import Chunk, Columns
from eos_sink_lab.verify.verify_model import PartitionRead, Status, VerifyOptions
from tests.lab.verify.cases import question


def chunks(rows: dict[int, list[int]], groups: dict[int, int] | None = None) -> list[Chunk]:
    """Numbers by partition; the group of each partition's rows."""
    made = Columns(grouped=groups is not None)
    for partition, numbers in rows.items():
        for offset, number in enumerate(numbers):
            made.add(partition, offset, number, groups[partition] if groups else 0)
    return made.chunks()


def read(cut: int | None = None, waiting: int | None = None) -> list[PartitionRead]:
    """Three partitions; one was not read from its beginning, or its readers are held up."""
    return [
        PartitionRead(
            p, 0, read_from=5 if p == cut else 0, read_to=9, end=9 + (p == waiting), rows=4
        )
        for p in range(3)
    ]


ROWS = chunks({0: [0, 2, 4, 6, 8, 10, 12, 14], 1: [5, 7, 9, 11, 13, 15]})
NUMBERED = question(numbered=True)


def test_a_whole_topic_is_checked_from_the_lowest_to_the_highest_number() -> None:
    assert find_scope(NUMBERED, read(), ROWS).bounds == Bounds()


def test_without_the_beginning_numbers_are_checked_from_the_first_ones_on() -> None:
    # 1 and 3 may have been in the deleted part of partition 1, and numbers a little above its 5.
    assert find_scope(NUMBERED, read(cut=1), ROWS).bounds == Bounds(low=11)
    found = find_scope(NUMBERED, read(cut=2), ROWS)
    assert found.bounds is None
    assert found.why


def test_numbers_outside_of_the_range_make_the_check_one_that_was_not_made() -> None:
    # 400 numbers are missing in partition 0; partition 1 is cut to its newest row.
    rows = chunks({0: [*range(300), *range(700, 1_000)], 1: [1_000]})
    place = find_scope(NUMBERED, read(cut=1), rows)
    assert place.bounds == Bounds(low=1_000)
    check = check_lost(NUMBERED, place, 0, [], read(cut=1))
    assert (check.status, check.failed) == (Status.UNCHECKED, True)
    part = question(numbered=True, partial=True)
    assert not check_lost(part, place, 0, [], read(cut=1)).failed
    found = check_lost(part, place, 1, ["1001"], read(cut=1))
    assert (found.status, found.failed) == (Status.WRONG, True)


@pytest.mark.parametrize("group", [None, "key"])
def test_without_any_row_nothing_is_checked(group: str | None) -> None:
    asked = question(numbered=True, group=group)
    check = check_lost(asked, find_scope(asked, read(), []), 0, [], read())
    assert (check.status, check.failed) == (Status.UNCHECKED, True)
    assert check_order(question(order="value"), KeyOrder(), 0).failed
    assert not check_order(question(), KeyOrder(), 0).failed


def test_numbers_are_checked_up_to_where_readers_are_held_up() -> None:
    assert find_scope(NUMBERED, read(waiting=0), ROWS).bounds == Bounds(high=10)
    assert find_scope(NUMBERED, read(waiting=2), ROWS).bounds is None


def test_an_old_row_at_the_end_does_not_limit_the_range() -> None:
    rows = chunks({0: [*range(100), 3]})
    found = find_scope(NUMBERED, read(waiting=0), rows)
    assert found.bounds is not None
    assert found.bounds.high > 40


@pytest.mark.parametrize(
    ("asked", "interrupted"),
    [
        (question(), False),
        (NUMBERED, True),
        (question(numbered=True, expected=9), True),
        (question(numbered=True, partitions=frozenset({0, 1})), False),
        (question(numbered=True, expected=9, last=100), False),
        (question(expected_from=Path("keys"), since_ms=1), False),
    ],
)
def test_what_was_not_read_is_not_checked(asked: VerifyOptions, interrupted: bool) -> None:
    place = find_scope(asked, read(), ROWS, interrupted=interrupted)
    assert place.bounds is None
    check = check_lost(asked, place, 5, [], read())
    assert (check.status, check.found, check.told) == (Status.UNCHECKED, 0, place.why)
    sourced = asked.expected is not None or asked.expected_from is not None
    assert check.failed is (asked.numbered or sourced)


def test_groups_in_one_partition_each_are_checked_even_without_the_beginning() -> None:
    grouped, cut = question(numbered=True, group="key"), read(cut=0)
    apart = chunks({0: [3, 5], 1: [3]}, {0: 7, 1: 8})
    spread = chunks({0: [3, 5], 1: [3]}, {0: 7, 1: 7})
    assert find_scope(grouped, cut, apart).bounds == Bounds()
    assert find_scope(grouped, cut, spread).bounds is None
    assert find_scope(grouped, read(), spread).bounds == Bounds()


def test_later_rows_add_no_gap() -> None:
    place = limit_to_seen(GapScope(Bounds()), ROWS)
    assert place.bounds == Bounds(high=15)
    assert limit_to_seen(GapScope(None, "why"), ROWS) == GapScope(None, "why")


@pytest.mark.parametrize(
    ("compacted", "status"), [(False, Status.WRONG), (None, Status.WRONG), (True, Status.UNPROVEN)]
)
def test_compaction_explains_a_gap(compacted: bool | None, status: Status) -> None:
    asked = question(numbered=True, compacted=compacted)
    check = check_lost(asked, GapScope(Bounds()), 2, ["3", "4"], read())
    assert (check.status, check.found) == (status, 2)
    assert ("compacted" in check.told) is (compacted is not False)
