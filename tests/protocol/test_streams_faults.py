"""The faults of `test_faults`, on what only shows over time: several streams under one identity,
pauses after which Kafka has forgotten, and records that the version before has written.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from eos_sink.protocol.model import Numbering
from eos_sink.sink_options import SinkOptions
from tests import seeds
from tests.protocol.checkpoint import Checkpoint
from tests.protocol.explore import FAULTS, SAMPLES, Act, Story, find_wrong
from tests.protocol.scene import Fault, Strike
from tests.protocol.world import Batch, World, batch_options, options

# Two transactions and one of the first stream; one of the second.
BATCHES: list[Batch] = [[[b"a"], [b"b"]], [[b"c"], []], [[b"d"]]]
NAMES: dict[Numbering, SinkOptions] = {
    Numbering.STREAM: options(),
    Numbering.FOREACH: batch_options(),
}


def runs(stream: str, *, first: int, end: int | None) -> Act:
    """A query with the checkpoint of the stream, which has not noted its first batch as done."""

    def act(world: World) -> None:
        kind = "" if world.options.names == options().names else Numbering.FOREACH.value
        ends = {number: {0: number + 1} for number in range(min(first + 1, 3))}
        world.checkpoint = Checkpoint(f"{kind}{stream}", ends=ends, commits=set(range(first)))
        world.end = end

    return act


STREAMS = (
    runs("two", first=2, end=3),
    runs("three", first=3, end=None),
)
"""Two new checkpoints, one after the other."""
WEEKS: tuple[Act, ...] = (
    World.a_week_passes,
    runs("one", first=2, end=3),
    World.a_week_passes,
    runs("one", first=3, end=None),
)
ACTS = {"streams": STREAMS, "weeks": WEEKS}


def play(
    numbering: Numbering, acts: tuple[Act, ...], *strikes: Strike, same_jvm: bool = False
) -> Story:
    world = World(list(BATCHES), options=replace(NAMES[numbering]))
    runs("one", first=0, end=2)(world)
    return Story(world, strikes, same_jvm, acts).play()


@pytest.mark.parametrize("acts", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("numbering", NAMES)
def test_without_a_fault_every_row_is_visible_once_and_nothing_stops(
    numbering: Numbering, acts: tuple[Act, ...]
) -> None:
    story = play(numbering, acts)
    assert story.verdict == []
    assert story.errors == []
    assert story.world.visible() == [b"a", b"b", b"c", b"d", b"last"]


@pytest.mark.long
@pytest.mark.parametrize("acts", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("numbering", NAMES)
def test_a_single_fault_at_each_gate_loses_and_doubles_nothing(
    numbering: Numbering, fault: Fault, acts: tuple[Act, ...]
) -> None:
    gates, playing = play(numbering, acts).gates, partial(play, numbering, acts)
    assert find_wrong(fault, gates, 1, playing) == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("numbering", NAMES)
def test_faults_at_random_gates_lose_and_double_nothing(numbering: Numbering, name: str) -> None:
    chance, acts = seeds.chance(numbering, name), ACTS[name]
    last = len(play(numbering, acts).gates)
    for _ in range(SAMPLES // 5):
        chosen = [
            Strike(chance.choice(FAULTS), chance.randrange(last), chance.randrange(1, last))
            for _ in range(chance.randrange(1, 4))
        ]
        same_jvm = chance.random() < 0.5
        assert play(numbering, acts, *chosen, same_jvm=same_jvm).verdict == [], (chosen, same_jvm)
