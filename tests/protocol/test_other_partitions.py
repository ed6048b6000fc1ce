"""A decided batch that Spark replays in other partitions: more cores, other settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from eos_sink.decision_log import DecisionRegister
from eos_sink.errors import OperatorNeededError, UnfinishedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import Change, Override
from tests.fakes.process import At, Moment
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.explore import Story
from tests.protocol.repartitioned import BATCHES, OTHERS, Repartitioned, wrong
from tests.protocol.scene import Fault, Gate, Strike
from tests.protocol.world import World, latest, open_ids, options


@pytest.fixture
def world() -> World:
    return World([[[b"a"], [b"b"]], [[b"c"]]])


@pytest.fixture(params=list(OTHERS.values()), ids=list(OTHERS))
def other(request: pytest.FixtureRequest) -> list[list[bytes]]:
    found: list[list[bytes]] = request.param
    return found


def lose_all(world: World, *parts: list[bytes]) -> None:
    decide_and_die(world, *parts)
    world.cluster.coordinator.time_out()


def has_rows(parts: Sequence[Sequence[bytes]]) -> list[int]:
    return [number for number, rows in enumerate(parts) if rows]


# --- nothing of the batch is visible


def test_a_batch_that_is_lost_as_a_whole_is_written_in_the_partitions_of_its_replay(
    world: World, other: list[list[bytes]]
) -> None:
    lose_all(world)
    Driver(world).run(0, *other)
    assert world.visible() == [b"a", b"b"]
    decision = latest(world)
    assert (decision.partitions, sorted(decision.digests)) == (len(other), has_rows(other))
    # It is visible now, so any replay is counted, and the query goes on.
    again = Driver(world)
    assert not any(report.has_written for report in again.run(0, [b"a"], [b"b"]))
    again.run(1, [b"c"])
    world.judge.at_the_end()
    assert world.judge.violations == []
    assert world.visible() == [b"a", b"b", b"c"]


def test_the_driver_writes_small_partitions_of_such_a_replay(
    world: World, other: list[list[bytes]]
) -> None:
    lose_all(world)
    inline = options(**{"eos.inline.bytes": "4096"})
    Driver(World([], options=inline, cluster=world.cluster)).run(0, *other)
    assert world.visible() == [b"a", b"b"]
    assert sorted(latest(world).digests) == has_rows(other)
    assert latest(world).inlined or len(other) == 1


def test_a_replay_that_is_lost_too_may_have_other_partitions_again(world: World) -> None:
    lose_all(world)
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"b"], [], [b"a"])
    time_out = world.cluster.coordinator.time_out
    At(driver.commits.process, "log_producer.commit", Moment.AFTER, time_out)
    with pytest.raises(UnfinishedError) as lost:
        driver.committer.commit(reports)
    assert lost.value.data["partitions"] == [0, 2]
    Driver(world).run(0, [b"a", b"b"])
    assert world.visible() == [b"a", b"b"]


def test_a_replay_with_other_rows_is_not_written_in_any_partitions(world: World) -> None:
    lose_all(world)
    others: list[list[list[bytes]]] = [
        [[b"a"], [b"x"]],
        [[b"a"]],
        [[b"a"], [b"b"], [b"c"]],
        [[], []],
    ]
    for other in others:
        with pytest.raises(OperatorNeededError):
            Driver(world).run(0, *other)
    assert world.visible() == []


def test_a_replay_that_has_failed_is_not_taken_for_a_decision(world: World) -> None:
    """It only notes that its rows are in other partitions, and its abort may come to nothing."""
    driver = Driver(world)
    driver.loses(driver.write(driver.planner.plan(), 0, [b"a"], [b"b"]), 0)
    with pytest.raises(UnfinishedError):
        driver.committer.commit(driver.write(driver.planner.plan(), 0, [b"a", b"b"]))
    assert open_ids(world)
    driver.planner.plan()
    assert not open_ids(world)


def test_an_operators_choices_end_with_the_partitions_that_they_are_about(world: World) -> None:
    """Partition 1 of the replay is not the one that was looked at."""
    lose_all(world)
    operator = Driver(world)
    plan = operator.planner.plan()
    assert plan.decision is not None
    chosen = Override(visible=frozenset({1}), lost=frozenset({0}))
    register = DecisionRegister(operator.commits, world.options.names)
    register.append(plan.token, Change(replace(plan.decision, override=chosen)), Deadline(10))
    # The witness shows more than the operator knew: nothing is visible.
    Driver(world).run(0, [], [b"b", b"a"])
    assert latest(world).override == Override()
    assert world.visible() == [b"a", b"b"]


# --- crashes


def play(*strikes: Strike, inline: str) -> Story:
    """A user who starts the query again, and never has the old partitions."""
    world = World(Repartitioned(BATCHES), options=options(**{"eos.inline.bytes": inline}))
    return Story(world, strikes).play()


def crashes_of_a_rewrite(inline: str, step: int) -> Iterator[Story]:
    """The batch is decided and lost; the run that writes it again dies at one of its gates, and
    what it has left open times out there, or not."""
    lost = play(inline=inline).gates.index(Gate("control.end", Moment.BEFORE))
    start = (Strike(Fault.KILL_RUN, lost), Strike(Fault.TIME_OUT, lost + 1))
    last = len(play(*start, inline=inline).gates)
    for at in range(lost + 2, last, step):
        for expires in (False, True):
            more = [Strike(Fault.KILL_RUN, at)]
            more += [Strike(Fault.TIME_OUT, at + 1)] * expires
            yield play(*start, *more, inline=inline)


@pytest.mark.parametrize(
    ("inline", "step"),
    [
        ("0", 7),
        ("4096", 7),
        pytest.param("0", 1, marks=pytest.mark.long),
        pytest.param("4096", 1, marks=pytest.mark.long),
    ],
)
def test_a_crash_in_a_rewrite_in_other_partitions_loses_and_doubles_nothing(
    inline: str, step: int
) -> None:
    stories = list(crashes_of_a_rewrite(inline, step))
    failures = [found for story in stories if (found := wrong(story))]
    assert failures == []
    judges = [story.world.judge for story in stories]
    decided = {d.partitions for judge in judges for d in judge.decisions() if d.batch.batch == 0}
    assert decided >= {1, 3, 5}
