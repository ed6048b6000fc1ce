"""Consumer groups: their members, and their offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError
from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.group import OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType

from eos_sink.kafka.admin_requests import ask_until_final, unseen
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error
from eos_sink.kafka.interfaces import MemberDescription, Unseen
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Acl, Permissions, Resource
from eos_sink.protocol.values import Offsets

Members = tuple[MemberDescription, ...]
V = TypeVar("V")

# The last version for a single group; it has require_stable (KIP-447).
_FETCH_VERSION = 7
# Version 4 has the instance id (KIP-345); every supported broker has it.
_DESCRIBE_VERSION = 4
# What DescribeGroups says of a group that does not exist, and of one of another type (KIP-848).
_DEAD = "Dead"
_WITHOUT_MEMBERS = (_DEAD, "Empty")


def list_groups(wire: Wire, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
    """See `eos_sink.kafka.admin_interface.Admin.list_groups`."""

    async def ask() -> dict[int, Any]:
        brokers = await wire.list_brokers(deadline) or []
        return await wire.ask_each({node: ListGroupsRequest() for node in brokers}, deadline)

    answers = wire.run(ask)
    # Each broker lists its own groups, so without one of them the list would not be complete.
    silent = [node for node, answer in answers.items() if answer is None]
    if silent or not answers:
        return Unseen("not all brokers answered: " + (f"broker {silent[0]}" if silent else "none"))
    for answer in answers.values():
        if answer.error_code:
            return unseen(KafkaError(answer.error_code))
    names = {str(group.group_id) for answer in answers.values() for group in answer.groups}
    return sorted(name for name in names if name.startswith(prefix))


def describe_groups(
    wire: Wire, groups: Iterable[str], deadline: Deadline
) -> Mapping[str, Members | Unseen]:
    """See `eos_sink.kafka.interfaces.Kafka.describe_groups`."""
    dead: list[str] = []

    def describe(names: list[str]) -> Any:
        return DescribeGroupsRequest(groups=names, max_version=_DESCRIBE_VERSION)

    def read(_: list[str], answer: Any) -> dict[str, Members | KafkaError]:
        dead.extend(each.group_id for each in answer.groups if each.group_state == _DEAD)
        return {
            group.group_id: KafkaError(group.error_code)
            if group.error_code
            else tuple(map(_read_member, group.members))
            for group in answer.groups
        }

    found = _ask_coordinators(wire, groups, describe, read, deadline)
    found |= _ask_coordinators(wire, dead, lambda _: ListGroupsRequest(), _read_others, deadline)
    return {
        name: unseen(answer, Acl("Describe", Resource.GROUP, name))
        if isinstance(answer, KafkaError)
        else answer
        for name, answer in found.items()
    }


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

    found = _ask_coordinators(wire, [group], request, read, deadline)[group]
    if isinstance(found, KafkaError):
        what = f"The offsets of group {group} cannot be read"
        raise convert_error(found, what, Permissions.source(group, ()))
    return found


def _ask_coordinators(
    wire: Wire,
    groups: Iterable[str],
    request: Callable[[list[str]], Any],
    read: Callable[[list[str], Any], Mapping[str, V | KafkaError]],
    deadline: Deadline,
) -> dict[str, V | KafkaError]:
    """Send requests to the coordinators of groups until each group has a final answer.

    Args:
        request: makes one for all groups of a coordinator.
        read: the answers in a response to it, by group.
    """

    async def ask(names: list[str]) -> dict[str, V | KafkaError]:
        lookup = wire.find_coordinators_request(names, CoordinatorType.GROUP)
        response = await wire.ask(lookup, None, deadline)
        found: dict[str, V | KafkaError] = {}
        by_node: dict[int, list[str]] = {}
        for row in response.coordinators if response else ():
            if row.error_code:
                found[row.key] = KafkaError(row.error_code)
            else:
                by_node.setdefault(row.node_id, []).append(row.key)
        requests = {node: request(its) for node, its in by_node.items()}
        for node, answer in (await wire.ask_each(requests, deadline)).items():
            found |= read(by_node[node], answer) if answer else {}
        return found

    return ask_until_final(wire, groups, ask, deadline)


def _read_member(member: Any) -> MemberDescription:
    return MemberDescription(member.group_instance_id or "", member.client_id, member.client_host)


def _read_others(names: list[str], answer: Any) -> dict[str, Members | KafkaError]:
    """The members of groups of another type than the classic one, as their coordinator lists the
    group. kafka-python cannot describe them, so a single entry stands for all members."""
    if answer.error_code:
        return dict.fromkeys(names, KafkaError(answer.error_code))
    listed = {
        group.group_id: group.group_type
        for group in answer.groups
        if group.group_state not in _WITHOUT_MEMBERS
    }
    return {
        name: (MemberDescription("", f"members of the {listed[name]} protocol", "unknown hosts"),)
        if name in listed
        else ()
        for name in names
    }


def metadata_without_member(group: str) -> bytes:
    """The metadata of a group that offsets are committed to without being a member. No broker is
    asked: only librdkafka knows how it writes this down."""
    consumer = Consumer({"group.id": group, "log_level": 0})
    try:
        metadata: bytes = consumer.consumer_group_metadata()
    finally:
        consumer.close()
    return metadata
