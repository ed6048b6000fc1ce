"""A cluster as `eos-sink doctor` looks at it. Nothing is written, and no topic is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from eos_sink.errors import ClusterError
from eos_sink.kafka.admin.observation import ConfluentObservation
from eos_sink.kafka.admin.probes import Probes, reach
from eos_sink.kafka.cluster import LOG_PARTITIONS
from eos_sink.kafka.cluster_facts import (
    Broker,
    BrokerSetting,
    MemberFacts,
    PartitionFacts,
    Quorum,
    TopicFacts,
    Unseen,
)
from eos_sink.kafka.connection.settings import kafka_python_settings
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, get_meaning
from eos_sink.kafka.transactions import KafkaPythonControl
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.options import SinkOptions

_CLUSTER = "kafka-cluster"
# One broker that does not answer must not take the time of all other questions.
_ANSWER_S = 5.0


class ConfluentSurvey(ConfluentObservation):
    """Implements `eos_sink.kafka.cluster_facts.Survey`. `brokers` has to be called first."""

    def __init__(self, options: SinkOptions) -> None:
        super().__init__(options)
        self._answers: dict[int, Any] = {}

    def brokers(self, deadline: Deadline) -> Sequence[Broker]:
        described = self._answer(
            self._admin(deadline).describe_cluster(request_timeout=deadline.left), deadline
        )
        addresses = {node.id: (node.host, node.port) for node in described.nodes}
        unreachable = reach(addresses, deadline)
        reached = [node for node in addresses if not unreachable[node]]
        if reached:
            self._begin([addresses[node] for node in reached], deadline)
        soon = deadline.within(_ANSWER_S)
        answers = self._probes().api_versions(reached, soon) if reached else {}
        self._answers = {node: answer for node, answer in answers.items() if answer}
        settings = self._broker_settings(reached, deadline)
        return [
            Broker(
                id=node,
                address=f"{host}:{port}",
                unreachable=unreachable[node] or self._silent(node),
                newest=self._newest(node),
                settings=settings.get(node, Unseen("it cannot be reached")),
            )
            for node, (host, port) in sorted(addresses.items())
        ]

    def features(self, deadline: Deadline) -> Mapping[str, int] | Unseen:  # noqa: ARG002
        """As the broker tells that knows most of them; they come with ApiVersions."""
        told = [a for a in self._answers.values() if getattr(a, "finalized_features_epoch", -1) > 0]
        if not told:
            return Unseen("no broker tells")
        latest = max(told, key=lambda answer: answer.finalized_features_epoch)
        return {each.name: each.max_version_level for each in latest.finalized_features or ()}

    def quorum(self, deadline: Deadline) -> Quorum | Unseen:
        node = self._any()
        if node is None:
            return Unseen("no broker can be reached")
        newest = self._newest(node)
        assert not isinstance(newest, Unseen)
        return self._probes().quorum(node, newest, deadline.within(_ANSWER_S))

    def topics(
        self, names: Sequence[str], deadline: Deadline
    ) -> Mapping[str, TopicFacts | Unseen | None]:
        if not names:
            return {}
        futures = self._admin(deadline).describe_topics(
            TopicCollection(list(dict.fromkeys(names))),
            include_authorized_operations=True,
            request_timeout=deadline.left,
        )
        return {name: self._topic(name, future, deadline) for name, future in futures.items()}

    def refusal_to_make(self, topic: str, copies: int, deadline: Deadline) -> str | Unseen:
        new = NewTopic(topic, LOG_PARTITIONS, copies)
        futures = self._admin(deadline).create_topics(
            [new], validate_only=True, request_timeout=deadline.within(_ANSWER_S).left
        )
        try:
            self._answer(futures[topic], deadline)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if get_meaning(error.code()) is Meaning.DENIED:
                return f"this principal lacks {self._permissions.log_create}"
            return _failed(error) if error.retriable() else str(error.str())
        return ""

    def may_write(self, transactional_id: str, deadline: Deadline) -> bool | Unseen:
        node = self._any()
        if node is None:
            return Unseen("no broker can be reached")
        soon = deadline.within(_ANSWER_S)
        return self._probes().may_write(transactional_id, node, soon)

    def may_join(self, group: str, deadline: Deadline) -> bool | Unseen:
        node = self._any()
        if node is None:
            return Unseen("no broker can be reached")
        return self._probes().may_join(group, node, deadline.within(_ANSWER_S))

    def groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        soon = deadline.within(_ANSWER_S)
        try:
            listed = self._answer(
                self._admin(deadline).list_consumer_groups(request_timeout=soon.left), deadline
            )
        except KafkaException as raised:
            return _failed(raised.args[0])
        if listed.errors:
            # Each broker lists its own, so what there is would be told in part only.
            return Unseen(f"not all brokers tell: {listed.errors[0]}")
        names = (str(group.group_id) for group in listed.valid)
        return sorted(name for name in names if name.startswith(prefix))

    def group_members(self, group: str, deadline: Deadline) -> Sequence[MemberFacts] | Unseen:
        futures = self._admin(deadline).describe_consumer_groups(
            [group], request_timeout=deadline.within(_ANSWER_S).left
        )
        try:
            described = self._answer(futures[group], deadline)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError.GROUP_ID_NOT_FOUND:
                return ()
            return _failed(error, Acl("Describe", Resource.GROUP, group))
        return [
            MemberFacts(str(each.group_instance_id or ""), str(each.client_id), str(each.host))
            for each in described.members
        ]

    def _begin(self, addresses: Sequence[tuple[str, int]], deadline: Deadline) -> None:
        """Let kafka-python begin with each broker in turn: it would choose one of them by chance,
        and give up if that one takes connections and never answers."""
        if self._control is not None:
            return
        settings = kafka_python_settings(self._connection)
        for number, (host, port) in enumerate(addresses, start=1):
            begin = {**settings, "bootstrap_servers": [f"{host}:{port}"]}
            try:
                soon = deadline.within(_ANSWER_S)
                self._control = KafkaPythonControl(begin, self._permissions.transactions, soon)
            except ClusterError:
                if number == len(addresses):
                    raise
            else:
                return

    def _topic(self, name: str, future: Any, deadline: Deadline) -> TopicFacts | Unseen | None:
        try:
            described = self._answer(future, deadline)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            needed = [Acl(each, Resource.TOPIC, name) for each in ("Describe", "DescribeConfigs")]
            return _failed(error, *needed)
        operations = described.authorized_operations
        return TopicFacts(
            name=name,
            partitions={
                part.id: PartitionFacts(
                    -1 if part.leader is None else part.leader.id, len(part.replicas), len(part.isr)
                )
                for part in described.partitions
            },
            settings=self._topic_settings(name, deadline),
            allowed=None if operations is None else frozenset(each.name for each in operations),
        )

    def _topic_settings(self, topic: str, deadline: Deadline) -> Mapping[str, str] | Unseen:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = self._settings(resource, deadline)
        if isinstance(found, KafkaError):
            return _failed(found, Acl("DescribeConfigs", Resource.TOPIC, topic))
        return {name: str(entry.value) for name, entry in found.items()}

    def _broker_settings(
        self, nodes: Sequence[int], deadline: Deadline
    ) -> dict[int, Mapping[str, BrokerSetting] | Unseen]:
        seen: dict[int, Mapping[str, BrokerSetting] | Unseen] = {}
        for node in nodes:
            found = self._settings(ConfigResource(ResourceType.BROKER, str(node)), deadline)
            if isinstance(found, KafkaError):
                seen[node] = _failed(found, Acl("DescribeConfigs", Resource.CLUSTER, _CLUSTER))
            else:
                seen[node] = {
                    name: BrokerSetting(str(entry.value), bool(entry.is_read_only))
                    for name, entry in found.items()
                }
        return seen

    def _settings(self, resource: ConfigResource, deadline: Deadline) -> Any:
        """The entries by name, or a KafkaError."""
        futures = self._admin(deadline).describe_configs(
            [resource], request_timeout=deadline.within(_ANSWER_S).left
        )
        try:
            return self._answer(futures[resource], deadline)
        except KafkaException as raised:
            return raised.args[0]

    def _newest(self, node: int) -> Mapping[int, int] | Unseen:
        answer = self._answers.get(node)
        if answer is None:
            return Unseen("it cannot be reached")
        return {api.api_key: api.max_version for api in answer.api_keys}

    def _silent(self, node: int) -> str:
        return "" if node in self._answers else "it takes connections, and answers no request"

    def _any(self) -> int | None:
        return next(iter(self._answers), None)

    def _probes(self) -> Probes:
        return Probes(self.control().wire)


def _failed(error: KafkaError, *needed: Acl) -> Unseen:
    """The first one is what was refused, all of them are what would show everything."""
    if get_meaning(error.code()) is Meaning.DENIED and needed:
        return Unseen(f"this principal lacks {needed[0]}", needed)
    return Unseen(error.str().rstrip("."))
