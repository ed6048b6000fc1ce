"""A dead letter must be there once, and not in its topic too."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink_lab.verify.checks import check_dead_letters
from eos_sink_lab.verify.count_rows import Repeats
from eos_sink_lab.verify.dead_letter_rows import Astray, Letters, find_astray
from eos_sink_lab.verify.verify_model import Status
from tests.lab.verify.cases import chunks, question

few = st.lists(st.integers(-3, 12), max_size=12)


@given(few, few, st.none() | few)
def test_what_the_letters_add_beyond_the_expected_number_is_astray(
    rows: list[int], letters: list[int], source: list[int] | None
) -> None:
    due = None if source is None else chunks(source)
    there, dead, wanted = Counter(rows), Counter(letters), Counter(source)
    plain = {
        number: max(0, there[number] + times - max(1, wanted[number]))
        - max(0, there[number] - max(1, wanted[number]))
        for number, times in dead.items()
    }
    found = find_astray(chunks(rows), chunks(letters), due)
    assert found.doubled == sum(plain.values())
    assert {number for number, times in plain.items() if times} <= set(found.suspects.tolist())


def test_a_number_is_astray_within_its_group_only() -> None:
    rows, letters = chunks([1, 2], [7, 7]), chunks([1, 2], [7, 8])
    assert find_astray(rows, letters, None).doubled == 1


def test_a_letter_outside_of_the_numbers_of_the_topic_makes_no_gap() -> None:
    letters = Letters(chunks([5, 500]))
    assert [each.values.tolist() for each in letters.between(chunks([1, 9]))] == [[5]]
    assert letters.rows == 2


ONE = tuple(chunks([1]))


@pytest.mark.parametrize(
    ("letters", "found", "astray", "status"),
    [
        (Letters(ONE), Repeats(), Astray(), Status.GOOD),
        (Letters(ONE), Repeats(doubled=2), Astray(2, ["7: 0@1, 0@2"]), Status.WRONG),
        # They only shared a hash.
        (Letters(ONE), Repeats(doubled=2), Astray(), Status.GOOD),
        # What could not be read again is not good.
        (Letters(ONE), Repeats(doubled=2), None, Status.WRONG),
        (Letters(ONE, behind=3), Repeats(), Astray(), Status.UNCHECKED),
        (Letters(ONE, interrupted=True), Repeats(), None, Status.UNCHECKED),
    ],
)
def test_only_letters_that_were_all_read_are_good(
    letters: Letters, found: Repeats, astray: Astray | None, status: Status
) -> None:
    asked = question(dead_letters=question().source)
    (check,) = check_dead_letters(asked, letters, found, astray, "why")
    assert check.status is status
    assert check.failed is (status is not Status.GOOD)


def test_without_a_dead_letter_topic_there_is_no_such_check() -> None:
    assert not list(check_dead_letters(question(), Letters(), Repeats(), None, ""))
