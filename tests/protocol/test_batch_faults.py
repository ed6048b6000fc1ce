"""The faults of `test_faults`, on batch writes that are numbered: versions, and frames of a query.

Around them is the same Spark: it runs a batch again, under its number, until it is noted as done.
"""

from __future__ import annotations

from functools import partial

import pytest

from eos_sink.protocol.model import Numbering
from tests import seeds
from tests.protocol.checkpoint import Checkpoint
from tests.protocol.explore import BATCHES, FAULTS, SAMPLES, STEPS, Story, find_wrong
from tests.protocol.scene import Fault, Strike
from tests.protocol.world import World, batch_options

NUMBERINGS = pytest.mark.parametrize("numbering", [Numbering.FOREACH, Numbering.VERSION])


def play(numbering: Numbering, *strikes: Strike, same_jvm: bool = False) -> Story:
    checkpoint = Checkpoint(stream=f"{numbering.value}writes")
    world = World(list(BATCHES), checkpoint=checkpoint, options=batch_options())
    return Story(world, strikes, same_jvm).play()


@NUMBERINGS
def test_without_a_fault_every_row_is_visible_once_and_nothing_stops(numbering: Numbering) -> None:
    story = play(numbering)
    assert story.verdict == []
    assert story.errors == []
    assert story.world.visible() == [b"a", b"b", b"c", b"d", b"last"]


@pytest.mark.sampled(len(FAULTS) // 2)
@pytest.mark.parametrize("same_jvm", [False, True], ids=["new JVM", "same JVM"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", FAULTS)
@NUMBERINGS
def test_a_single_fault_at_each_gate_loses_and_doubles_nothing(
    numbering: Numbering, fault: Fault, same_jvm: bool, step: int
) -> None:
    gates, playing = play(numbering).gates, partial(play, numbering, same_jvm=same_jvm)
    assert find_wrong(fault, gates, step, playing) == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strikes", [3, 5])
@NUMBERINGS
def test_several_faults_at_random_gates_lose_and_double_nothing(
    numbering: Numbering, strikes: int
) -> None:
    chance = seeds.chance(numbering.name, strikes)
    last = len(play(numbering).gates) * 3 // 2
    for _ in range(SAMPLES):
        chosen = [
            Strike(chance.choice(FAULTS), chance.randrange(last), chance.randrange(1, last))
            for _ in range(strikes)
        ]
        same_jvm = chance.random() < 0.5
        story = play(numbering, *chosen, same_jvm=same_jvm)
        assert story.verdict == [], (chosen, same_jvm)
