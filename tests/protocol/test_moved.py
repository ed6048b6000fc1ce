"""A checkpoint that was moved during a batch has a new identity, and an operator decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.decision_log import DecisionRegister
from eos_sink.errors import (
    CommitFailedError,
    ConfigurationError,
    OperatorNeededError,
    SupersededError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import Change
from eos_sink.protocol.values import MemberRefused
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Moment
from tests.protocol.driver import FRAMES, Driver, Job, lose_last
from tests.protocol.world import World, open_ids


def moved(world: World) -> World:
    """The same checkpoint at another path, and hence another identity."""
    names = replace(world.options.names, query="moved-0123456789")
    return World([], cluster=world.cluster, options=replace(world.options, names=names))


def test_a_batch_that_was_decided_at_the_old_place_is_not_written_at_the_new_one(
    world: World,
) -> None:
    Driver(world).run(0, [b"a"])
    with pytest.raises(OperatorNeededError) as stop:
        Driver(moved(world)).run(0, [b"a"])
    assert world.visible() == [b"a"]
    assert stop.value.data["query"] == world.options.names.query
    assert stop.value.remedy.startswith("Start the query once as it was then")


def test_an_operator_may_drop_the_old_places_decision(world: World) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    register = DecisionRegister(FakeKafka(world.cluster), world.options.names)
    register.append(driver.planner.plan().token, Change(None), Deadline(1))
    Driver(moved(world)).run(0, [b"a"])
    assert world.visible() == [b"a", b"a"]


def test_a_checkpoint_whose_batches_are_all_noted_as_done_may_be_moved(world: World) -> None:
    Driver(world).run(0, [b"a"])
    new = Driver(moved(world))
    new.run(1, [b"b"])
    new.run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_query_that_changes_back_is_refused_by_its_former_identity(world: World) -> None:
    """Whether it has finished its batch under the new one or not; and goes on there."""
    old, there = Driver(world), moved(world)
    old.run(0, [b"a"])
    Driver(there).dies_after_the_decision(1, [b"b"])
    for back in (old, Driver(world)):
        for batch in (1, 2):
            with pytest.raises(ConfigurationError, match="gone on under another identity"):
                back.run(batch, [b"b"])
    Driver(there).run(1, [b"b"])
    Driver(there).run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]
    assert open_ids(world) == []


def test_a_run_that_is_left_under_the_former_identity_decides_nothing_more(world: World) -> None:
    left = Driver(world)
    left.run(0, [b"a"])
    plan = left.planner.plan()
    reports = left.write(plan, 1, [b"b"])
    Driver(moved(world)).run(1, [b"b"])
    with pytest.raises(SupersededError):
        left.committer.commit(reports)
    assert world.visible() == [b"a", b"b"]
    assert open_ids(world) == []


def test_a_batch_that_the_former_identity_decides_meanwhile_is_noticed(world: World) -> None:
    left = Driver(world)
    left.run(0, [b"a"])
    reports = left.write(left.planner.plan(), 1, [b"b"])
    new = Driver(moved(world))
    plan = new.planner.plan()
    again = new.write(plan, 1, [b"b"])
    At(new.commits.process, "member.join", Moment.BEFORE, lambda: left.committer.commit(reports))
    with pytest.raises(OperatorNeededError, match="under another identity"):
        new.committer.commit(again)
    new.committer.abort(again, plan.token)
    assert world.visible() == [b"a", b"b"]


def test_a_frame_that_an_earlier_run_has_decided_is_not_written_under_another_identity(
    world: World,
) -> None:
    """Its writes were given an eos.id of their own in the middle of a batch."""
    Job(world).run(FRAMES(5), [b"a"], spark_run="one")
    with pytest.raises(OperatorNeededError) as stop:
        Job(moved(world)).run(FRAMES(5), [b"a"], spark_run="two")
    assert stop.value.data["query"] == world.options.names.query
    assert world.visible() == [b"a"]


def test_an_identity_that_was_left_and_is_taken_again_is_asked_for(world: World) -> None:
    """Spark keeps the process that commits over a restart of the query."""
    kept, there = Job(world), Job(moved(world))
    kept.run(FRAMES(5), [b"a"], spark_run="one")
    there.run(FRAMES(6), [b"b"], spark_run="two")
    with pytest.raises(OperatorNeededError, match="under another identity"):
        kept.run(FRAMES(6), [b"b"], spark_run="three")
    assert world.visible() == [b"a", b"b"]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_former_driver_that_joins_at_the_same_time_is_told(world: World, replaced: bool) -> None:
    Driver(world).run(0, [b"a"])
    new = Driver(moved(world))
    reports = new.write(new.planner.plan(), 1, [b"b"])

    def refuse() -> None:
        raise MemberRefused("Membership has ended.", replaced=replaced)

    At(new.commits.process, "member.join", Moment.AFTER, refuse)
    with pytest.raises(SupersededError if replaced else CommitFailedError):
        new.committer.commit(reports)


def to_other_topic(world: World) -> World:
    if "other" not in world.cluster.topics:
        world.cluster.create_topic("other", 1)
    return World([], cluster=world.cluster, options=replace(world.options, topic="other"))


def test_a_copy_that_changes_to_the_topic_of_its_original_leaves_it(world: World) -> None:
    Driver(world).run(0, [b"a"])
    copy = moved(world)
    Driver(to_other_topic(copy)).run(1, [b"b"])
    Driver(copy).run(2, [b"c"])
    with pytest.raises(ConfigurationError, match="gone on under another identity"):
        Driver(world).run(2, [b"c"])
    assert world.visible() == [b"a", b"c"]


def test_what_is_lost_under_the_former_identity_stops_the_new_one(world: World) -> None:
    """Code inside foreachBatch has caught the error, so Spark has noted the batch as done."""
    lose_last(world, [b"a", b"b"], [b"c", b"d"])
    with pytest.raises(OperatorNeededError, match="were aborted after their decision"):
        Driver(moved(world)).run(1, [b"e"])
    assert world.visible() == [b"a", b"b"]


@pytest.mark.parametrize("step", ["send_offset", "commit"])
def test_of_two_identities_that_claim_a_stream_at_once_one_writes_its_first_batch(
    world: World, step: str
) -> None:
    """A run that is left has read the claims already when the other one decides."""
    left = Driver(world)
    plan = left.planner.plan()
    reports = left.write(plan, 0, [b"a"])
    other = Driver(moved(world))
    At(
        left.commits.process,
        f"log_producer.{step}",
        Moment.BEFORE,
        lambda: other.run(0, [b"a"]),
    )
    with pytest.raises(CommitFailedError, match="at the same time"):
        left.committer.commit(reports)
    left.committer.abort(reports, plan.token)
    assert world.visible() == [b"a"]
    assert open_ids(world) == []
