"""A Kafka cluster as the sink sees it: makes every client."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.confluent_client import ConfluentClient
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error
from eos_sink.kafka.interfaces import (
    MemberDescription,
    PartitionOffsets,
    Sizes,
    TopicDescription,
    Unseen,
)
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.shared_clients import FIRST_ANSWER_S, SharedClients
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.protocol.values import Offsets, Place, Position
from eos_sink.shell import quote

# What only the driver needs is imported there: tasks load none of it.
if TYPE_CHECKING:
    from eos_sink.kafka.log_reader import DecisionLogReader
    from eos_sink.kafka.log_topic import LogTopic
    from eos_sink.kafka.member import ConfluentMember
    from eos_sink.kafka.native.client import NativeClient
    from eos_sink.kafka.read_back import ReadBack
    from eos_sink.kafka.transaction_control import KafkaPythonControl

_LONGEST_SESSION = "group.max.session.timeout.ms"
_SETTINGS_S = 5.0
_BATCH_BYTES = 1_000_000  # librdkafka's default of `batch.size` and of `message.max.bytes`


class ConfluentKafka:
    """Implements `eos_sink.kafka.interfaces.Kafka` with confluent-kafka and kafka-python.

    Args:
        config: of the cluster.
        first_answer_s: how long it may take until a broker answers at all.

    Attributes:
        clients: made at their first use and shared; one serves a process.
    """

    def __init__(self, config: ClusterConfig, first_answer_s: float = FIRST_ANSWER_S) -> None:
        self.clients = SharedClients(config, first_answer_s)
        self._config = config

    @cached_property
    def _topic(self) -> LogTopic:
        from eos_sink.kafka.log_topic import LogTopic

        return LogTopic(self.clients)

    @property
    def log_topic(self) -> str:
        return self._config.log_topic

    def producer(
        self, transactional_id: str, timeout_ms: int, sizes: Sizes | None = None
    ) -> ConfluentProducer:
        client: type[ConfluentClient | NativeClient] = ConfluentClient
        if self._config.native:
            # numpy and pyarrow are for tasks only.
            from eos_sink.kafka.native.client import NativeClient
            from eos_sink.kafka.native.library import load_library

            if load_library() is not None:
                client = NativeClient
        settings = self.clients.producer_settings
        if sizes is not None:
            # A batch is not larger than the settings allow a record to be.
            given = [settings.get("batch.size"), settings.get("message.max.bytes")]
            least = min(int(each or _BATCH_BYTES) for each in given)
            settings = {**settings, "batch.size": str(min(least, sizes.batch))}
            if sizes.record is not None:
                settings["message.max.bytes"] = str(sizes.record)
        return ConfluentProducer(
            settings,
            transactional_id,
            timeout_ms,
            self.clients.permissions,
            with_identity=True,
            client=client,
        )

    def check_settings(self, transactional_id: str, timeout_ms: int) -> None:
        # librdkafka takes the same settings from each client, but for the linger of the native one,
        # which loads numpy.
        settings, permissions = self.clients.producer_settings, self.clients.permissions
        if self._config.native:
            settings = {**settings, "linger.ms": "0"}
        ConfluentProducer(settings, transactional_id, timeout_ms, permissions).close()

    def log_producer(self, transactional_id: str, timeout_ms: int) -> ConfluentProducer:
        """With the user's settings, but no wait for more records, and record batches that are not
        larger than those of tasks. Only the decision's record may be larger."""
        from eos_sink.kafka.log_topic import LOG_CONFIGURATION

        given = self.clients.producer_settings
        batch = min(int(given.get("batch.size", _BATCH_BYTES)), self._config.driver_batch_bytes)
        settings = {
            **given,
            "linger.ms": "0",
            "batch.size": str(batch),
            "message.max.bytes": LOG_CONFIGURATION["max.message.bytes"],
        }
        return ConfluentProducer(settings, transactional_id, timeout_ms, self.clients.permissions)

    def member(self, group: str, instance_id: str, session_ms: int) -> ConfluentMember:
        from eos_sink.kafka.member import ConfluentMember

        return ConfluentMember(self.clients, group, instance_id, session_ms)

    def longest_session(self, deadline: Deadline) -> int | None:
        from eos_sink.kafka.admin_requests import BROKER, describe_configs, list_brokers

        soon, wire = deadline.within(_SETTINGS_S), self.clients.control().wire
        try:
            brokers = map(str, list_brokers(wire, soon))
        except OutcomeUnknownError:
            return None
        values: list[str] = []
        for entries in describe_configs(wire, BROKER, brokers, soon, [_LONGEST_SESSION]).values():
            entry = None if isinstance(entries, KafkaError) else entries.get(_LONGEST_SESSION)
            # Brokers of a hosted Kafka may hide settings.
            values.append((entry.value if entry is not None else None) or "")
        return min(map(int, values)) if values and all(values) else None

    def control(self) -> KafkaPythonControl:
        return self.clients.control()

    def log_reader(self, names: QueryNames, deadline: Deadline) -> DecisionLogReader:
        # It imports kafka-python, which tasks do not need.
        from eos_sink.kafka.log_reader import DecisionLogReader

        self._topic.ensure(deadline)
        return DecisionLogReader(self.clients, names)

    def claim_home(self, subject: str) -> Position:
        from eos_sink.kafka.log_topic import home_of

        return Position(self.log_topic, home_of(subject), 0)

    def claim_records(
        self,
        subject: str,
        suffix: str,
        deadline: Deadline,
        start: int = 0,
        end: int | None = None,
    ) -> tuple[Mapping[str, bytes], int]:
        from eos_sink.kafka.log_reader import read_claim_records

        return read_claim_records(self.clients, subject, suffix, deadline, start, end)

    def read_back(self) -> ReadBack:
        from eos_sink.kafka.read_back import ReadBack

        return ReadBack(self.clients)

    def check_topic(self, topic: str, deadline: Deadline) -> None:
        from eos_sink.kafka.admin_requests import describe_usable_topic

        needs, wire = self.clients.permissions.topic(topic), self.clients.control().wire
        found = describe_usable_topic(wire, topic, needs, deadline)
        if not isinstance(found, KafkaError):
            return
        if found.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise ClusterError(
                f"Topic {topic!r} does not exist on {self._config.servers}.",
                remedy=f"Create it (kafka-topics --create --topic {quote(topic)} "
                "--partitions ...) or correct the option that names it. Nothing was written.",
            )
        raise convert_error(found, f"Topic {topic} cannot be seen", needs)

    def describe_topics(
        self, topics: Sequence[str], deadline: Deadline, *, settings: bool = True
    ) -> Mapping[str, TopicDescription | Unseen | None]:
        from eos_sink.kafka.admin_requests import describe_topics, show_topic

        wire = self.clients.control().wire
        found = describe_topics(wire, topics, deadline, settings=settings)
        needed = ("Describe", "DescribeConfigs") if settings else ("Describe",)
        return {name: show_topic(name, topic, *needed) for name, topic in found.items()}

    def topic_ids(self, topics: Collection[str] | None, deadline: Deadline) -> Mapping[str, str]:
        from eos_sink.kafka.admin_requests import find_topic_ids

        return find_topic_ids(self.clients.control().wire, topics, deadline)

    def describe_groups(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[MemberDescription, ...] | Unseen]:
        from eos_sink.kafka.groups import describe_groups

        return describe_groups(self.clients.control().wire, groups, deadline)

    def group_offsets(self, group: str, deadline: Deadline) -> Offsets:
        from eos_sink.kafka.groups import fetch_offsets

        return fetch_offsets(self.clients.control().wire, group, deadline)

    def list_offsets(
        self, places: Collection[Place], deadline: Deadline
    ) -> Mapping[Place, PartitionOffsets | Unseen]:
        from eos_sink.kafka.admin_requests import list_offsets, unseen

        found: dict[Place, PartitionOffsets | Unseen] = {}
        for place, at in list_offsets(self.clients.control().wire, places, deadline).items():
            if not isinstance(at, KafkaError):
                found[place] = at
            elif at.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                found[place] = unseen(at, Acl("Describe", Resource.TOPIC, place[0]))
        return found

    def close(self) -> None:
        self.clients.close()
