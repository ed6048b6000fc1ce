"""Requests over kafka-python's connections end in time, and what they use of it is there.

A failure here after an update of kafka-python means: look at `eos_sink.kafka.wire` first.
"""

from __future__ import annotations

import inspect
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka.cluster import ClusterMetadata
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import (
    CoordinatorType,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer.produce import ProduceRequest
from kafka.protocol.producer.transaction import EndTxnRequest

from eos_sink.errors import ClusterError
from eos_sink.kafka.connection.settings import kafka_python_settings
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.wire import _ATTEMPT_S, Leader, Wire, _has_no_secret


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("method", "used"),
    [
        (KafkaConnectionManager.send, {"request", "node_id", "request_timeout_ms"}),
        (KafkaConnectionManager.run, {"coro"}),
        (ClusterMetadata.refresh_metadata, set()),
        (ClusterMetadata.brokers, set()),
        (ClusterMetadata.get_coordinator, set()),
        (ClusterMetadata.add_coordinator, {"synthesize_node_id"}),
    ],
)
def test_what_is_called_takes_what_is_given(method: Callable[..., Any], used: set[str]) -> None:
    assert used <= parameters(method)


def unconnected() -> tuple[Wire, ClusterMetadata]:
    wire = Wire.__new__(Wire)
    cluster = ClusterMetadata(bootstrap_servers=["nowhere:1"])
    wire._manager = type("Manager", (), {"cluster": cluster})()
    return wire, cluster


def test_a_coordinator_is_kept_under_type_and_key_and_can_be_forgotten() -> None:
    wire, cluster = unconnected()
    row = type("Row", (), {"key": "id", "node_id": 3, "host": "h", "port": 1, "error_code": 0})()
    assert wire.get_coordinator("id") is None
    wire.remember_coordinator(row)
    assert wire.get_coordinator("id") == 3
    assert cluster.get_coordinator("id", CoordinatorType.TRANSACTION) == 3
    wire.forget_coordinator("id")
    wire.forget_coordinator("never known")
    assert wire.get_coordinator("id") is None


def test_a_lane_is_a_node_of_its_own_at_the_address_that_its_broker_has_now() -> None:
    wire, cluster = unconnected()
    broker = MetadataResponse.MetadataResponseBroker
    for port in (1, 2):
        cluster._brokers[3] = broker(3, "h", port, None)
        assert wire.get_lane(3, 0) == 3
        lanes = [wire.get_lane(3, number) for number in (1, 2)]
        assert len({3, *lanes}) == 3
        found = [cluster.broker_metadata(lane) for lane in lanes]
        assert [(each.host, each.port) for each in found] == [("h", port)] * 2
    assert [each.node_id for each in cluster.brokers()] == [3]


def test_a_lane_of_a_broker_that_is_not_known_is_that_broker() -> None:
    assert unconnected()[0].get_lane(3, 1) == 3


def test_coordinators_are_asked_for_all_at_once() -> None:
    request = Wire.find_coordinators_request(["a", "b"])
    assert isinstance(request, FindCoordinatorRequest)
    assert request.coordinator_keys == ["a", "b"]
    assert request.key_type == CoordinatorType.TRANSACTION.value


def test_end_txn_can_be_kept_at_the_version_that_may_be_repeated() -> None:
    request = EndTxnRequest(
        transactional_id="t", producer_id=1, producer_epoch=0, committed=True, max_version=4
    )
    newest = BrokerVersionData((4, 0), {EndTxnRequest.API_KEY: (0, 5)})
    assert newest.api_version(request) == 4


def test_a_bootstrap_that_fails_leaves_no_thread() -> None:
    # Files cannot be counted here: the errors that pytest captures hold sockets.
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        before = threading.active_count()
        for _ in range(3):
            with pytest.raises(ClusterError):
                Wire(kafka_python_settings({"bootstrap.servers": address}), Deadline(0.2))
        assert threading.active_count() <= before


class Managed:
    """A wire on an event loop, with a manager that connects to nothing."""

    def __init__(self) -> None:
        self.manager = KafkaConnectionManager(NetworkSelector())
        self.manager._net.start()
        self.wire = Wire.__new__(Wire)
        self.wire._manager = self.manager
        self.wire._leaders = {}


