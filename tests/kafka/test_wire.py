"""The private parts of kafka-python that `eos_sink.kafka.wire` uses are where it expects them.

A failure here after an update of kafka-python means: look at that module before anything else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.cluster import ClusterMetadata
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataResponse
from kafka.protocol.producer.transaction import EndTxnRequest

from eos_sink.kafka.wire import Wire


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def test_an_admin_client_sets_its_connection_manager() -> None:
    assert "self._manager = " in inspect.getsource(KafkaAdminClient.__init__)


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
