"""A real Kafka for tests of your own streams.

    from eos_sink.testing import start_kafka

    with start_kafka() as kafka:
        kafka.create_topic("orders", partitions=4)
        ...  # kafka.bootstrap_servers

See `start_kafka` for three brokers, other versions, given clusters and containers.
"""

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
from eos_sink.testing.interface import KafkaCluster, KafkaNode, Role
from eos_sink.testing.jvm import java_home

__all__ = [
    "Backend",
    "BackendUnavailableError",
    "DownloadError",
    "JavaNotFoundError",
    "KafkaCluster",
    "KafkaNode",
    "NodeControlError",
    "NodeFailedError",
    "NotReadyError",
    "Role",
    "TestClusterError",
    "java_home",
    "start_kafka",
]