@pytest.fixture
def managed() -> Iterator[Managed]:
    managed = Managed()
    yield managed
    managed.manager.close()
    managed.manager._net.close()


def test_requests_that_wait_for_a_connection_are_given_up_at_the_deadline(managed: Managed) -> None:
    """kafka-python gives them up when the connection is, after ten seconds."""
    never = {number: Future() for number in range(3)}
    began = time.monotonic()
    found = managed.wire.run(managed.wire.gather, never, Deadline(0.2))
    assert found == dict.fromkeys(never)
    assert time.monotonic() - began < _ATTEMPT_S / 2


def test_metadata_that_does_not_come_is_given_up_at_the_deadline(managed: Managed) -> None:
    silent = Future()

    async def refresh() -> None:
        await silent

    managed.manager.cluster.refresh_metadata = refresh
    began = time.monotonic()
    assert managed.wire.run(managed.wire.list_brokers, Deadline(0.2)) is None
    assert time.monotonic() - began < _ATTEMPT_S / 2


def test_a_broker_that_was_down_when_the_metadata_came_is_asked_again(managed: Managed) -> None:
    """librdkafka names it as a leader; kafka-python would learn of it within five minutes."""
    deadline, asked = Deadline(5), list[bool]()
    managed.manager.cluster.request_update = lambda: asked.append(True)

    async def ask() -> object:
        return await managed.wire.gather({0: managed.wire.send(None, 7, deadline)}, deadline)

    assert managed.wire.run(ask) == {0: None}
    assert asked


def metadata(**topics: list[tuple[int, int, int]] | int) -> Any:
    """A response. Of each topic its error code, or index, leader and leader epoch of partitions."""
    row, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
    part = row.MetadataResponsePartition
    rows = [
        row(name=name, error_code=code, partitions=[])
        if isinstance(code, int)
        else row(
            name=name,
            error_code=0,
            partitions=[
                part(
                    error_code=0 if node >= 0 else 5,
                    partition_index=n,
                    leader_id=node,
                    leader_epoch=epoch,
                )
                for n, node, epoch in code
            ],
        )
        for name, code in topics.items()
    ]
    return MetadataResponse(
        version=9,
        brokers=[broker(1, "h", 1, None, version=9)],
        controller_id=1,
        cluster_id="c",
        topics=rows,
    )


def test_a_leader_is_asked_for_once_until_it_is_forgotten(managed: Managed) -> None:
    asked: list[Any] = []

    def send(request: Any, **_: Any) -> Any:
        asked.append(request)
        return Future().success(metadata(a=[(0, 1, 7), (1, -1, -1)], denied=29))

    managed.manager.send = send
    places = [("a", 0), ("a", 1), ("a", 2), ("denied", 0)]

    def find(places: list[tuple[str, int]]) -> dict[tuple[str, int], Leader | int]:
        return managed.wire.run(managed.wire.find_leaders, places, Deadline(5))

    expected = [Leader(1, 7), 5, 3, 29]
    assert find(places) == dict(zip(places, expected, strict=True))
    assert find(places[:1]) == {("a", 0): Leader(1, 7)}
    assert len(asked) == 1
    assert {topic.name for topic in asked[0].topics} == {"a", "denied"}
    assert not asked[0].allow_auto_topic_creation
    managed.wire.forget_leader(("a", 0))
    managed.wire.forget_leader(("never", 0))
    assert find(places[:1]) == {("a", 0): Leader(1, 7)}
    assert len(asked) == 2


def test_metadata_can_be_asked_for_without_creating_topics() -> None:
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name="a")], allow_auto_topic_creation=False
    )
    version = BrokerVersionData((4, 0)).api_version(request)
    assert request.encode(version=version)


def test_rows_and_logins_are_not_logged() -> None:
    def passes(*arguments: object) -> bool:
        return _has_no_secret(logging.LogRecord("kafka", 10, "", 0, "%s %s", arguments, None))

    row = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=1, topic_data=[])
    assert not passes("a connection", row)
    assert not passes("a connection", b"bytes")
    assert passes("a connection", EndTxnRequest(transactional_id="t"))
