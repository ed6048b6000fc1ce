"""Topics as their brokers describe them: partitions, copies in sync, settings, permissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error
from eos_sink.kafka.interfaces import TopicView
from eos_sink.kafka_config.acls import Permissions

_MIN_IN_SYNC = "min.insync.replicas"


def view_topics(
    admin: AdminClient, topics: Sequence[str], deadline: Deadline
) -> Mapping[str, TopicView | None]:
    """See `eos_sink.kafka.interfaces.Kafka.view_topics`. Creates none of them."""
    if not topics:
        return {}
    described = admin.describe_topics(
        TopicCollection(list(topics)),
        include_authorized_operations=True,
        request_timeout=deadline.left,
    )
    views: dict[str, TopicView | None] = {}
    for topic, future in described.items():
        try:
            description = _answer(future, deadline)
        except KafkaException as raised:
            error = raised.args[0]
            if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                needs = Permissions.topic(topic)
                raise convert_error(error, f"Topic {topic} cannot be seen", needs) from raised
            views[topic] = None
            continue
        operations = description.authorized_operations
        views[topic] = TopicView(
            in_sync={part.id: len(part.isr) for part in description.partitions},
            replication=min(len(part.replicas) for part in description.partitions),
            min_in_sync=_min_in_sync(admin, topic, deadline),
            allowed=None if operations is None else frozenset(each.name for each in operations),
        )
    return views


def _min_in_sync(admin: AdminClient, topic: str, deadline: Deadline) -> int | None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    futures = admin.describe_configs([resource], request_timeout=deadline.left)
    try:
        return int(_answer(futures[resource], deadline)[_MIN_IN_SYNC].value)
    except KafkaException:
        # It takes DescribeConfigs on the topic, which writing does not.
        return None


def _answer(future: Future[Any], deadline: Deadline) -> Any:
    return future.result(timeout=deadline.left + 1)
