"""A topic that a person asks about: whether it is there and may be read, and who holds it up."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka.protocol.admin.transactions import DescribeProducersRequest, ListTransactionsRequest

from eos_sink.errors import ClusterError, EosSinkError
from eos_sink.kafka.admin.connect import connected_admin
from eos_sink.kafka.connection.settings import (
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Acl, Resource, operation_name, permission_error

# A person waits for it, and can try again.
_FIRST_ANSWER_S = 5.0


@dataclass(frozen=True)
class View:
    """What the brokers say of a topic.

    Attributes:
        leaders: the broker of each partition; None: it has none.
        compacted: None: it may not be seen.
    """

    leaders: Mapping[int, int | None]
    compacted: bool | None


class Subject:
    """One topic of one cluster.

    Args:
        kafka: the clients' settings as a Java properties file has them.
        topic: its name.
    """

    def __init__(self, kafka: Mapping[str, str], topic: str) -> None:
        self.connection = connection_settings(librdkafka_settings(kafka))
        self._topic = topic
        self._admin_client: AdminClient | None = None

    def look(self, deadline: Deadline) -> View:
        """Raises ClusterError if it does not exist, may not be read, or nobody answers."""
        needs = [Acl("Read", Resource.TOPIC, self._topic)]
        admin = self._admin(deadline)
        futures = admin.describe_topics(
            TopicCollection([self._topic]),
            include_authorized_operations=True,
            request_timeout=deadline.left,
        )
        try:
            described = _answer(futures[self._topic], deadline)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise self._unknown(deadline) from raised
            raise convert_error(error, f"Topic {self._topic} cannot be seen", needs) from raised
        allowed = described.authorized_operations
        if allowed is not None and "Read" not in {operation_name(each.name) for each in allowed}:
            raise permission_error(f"Topic {self._topic} cannot be read", needs)
        leaders = {p.id: p.leader.id if p.leader else None for p in described.partitions}
        return View(leaders, self._compacted(deadline))

    def holders(
        self, stable: Mapping[int, int], leaders: Mapping[int, int | None], deadline: Deadline
    ) -> dict[int, str]:
        """The transaction that begins at the last stable offset of each partition, by its
        transactional id, or its producer id where the id may not be seen. Partitions of which
        nobody can tell are left out."""
        try:
            wire = Wire(kafka_python_settings(self.connection), deadline)
        except EosSinkError:
            return {}
        try:
            producers = self._producers(wire, stable, leaders, deadline)
            names = self._transactional_ids(wire, set(producers.values()), deadline)
        except EosSinkError:
            return {}
        finally:
            wire.close()
        return {p: names.get(each, f"producer id {each}") for p, each in producers.items()}

    def _producers(
        self,
        wire: Wire,
        stable: Mapping[int, int],
        leaders: Mapping[int, int | None],
        deadline: Deadline,
    ) -> dict[int, int]:
        by_leader: dict[int, list[int]] = {}
        for partition in stable:
            leader = leaders.get(partition)
            if leader is not None:
                by_leader.setdefault(leader, []).append(partition)

        async def ask() -> dict[int, Any]:
            topic = DescribeProducersRequest.TopicRequest
            requests = {
                leader: wire.send(
                    DescribeProducersRequest(
                        topics=[topic(name=self._topic, partition_indexes=partitions)]
                    ),
                    leader,
                    deadline,
                )
                for leader, partitions in by_leader.items()
            }
            return await wire.gather(requests, deadline)

        return {
            partition.partition_index: producer.producer_id
            for answer in wire.run(ask).values()
            for topic in (answer.topics if answer else ())
            for partition in topic.partitions
            for producer in partition.active_producers
            if producer.current_txn_start_offset == stable[partition.partition_index]
        }

    @staticmethod
    def _transactional_ids(wire: Wire, producers: set[int], deadline: Deadline) -> dict[int, str]:
        if not producers:
            return {}

        async def ask() -> dict[int, Any]:
            request = ListTransactionsRequest(
                state_filters=[], producer_id_filters=sorted(producers), max_version=0
            )
            brokers = await wire.list_brokers(deadline) or []
            requests = {b: wire.send(request, b, deadline) for b in brokers}
            return await wire.gather(requests, deadline)

        return {
            row.producer_id: row.transactional_id
            for answer in wire.run(ask).values()
            for row in (answer.transaction_states if answer else ())
        }

    def _unknown(self, deadline: Deadline) -> ClusterError:
        known = sorted(self._admin(deadline).list_topics(timeout=max(1.0, deadline.left)).topics)
        near = difflib.get_close_matches(self._topic, known, n=3, cutoff=0.3)
        told = f"Near to it are {', '.join(near)}." if near else "No topic is called alike."
        return ClusterError(
            f"Topic {self._topic!r} does not exist on {self.connection['bootstrap.servers']}, or "
            "may not be seen.",
            remedy=told,
        )

    def _compacted(self, deadline: Deadline) -> bool | None:
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        futures = self._admin(deadline).describe_configs([resource], request_timeout=deadline.left)
        try:
            entries = _answer(futures[resource], deadline)
        except KafkaException:
            # It takes DescribeConfigs on the topic, which reading does not.
            return None
        return "compact" in str(entries["cleanup.policy"].value)

    def _admin(self, deadline: Deadline) -> AdminClient:
        if self._admin_client is None:
            first = deadline.within(_FIRST_ANSWER_S)
            self._admin_client = connected_admin(self.connection, self._topic, first)
        return self._admin_client


def _answer(future: Future[Any], deadline: Deadline) -> Any:
    return future.result(timeout=deadline.left + 1)
