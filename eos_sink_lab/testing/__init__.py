"""A real Kafka for tests, whose nodes and network can fail; public.

    from eos_sink_lab.testing import start_kafka

    with start_kafka() as kafka:
        kafka.create_topic("orders", partitions=4)
        ...  # kafka.bootstrap_servers

See `start_kafka` for three brokers, other versions, external clusters and containers, and `Faults`
for real crashes of Spark's processes at named points of the protocol.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eos_sink.kafka_config.acls import Acl, Resource
    from eos_sink_lab.testing.backends import Backend, start_kafka
    from eos_sink_lab.testing.cluster_errors import (
        BackendUnavailableError,
        DownloadError,
        JavaNotFoundError,
        NodeControlError,
        NodeFailedError,
        NotReadyError,
        TestClusterError,
    )
    from eos_sink_lab.testing.faults import FaultPoint, Faults, Pass, Strike, Struck, read_timeline
    from eos_sink_lab.testing.faulty_source import FaultyDataSource
    from eos_sink_lab.testing.held_request import HeldRequest
    from eos_sink_lab.testing.java import java_home
    from eos_sink_lab.testing.kafka_cluster import KafkaCluster
    from eos_sink_lab.testing.kafka_node import KafkaNode
    from eos_sink_lab.testing.node_properties import Role
    from eos_sink_lab.testing.security import Security

_NAMES = {
    "access": ("Acl", "Resource"),
    "backends": ("Backend", "start_kafka"),
    "cluster_errors": (
        "BackendUnavailableError",
        "DownloadError",
        "JavaNotFoundError",
        "NodeControlError",
        "NodeFailedError",
        "NotReadyError",
        "TestClusterError",
    ),
    "faults": ("Strike", "FaultPoint", "Faults", "Pass", "Struck", "read_timeline"),
    "faulty_source": ("FaultyDataSource",),
    "held_request": ("HeldRequest",),
    "java": ("java_home",),
    "kafka_cluster": ("KafkaCluster",),
    "kafka_node": ("KafkaNode",),
    "node_properties": ("Role",),
    "security": ("Security",),
}

__all__ = [
    "Acl",
    "Backend",
    "BackendUnavailableError",
    "DownloadError",
    "FaultPoint",
    "Faults",
    "FaultyDataSource",
    "HeldRequest",
    "JavaNotFoundError",
    "KafkaCluster",
    "KafkaNode",
    "NodeControlError",
    "NodeFailedError",
    "NotReadyError",
    "Pass",
    "Resource",
    "Role",
    "Security",
    "Strike",
    "Struck",
    "TestClusterError",
    "java_home",
    "read_timeline",
    "start_kafka",
]


def __getattr__(name: str) -> object:
    """Import on first use: the check of rows needs no cluster, a cluster needs no Spark."""
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
