"""What one answer of the reader says about all the witnesses of its partition."""

from __future__ import annotations

from eos_sink.kafka.interfaces import Visibility, Witness
from eos_sink.kafka.visibility import Waiting

HERE, THERE = ("t", 0), ("t", 1)


def at(offset: int, place: tuple[str, int] = HERE) -> Witness:
    return Witness(*place, offset)


def test_a_reader_starts_at_the_first_of_each_partition() -> None:
    waiting = Waiting([at(9), at(3), at(5, THERE), at(3)])
    assert waiting.first == {HERE: at(3), THERE: at(5, THERE)}


def test_a_record_says_that_it_is_there_and_that_those_before_it_are_not() -> None:
    waiting = Waiting([at(3), at(5), at(7), at(4, THERE)])
    assert waiting.passed(HERE, 5, there=True) == {
        at(3): Visibility.ABORTED,
        at(5): Visibility.COMMITTED,
    }
    assert waiting.first == {HERE: at(7), THERE: at(4, THERE)}


def test_a_record_before_the_first_says_nothing() -> None:
    waiting = Waiting([at(3)])
    assert waiting.passed(HERE, 2, there=True) == {}


def test_the_end_says_nothing_of_what_may_still_be_open() -> None:
    waiting = Waiting([at(3), at(5)])
    assert waiting.passed(HERE, 5, there=False) == {at(3): Visibility.ABORTED}
    assert waiting.passed(HERE, 5, there=False) == {}
    assert waiting.first == {HERE: at(5)}


def test_what_is_out_of_reach_says_nothing_of_those_behind_it() -> None:
    waiting = Waiting([at(3), at(5)])
    assert waiting.gone(HERE) == {at(3): Visibility.UNREADABLE}
    assert waiting.first == {HERE: at(5)}
    assert waiting.gone(HERE) == {at(5): Visibility.UNREADABLE}
    assert not waiting.first
