"""A Kafka cluster as the sink sees it: makes every client from one query's options."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FuturesTimeoutError
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka.admin.connect import connected_admin
from eos_sink.kafka.admin.topics import view_topics
from eos_sink.kafka.calls import retry_until
from eos_sink.kafka.confluent_client import ConfluentClient
from eos_sink.kafka.connection.settings import (
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import LOGGER, convert_error, is_transient
from eos_sink.kafka.interfaces import LogPosition, TopicView, Transaction, Visibility, Witness
from eos_sink.kafka.log_reader import ConfluentLogReader, EndOffset, read_log
from eos_sink.kafka.member import ConfluentMember
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.visibility import WitnessReader, look_until
from eos_sink.kafka_config.acls import Acl, Permissions, operation_name, permission_error
from eos_sink.options import SinkOptions

if TYPE_CHECKING:
    from eos_sink.kafka.log_scan import MarkerReader
    from eos_sink.kafka.native.client import NativeClient
    from eos_sink.kafka.transactions import KafkaPythonControl

# Fixed, since a query's key is looked for in one partition: with another number it would be looked
# for in another place, and a decision would seem never to have been made.
LOG_PARTITIONS = 8
_POLICY = "cleanup.policy"
LOG_CONFIGURATION = {
    _POLICY: "compact",
    # A decision has about 100 bytes a task.
    "max.message.bytes": str(16 * 1024 * 1024),
    # A start reads a partition whole, so superseded records must not pile up to Kafka's 1 GB.
    "segment.bytes": str(32 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "unclean.leader.election.enable": "false",
}
_LONGEST_SESSION = "group.max.session.timeout.ms"
_SETTINGS_S = 5.0
# librdkafka looks for a broker to connect to no more often than each half of this time, and drops
# the connection of the bootstrap as soon as it has the first one's answer: with its default of
# 100 ms the first answer takes a client 54 ms instead of 15, and a join 62 instead of 21 (measured;
# rd_kafka_connect_any). It doubles with each failure as before.
_PROMPT = {"reconnect.backoff.ms": "10"}


def home_of(query: str) -> int:
    """The partition of the decision log that has the query's records."""
    return zlib.crc32(query.encode()) % LOG_PARTITIONS


