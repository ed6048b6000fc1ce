"""Whatever happens at whichever port call: each row once, or a clear stop, and no stop for nothing.

This plays the checked model's faults on the real code. A gate is the moment before or after a port
call; the first run of the query has about two hundred.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests import seeds
from tests.fakes.process import Moment
from tests.protocol.explore import BATCHES, FAULTS, SAMPLES, STEPS, find_wrong, play, with_excess
from tests.protocol.scene import ZOMBIES, Fault, Gate, Strike

# Each plays a third of the samples.
SEVERAL = pytest.mark.parametrize("number", range(3))


def gates() -> int:
    return len(play(BATCHES).gates)


def test_without_a_fault_every_row_is_visible_once_and_nothing_stops() -> None:
    story = play(BATCHES)
    assert story.verdict == []
    assert story.errors == []
    assert story.world.visible() == [b"a", b"b", b"c", b"d", b"last"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("same_jvm", [False, True], ids=["new JVM", "same JVM"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_single_fault_at_each_gate_loses_and_doubles_nothing(
    fault: Fault, same_jvm: bool, step: int
) -> None:
    gates, playing = play(BATCHES).gates, partial(play, BATCHES, same_jvm=same_jvm)
    assert find_wrong(fault, gates, step, playing, with_excess) == {}


@pytest.mark.sampled(1)
@SEVERAL
@pytest.mark.parametrize("fault", ZOMBIES)
def test_a_zombie_that_wakes_at_any_later_gate_changes_nothing(fault: Fault, number: int) -> None:
    chance, last = seeds.chance(fault, number), gates()
    for _ in range(SAMPLES // 3):
        strike = Strike(fault, chance.randrange(last), chance.randrange(1, last))
        assert play(BATCHES, strike).verdict == [], strike


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "until",
    [
        Gate("control.describe", Moment.AFTER),
        Gate("log_producer.send_offset", Moment.AFTER),
        Gate("log_producer.commit", Moment.AFTER),
    ],
    ids=["voted", "deciding", "decided"],
)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", ZOMBIES)
def test_a_zombie_from_any_gate_that_wakes_around_a_decision_changes_nothing(
    fault: Fault, until: Gate, step: int
) -> None:
    wrong = {}
    for at in seeds.every(step, range(gates()), fault, until):
        story = play(BATCHES, Strike(fault, at, until=until))
        if story.verdict:
            wrong[at, story.gates[at]] = story.verdict
    assert wrong == {}


@pytest.mark.sampled(1)
@SEVERAL
@pytest.mark.parametrize("strikes", [2, 3, 5])
def test_several_faults_at_random_gates_lose_and_double_nothing(strikes: int, number: int) -> None:
    chance, last = seeds.chance(strikes, number), gates() * 3 // 2
    for _ in range(SAMPLES // 3):
        chosen = [
            Strike(chance.choice(FAULTS), chance.randrange(last), chance.randrange(1, last))
            for _ in range(strikes)
        ]
        same_jvm = chance.random() < 0.5
        assert play(BATCHES, *chosen, same_jvm=same_jvm).verdict == [], (chosen, same_jvm)


def test_the_exploration_passes_every_step_of_the_protocol() -> None:
    """A step that the code stops taking, or takes under another name, is noticed here."""
    killed = gates_after_a_kill_between_decision_and_commit()
    assert {
        "kafka.check_topic",
        "kafka.log_reader",
        "log.latest",
        "control.check_timeout",
        "control.list_transactions",
        "control.describe",
        "control.end",
        "member.join",
        "member.state",
        "member.wait_stable",
        "log_producer.init",
        "log_producer.send_offset",
        "log_producer.commit",
        "producer.init",
        "producer.produce",
        "producer.send_offset",
        "producer.flush",
        "producer.identity",
    } <= killed


def gates_after_a_kill_between_decision_and_commit() -> set[str]:
    at = play(BATCHES).gates.index(Gate("control.end", Moment.BEFORE))
    return {name for name, _ in play(BATCHES, Strike(Fault.KILL_RUN, at)).gates}
