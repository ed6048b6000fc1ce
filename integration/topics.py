"""Topics of a test's own, and what is done to them with Kafka's admin client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial

import kafka
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka import KafkaAdminClient

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.waiting import wait_until

_PATIENCE_S = 60.0
_DRAWS = 10_000


def unique(name: str) -> str:
    """A name that no other test has."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def unique_that(name: str, fits: Callable[[str], bool], what: str) -> str:
    """A name that no other test has and that fits, which one of a few dozen does."""
    for _ in range(_DRAWS):
        if fits(found := unique(name)):
            return found
    raise AssertionError(f"None of {_DRAWS} names like {name!r} {what}.")


def new_topic(cluster: KafkaCluster, name: str, partitions: int = 3, **config: object) -> str:
    """A topic with a unique name; `config` with `_` for `.`."""
    topic = unique(name)
    named = {key.replace("_", "."): value for key, value in config.items()}
    cluster.create_topic(topic, partitions=partitions, config=named)
    return topic


def set_config(servers: str, topic: str, name: str, value: str) -> None:
    """Set a setting of the topic, and wait until the brokers say so."""
    admin = AdminClient({"bootstrap.servers": servers})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([wanted])[wanted].result(_PATIENCE_S)
    asked = ConfigResource(ResourceType.TOPIC, topic)

    def is_set() -> bool:
        found = admin.describe_configs([asked])[asked].result(_PATIENCE_S)
        return bool(found[name].value == value)

    wait_until(is_set, Deadline(_PATIENCE_S), f"{topic} has {name}={value}")


def delete_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(_PATIENCE_S)


def make_again(cluster: KafkaCluster, topic: str, partitions: int = 3) -> None:
    """Delete a topic, and create an empty one of that name."""
    delete_topic(cluster.bootstrap_servers, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wait_until(
        lambda: topic not in admin.list_topics(timeout=_PATIENCE_S).topics,
        Deadline(_PATIENCE_S),
        f"{topic} is deleted",
    )
    cluster.create_topic(topic, partitions=partitions)


def delete_before(servers: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Delete the records of each partition before an offset."""
    admin = AdminClient({"bootstrap.servers": servers})
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    for answer in admin.delete_records(places).values():
        answer.result(_PATIENCE_S)


def move_only_copies(cluster: KafkaCluster, topic: str, to: Mapping[int, int]) -> None:
    """Let a partition's only copy be at that broker; each partition by its number."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.direct_servers.split(","))
    try:
        admin.alter_partition_reassignments(
            {kafka.TopicPartition(topic, partition): [node] for partition, node in to.items()}
        )
    finally:
        admin.close()
    for partition, node in to.items():
        wait_until(
            partial(_leads, cluster, topic, partition, node),
            Deadline(_PATIENCE_S),
            f"{node} leads {topic}[{partition}]",
        )


def _leads(cluster: KafkaCluster, topic: str, partition: int, node: int) -> bool:
    return cluster.leader_of(topic, partition) == node


def copies_in_sync(servers: str, topic: str) -> dict[int, int]:
    """How many copies of each partition are in sync."""
    found = AdminClient({"bootstrap.servers": servers}).list_topics(topic, timeout=_PATIENCE_S)
    return {number: len(part.isrs) for number, part in found.topics[topic].partitions.items()}
