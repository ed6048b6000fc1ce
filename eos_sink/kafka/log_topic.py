"""The decision log's topic: how it is created, and what is checked of one that exists."""

from __future__ import annotations

import zlib

from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import LOGGER, convert_error
from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.shell import quote

# Fixed, since a query's key is searched in one partition: with another number it would be searched
# in another one, and a decision would seem never to have been made.
LOG_PARTITIONS = 8
_POLICY = "cleanup.policy"
LOG_CONFIGURATION = {
    _POLICY: "compact",
    # A decision has about 100 bytes a task.
    "max.message.bytes": str(16 * 1024 * 1024),
    # A start reads a whole partition, so superseded records must not pile up to Kafka's 1 GB.
    "segment.bytes": str(32 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "unclean.leader.election.enable": "false",
    # Brokers refuse a record whose time is more than an hour ahead of theirs (KIP-937), which the
    # clock of a driver may be.
    "message.timestamp.type": "LogAppendTime",
}
_SETTING_REFUSED = (
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_REQUEST,
    KafkaError.POLICY_VIOLATION,
)


def home_of(name: str) -> int:
    """The partition of the decision log that has the records of a query, or a subject's claims."""
    return zlib.crc32(name.encode()) % LOG_PARTITIONS


def may_be_log(topic: TopicDescription) -> bool:
    """True if `LogTopic.ensure` would take the topic, as far as it can be seen."""
    policy = topic.setting(_POLICY)
    return len(topic.partitions) == LOG_PARTITIONS and policy in (None, LOG_CONFIGURATION[_POLICY])


class LogTopic:
    """The topic of a decision log.

    Args:
        clients: of its cluster.
    """

    def __init__(self, clients: SharedClients) -> None:
        self._clients = clients
        self._name = clients.config.log_topic
        self._policy_checked = False

    def ensure(self, deadline: Deadline) -> None:
        """Create the topic where it is missing; check it where it exists.

        Raises:
            ClusterError: it may not be seen, used or created.
            ConfigurationError: it has another shape than the sink needs.
        """
        # Tasks know the log's name and need none of its requests.
        from eos_sink.kafka.admin_requests import describe_usable_topic

        permissions = self._clients.permissions
        needs = (permissions.log_read, permissions.log_write)

        def describe() -> TopicDescription | KafkaError:
            wire, settings = self._clients.control().wire, not self._policy_checked
            return describe_usable_topic(wire, self._name, needs, deadline, settings=settings)

        topic = describe()
        existed = isinstance(topic, TopicDescription)
        if isinstance(topic, KafkaError):
            if topic.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise convert_error(topic, f"The decision log {self._name} cannot be seen", needs)
            self._create(deadline)
            # The next broker that is asked may not know it yet.
            topic = retry_until(deadline, describe, lambda it: isinstance(it, TopicDescription))
        if isinstance(topic, KafkaError):
            raise ClusterError(
                f"The decision log {self._name} was created but cannot be seen: {topic.str()}.",
                remedy="Look at the brokers, then start the query again.",
            )
        partitions = len(topic.partitions)
        if partitions < LOG_PARTITIONS:
            raise ConfigurationError(
                f"The decision log {self._name} has {partitions} partitions instead of "
                f"{LOG_PARTITIONS}: decisions would be searched in the wrong place.",
                remedy="Name another topic with option eos.log.topic and let the sink create it, "
                f"or create it with {LOG_PARTITIONS} partitions and cleanup.policy=compact. "
                "Nothing was written.",
            )
        if existed and not self._policy_checked:
            self._check_policy(topic)
            self._policy_checked = True

    def _check_policy(self, topic: TopicDescription) -> None:
        policy, wanted = topic.setting(_POLICY), LOG_CONFIGURATION[_POLICY]
        if isinstance(topic.settings, Unseen):
            LOGGER.warning(
                "The sink may not see whether the decision log %s is compacted (%s). If it is not, "
                "decisions are deleted with time. DescribeConfigs on the topic shows it.",
                topic.name,
                topic.settings.why,
            )
        elif policy != wanted:
            raise ConfigurationError(
                f"The decision log {topic.name} has {_POLICY}={policy} instead of {wanted}: "
                "decisions would be deleted with time.",
                remedy="If it has anything but decisions, name another topic (eos.log.topic, "
                "--log-topic): compaction would delete its rows. Nothing was written. If it is the "
                "log:\nkafka-configs --bootstrap-server HOST:PORT --alter --entity-type topics "
                f"--entity-name {quote(topic.name)} --add-config {_POLICY}={wanted}",
                data={"topic": topic.name, _POLICY: policy},
            )

    def _create(self, deadline: Deadline) -> None:
        from eos_sink.kafka.admin_requests import create_topic, list_brokers

        what = f"The decision log {self._name} does not exist and could not be created"
        needs = [self._clients.permissions.log_create]
        wire = self._clients.control().wire
        wanted = copies = self._clients.config.log_replication
        policy_alone = False

        def create() -> KafkaError | None:
            settings = {_POLICY: LOG_CONFIGURATION[_POLICY]}
            if not policy_alone:
                in_sync = 2 if copies > 2 else 1
                settings = {**LOG_CONFIGURATION, "min.insync.replicas": str(in_sync)}
            return create_topic(wire, self._name, LOG_PARTITIONS, copies, settings, deadline)

        # Kafka checks some settings before it places the copies, and a policy after that.
        while (error := create()) is not None:
            if error.code() in _SETTING_REFUSED and not policy_alone:
                # Managed clusters let users choose only some settings, within narrower limits.
                LOGGER.warning(
                    "The decision log %s is created with %s alone, since the cluster refuses other "
                    "settings (%s). eos-sink doctor says what that costs.",
                    self._name,
                    _POLICY,
                    error.str(),
                )
                policy_alone = True
            elif (
                error.code() == KafkaError.INVALID_REPLICATION_FACTOR
                # Asked for only now: Kafka may give copies to brokers that are down.
                and (brokers := len(list_brokers(wire, deadline))) < copies
            ):
                copies = brokers
                LOGGER.warning(
                    "The decision log %s is created with replication factor %d instead of %d, "
                    "since Kafka refuses that (%s). Decisions are lost if no broker with a copy is "
                    "left. When there are enough brokers, raise it with "
                    "kafka-reassign-partitions.sh; eos-sink doctor then says what else to set. On "
                    "a cluster that has fewer brokers on purpose, set eos.log.replication.factor "
                    "to %d.",
                    self._name,
                    copies,
                    wanted,
                    error.str(),
                    copies,
                )
            elif error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            else:
                raise convert_error(error, what, needs)
