"""Gaps, doubled rows and comparisons, against a plain count of the same numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink_lab.verify import row_columns
from eos_sink_lab.verify.count_rows import (
    Bounds,
    compare_with_source,
    find_gaps,
    find_outside,
    find_repeats,
    has_split_groups,
)
from eos_sink_lab.verify.row_columns import Columns
from tests.lab.verify.cases import chunks

LEAST, GREATEST = -(2**63), 2**63 - 1
small = st.lists(st.integers(-20, 20), max_size=60)
wide = st.lists(st.sampled_from([LEAST, LEAST + 1, -1, 0, 5, GREATEST - 1, GREATEST]), max_size=9)


@pytest.fixture(autouse=True)
def _many_ranges_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_columns, "_RANGE_ROWS", 5)
    monkeypatch.setattr(row_columns, "CHUNK", 7)


def plain_gaps(numbers: list[int], low: int, high: int) -> list[int]:
    inside = range(max(low, min(numbers)), min(high, max(numbers)) + 1) if numbers else ()
    return [number for number in inside if number not in numbers]


@given(small)
def test_doubled_rows_are_those_beyond_the_first(numbers: list[int]) -> None:
    found, plain = find_repeats(chunks(numbers)), Counter(numbers)
    assert found.doubled == len(numbers) - len(plain)
    assert sorted(found.suspects) == sorted(n for n, times in plain.items() if times > 1)


@given(small, st.integers(-25, 25), st.integers(-25, 25))
def test_gaps_are_what_lies_between_seen_numbers(numbers: list[int], low: int, high: int) -> None:
    found, plain = find_gaps(chunks(numbers), Bounds(low, high)), plain_gaps(numbers, low, high)
    assert found.missing == len(plain)
    listed = [n for each in found.some for n in range(each.first, each.last + 1)]
    assert listed == plain[: len(listed)]


@given(small)
def test_of_a_known_number_of_rows_also_the_ends_are_missed(numbers: list[int]) -> None:
    found = find_gaps(chunks(numbers), Bounds(0, 9, whole=True))
    assert found.missing == len(set(range(10)) - set(numbers))
    assert find_outside(chunks(numbers), 9)[0] == sum(not 0 <= n <= 9 for n in numbers)


@given(wide)
def test_the_whole_range_of_64_bits_does_not_overflow(numbers: list[int]) -> None:
    distinct = set(numbers)
    expected = max(distinct) - min(distinct) + 1 - len(distinct) if distinct else 0
    assert find_gaps(chunks(numbers), Bounds()).missing == expected


@given(small, small)
def test_a_source_says_how_often_each_row_is_due(numbers: list[int], due: list[int]) -> None:
    found = compare_with_source(chunks(numbers), chunks(due))
    seen, wanted = Counter(numbers), Counter(due)
    assert found.lost == (wanted - seen).total()
    assert found.foreign == sum(times for n, times in seen.items() if n not in wanted)
    assert found.doubled == sum(max(0, seen[n] - times) for n, times in wanted.items())
    assert set(found.lost_some.tolist()) <= set((wanted - seen).keys())


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5)), min_size=1, max_size=40))
def test_groups_are_numbered_each_on_its_own(rows: list[tuple[int, int]]) -> None:
    made = chunks([n for _, n in rows], [g for g, _ in rows])
    by_group: dict[int, list[int]] = {}
    for group, number in rows:
        by_group.setdefault(group, []).append(number)
    plain = [len(plain_gaps(numbers, LEAST, GREATEST)) for numbers in by_group.values()]
    assert find_gaps(made, Bounds()).missing == sum(plain)
    whole = [len(set(range(4)) - set(numbers)) for numbers in by_group.values()]
    assert find_gaps(made, Bounds(0, 3, whole=True)).missing == sum(whole)
    assert find_repeats(made).doubled == len(rows) - len(set(rows))


def test_a_group_that_is_in_two_partitions_is_noticed() -> None:
    assert has_split_groups(chunks([1, 2], [7, 7]))
    assert not has_split_groups(chunks([1, 2], [7, 8]))


def test_a_chunk_knows_where_it_is_from() -> None:
    made = Columns()
    for offset in (3, 5, 9):
        made.add(4, offset, 100 + offset)
    (chunk,) = made.chunks()
    assert (chunk.partition, chunk.first, chunk.last) == (4, 3, 9)
    assert np.array_equal(chunk.values, [103, 105, 109])
