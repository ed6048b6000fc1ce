"""A batch of which a part is lost, completed by a replay in other partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from eos_sink.driver import completion
from eos_sink.errors import Action, ClusterError, OperatorNeededError, UnfinishedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import PartitionTail
from eos_sink.protocol.model import DeadLetters, Route, TaskReport
from tests.fakes.kafka import FakeReadBack
from tests.fakes.process import Moment
from tests.protocol.driver import Driver, decide_and_die, lose_last
from tests.protocol.explore import Story
from tests.protocol.repartitioned import BATCHES, OTHERS, Repartitioned, wrong
from tests.protocol.scene import Fault, Gate, Strike
from tests.protocol.world import TOPIC, World, late_attempt, latest, options


@pytest.fixture
def world() -> World:
    return World([[[b"a"], [b"b"]], [[b"c"]]])


def replay(world: World, *parts: list[bytes], batch: int = 0) -> list[TaskReport]:
    """A replay in other partitions stops, and writes nothing; the next one completes the batch."""
    Driver(world).planner.plan()
    visible = world.visible()
    with pytest.raises(UnfinishedError) as stop:
        Driver(world).run(batch, *parts)
    assert stop.value.action is Action.RUN_AGAIN
    assert world.visible() == visible
    assert latest(world).by_row
    return Driver(world).run(batch, *parts)


@pytest.mark.parametrize("name", ["more", "fewer", "moved"])
def test_a_replay_in_other_partitions_writes_what_is_not_visible(world: World, name: str) -> None:
    lose_last(world)
    reports = replay(world, *OTHERS[name])
    assert world.visible() == [b"a", b"b"]
    decision = latest(world)
    assert decision.completed
    assert decision.partitions == 2 + len(OTHERS[name])
    assert [report.partition for report in reports] == list(range(2, decision.partitions))
    # Whatever the partitions of a later replay, all is visible.
    assert not any(report.has_written for report in Driver(world).run(0, [b"b", b"a"]))
    Driver(world).run(1, [b"c"])
    world.judge.at_the_end()
    assert world.judge.violations == []
    assert world.visible() == [b"a", b"b", b"c"]


def test_rows_that_are_there_several_times_are_completed_if_they_stayed_together(
    world: World,
) -> None:
    lose_last(world, [b"a", b"a"], [b"c"], [b"b", b"b"])
    replay(world, [b"b", b"a", b"c"], [], [b"a", b"b"])
    assert world.visible() == [b"a", b"a", b"b", b"b", b"c"]


def test_a_lost_row_with_the_content_of_a_visible_one_leaves_the_old_partitions(
    world: World,
) -> None:
    lose_last(world, [b"a"], [b"a", b"b"])
    with pytest.raises(OperatorNeededError, match="content") as stop:
        replay(world, [b"a", b"b"], [b"a"])
    assert "spark.sql.shuffle.partitions" in stop.value.remedy
    assert world.visible() == [b"a"]
    assert not latest(world).by_row
    with pytest.raises(OperatorNeededError, match="content"):
        Driver(world).run(0, [b"a", b"b"], [b"a"])
    Driver(world).run(0, [b"a"], [b"a", b"b"])
    assert world.visible() == [b"a", b"a", b"b"]


def test_a_replay_with_other_rows_is_not_written(world: World) -> None:
    lose_last(world)
    with pytest.raises(UnfinishedError):
        Driver(world).run(0, [b"a", b"b"])
    for other in ([b"a", b"x"], [b"a"], [b"a", b"b", b"c"], [b"b"]):
        with pytest.raises(OperatorNeededError) as stop:
            Driver(world).run(0, other)
        assert stop.value.data == {"batch": 0, "partitions": [0, 1, 2], "rows": 2}
    assert world.visible() == [b"a"]
    Driver(world).run(0, [b"b", b"a"])
    assert world.visible() == [b"a", b"b"]


def test_a_completion_that_is_lost_in_part_too_is_completed_at_once(
    world: World,
) -> None:
    lose_last(world, [b"a"], [b"b", b"c", b"d"])
    with pytest.raises(UnfinishedError):
        Driver(world).run(0, [b"a", b"b", b"c", b"d"])
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"d", b"a"], [b"c"], [b"b"])
    driver.loses(reports, 3)
    assert world.visible() == [b"a", b"b", b"d"]
    Driver(world).run(0, [b"a", b"b"], [b"c", b"d"])
    assert world.visible() == [b"a", b"b", b"c", b"d"]
    assert latest(world).partitions == 2 + 3 + 2


# --- rows that the driver has written


def by_driver(world: World, batch: int, *parts: list[bytes]) -> None:
    """A batch whose partitions of one row the driver writes; other times than the next one's."""
    Driver(world).run(batch, *parts)
    world.cluster.clock.advance(1)


