"""A decided batch whose rows would go elsewhere now: the query has other options, or the topic was
deleted and made again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.errors import (
    CommitFailedError,
    ConfigurationError,
    OperatorNeededError,
    UnfinishedError,
)
from eos_sink.protocol.model import BatchId, Plan, Route, TaskReport
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Moment
from tests.protocol.driver import STREAM, Driver, decide_and_die, lose_last
from tests.protocol.world import TOPIC, World, late_attempt, latest, open_ids

OTHER = "other"


@pytest.fixture
def world() -> World:
    world = World([[[b"a"], [b"b"]], [[b"c"]]])
    world.cluster.create_topic(OTHER, 2)
    return world


def in_other_topic(world: World) -> list[bytes]:
    return sorted(entry.value or b"" for entry in world.cluster.read_committed(OTHER))


def change(world: World, **options: Any) -> None:
    world.options = replace(world.options, **options)


# --- other options


@pytest.mark.parametrize("option", ["topic", "dead_letter_topic"])
def test_what_is_lost_of_a_batch_does_not_go_by_other_options_than_the_rest(
    world: World, option: str
) -> None:
    lose_last(world)
    former = world.options
    change(world, **{option: OTHER})
    with pytest.raises(ConfigurationError) as stop:
        Driver(world).run(0, [b"a"], [b"b"])
    assert f"topic={TOPIC}" in stop.value.remedy
    assert (world.visible(), in_other_topic(world)) == ([b"a"], [])
    world.options = former
    Driver(world).run(0, [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_other_options_leave_a_batch_that_is_completed_by_row_as_it_is(world: World) -> None:
    lose_last(world)
    with pytest.raises(UnfinishedError):
        Driver(world).run(0, [b"b", b"a"])
    former = world.options
    change(world, topic=None)
    with pytest.raises(ConfigurationError, match="Start the query once with"):
        Driver(world).run(0, [b"b", b"a"])
    world.options = former
    Driver(world).run(0, [b"b", b"a"])
    assert world.visible() == [b"a", b"b"]


def test_a_batch_of_which_nothing_is_visible_goes_by_the_new_options(world: World) -> None:
    decide_and_die(world)
    world.cluster.coordinator.time_out()
    change(world, topic=OTHER)
    Driver(world).run(0, [b"a"], [b"b"])
    assert (world.visible(), in_other_topic(world)) == ([], [b"a", b"b"])
    assert latest(world).route == Route(OTHER)


# --- another topic of that name


def make_again(world: World) -> None:
    del world.cluster.topics[TOPIC]
    world.cluster.create_topic(TOPIC, 2)


def write_foreign_rows(world: World) -> None:
    """Another program's, as many as a batch of the query may have."""
    stranger = World([], cluster=world.cluster)
    names = replace(world.options.names, query="stranger-0123456789")
    stranger.options = replace(world.options, names=names)
    for batch in range(9):
        Driver(stranger, "stream-2").run(batch, [b"x"], [b"x"])


def test_a_foreign_record_in_a_topic_that_was_made_again_proves_no_commit(world: World) -> None:
    decide_and_die(world)
    for partition in (0, 1):
        late_attempt(world, 0, partition)
    make_again(world)
    write_foreign_rows(world)
    with pytest.raises(OperatorNeededError, match="deleted and created again") as stop:
        Driver(world).run(0, [b"a"], [b"b"])
    assert "--lost" in stop.value.remedy
    assert "--visible" not in stop.value.remedy


@pytest.mark.parametrize(
    ("inline", "moment"),
    [
        (0, "planned"),
        (0, "written"),
        (0, "deciding"),
        (65536, "planned"),
        (65536, "deciding"),
    ],
)
def test_a_batch_whose_topic_is_made_again_before_it_is_decided_is_written_again(
    world: World, inline: int, moment: str
) -> None:
    change(world, inline_bytes=inline)
    driver = Driver(world)
    driver.run(0, [b"a"], [b"b"])
    plan = driver.planner.plan()
    if moment == "planned":
        make_again(world)
    reports = driver.write(plan, 1, [b"c"], [b"d"])
    if moment == "written":
        make_again(world)
    elif moment == "deciding":
        process = driver.commits.process
        At(process, "log_producer.flush", Moment.AFTER, partial(make_again, world))
    with pytest.raises(CommitFailedError, match=f"'{TOPIC}'.* deleted"):
        driver.committer.commit(reports)
    driver.committer.abort(reports)
    assert open_ids(world) == []
    driver.run(1, [b"c"], [b"d"])
    assert world.visible() == [b"c", b"d"]


def test_a_topic_that_is_made_again_right_after_the_decision_has_the_batch(world: World) -> None:
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    process = driver.commits.process
    At(process, "log_producer.commit", Moment.AFTER, partial(make_again, world))
    with pytest.raises(UnfinishedError, match="deleted"):
        driver.committer.commit(reports)
    driver.committer.abort(reports)
    assert open_ids(world) == []
    Driver(world).run(0, [b"a"], [b"b"])
    assert world.visible() == [b"a", b"b"]
    assert world.judge.violations == []


def test_a_topic_of_the_column_that_is_made_again_while_tasks_write_is_noticed(
    world: World,
) -> None:
    """No plan knows it: each task asks before it writes there."""
    change(world, topic=None)
    driver, row = Driver(world), {"topic": [TOPIC], "value": [b"a"]}

    def write(plan: Plan, partition: int) -> TaskReport:
        writer = TaskWriter(FakeKafka(world.cluster), driver.options, plan)
        return writer.write(BatchId(STREAM, 0), partition, [pa.RecordBatch.from_pydict(row)])

    plan = driver.planner.plan()
    assert plan.topics == {}
    first = write(plan, 0)
    make_again(world)
    with pytest.raises(CommitFailedError, match="deleted"):
        driver.committer.commit([first, write(plan, 1)])
    driver.committer.commit([write(driver.planner.plan(), 0)])
    assert world.visible() == [b"a"]
    assert driver.planner.plan().topics.keys() == {TOPIC}


def test_an_open_batch_is_written_to_the_topic_that_was_made_again(world: World) -> None:
    """To commit its transactions would make nothing visible."""
    decide_and_die(world)
    make_again(world)
    driver = Driver(world)
    plan = driver.planner.plan()
    assert open_ids(world) == []
    driver.committer.commit(driver.write(plan, 0, [b"a"], [b"b"]))
    assert world.visible() == [b"a", b"b"]
    assert world.judge.violations == []


def test_a_batch_that_was_committed_before_its_topic_was_deleted_is_not_written_again(
    world: World,
) -> None:
    """What was visible has gone with the topic."""
    Driver(world).run(0, [b"a"], [b"b"])
    make_again(world)
    Driver(world).run(0, [b"a"], [b"b"])
    Driver(world).run(1, [b"c"])
    assert world.visible() == [b"c"]
