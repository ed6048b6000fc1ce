"""Brokers, controllers and permissions, asked with requests that change nothing.

A permission is checked with a request that needs it, sent where it has no effect: brokers check
the permission before they check whether they are the coordinator (KafkaApis). No coordinator is
looked up, since that would create the internal topics on a cluster that has none yet.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import KafkaError
from kafka import errors as kafka_errors
from kafka.protocol.admin.cluster import DescribeQuorumRequest
from kafka.protocol.consumer.group import HeartbeatRequest
from kafka.protocol.producer.transaction import EndTxnRequest

from eos_sink.kafka.admin_interface import Broker, BrokerSetting, Clock, Quorum
from eos_sink.kafka.admin_requests import (
    ANSWER_S,
    BROKER,
    describe_configs,
    list_brokers,
    unseen,
)
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import is_denied, proves_permission
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.kafka_config.cluster_config import ClusterConfig

_CLUSTER = "kafka-cluster"
_DESCRIBE_CLUSTER = Acl("Describe", Resource.CLUSTER, _CLUSTER)
_CONNECT_S = 3.0
_THREADS = 16


class BrokerAdmin(ConfluentKafka):
    """The questions of `Admin` about brokers. `describe_brokers` has to be called first."""

    def __init__(self, config: ClusterConfig, first_answer_s: float) -> None:
        super().__init__(config, first_answer_s)
        self._versions: dict[int, Any] = {}

    def describe_brokers(self, deadline: Deadline) -> Sequence[Broker]:
        wire = self.control().wire
        addresses = list_brokers(wire, deadline)
        unreachable = _find_unreachable(addresses, deadline)
        reached = [number for number in addresses if not unreachable[number]]
        answers = self._ask({number: wire.versions_request() for number in reached}, deadline)
        self._versions = {number: answer for number, answer in answers.items() if answer}
        configs = describe_configs(wire, BROKER, map(str, reached), deadline.within(ANSWER_S))
        settings = {int(number): _read_settings(found) for number, found in configs.items()}
        silent = "it takes connections, and answers no request"
        return [
            Broker(
                id=number,
                address=f"{host}:{port}",
                unreachable=unreachable[number] or ("" if number in self._versions else silent),
                newest={api.api_key: api.max_version for api in self._versions[number].api_keys}
                if number in self._versions
                else Unseen("it cannot be reached"),
                settings=settings.get(number, Unseen("it cannot be reached")),
            )
            for number, (host, port) in sorted(addresses.items())
        ]

    def describe_features(self, deadline: Deadline) -> Mapping[str, int] | Unseen:  # noqa: ARG002
        """From the broker with the latest ones; they come with ApiVersions."""
        answers = [
            answer
            for answer in self._versions.values()
            if getattr(answer, "finalized_features_epoch", -1) > 0
        ]
        if not answers:
            return Unseen("no broker reports them")
        latest = max(answers, key=lambda answer: int(answer.finalized_features_epoch))
        return {each.name: each.max_version_level for each in latest.finalized_features or ()}

    def describe_quorum(self, deadline: Deadline) -> Quorum | Unseen:
        """The leader says when it was last up to date with itself, which is now by its clock
        (KIP-836, LeaderState.describeQuorum)."""
        supported = next(iter(self._versions.values()), None)
        if supported and not any(
            api.api_key == DescribeQuorumRequest.API_KEY for api in supported.api_keys
        ):
            return Unseen("the brokers do not report it (no KRaft)")
        topic = DescribeQuorumRequest.TopicData
        partitions = [topic.PartitionData(partition_index=0)]
        request = DescribeQuorumRequest(
            topics=[topic(topic_name="__cluster_metadata", partitions=partitions)]
        )
        before_ms = _now_ms()
        answer = self._ask_any(request, deadline)
        after_ms = _now_ms()
        if isinstance(answer, Unseen):
            return answer
        code = answer.error_code or answer.topics[0].partitions[0].error_code
        if is_denied(code):
            return Unseen(f"this principal lacks {_DESCRIBE_CLUSTER}", (_DESCRIBE_CLUSTER,))
        if code:
            return Unseen(kafka_errors.for_code(code).__name__)
        found = answer.topics[0].partitions[0]
        times = [
            each.last_caught_up_timestamp
            for each in found.current_voters
            if each.replica_id == found.leader_id
        ]
        if not times or not times[0] or times[0] < 0:
            return Quorum(found.leader_id)
        clock = Clock(f"controller {found.leader_id}", times[0], before_ms, after_ms)
        return Quorum(found.leader_id, clock)

    def may_write(self, transactional_id: str, deadline: Deadline) -> bool | Unseen:
        """Asks to abort a transaction of an unused id."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=0,
            producer_epoch=0,
            committed=False,
            max_version=4,
        )
        return self._is_permitted(request, deadline)

    def may_join(self, group: str, deadline: Deadline) -> bool | Unseen:
        """Sends the heartbeat of a member that never joined."""
        request = HeartbeatRequest(
            group_id=group, generation_id=0, member_id="nobody", group_instance_id=None
        )
        return self._is_permitted(request, deadline)

    def _is_permitted(self, request: Any, deadline: Deadline) -> bool | Unseen:
        answer = self._ask_any(request, deadline)
        if isinstance(answer, Unseen):
            return answer
        if is_denied(answer.error_code):
            return False
        if proves_permission(answer.error_code):
            return True
        return Unseen(kafka_errors.for_code(answer.error_code).__name__)

    def _ask_any(self, request: Any, deadline: Deadline) -> Any:
        """The answer of a broker that answered before, or Unseen."""
        node = next(iter(self._versions), None)
        if node is None:
            return Unseen("no broker can be reached")
        return self._ask({node: request}, deadline)[node] or Unseen("no answer")

    def _ask(self, requests: Mapping[int, Any], deadline: Deadline) -> dict[int, Any]:
        """The answer of each broker; None: there was none."""
        wire = self.control().wire
        return wire.run(wire.ask_each, requests, deadline.within(ANSWER_S))


def _read_settings(found: Mapping[str, Any] | KafkaError) -> Mapping[str, BrokerSetting] | Unseen:
    if isinstance(found, KafkaError):
        return unseen(found, Acl("DescribeConfigs", Resource.CLUSTER, _CLUSTER))
    return {
        name: BrokerSetting(str(entry.value), bool(entry.read_only))
        for name, entry in found.items()
    }


def _find_unreachable(
    addresses: Mapping[int, tuple[str, int]], deadline: Deadline
) -> dict[int, str]:
    """Why each address takes no connection from here; empty where it does."""
    seconds = max(0.1, min(_CONNECT_S, deadline.left))

    def connect(address: tuple[str, int]) -> str:
        try:
            socket.create_connection(address, timeout=seconds).close()
        except TimeoutError:
            return f"no answer within {seconds:g} s"
        except OSError as error:
            return error.strerror or str(error)
        return ""

    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(addresses, pool.map(connect, addresses.values()), strict=True))


def _now_ms() -> int:
    return int(time.time() * 1000)