def lose_beside_inlined(world: World) -> None:
    """Partition 1 has been written by the driver, of the others by tasks the last one is lost."""
    decide_and_die(world, [b"a", b"b"], [b"c"], [b"d", b"e"], [b"f"])
    late_attempt(world, latest(world).slot, 2)
    assert Driver(world).planner.plan().lost == {2}
    assert [each.partition for each in latest(world).inlined] == [1, 3]


@pytest.fixture
def small() -> World:
    return World([], partitions=3, options=options(**{"eos.inline.bytes": "4096"}))


def test_rows_that_the_driver_has_written_are_read_back(small: World) -> None:
    lose_beside_inlined(small)
    replay(small, [b"e", b"c", b"a"], [b"f", b"d", b"b"])
    assert small.visible() == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert latest(small).completed


def test_rows_of_the_drivers_other_transactions_are_no_rows_of_the_batch(small: World) -> None:
    """Earlier batches, under earlier epochs, and an attempt that was aborted later."""
    for batch in range(3):
        by_driver(small, batch, [b"%d" % batch], [b"x%d" % batch])
    decide_and_die(small, [b"a", b"b"], [b"c"], [b"d", b"0"], [b"f"], batch=3)
    late_attempt(small, latest(small).slot, 2)
    small.cluster.clock.advance(1)
    producer = Driver(small).commits.log_producer(small.options.names.driver, 30_000)
    producer.init(Deadline(10))
    producer.begin()
    producer.produce(TOPIC, b"d")
    producer.flush(Deadline(10))
    producer.abort(Deadline(10))
    replay(small, [b"0", b"c", b"a"], [b"f", b"d", b"b"], batch=3)
    earlier = [b"0", b"1", b"2", b"x0", b"x1", b"x2"]
    assert small.visible() == sorted([*earlier, b"a", b"b", b"c", b"d", b"0", b"f"])


def test_rows_of_the_driver_that_were_deleted_are_not_written_again(small: World) -> None:
    by_driver(small, 0, [b"0"], [b"1"])
    decide_and_die(small, [b"a", b"b"], [b"c"], [b"d", b"e"], [b"f"], batch=1)
    late_attempt(small, latest(small).slot, 2)
    assert Driver(small).planner.plan().lost == {2}
    for partition in small.cluster.topics[TOPIC].partitions:
        for entry in partition.all_from(0):
            if entry.value == b"c":
                partition.delete_before(entry.offset + 1)
    visible = small.visible()
    with pytest.raises(OperatorNeededError, match="retention") as stop:
        replay(small, [b"e", b"c", b"a"], [b"f", b"d", b"b"], batch=1)
    assert stop.value.data["partitions"] == [2]
    assert small.visible() == visible
    assert not latest(small).by_row


# --- what cannot be completed


