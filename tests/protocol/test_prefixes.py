"""The identity that keys the register is the one that fences: a query's name under its prefix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.errors import OperatorNeededError
from tests.protocol.driver import Driver
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
    assert visible(one) == [b"a"]
