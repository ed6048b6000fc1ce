"""The cluster to measure on: a broker that is started here, or a given one."""

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
from eos_sink.kafka_config.token_source import PROVIDER
from eos_sink.testing.local_cluster import LocalCluster, start_local
from eos_sink.testing.owned_cluster import ClusterSpec
from eos_sink.testing.waiting import Progress

_ANSWERS_WITHIN_S = 20.0
_SMALL_SEGMENTS = {"file.delete.delay.ms": "1000"}
# A test's broker lives for seconds; this one shows the cost of a broker that has run for long.
_LASTING = ("-XX:TieredStopAtLevel=4", "-Xms1g", "-Xmx1g")


def start_broker(version: str, progress: Progress) -> LocalCluster:
    """One broker on this machine, fully compiled, with the heap and threads of Kafka's defaults.

    Raises:
        TestClusterError: it cannot be downloaded or does not start.
    """
    properties: dict[str, object] = {"num.network.threads": 3, "num.io.threads": 8}
    return start_local(
        ClusterSpec(version=version, properties=properties, progress=progress, jvm=_LASTING)
    )


class BenchCluster:
    """Creates and deletes topics on a cluster, and removes what measured queries leave.

    Args:
        kafka: client settings with `bootstrap.servers`; names without the prefix `kafka.`.

    Raises:
        ClusterError: no broker answers, or the login is refused.
        ConfigurationError: a setting cannot be used.
    """

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self._connection = connection_settings(librdkafka_settings(kafka))
        deadline = Deadline(_ANSWERS_WITHIN_S)
        self._admin: AdminClient = connected_admin(self._connection, "eos-sink-bench", deadline)
        self.options = {
            name if name == PROVIDER else f"kafka.{name}": value for name, value in kafka.items()
        }
        """Options for a query that is to write here."""

    @contextlib.contextmanager
    def topic(self, name: str, partitions: int) -> Iterator[str]:
        """Create a topic, and delete it afterwards.

        Raises:
            ClusterError: it cannot be created or deleted.
        """
        # -1: as many replicas as the cluster makes by default.
        new = NewTopic(name, partitions, -1, config=_SMALL_SEGMENTS)
        _wait_done(self._admin.create_topics([new])[name], f"Topic {name} cannot be created")
        try:
            yield name
        finally:
            self.delete_topic(name)

    def has_topic(self, topic: str) -> bool:
        return topic in self._admin.list_topics(timeout=_ANSWERS_WITHIN_S).topics

    def delete_topic(self, topic: str) -> None:
        """Raises ClusterError if it cannot be deleted."""
        what = f"Topic {topic} is left, since it cannot be deleted"
        _wait_done(self._admin.delete_topics([topic])[topic], what)

    def delete_group(self, names: QueryNames) -> None:
        """Remove the group of a query that has ended, and its member.

        Raises:
            ClusterError: it is left.
        """
        client = None
        try:
            client = KafkaAdminClient(**kafka_python_settings(self._connection))
            member = MemberToRemove(group_instance_id=names.driver)
            client.remove_group_members(names.group, [member])
            client.delete_groups([names.group])
        except KafkaError as error:
            raise ClusterError(
                f"Group {names.group} is left: {error}.",
                remedy="It does no harm; Kafka forgets it after a week.",
            ) from error
        finally:
            if client is not None:
                client.close()


def _wait_done(future: Future[None], what: str) -> None:
    try:
        future.result(timeout=_ANSWERS_WITHIN_S)
    except (KafkaException, TimeoutError) as error:
        cause = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
        raise ClusterError(
            f"{what}: {cause}.",
            remedy="It takes the permissions Create and Delete on topics; or give --topic.",
        ) from error
