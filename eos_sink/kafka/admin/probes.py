"""Requests that tell what a broker is and what this principal may do, and change nothing.

A permission is looked for with a request that would need it, sent where it comes to nothing:
brokers check the permission before they check whether they are the coordinator (KafkaApis). No
coordinator is looked up, which would make the internal topics on a cluster that has none yet.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.admin.cluster import DescribeQuorumRequest
from kafka.protocol.consumer.group import HeartbeatRequest
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.producer.transaction import EndTxnRequest

from eos_sink.kafka.cluster_facts import Clock, Quorum, Unseen
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Acl, Resource

DESCRIBE_CLUSTER = Acl("Describe", Resource.CLUSTER, "kafka-cluster")

_QUORUM = DescribeQuorumRequest.API_KEY
_METADATA_LOG = "__cluster_metadata"
_CLUSTER_DENIED, _GROUP_DENIED, _ID_DENIED = 31, 30, 53
# What a broker says that is not, or not yet, in charge of the id or the group, or knows neither.
_PERMITTED = {0, 14, 15, 16, 22, 25, 47, 48, 49, 69, 82, 90, 105}
_CONNECT_S = 3.0
_THREADS = 16


class Probes:
    """Over the connections of one admin client."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def api_versions(self, nodes: list[int], deadline: Deadline) -> dict[int, Any]:
        """The answer of each broker; None: there was none."""

        async def ask() -> dict[int, Any]:
            request = partial(
                ApiVersionsRequest, client_software_name="eos-sink", client_software_version="1"
            )
            return await self._wire.gather(
                {node: self._wire.send(request(), node, deadline) for node in nodes}, deadline
            )

        return self._wire.run(ask)

    def quorum(self, node: int, newest: Mapping[int, int], deadline: Deadline) -> Quorum | Unseen:
        """Who leads the controllers. The leader tells when itself has last been up to date with
        itself, which is now by its clock (KIP-836, LeaderState.describeQuorum)."""
        if _QUORUM not in newest:
            return Unseen("the brokers do not tell (no KRaft)")
        topic = DescribeQuorumRequest.TopicData
        partition = topic.PartitionData(partition_index=0)
        request = DescribeQuorumRequest(
            topics=[topic(topic_name=_METADATA_LOG, partitions=[partition])]
        )
        before = _now_ms()
        answer = self._ask(request, node, deadline)
        after = _now_ms()
        if answer is None:
            return Unseen("no answer")
        code = answer.error_code or answer.topics[0].partitions[0].error_code
        if code == _CLUSTER_DENIED:
            return Unseen(f"this principal lacks {DESCRIBE_CLUSTER}", (DESCRIBE_CLUSTER,))
        if code:
            return Unseen(kafka_errors.for_code(code).__name__)
        found = answer.topics[0].partitions[0]
        times = [
            each.last_caught_up_timestamp
            for each in found.current_voters
            if each.replica_id == found.leader_id
        ]
        clock = None
        if times and times[0] and times[0] > 0:
            clock = Clock(f"controller {found.leader_id}", times[0], before, after)
        return Quorum(found.leader_id, clock)

    def may_write(self, transactional_id: str, node: int, deadline: Deadline) -> bool | Unseen:
        """Asks to abort a transaction of an id that nobody uses."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=0,
            producer_epoch=0,
            committed=False,
            max_version=4,
        )
        return _permitted(self._ask(request, node, deadline), _ID_DENIED)

    def may_join(self, group: str, node: int, deadline: Deadline) -> bool | Unseen:
        """Tells that somebody is alive who never joined."""
        request = HeartbeatRequest(
            group_id=group, generation_id=0, member_id="nobody", group_instance_id=None
        )
        return _permitted(self._ask(request, node, deadline), _GROUP_DENIED)

    def _ask(self, request: Any, node: int, deadline: Deadline) -> Any:
        async def ask() -> Any:
            asked = {0: self._wire.send(request, node, deadline)}
            return (await self._wire.gather(asked, deadline))[0]

        return self._wire.run(ask)


def reach(addresses: Mapping[int, tuple[str, int]], deadline: Deadline) -> dict[int, str]:
    """Why each address takes no connection from here; empty where it does."""
    seconds = max(0.1, min(_CONNECT_S, deadline.left))

    def one(address: tuple[str, int]) -> str:
        try:
            socket.create_connection(address, timeout=seconds).close()
        except OSError as error:
            return f"no answer within {seconds:g} s" if _slow(error) else _said(error)
        return ""

    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(addresses, pool.map(one, addresses.values()), strict=True))


def _slow(error: OSError) -> bool:
    return isinstance(error, TimeoutError)


def _said(error: OSError) -> str:
    return error.strerror or str(error)


def _permitted(answer: Any, denied: int) -> bool | Unseen:
    if answer is None:
        return Unseen("no answer")
    if answer.error_code == denied:
        return False
    if answer.error_code in _PERMITTED:
        return True
    return Unseen(kafka_errors.for_code(answer.error_code).__name__)


def _now_ms() -> int:
    return int(time.time() * 1000)
