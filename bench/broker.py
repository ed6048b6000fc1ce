"""The broker to measure on, and its topics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from confluent_kafka.admin import AdminClient

from eos_sink_lab.testing.local_cluster import LocalCluster, start_local
from eos_sink_lab.testing.owned_cluster import ClusterSpec
from eos_sink_lab.testing.waiting import Progress

_ANSWERS_WITHIN_S = 20.0
_SMALL_SEGMENTS = {"file.delete.delay.ms": "1000"}
# A test's broker lives for seconds; this one shows the cost of a broker that has run for long.
_LASTING = ("-XX:TieredStopAtLevel=4", "-Xms1g", "-Xmx1g")


def start_broker(version: str, progress: Progress, *, proxied: bool = False) -> LocalCluster:
    """One broker on this machine, fully compiled, with the heap and threads of Kafka's defaults.

    Args:
        proxied: clients reach it through a link that can be delayed.

    Raises:
        TestClusterError: it cannot be downloaded or does not start.
    """
    properties: dict[str, object] = {"num.network.threads": 3, "num.io.threads": 8}
    spec = ClusterSpec(
        version=version,
        properties=properties,
        progress=progress,
        proxied=proxied,
        jvm=_LASTING,
    )
    return start_local(spec)


@contextlib.contextmanager
def topic_for(kafka: LocalCluster, name: str, partitions: int) -> Iterator[str]:
    """Create a topic, and delete it afterwards, so that it does not fill the disk.

    Raises:
        TestClusterError: it cannot be created.
        KafkaException, TimeoutError: it cannot be deleted.
    """
    kafka.create_topic(name, partitions, config=_SMALL_SEGMENTS)
    try:
        yield name
    finally:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.delete_topics([name])[name].result(timeout=_ANSWERS_WITHIN_S)
