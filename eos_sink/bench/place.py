"""A cluster to measure on: topics that come and go, and nothing left of the queries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from kafka.errors import KafkaError

from eos_sink.errors import ClusterError
from eos_sink.identity import QueryNames
from eos_sink.kafka.connection.settings import (
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.shared_clients import connected_admin

_ANSWERS_WITHIN_S = 20.0
_SMALL_SEGMENTS = {"file.delete.delay.ms": "1000"}


class Place:
    """The brokers at an address, as somebody who may make and delete topics.

    Args:
        kafka: settings as a query's options have them, names without `kafka.`; with
            `bootstrap.servers`.

    Raises:
        ClusterError: nobody answers there, or the login is refused.
        ConfigurationError: a setting cannot be honoured.
    """

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self.kafka = dict(kafka)
        self._connection = connection_settings(librdkafka_settings(kafka))
        deadline = Deadline(_ANSWERS_WITHIN_S)
        self._admin: AdminClient = connected_admin(self._connection, "eos-sink-bench", deadline)

    @property
    def options(self) -> dict[str, str]:
        """For a query that is to write here."""
        return {f"kafka.{name}": value for name, value in self.kafka.items()}

    @contextlib.contextmanager
    def topic(self, name: str, partitions: int) -> Iterator[str]:
        """A topic for a while; it is deleted afterwards.

        Raises:
            ClusterError: it cannot be made, or not be deleted.
        """
        # -1: as many copies as the cluster makes by default.
        new = NewTopic(name, partitions, -1, config=_SMALL_SEGMENTS)
        _done(self._admin.create_topics([new])[name], f"Topic {name} cannot be made")
        try:
            yield name
        finally:
            self.delete(name)

    def delete(self, topic: str) -> None:
        """Raises ClusterError if it cannot be deleted."""
        what = f"Topic {topic} is left, since it cannot be deleted"
        _done(self._admin.delete_topics([topic])[topic], what)

    def has(self, topic: str) -> bool:
        metadata = self._admin.list_topics(timeout=_ANSWERS_WITHIN_S)
        return topic in metadata.topics

    def forget(self, names: QueryNames) -> None:
        """Remove the group of a query that has ended, its member included.

        Raises:
            ClusterError: it is left.
        """
        client = None
        try:
            client = KafkaAdminClient(**kafka_python_settings(self._connection))
            client.remove_group_members(
                names.group, [MemberToRemove(group_instance_id=names.driver)]
            )
            client.delete_groups([names.group])
        except KafkaError as error:
            raise ClusterError(
                f"Group {names.group} is left: {error}.",
                remedy="It does no harm; Kafka forgets it after a week.",
            ) from error
        finally:
            if client is not None:
                client.close()


def _done(future: Future[None], what: str) -> None:
    try:
        future.result(timeout=_ANSWERS_WITHIN_S)
    except (KafkaException, TimeoutError) as error:
        cause = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
        raise ClusterError(
            f"{what}: {cause}.",
            remedy="It takes the permissions Create and Delete on topics; or give --topic.",
        ) from error
