"""The private attributes of kafka-python that are used here are there.

It runs with the release that is installed; with another one, look at `eos_sink.kafka.internals`.
`test_fetch` decompresses batches of each codec.
"""

from __future__ import annotations

import inspect
import socket

import pytest
from kafka import KafkaAdminClient
from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataResponse

from eos_sink.kafka.internals import _Manager, add_node, forget_coordinator


def test_a_tls_handshake_that_is_not_answered_is_given_up() -> None:
    """A broker that stands still, on a machine that takes connections. Whatever joined a refresh of
    the metadata through this connection would wait, too."""
    manager = _Manager(
        NetworkSelector(), security_protocol="SSL", socket_connection_setup_timeout_ms=200
    )
    manager._net.start()
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            broker = MetadataResponse.MetadataResponseBroker
            add_node(manager.cluster, broker(7, *silent.getsockname(), None))

            async def connect() -> None:
                await manager.get_connection(7)

            with pytest.raises(KafkaConnectionError, match="no TLS handshake, in time"):
                manager.run(connect)
            assert 7 not in manager._conns
    finally:
        manager.close()
        manager._net.close()


@pytest.mark.parametrize("attribute", ["_manager", "_net", "_closed"])
def test_an_admin_client_sets_them(attribute: str) -> None:
    assert f"self.{attribute} = " in inspect.getsource(KafkaAdminClient.__init__)


def test_a_node_that_is_added_has_an_address() -> None:
    cluster = ClusterMetadata(bootstrap_servers=["nowhere:1"])
    assert cluster.broker_metadata("a lane") is None
    add_node(cluster, MetadataResponse.MetadataResponseBroker("a lane", "h", 2, None))
    found = cluster.broker_metadata("a lane")
    assert (found.host, found.port) == ("h", 2)


def test_a_coordinator_is_kept_under_its_kind_and_name() -> None:
    cluster = ClusterMetadata(bootstrap_servers=["nowhere:1"])
    cluster._coordinators["kind", "name"] = 3
    forget_coordinator(cluster, "kind", "name")
    forget_coordinator(cluster, "kind", "name")
    assert "self._coordinators" in inspect.getsource(ClusterMetadata.get_coordinator)


def test_what_a_client_closes_as_idle_can_be_chosen() -> None:
    source = inspect.getsource(KafkaConnectionManager.close_idle_connections)
    assert "in self.least_used_connections():" in source


@pytest.mark.parametrize(
    ("error", "is_refusal"),
    [
        (KafkaConnectionError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] expired"), True),
        (KafkaConnectionError("[SSL: SSLV3_ALERT_CERTIFICATE_UNKNOWN] ssl/tls alert"), True),
        (SaslAuthenticationFailedError("Too many connects"), True),
        (KafkaConnectionError("Handshake failed: [Errno 104] Connection reset by peer"), False),
        (KafkaConnectionError("[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred"), False),
    ],
)
def test_only_a_refusal_is_kept_as_the_reason_of_silence(
    error: Exception, is_refusal: bool
) -> None:
    manager = _Manager.__new__(_Manager)
    manager.refused, manager.cluster = {}, ClusterMetadata(bootstrap_servers=["nowhere:1"])
    add_node(manager.cluster, MetadataResponse.MetadataResponseBroker(7, "host", 2, None))
    manager._note_refusal(7, error)
    assert [text.startswith("host:2: ") for text in manager.refused.values()] == [True] * is_refusal
