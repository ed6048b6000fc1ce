"""One deadline spans a step, on a clock that the test owns."""

from __future__ import annotations

from eos_sink.kafka.deadline import Deadline
from tests.fakes.clock import FakeClock


def test_a_deadline_counts_down_and_never_below_zero() -> None:
    clock = FakeClock()
    deadline = Deadline(10, clock)
    assert (deadline.seconds, deadline.left, deadline.passed) == (10, 10, False)
    clock.advance(4)
    assert (deadline.left, deadline.passed) == (6, False)
    clock.advance(6)
    assert (deadline.left, deadline.passed) == (0, True)
    clock.advance(1)
    assert (deadline.seconds, deadline.left, deadline.passed) == (10, 0, True)


def test_a_deadline_of_no_time_has_passed_at_once() -> None:
    assert Deadline(0, FakeClock()).passed