def test_deleted_rows_cannot_be_told_from_lost_ones(world: World) -> None:
    lose_last(world, [b"a", b"b"], [b"c"])
    for partition in world.cluster.topics[TOPIC].partitions:
        rows = [entry for entry in partition.all_from(0) if entry.value == b"a"]
        for entry in rows:
            partition.delete_before(entry.offset + 1)
    with pytest.raises(OperatorNeededError, match="retention") as stop:
        replay(world, [b"c", b"b", b"a"])
    assert stop.value.data["partitions"] == [1]
    assert world.visible() == [b"b"]
    # The old partitions are a way out.
    Driver(world).run(0, [b"a", b"b"], [b"c"])
    assert world.visible() == [b"b", b"c"]


def test_dead_letters_are_not_recognised(world: World) -> None:
    lose_last(world)
    decision = replace(
        latest(world), dead_letters=(DeadLetters(0, 1),), route=Route(dead_letters="letters")
    )
    with pytest.raises(completion.RefusedCompletion, match="letters"):
        completion.check_completion(decision, {1})
    # The lost partition's dead letters are written again like its other rows.
    completion.check_completion(decision, {0})


def test_the_driver_writes_no_rows_of_a_completion(world: World) -> None:
    """It could not be completed if it was lost in part."""
    lose_last(world)
    inline = options(**{"eos.inline.bytes": "4096"})
    replay(World([], options=inline, cluster=world.cluster), [b"b", b"a"])
    assert world.visible() == [b"a", b"b"]
    assert latest(world).inlined == ()


def test_too_many_visible_rows_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_last(world)
    monkeypatch.setattr(completion, "MOST_ROWS", 0)
    with pytest.raises(OperatorNeededError, match="more than 0"):
        Driver(world).run(0, [b"b", b"a"])


def test_a_topic_that_cannot_be_read_now_is_read_by_the_next_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_last(world)
    with pytest.raises(UnfinishedError):
        Driver(world).run(0, [b"b", b"a"])
    for unread in ([], [PartitionTail(TOPIC, 0, 0, 0, 0, 0, unread="no leader")]):
        with monkeypatch.context() as patched:
            patched.setattr(FakeReadBack, "scan_topic", lambda *_, found=unread: found)
            with pytest.raises(ClusterError) as failed:
                Driver(world).planner.plan()
            assert failed.value.data == {"topic": TOPIC}
    assert latest(world).by_row
    Driver(world).run(0, [b"b", b"a"])
    assert world.visible() == [b"a", b"b"]


def test_the_topic_is_read_further_back_until_all_rows_are_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_last(world, [b"%d" % n for n in range(20)], [b"b"])
    monkeypatch.setattr(completion, "_TAIL", 1)
    replay(world, [b"b"], [b"%d" % n for n in range(20)])
    assert world.visible() == sorted([b"b", *(b"%d" % n for n in range(20))])


# --- crashes


def play(*strikes: Strike) -> Story:
    """A user who never has the old partitions again."""
    return Story(World(Repartitioned(BATCHES)), strikes).play()


def crashes(step: int) -> Iterator[Story]:
    """The batch is decided and one of its transactions is committed, the others expire. Then a run
    dies at any of the gates that follow, and what it has left open times out there, or not."""
    first = play().gates.index(Gate("control.end", Moment.AFTER))
    start = (Strike(Fault.KILL_RUN, first), Strike(Fault.TIME_OUT, first + 1))
    last = len(play(*start).gates)
    for at in range(first + 2, last, step):
        for expires in (False, True):
            more = [Strike(Fault.KILL_RUN, at)]
            more += [Strike(Fault.TIME_OUT, at + 1)] * expires
            yield play(*start, *more)


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.long)])
def test_a_crash_in_a_completion_loses_and_doubles_nothing(step: int) -> None:
    stories = list(crashes(step))
    assert [found for story in stories if (found := wrong(story))] == []
    decided = [d for story in stories for d in story.world.judge.decisions()]
    assert any(each.completed for each in decided)
    assert {each.by_row for each in decided} == {True, False}
