"""Asks the brokers about a query's source: its consumer group, and the rows of its topics."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from confluent_kafka import Consumer, KafkaError
from kafka.protocol.consumer.group import OffsetFetchRequest

from eos_sink.kafka.admin.groups import ask_coordinators, describe_groups
from eos_sink.kafka.admin_requests import list_offsets
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Permissions, permission_error
from eos_sink.protocol.values import Offsets, Place

# The last version for a single group; it has require_stable (KIP-447).
_FETCH_VERSION = 7


def list_members(wire: Wire, group: str, deadline: Deadline) -> list[str]:
    """See `eos_sink.kafka.interfaces.Kafka.group_members`."""
    found = describe_groups(wire, [group], deadline)[group]
    if isinstance(found, Unseen):
        what = f"The members of group {group} cannot be seen"
        if found.missing:
            # Describe is enough here, and not later.
            raise permission_error(what, Permissions.source(group, ()))
        raise found.error(what)
    return [f"{member.client} at {member.host}" for member in found]


def fetch_offsets(wire: Wire, group: str, deadline: Deadline) -> Offsets:
    """See `eos_sink.kafka.interfaces.Kafka.group_offsets`."""

    def request(_: list[str]) -> Any:
        return OffsetFetchRequest(
            group_id=group, topics=None, require_stable=True, max_version=_FETCH_VERSION
        )

    def read(_: list[str], answer: Any) -> dict[str, Offsets | KafkaError]:
        rows = [(row.name, part) for row in answer.topics for part in row.partitions]
        codes = [answer.error_code, *(part.error_code for _, part in rows)]
        error = next(filter(None, codes), 0)
        if error:
            return {group: KafkaError(error)}
        committed = {
            (name, part.partition_index): int(part.committed_offset)
            for name, part in rows
            if part.committed_offset >= 0
        }
        return {group: committed}

    found = ask_coordinators(wire, [group], request, read, deadline)[group]
    if isinstance(found, KafkaError):
        what = f"The offsets of group {group} cannot be read"
        raise convert_error(found, what, Permissions.source(group, ()))
    return found


def find_bounds(
    wire: Wire, places: Collection[Place], deadline: Deadline
) -> dict[Place, tuple[int, int]]:
    """See `eos_sink.kafka.interfaces.Kafka.log_bounds`."""
    bounds: dict[Place, tuple[int, int]] = {}
    for place, found in list_offsets(wire, places, deadline).items():
        if not isinstance(found, KafkaError):
            bounds[place] = found.start, found.end
        elif found.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            needs = Permissions.source("", [place[0]])
            raise convert_error(found, f"Topic {place[0]} of the source cannot be seen", needs)
    return bounds


def metadata_without_member(group: str) -> bytes:
    """The metadata of a group that offsets are committed to without being a member. No broker is
    asked: only librdkafka knows how it writes this down."""
    consumer = Consumer({"group.id": group, "log_level": 0})
    try:
        metadata: bytes = consumer.consumer_group_metadata()
    finally:
        consumer.close()
    return metadata
