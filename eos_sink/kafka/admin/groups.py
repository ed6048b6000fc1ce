"""Consumer groups and their members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError
from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.metadata import CoordinatorType

from eos_sink.kafka.admin_interface import MemberDescription
from eos_sink.kafka.admin_requests import ask_until_final, unseen
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Acl, Resource

Members = tuple[MemberDescription, ...]

# Version 4 has the instance id (KIP-345); every supported broker has it.
_DESCRIBE_VERSION = 4


def list_groups(wire: Wire, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
    """See `eos_sink.kafka.admin_interface.Admin.list_groups`."""

    async def ask() -> dict[int, Any]:
        brokers = await wire.list_brokers(deadline) or []
        requests = {node: wire.send(ListGroupsRequest(), node, deadline) for node in brokers}
        return await wire.gather(requests, deadline)

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
    """See `eos_sink.kafka.admin_interface.Admin.describe_groups`."""

    async def request(names: list[str]) -> dict[str, Members | KafkaError]:
        request = wire.find_coordinators_request(names, CoordinatorType.GROUP)
        response = await wire.ask(request, None, deadline)
        found: dict[str, Members | KafkaError] = {}
        by_node: dict[int, list[str]] = {}
        for row in response.coordinators if response else ():
            if row.error_code:
                found[row.key] = KafkaError(row.error_code)
            else:
                by_node.setdefault(row.node_id, []).append(row.key)
        requests = {
            node: wire.send(
                DescribeGroupsRequest(groups=names, max_version=_DESCRIBE_VERSION), node, deadline
            )
            for node, names in by_node.items()
        }
        for answer in (await wire.gather(requests, deadline)).values():
            for group in answer.groups if answer else ():
                found[group.group_id] = (
                    KafkaError(group.error_code) if group.error_code else _read_members(group)
                )
        return found

    found = ask_until_final(groups, lambda names: wire.run(request, names), deadline)
    return {
        name: unseen(answer, Acl("Describe", Resource.GROUP, name))
        if isinstance(answer, KafkaError)
        else answer
        for name, answer in found.items()
    }


def _read_members(group: Any) -> Members:
    return tuple(
        MemberDescription(each.group_instance_id or "", each.client_id, each.client_host)
        for each in group.members
    )
