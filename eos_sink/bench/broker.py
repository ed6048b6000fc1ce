"""A broker of one's own to measure on."""

from __future__ import annotations

from eos_sink.testing import KafkaCluster
from eos_sink.testing.local_cluster import start_local
from eos_sink.testing.owned_cluster import ClusterSpec
from eos_sink.testing.waiting import Progress

# A test's broker lives for seconds; this one is to show what a broker costs that has long run.
_LASTING = ("-XX:TieredStopAtLevel=4", "-Xms1g", "-Xmx1g")
_PROPERTIES = {
    "num.network.threads": 3,
    "num.io.threads": 8,
}
"""Kafka's own defaults, which tests make smaller."""


def start_broker(version: str, progress: Progress) -> KafkaCluster:
    """One broker on this machine, compiled in full and with the heap that Kafka's scripts give it.

    Raises:
        TestClusterError: it cannot be brought or does not start.
    """
    spec = ClusterSpec(version=version, properties=_PROPERTIES, progress=progress, jvm=_LASTING)
    return start_local(spec)
