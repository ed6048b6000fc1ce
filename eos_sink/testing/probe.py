"""The questions that a test cluster asks of Kafka: the only user of a client library here."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing.errors import TestClusterError
from eos_sink.testing.text import to_text

_LONGEST_REQUEST_S = 5.0
_SILENT = logging.getLogger("eos_sink.testing.client")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True)
class Topic:
    """A topic as it is asked for; without `replication` the cluster's default holds."""

    name: str
    partitions: int
    replication: int | None
    config: Mapping[str, object]


def port_answers(address: str, timeout_s: float = 0.5) -> bool:
    """Whether something accepts a TCP connection at "host:port"."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout_s):
        return True
    return False


@dataclass(frozen=True)
class View:
    """What a broker knows: which cluster it is in, and the ids of the brokers that are alive."""

    cluster_id: str
    brokers: frozenset[int]


def view_of(address: str, deadline: Deadline) -> View | None:
    """What the broker at `address` knows; None if it does not answer."""
    if "," not in address and not port_answers(address):
        return None  # cheaper than a client
    try:
        metadata = _admin(address).list_topics(timeout=_request_timeout(deadline))
    except KafkaException:
        return None
    return View(str(metadata.cluster_id), frozenset(metadata.brokers))


def has_leaders(address: str, topic: Topic, deadline: Deadline) -> bool:
    """Whether the broker at `address` knows a leader for each of the topic's partitions."""
    try:
        metadata = _admin(address).list_topics(topic.name, timeout=_request_timeout(deadline))
    except KafkaException:
        return False
    known = metadata.topics[topic.name].partitions
    return len(known) == topic.partitions and all(part.leader >= 0 for part in known.values())


def leader_of(address: str, topic: str, partition: int, deadline: Deadline) -> int | None:
    """Who leads the partition as the broker at `address` knows it; None if it does not answer."""
    try:
        metadata = _admin(address).list_topics(topic, timeout=_request_timeout(deadline))
    except KafkaException:
        return None
    found = metadata.topics[topic].partitions.get(partition)
    return None if found is None else int(found.leader)


def create_topic(bootstrap_servers: str, topic: Topic, deadline: Deadline) -> None:
    """Ask for the topic; brokers may learn of it a moment later.

    Raises:
        TestClusterError: Kafka refused, or did not answer before the deadline.
    """
    new = NewTopic(
        topic.name,
        num_partitions=topic.partitions,
        replication_factor=-1 if topic.replication is None else topic.replication,
        config={key: to_text(value) for key, value in topic.config.items()},
    )
    timeout_s = max(deadline.left, 0.1)
    admin = _admin(bootstrap_servers)  # held until the answer: losing it would cancel the request
    futures = admin.create_topics([new], operation_timeout=timeout_s, request_timeout=timeout_s)
    try:
        futures[topic.name].result(timeout=timeout_s + 1)
    except (KafkaException, TimeoutError) as error:
        raise TestClusterError(f"Kafka did not create the topic {topic.name!r}: {error}") from error


def _admin(bootstrap_servers: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap_servers,
            "socket.connection.setup.timeout.ms": 2000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        },
        logger=_SILENT,
    )


def _request_timeout(deadline: Deadline) -> float:
    return max(0.1, min(_LONGEST_REQUEST_S, deadline.left))
