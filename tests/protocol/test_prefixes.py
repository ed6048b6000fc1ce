"""The identity that keys the register is the one that fences: a query's name under its prefix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.errors import OperatorNeededError
from eos_sink.identity import DEFAULT_PREFIX
from tests.decision_log.test_register import Former
from tests.fakes.process import Killed, Moment
from tests.protocol.test_stories import At, Driver
from tests.protocol.world import TOPIC, World, options

OTHER = "team-"


def under(world: World, prefix: str) -> World:
    """The same eos.id under another prefix, and its own topic."""
    made = options(**{"eos.transactional.id.prefix": prefix, "topic": f"{TOPIC}-{prefix}"})
    world.cluster.create_topic(made.topic or "", 2)
    return World([], cluster=world.cluster, options=made)


def visible(world: World) -> list[bytes]:
    topic = world.options.topic
    assert topic is not None
    return sorted(entry.value or b"" for entry in world.cluster.read_committed(topic))


def test_two_prefixes_of_one_id_never_overwrite_each_others_decisions() -> None:
    """A's committer holds the sequence number that B's decision has taken in a shared register."""
    world = World([])
    one, other = under(world, "a-"), under(world, "b-")
    first, second = Driver(one, "stream-a"), Driver(other, "stream-b")
    first.run(0, [b"a0"])
    reports = first.write(first.planner.plan(), 1, [b"a1"])
    second.run(0, [b"b0"])
    first.committer.commit(reports)
    # B's last commit entry is missing, so that Spark replays the batch.
    Driver(other, "stream-b").run(0, [b"b0"])
    assert visible(one) == [b"a0", b"a1"]
    assert visible(other) == [b"b0"]


def test_a_stream_that_another_prefix_has_decided_is_seen_and_the_command_has_its_prefix() -> None:
    world = World([])
    one = under(world, OTHER)
    other = replace(world, options=replace(one.options, names=world.options.names))
    Driver(one).run(0, [b"a"])
    with pytest.raises(OperatorNeededError) as stop:
        Driver(other).run(0, [b"a"])
    assert stop.value.data["query"] == one.options.names.query
    assert stop.value.data["prefix"] == OTHER
    assert f"resolve {one.options.names.query} " in stop.value.remedy
    assert f"--prefix {OTHER} --forget --stream stream-1" in stop.value.remedy
    assert visible(one) == [b"a"]


def as_before(world: World) -> None:
    """Let the log be as the version before wrote it: under the query's name alone."""
    names = world.options.names
    (log,) = world.cluster.topics[world.options.log_topic].partitions
    key = names.query.encode()
    log._entries[:] = [
        replace(entry, key=key) if entry and entry.key == names.log_key.encode() else entry
        for entry in log._entries
    ]


@pytest.mark.parametrize("prefix", [DEFAULT_PREFIX, OTHER])
def test_a_query_goes_on_from_what_the_version_before_has_decided(prefix: str) -> None:
    world = under(World([]), prefix)
    driver = Driver(world)
    driver.run(0, [b"a"])
    # The version before died between its decision and its commit.
    reports = driver.write(driver.planner.plan(), 1, [b"b"], [b"c"])
    At(driver.commits.process, "log_producer.commit", Moment.AFTER, driver.commits.process.kill)
    with pytest.raises(Killed):
        driver.committer.commit(reports)
    as_before(world)
    after = Driver(world)
    after.run(1, [b"b"], [b"c"])
    after.run(2, [b"d"])
    Driver(world).run(2, [b"d"])
    assert visible(world) == [b"a", b"b", b"c", b"d"]
    assert world.judge.violations == []


def test_a_commit_of_the_version_before_that_wakes_up_after_the_upgrade_decides_nothing() -> None:
    """It opens the log again, and finds a record that it does not read."""
    world = under(World([]), DEFAULT_PREFIX)
    Driver(world).run(0, [b"a"])
    as_before(world)
    zombie = Driver(world)
    zombie.committer._register = Former(zombie.commits, world.options.names)
    zombie.planner._register = Former(zombie.plans, world.options.names)
    reports = zombie.write(zombie.planner.plan(), 1, [b"b"])
    after = Driver(world)
    after.run(1, [b"b"])
    with pytest.raises(OperatorNeededError):
        zombie.committer.commit(reports)
    after.run(2, [b"c"])
    assert visible(world) == [b"a", b"b", b"c"]


def test_the_version_before_does_not_go_on_after_an_upgrade() -> None:
    world = under(World([]), DEFAULT_PREFIX)
    Driver(world).run(0, [b"a"])
    as_before(world)
    Driver(world).run(1, [b"b"])
    downgraded = Driver(world)
    downgraded.planner._register = Former(downgraded.plans, world.options.names)
    with pytest.raises(OperatorNeededError):
        downgraded.planner.plan()
    assert visible(world) == [b"a", b"b"]


def test_a_query_whose_record_is_another_prefixs_stops() -> None:
    """The version before let both write under one key, and the other was the last."""
    one = under(World([]), "a-")
    other = under(one, "b-")
    Driver(one, "stream-a").run(0, [b"a"])
    Driver(other, "stream-b").run(0, [b"b"])
    as_before(one)
    as_before(other)
    with pytest.raises(OperatorNeededError):
        Driver(one, "stream-a").run(0, [b"a"])
    Driver(other, "stream-b").run(0, [b"b"])
    assert (visible(one), visible(other)) == ([b"a"], [b"b"])
