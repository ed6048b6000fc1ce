"""A real Kafka for tests of your own streams.

    from eos_sink.testing import start_kafka

    with start_kafka() as kafka:
        kafka.create_topic("orders", partitions=4)
        ...  # kafka.bootstrap_servers

See `start_kafka` for three brokers, other versions, given clusters and containers, and `Faults` for
real crashes of Spark's processes at named points of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eos_sink.testing.cluster import Backend, start_kafka
from eos_sink.testing.errors import (
    BackendUnavailableError,
    DownloadError,
    JavaNotFoundError,
    NodeControlError,
    NodeFailedError,
    NotReadyError,
    TestClusterError,
)
from eos_sink.testing.faults import Action, FaultPoint, Faults, Struck
from eos_sink.testing.interface import KafkaCluster, KafkaNode, Role
from eos_sink.testing.jvm import java_home
from eos_sink.testing.security import Security
from eos_sink.testing.timeline import Pass, read_timeline

if TYPE_CHECKING:
    from eos_sink.testing.gates import FaultyDataSource

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
    """The data source brings Spark and the sink's clients, which a test of Kafka alone spares."""
    if name == "FaultyDataSource":
        from eos_sink.testing.gates import FaultyDataSource

        return FaultyDataSource
    raise AttributeError(name)
