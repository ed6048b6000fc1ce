"""A real Kafka for tests of your own streams.

    from eos_sink.testing import start_kafka

    with start_kafka() as kafka:
        kafka.create_topic("orders", partitions=4)
        ...  # kafka.bootstrap_servers

See `start_kafka` for three brokers, other versions, external clusters and containers, and `Faults`
for real crashes of Spark's processes at named points of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eos_sink.testing.backends import Backend, start_kafka
from eos_sink.testing.cluster_errors import (
    BackendUnavailableError,
    DownloadError,
    JavaNotFoundError,
    NodeControlError,
    NodeFailedError,
    NotReadyError,
    TestClusterError,
)
from eos_sink.testing.faults import Action, FaultPoint, Faults, Pass, Struck, read_timeline
from eos_sink.testing.java import java_home
from eos_sink.testing.kafka_cluster import KafkaCluster, KafkaNode
from eos_sink.testing.node_properties import Role
from eos_sink.testing.security import Security

if TYPE_CHECKING:
    from eos_sink.testing.fault_gates import FaultyDataSource

__all__ = [
    "Action",
    "Backend",
    "BackendUnavailableError",
    "DownloadError",
    "FaultPoint",
    "Faults",
    "FaultyDataSource",
    "JavaNotFoundError",
    "KafkaCluster",
    "KafkaNode",
    "NodeControlError",
    "NodeFailedError",
    "NotReadyError",
    "Pass",
    "Role",
    "Security",
    "Struck",
    "TestClusterError",
    "java_home",
    "read_timeline",
    "start_kafka",
]


def __getattr__(name: str) -> object:
    """Import the data source lazily: it needs Spark, which a test of Kafka alone does not."""
    if name == "FaultyDataSource":
        from eos_sink.testing.fault_gates import FaultyDataSource

        return FaultyDataSource
    raise AttributeError(name)