class ConfluentKafka:
    """Implements `eos_sink.kafka.interfaces.Kafka` with confluent-kafka and kafka-python.

    Making one connects to nothing yet. One serves a process: the control client, the reader of
    witnesses and the admin client are made once and kept.
    """

    first_answer_s = 30.0
    """How long it may take until a broker answers at all."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._producer_settings = librdkafka_settings(options.kafka)
        self._connection = {**_PROMPT, **connection_settings(self._producer_settings)}
        self._permissions = Permissions(options.names.prefix, options.log_topic)
        self._control: KafkaPythonControl | None = None
        self._admin_client: AdminClient | None = None
        self._policy_checked = False
        self._home = LogPosition(
            options.log_topic,
            home_of(options.names.query),
            0,
        )

    def producer(self, transactional_id: str, timeout_ms: int) -> ConfluentProducer:
        return ConfluentProducer(
            self._producer_settings,
            transactional_id,
            timeout_ms,
            self._permissions,
            with_identity=True,
            client=self._task_client(),
        )

    def _task_client(self) -> type[ConfluentClient | NativeClient]:
        if self._options.native:
            # numpy and pyarrow are for tasks only.
            from eos_sink.kafka.native.client import NativeClient
            from eos_sink.kafka.native.library import load_library

            if load_library() is not None:
                return NativeClient
        return ConfluentClient

    def log_producer(self, transactional_id: str, timeout_ms: int) -> ConfluentProducer:
        """For decisions: none of the user's batching, records as large as the topic allows."""
        settings = {
            **self._connection,
            "linger.ms": "0",
            "compression.type": "lz4",
            "message.max.bytes": LOG_CONFIGURATION["max.message.bytes"],
        }
        return ConfluentProducer(settings, transactional_id, timeout_ms, self._permissions)

    def member(self, group: str, instance_id: str, session_ms: int) -> ConfluentMember:
        needs = (self._permissions.group, self._permissions.log_read)
        return ConfluentMember(self._connection, group, instance_id, session_ms, self._home, needs)

    def longest_session(self, deadline: Deadline) -> int | None:
        soon = deadline.within(_SETTINGS_S)
        try:
            admin = self._admin(deadline)
            nodes = self._answer(admin.describe_cluster(request_timeout=soon.left), soon).nodes
            brokers = [ConfigResource(ResourceType.BROKER, str(node.id)) for node in nodes]
            asked = [
                admin.describe_configs([broker], request_timeout=soon.left)[broker]
                for broker in brokers
            ]
            entries = [self._answer(each, soon).get(_LONGEST_SESSION) for each in asked]
        except (KafkaException, FuturesTimeoutError):
            return None
        # Brokers of a hosted Kafka may keep settings to themselves.
        values = [entry.value for entry in entries if entry is not None and entry.value]
        return min(map(int, values)) if values and len(values) == len(entries) else None

    def control(self) -> KafkaPythonControl:
        if self._control is None:
            # Tasks never need kafka-python, whose import takes longer than their transaction.
            from eos_sink.kafka.transactions import KafkaPythonControl

            deadline = Deadline(min(self.first_answer_s, self._options.step_timeout))
            # librdkafka says why a login is refused, and kafka-python only that nobody answers.
            self._admin(deadline)
            needs = self._permissions.transactions
            settings = kafka_python_settings(self._connection)
            self._control = KafkaPythonControl(settings, needs, deadline)
        return self._control

    def log_reader(self, deadline: Deadline) -> ConfluentLogReader:
        self._ensure_log(deadline)
        group = self._options.names.group
        needs = (self._permissions.log_read, self._permissions.group)
        end = EndOffset(self._connection, group, needs)
        return ConfluentLogReader(self._connection, group, self._home, end)

    def log_records(self, deadline: Deadline) -> Mapping[str, bytes]:
        group, needs = self._options.names.group, self._permissions
        end = EndOffset(self._connection, group, (needs.log_read, needs.group))
        try:
            return read_log(self._connection, group, needs, deadline, end)
        finally:
            end.close()

    def visibility(
        self, witnesses: Sequence[Witness], deadline: Deadline
    ) -> Mapping[Witness, Visibility]:
        group = self._options.names.group
        return look_until(
            deadline,
            witnesses,
            lambda committed: WitnessReader(
                self._connection, group, self._permissions, committed=committed
            ),
        )

    def markers(
        self, asked: Mapping[Witness, Transaction], deadline: Deadline
    ) -> Mapping[Witness, bool]:
        from eos_sink.kafka.log_scan import MarkerReader

        found: dict[Witness, bool] = {}
        for place in sorted({(each.topic, each.partition) for each in asked}):
            here = {w: t for w, t in asked.items() if (w.topic, w.partition) == place}
            reader = MarkerReader(self.control().wire, here)
            # Again, since the partition may have found another leader meanwhile.
            retry_until(deadline, partial(self._read_markers, reader, place, deadline), bool)
            found |= reader.found
        return found

    def _read_markers(
        self, reader: MarkerReader, place: tuple[str, int], deadline: Deadline
    ) -> bool:
        """False: it may be tried again."""
        topic, number = place
        earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        try:
            leaders = {p.id: p.leader for p in self._describe(topic, deadline).partitions}
            if number not in leaders:
                return True
            (start,) = self._offsets(topic, [number], earliest, deadline).values()
            (end,) = self._offsets(topic, [number], latest, deadline).values()
        except KafkaException as raised:
            return not is_transient(raised.args[0])
        leader = leaders[number]
        return leader is not None and reader.read(leader.id, start, end, deadline)

    def check_topic(self, topic: str, deadline: Deadline) -> None:
        needs = self._permissions.topic(topic)
        try:
            self._check_permitted(topic, needs, deadline)
            return
        except KafkaException as raised:
            error = raised.args[0]
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise ClusterError(
                f"Topic {topic!r} does not exist on {self._options.kafka['bootstrap.servers']}.",
                remedy=f"Create it (kafka-topics --create --topic {topic} --partitions ...) or "
                "correct option topic. Nothing was written.",
            )
        raise convert_error(error, f"Topic {topic} cannot be seen", needs)

    def view_topics(
        self, topics: Sequence[str], deadline: Deadline
    ) -> Mapping[str, TopicView | None]:
        return view_topics(self._admin(deadline), topics, deadline)

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
        self._control = self._admin_client = None

    def _ensure_log(self, deadline: Deadline) -> None:
        topic = self._options.log_topic
        needs = (self._permissions.log_read, self._permissions.log_write)

        def look() -> int | KafkaError:
            try:
                return self._check_permitted(topic, needs, deadline)
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                return error

        partitions = look()
        existed = isinstance(partitions, int)
        if isinstance(partitions, KafkaError):
            if partitions.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise convert_error(partitions, f"The decision log {topic} cannot be seen", needs)
            self._create_log(deadline)
            # The next broker that is asked may not have heard of it yet.
            partitions = retry_until(deadline, look, lambda seen: isinstance(seen, int))
        if isinstance(partitions, KafkaError):
            raise ClusterError(
                f"The decision log {topic} was made but cannot be seen: {partitions.str()}.",
                remedy="Look at the brokers, then start the query again.",
            )
        if partitions != LOG_PARTITIONS:
            raise ConfigurationError(
                f"The decision log {topic} has {partitions} partitions instead of "
                f"{LOG_PARTITIONS}: decisions would be looked for in the wrong place.",
                remedy="Name another topic with option eos.log.topic and let the sink make it, or "
                f"make it with {LOG_PARTITIONS} partitions and cleanup.policy=compact. "
                "Nothing was written.",
            )
        if existed and not self._policy_checked:
            self._check_policy(topic, deadline)
            self._policy_checked = True

    def _check_policy(self, topic: str, deadline: Deadline) -> None:
        policy, wanted = self._policy(topic, deadline), LOG_CONFIGURATION[_POLICY]
        if isinstance(policy, KafkaError):
            LOGGER.warning(
                "Whether the decision log %s is compacted may not be seen (%s). If it is not, "
                "decisions are deleted with time. DescribeConfigs on the topic shows it.",
                topic,
                policy.str(),
            )
        elif policy != wanted:
            raise ConfigurationError(
                f"The decision log {topic} has {_POLICY}={policy} instead of {wanted}: decisions "
                "would be deleted with time.",
                remedy=f"kafka-configs --bootstrap-server HOST:PORT --alter --entity-type topics "
                f"--entity-name {topic} --add-config {_POLICY}={wanted}. Nothing was written.",
                data={"topic": topic, _POLICY: policy},
            )

    def _create_log(self, deadline: Deadline) -> None:
        topic = self._options.log_topic
        brokers = len(
            self._answer(
                self._admin(deadline).describe_cluster(request_timeout=deadline.left), deadline
            ).nodes
        )
        replication = min(self._options.log_replication, brokers)
        in_sync = 2 if replication > 2 else 1
        new = NewTopic(
            topic,
            LOG_PARTITIONS,
            replication,
            config={**LOG_CONFIGURATION, "min.insync.replicas": str(in_sync)},
        )
        try:
            futures = self._admin(deadline).create_topics(
                [new], operation_timeout=deadline.left, request_timeout=deadline.left
            )
            self._answer(futures[topic], deadline)
        except KafkaException as raised:
            if raised.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise convert_error(
                    raised.args[0],
                    f"The decision log {topic} does not exist and could not be made",
                    [self._permissions.log_create],
                ) from raised

    def _check_permitted(self, topic: str, needs: Sequence[Acl], deadline: Deadline) -> int:
        """Before the step that needs it, which may be a recovery; the topic's partitions.

        Raises:
            KafkaException: the topic cannot be seen.
            ClusterError: names what the principal may not do there (KIP-430).
        """
        described = self._describe(topic, deadline, with_operations=True)
        permitted = {operation_name(each.name) for each in described.authorized_operations or ()}
        missing = [acl for acl in needs if acl.operation not in permitted]
        if missing:
            raise permission_error(f"Topic {topic} cannot be used", missing)
        return len(described.partitions)

    def _describe(self, topic: str, deadline: Deadline, *, with_operations: bool = False) -> Any:
        """Does not create the topic, whatever the broker's `auto.create.topics.enable` says."""
        futures = self._admin(deadline).describe_topics(
            TopicCollection([topic]),
            include_authorized_operations=with_operations,
            request_timeout=deadline.left,
        )
        return self._answer(futures[topic], deadline)

    def _policy(self, topic: str, deadline: Deadline) -> str | KafkaError:
        """What `cleanup.policy` the topic has, or why that is not told."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        futures = self._admin(deadline).describe_configs([resource], request_timeout=deadline.left)
        try:
            return str(self._answer(futures[resource], deadline)[_POLICY].value)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            return error

    def _offsets(
        self,
        topic: str,
        partitions: Iterable[int],
        spec: OffsetSpec,
        deadline: Deadline,
        level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[int, int]:
        places = {TopicPartition(topic, number): spec for number in partitions}
        answers = self._admin(deadline).list_offsets(
            places, isolation_level=level, request_timeout=deadline.left
        )
        return {p.partition: self._answer(a, deadline).offset for p, a in answers.items()}

    def _admin(self, deadline: Deadline) -> AdminClient:
        if self._admin_client is None:
            first = Deadline(min(self.first_answer_s, deadline.left))
            self._admin_client = connected_admin(self._connection, self._home.topic, first)
        return self._admin_client

    @staticmethod
    def _answer(future: Future[Any], deadline: Deadline) -> Any:
        return future.result(timeout=deadline.left + 1)
