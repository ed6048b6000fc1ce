"""Figures add up, in whatever portions they come."""

from __future__ import annotations

from hypothesis import given

from eos_sink.metrics.names import Count, Step
from eos_sink.metrics.stats import Stats, StepClock, StepTime
from tests.metrics.random_figures import figures


@given(figures, figures, figures)
def test_figures_add_up_in_any_portions(one: Stats, two: Stats, three: Stats) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + Stats() == one


@given(figures, figures)
def test_a_sum_has_all_counts_and_the_newest_of_the_rest(before: Stats, later: Stats) -> None:
    both = before + later
    for count in Count:
        assert both.count(count) == before.count(count) + later.count(count)
    for step in Step:
        newest = later if step in later.steps else before
        assert both.step(step).last_us == newest.step(step).last_us
        assert both.step(step).count == before.step(step).count + later.step(step).count
    assert both.decided_ms == (later.decided_ms or before.decided_ms)


def test_a_clock_knows_only_steps_that_came_to_their_end() -> None:
    ticks = iter([0.0, 1.0, 3.5, 10.0, 10.25])
    clock = StepClock(lambda: next(ticks))
    clock.begin()
    clock.end(Step.VOTE)
    clock.begin()
    clock.end(Step.DECIDE)
    assert clock.took == {Step.VOTE: 2.5, Step.DECIDE: 0.25}


def test_seconds_that_are_none_do_no_harm() -> None:
    assert StepTime.once(-1.0) == StepTime(0, 1, 0)
    assert StepTime.once(0.0000015).last == 0.000002
