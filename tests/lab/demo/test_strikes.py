"""The plan of strikes: repeatable, spread over the run, and each with room to show its effect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink_lab.demo.strikes import Kind, plan_strikes


def test_the_same_seed_gives_the_same_plan() -> None:
    assert plan_strikes(24, 3, 1, 7) == plan_strikes(24, 3, 1, 7)


def test_another_seed_gives_another_plan() -> None:
    assert plan_strikes(24, 3, 1, 7) != plan_strikes(24, 3, 1, 8)


def test_by_default_two_kills_while_writing_one_in_mid_commit_and_a_zombie() -> None:
    kinds = [strike.kind for strike in plan_strikes(24, 3, 1, 2013)]

    assert kinds == [
        Kind.WHILE_WRITING,
        Kind.WHILE_COMMITTING,
        Kind.WHILE_WRITING,
        Kind.ZOMBIE,
    ]


def test_a_single_kill_is_the_one_in_mid_commit() -> None:
    assert [strike.kind for strike in plan_strikes(6, 1, 0, 1)] == [Kind.WHILE_COMMITTING]


def test_no_strikes_are_a_plan_too() -> None:
    assert plan_strikes(1, 0, 0, 1) == ()


def test_more_strikes_than_batches_are_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="8 batches"):
        plan_strikes(6, 6, 1, 1)


@given(
    batches=st.integers(2, 60),
    kills=st.integers(0, 8),
    zombies=st.integers(0, 3),
    seed=st.integers(),
)
def test_strikes_have_batches_of_their_own_and_the_last_batch_has_none(
    batches: int, kills: int, zombies: int, seed: int
) -> None:
    if kills + zombies >= batches:
        return
    strikes = plan_strikes(batches, kills, zombies, seed)

    struck = [strike.batch for strike in strikes]
    assert len(struck) == kills + zombies
    assert struck == sorted(set(struck))
    assert all(0 <= batch < batches - 1 for batch in struck)
    for strike in strikes:
        # Some rows written, some not: that is what an at-least-once sink doubles.
        assert strike.kind is Kind.WHILE_COMMITTING or 0 < strike.part < 1
