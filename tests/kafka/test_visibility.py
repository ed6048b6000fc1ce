"""What one answer of the reader says about all the witnesses of its partition."""

from __future__ import annotations

from eos_sink.kafka.visibility import PendingWitnesses
from eos_sink.protocol.values import Position, Visibility

HERE, THERE = ("t", 0), ("t", 1)


def at(offset: int, place: tuple[str, int] = HERE) -> Position:
    return Position(*place, offset)


def test_a_reader_starts_at_the_first_of_each_partition() -> None:
    pending = PendingWitnesses([at(9), at(3), at(5, THERE), at(3)])
    assert pending.first == {HERE: at(3), THERE: at(5, THERE)}


def test_a_record_says_that_it_is_there_and_that_those_before_it_are_not() -> None:
    pending = PendingWitnesses([at(3), at(5), at(7), at(4, THERE)])
    assert pending.pass_record(HERE, 5) == {
        at(3): Visibility.ABORTED,
        at(5): Visibility.COMMITTED,
    }
    assert pending.first == {HERE: at(7), THERE: at(4, THERE)}


def test_a_record_before_the_first_says_nothing() -> None:
    pending = PendingWitnesses([at(3)])
    assert pending.pass_record(HERE, 2) == {}


def test_the_end_says_nothing_of_what_may_still_be_open() -> None:
    pending = PendingWitnesses([at(3), at(5)])
    assert pending.pass_end(HERE, 5) == {at(3): Visibility.ABORTED}
    assert pending.pass_end(HERE, 5) == {}
    assert pending.first == {HERE: at(5)}


def test_what_is_out_of_reach_says_nothing_of_those_behind_it() -> None:
    pending = PendingWitnesses([at(3), at(5)])
    assert pending.give_up_first(HERE) == {at(3): Visibility.UNREADABLE}
    assert pending.first == {HERE: at(5)}
    assert pending.give_up_first(HERE) == {at(5): Visibility.UNREADABLE}
    assert not pending.first
