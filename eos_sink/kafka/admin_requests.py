"""Requests about topics, offsets and settings, with confluent-kafka's admin client.

The sink and the operator commands share them. An error about one thing of many is that thing's
answer. None of them creates a topic, whatever the brokers' `auto.create.topics.enable` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FuturesTimeoutError
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    Node,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, get_meaning
from eos_sink.kafka.interfaces import PartitionState, TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Resource, permission_error

if TYPE_CHECKING:
    from eos_sink.kafka.admin_interface import PartitionOffsets

K = TypeVar("K")
Place = tuple[str, int]
"""Topic and partition."""

# One broker that does not answer must not take the time of all questions of a command.
ANSWER_S = 5.0
# librdkafka keeps the request's own timeout, nearly always.
_GRACE_S = 1.0


def results(futures: Mapping[K, Future[Any]], deadline: Deadline) -> dict[K, Any]:
    """The result of each, or its KafkaError."""
    found: dict[K, Any] = {}
    for key, future in futures.items():
        try:
            found[key] = future.result(timeout=deadline.left + _GRACE_S)
        except KafkaException as raised:
            found[key] = raised.args[0]
        except FuturesTimeoutError:
            found[key] = KafkaError(KafkaError._TIMED_OUT)
    return found


def is_denied(error: KafkaError) -> bool:
    return get_meaning(error.code()) is Meaning.DENIED


def unseen(error: KafkaError, *needed: Acl) -> Unseen:
    """The first permission is the one that was refused; all of them would show everything."""
    if is_denied(error) and needed:
        return Unseen(f"this principal lacks {needed[0]}", needed)
    return Unseen(error.str().rstrip("."))


def list_nodes(client: AdminClient, deadline: Deadline) -> list[Node]:
    """All live brokers.

    Raises:
        KafkaException: the cluster does not answer.
    """
    asked = client.describe_cluster(request_timeout=deadline.left)
    found = results({"": asked}, deadline)[""]
    if isinstance(found, KafkaError):
        raise KafkaException(found)
    nodes: list[Node] = found.nodes
    return nodes


def describe_configs(
    client: AdminClient, kind: ResourceType, names: Iterable[str], deadline: Deadline
) -> dict[str, Any]:
    """The ConfigEntry of each setting of each topic or broker, or a KafkaError."""
    futures: dict[str, Future[Any]] = {}
    for name in names:
        resource = ConfigResource(kind, name)
        asked = client.describe_configs([resource], request_timeout=deadline.left)
        futures[name] = asked[resource]
    return results(futures, deadline)


def describe_topics(
    client: AdminClient, names: Iterable[str], deadline: Deadline, *, settings: bool = True
) -> dict[str, TopicDescription | KafkaError]:
    """Each topic with its settings, if they are wanted."""
    names = list(dict.fromkeys(names))
    if not names:
        return {}
    described = results(
        client.describe_topics(
            TopicCollection(names),
            include_authorized_operations=True,
            request_timeout=deadline.left,
        ),
        deadline,
    )
    there = [name for name in names if not isinstance(described[name], KafkaError)]
    configs = describe_configs(client, ResourceType.TOPIC, there if settings else [], deadline)
    found: dict[str, TopicDescription | KafkaError] = {}
    for name, topic in described.items():
        if isinstance(topic, KafkaError):
            found[name] = topic
            continue
        entries, operations = configs.get(name, {}), topic.authorized_operations
        found[name] = TopicDescription(
            name=name,
            partitions={
                part.id: PartitionState(
                    -1 if part.leader is None else part.leader.id, len(part.replicas), len(part.isr)
                )
                for part in topic.partitions
            },
            settings=unseen(entries, Acl("DescribeConfigs", Resource.TOPIC, name))
            if isinstance(entries, KafkaError)
            else {setting: str(entry.value) for setting, entry in entries.items()},
            allowed=None if operations is None else frozenset(each.name for each in operations),
            id=str(topic.topic_id),
        )
    return found


def describe_usable_topic(
    client: AdminClient,
    name: str,
    needs: Iterable[Acl],
    deadline: Deadline,
    *,
    settings: bool = False,
) -> TopicDescription | KafkaError:
    """Raises ClusterError if this principal lacks one of the permissions, before the step that
    needs it, which may be a recovery (KIP-430)."""
    found = describe_topics(client, [name], deadline, settings=settings)[name]
    missing = [] if isinstance(found, KafkaError) else found.lacking(needs)
    if missing:
        raise permission_error(f"Topic {name} cannot be used", missing)
    return found


def list_offsets(
    client: AdminClient, places: Iterable[Place], deadline: Deadline
) -> dict[Place, PartitionOffsets | KafkaError]:
    """First, last stable and end offset of each partition."""
    # The interface of the operator commands, which the sink's processes do without.
    from eos_sink.kafka.admin_interface import PartitionOffsets

    partitions = [TopicPartition(*place) for place in places]
    if not partitions:
        return {}
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = [
        client.list_offsets(
            dict.fromkeys(partitions, spec), isolation_level=level, request_timeout=deadline.left
        )
        for spec, level in (
            (earliest, IsolationLevel.READ_UNCOMMITTED),
            (latest, IsolationLevel.READ_COMMITTED),
            (latest, IsolationLevel.READ_UNCOMMITTED),
        )
    ]
    starts, stables, ends = (results(futures, deadline) for futures in asked)
    found: dict[Place, PartitionOffsets | KafkaError] = {}
    for place in starts:
        answers = [starts[place], stables[place], ends[place]]
        errors = [each for each in answers if isinstance(each, KafkaError)]
        offsets = (each.offset for each in answers)
        found[place.topic, place.partition] = (
            errors[0] if errors else PartitionOffsets(place.partition, *offsets)
        )
    return found
