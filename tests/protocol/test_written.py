"""The numbers that a record keeps, against a plain set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eos_sink.protocol.written import WrittenNumbers, draw_number

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


@given(st.integers(-1, 2**62), st.integers(0, 2**42))
def test_a_drawn_number_is_higher_than_all_whatever_the_clock_says(highest: int, now: int) -> None:
    drawn = draw_number(now, highest)
    assert drawn > highest
    assert drawn >> 20 == max(now, (highest >> 20) + 1)


def test_writes_that_begin_at_once_draw_different_numbers() -> None:
    assert len({draw_number(0, 2**62) for _ in range(50)}) > 45
