"""What every implementation does for a query that commits the offsets of its source."""

from __future__ import annotations

import uuid

from eos_sink.kafka.interfaces import PartitionOffsets
from eos_sink.protocol.values import Offsets, Place
from tests.contract.harness import TIMEOUT_MS, Harness, Task, values
from tests.contract.members import join, log_position


class SourceContract:
    def test_offsets_of_two_groups_commit_with_the_rows(self, harness: Harness) -> None:
        topic, source = harness.create_topic(), harness.create_topic(partitions=2)
        offsets = {(source, 0): 7, (source, 1): 0}
        group = _send(harness, topic, offsets, commit=True)
        assert harness.kafka().group_offsets(group, harness.deadline()) == offsets
        assert values(harness, topic) == [b"a"]

    def test_an_abort_leaves_the_group_as_it_was(self, harness: Harness) -> None:
        topic, source = harness.create_topic(), harness.create_topic()
        before: Offsets = {(source, 0): 3}
        group = _send(harness, topic, before, commit=True)
        _send(harness, topic, {(source, 0): 9}, commit=False, group=group)
        assert harness.kafka().group_offsets(group, harness.deadline()) == before
        assert values(harness, topic) == [b"a"]

    def test_a_group_that_is_not_used_has_nothing(self, harness: Harness) -> None:
        kafka, group = harness.kafka(), _new_group()
        assert kafka.describe_groups([group], harness.deadline()) == {group: ()}
        assert kafka.group_offsets(group, harness.deadline()) == {}

    def test_the_bounds_are_those_of_the_rows_that_are_left(self, harness: Harness) -> None:
        topic = harness.create_topic(partitions=2)
        task = Task.start(harness)
        task.write(topic, b"a", b"b", b"c")
        task.commit()
        task.state()  # The marker is there.
        harness.delete_records(topic, 0, 2)
        places: list[Place] = [(topic, 0), (topic, 1), (topic, 2), (f"{topic}-missing", 0)]
        found = harness.kafka().list_offsets(places, harness.deadline())
        # The marker of the transaction has an offset, too.
        assert found == {
            (topic, 0): PartitionOffsets(0, 2, 4, 4),
            (topic, 1): PartitionOffsets(1, 0, 0, 0),
        }


def _send(harness: Harness, topic: str, offsets: Offsets, *, commit: bool, group: str = "") -> str:
    """A transaction of the driver, with a row and the offsets of its own group and another one."""
    group = group or _new_group()
    _member, metadata = join(harness)
    producer = harness.kafka().log_producer(harness.names.driver, TIMEOUT_MS)
    producer.init(harness.deadline())
    producer.begin()
    producer.produce(topic, b"a")
    producer.send_offset(log_position(harness), metadata, harness.deadline())
    producer.send_group_offsets(group, offsets, harness.deadline())
    (producer.commit if commit else producer.abort)(harness.deadline())
    producer.close()
    return group


def _new_group() -> str:
    return f"group-{uuid.uuid4().hex}"
