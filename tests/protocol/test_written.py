"""The numbers that a record keeps, against a plain set."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from eos_sink.protocol.written import MOST_RANGES, WrittenNumbers, draw_number

numbers = st.integers(0, 40) | st.integers(0, 2**63 - 1)


def written(added: list[int]) -> WrittenNumbers:
    found = WrittenNumbers()
    for number in added:
        found = found.add(number)
    return found


@given(st.lists(numbers), numbers)
def test_exactly_what_was_added_is_contained_in_any_order(added: list[int], other: int) -> None:
    found = written(added)
    assert all(number in found for number in added)
    assert (other in found) == (other in added)
    assert not found.forgets(other)
    assert found.highest == max(added, default=-1)
    assert found == written(sorted(added))


@given(st.lists(numbers))
def test_ranges_are_apart_and_in_order(added: list[int]) -> None:
    ranges = written(added).ranges
    assert all(low <= high for low, high in ranges)
    assert all(mine[1] + 1 < after[0] for mine, after in pairwise(ranges))


@given(st.integers(0, 3), st.integers(1, 10))
def test_the_lowest_numbers_are_forgotten_and_no_other(start: int, more: int) -> None:
    every = [start + 2 * n for n in range(MOST_RANGES + more)]
    found = written(every)
    assert len(found.ranges) == MOST_RANGES
    gone, kept = every[:more], every[more:]
    assert all(number in found for number in kept)
    assert all(number not in found and found.forgets(number) for number in gone)
    assert not any(found.forgets(number + 1) for number in every[more - 1 :])


def test_consecutive_numbers_are_never_forgotten() -> None:
    found = written(list(range(3 * MOST_RANGES)))
    assert found == WrittenNumbers(((0, 3 * MOST_RANGES - 1),))


@given(st.integers(-1, 2**62), st.integers(0, 2**42))
def test_a_drawn_number_is_higher_than_all_whatever_the_clock_says(highest: int, now: int) -> None:
    drawn = draw_number(now, highest)
    assert drawn > highest
    assert drawn >> 20 == max(now, (highest >> 20) + 1)


def test_writes_that_begin_at_once_draw_different_numbers() -> None:
    assert len({draw_number(0, 2**62) for _ in range(50)}) > 45
