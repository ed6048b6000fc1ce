"""The requests to the loops, their answers, and the figures made of them."""

from __future__ import annotations

import pytest

from bench.eos.feed import BYTES, age_ms, born, thinned
from bench.eos.turns import Played, Turn
from bench.result import spread


@pytest.mark.parametrize("partitions", [0, 1, 200])
@pytest.mark.parametrize("declared", [False, True])
def test_a_turn_survives_its_line(partitions: int, declared: bool) -> None:
    turn = Turn("a:1,b:2", "in", "out", "loop-1", partitions, 0.5, 1.0, declared)
    assert Turn.parse(turn.line()) == turn
    assert len(turn.line().splitlines()) == 1


def test_what_was_played_survives_its_line() -> None:
    played = Played(12, 1.25, 2, {"Produce": 7})
    assert Played.parse(f"{played.line()}\n") == played


def test_no_transaction_is_an_answer_too() -> None:
    played = Played(0, 2.0, 0, {})
    assert Played.parse(played.line()) == played


def test_a_record_knows_its_age_after_its_end_was_changed() -> None:
    value = born(5_000_000_000)
    assert len(value) == BYTES
    assert age_ms(value[:-1] + b"p", 5_012_500_000) == 12.5


def test_few_samples_are_kept_and_many_are_thinned_to_the_same_spread() -> None:
    assert thinned([3, 1, 2]) == [1, 2, 3]
    many = [float(each * 7919 % 10_007) for each in range(10_007)]
    few = thinned(many, 201)
    assert len(few) == 201
    assert (few[0], few[-1]) == (min(many), max(many))
    assert spread(few).median == pytest.approx(spread(many).median, abs=51)
    assert spread(few).p95 == pytest.approx(spread(many).p95, abs=51)
