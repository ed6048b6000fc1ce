"""The questions that a test cluster asks of Kafka: the only user of a client library here."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from eos_sink.deadline import Deadline
from eos_sink.testing.errors import TestClusterError

_LONGEST_REQUEST_S = 5.0
_SILENT = logging.getLogger("eos_sink.testing.client")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def port_answers(address: str, timeout_s: float = 0.5) -> bool:
    """Whether something accepts a TCP connection at "host:port"."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout_s):
        return True
    return False


def registered_brokers(address: str, deadline: Deadline) -> frozenset[int]:
    """Ids of the brokers that the one at `address` knows as alive; empty if it does not answer."""
    if "," not in address and not port_answers(address):
        return frozenset()  # cheaper than a client, and librdkafka stays silent
    try:
        metadata = _admin(address).list_topics(timeout=_request_timeout(deadline))
    except KafkaException:
        return frozenset()
    return frozenset(metadata.brokers)


def has_leaders(address: str, topic: str, partitions: int, deadline: Deadline) -> bool:
    """Whether the broker at `address` knows a leader for each of the topic's partitions."""
    try:
        metadata = _admin(address).list_topics(topic, timeout=_request_timeout(deadline))
    except KafkaException:
        return False
    known = metadata.topics[topic].partitions
    return len(known) == partitions and all(part.leader >= 0 for part in known.values())


def create_topic(
    bootstrap_servers: str,
    topic: str,
    partitions: int,
    replication: int | None,
    config: Mapping[str, object],
    deadline: Deadline,
) -> None:
    """Create the topic; `replication` None leaves it to the cluster's default.

    Raises:
        TestClusterError: Kafka refused, or did not answer before the deadline.
    """
    new = NewTopic(
        topic,
        num_partitions=partitions,
        replication_factor=-1 if replication is None else replication,
        config={key: _text(value) for key, value in config.items()},
    )
    timeout_s = max(deadline.left, 0.1)
    admin = _admin(bootstrap_servers)  # held until the answer: losing it would cancel the request
    futures = admin.create_topics([new], operation_timeout=timeout_s, request_timeout=timeout_s)
    try:
        futures[topic].result(timeout=timeout_s + 1)
    except (KafkaException, TimeoutError) as error:
        raise TestClusterError(f"Kafka did not create the topic {topic!r}: {error}") from error


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


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
