"""Declared destinations on a real broker: looked at first, and rows for elsewhere are not sent."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Permissions
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.topic_scan import Offsets, Source
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.topics import copies_in_sync, new_topic


def test_only_what_is_declared_is_written(kafka: KafkaCluster, run: MakeRun) -> None:
    whole, part, other = (new_topic(kafka, name) for name in ("whole", "part", "other"))
    query = run(kafka, eos_destinations=f"{whole}, {part}:1-2")
    query.write(value=["a", "b"], topic=[whole, part], partition=pa.array([0, 2], pa.int32()))
    for topic, number in ((other, 0), (part, 0), (part, None)):
        partition = pa.array([1, number], pa.int32())
        with pytest.raises(ConfigurationError) as refused:
            query.write(value=["c", "d"], topic=[part, topic], partition=partition)
        assert refused.value.data["kafka_error"] == "UnknownTopicOrPartition"
    query.write(value=["e"], topic=[part], partition=pa.array([1], pa.int32()))
    servers = kafka.bootstrap_servers
    assert read_topic(servers, whole).values() == ["a"]
    assert sorted(read_topic(servers, part).values()) == ["b", "e"]
    # Not even an aborted record, nor a marker.
    assert set(Offsets(Source(servers, other)).find_high().values()) == {0}
    assert Offsets(Source(servers, part)).find_high()[0] == 0


def test_what_is_declared_is_looked_at_before_the_start(kafka: KafkaCluster, run: MakeRun) -> None:
    good = new_topic(kafka, "good")
    unsafe = new_topic(kafka, "unsafe", min_insync_replicas=2)
    unknown = {"kafka_error": "UnknownTopicOrPartition"}
    weak = {"topic": unsafe, "partitions": [0, 1, 2], "min.insync.replicas": 2}
    for declared, data in (
        (f"{good}, missing", {**unknown, "topic": "missing"}),
        (f"{good}:1-3", {**unknown, "topic": good}),
        (f"{good}, {unsafe}", weak),
    ):
        with pytest.raises(ClusterError) as error:
            run(kafka, eos_destinations=declared).plan()
        assert error.value.data == data
    run(kafka, eos_destinations=f"{good}:0-2", topic=good).plan()


def test_a_missing_permission_is_reported_before_the_start(
    secured: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(secured, "permitted")
    write, read = Permissions.topic(topic)
    query = run(secured, eos_destinations=topic, **secured.access.options("ann"))
    with pytest.raises(ClusterError) as error:
        query.plan()
    assert error.value.data["missing"] == [str(write), str(read)]
    for granted, missing in ((write, read), (read, write)):
        secured.access.allow("ann", granted)
        with pytest.raises(ClusterError) as error:
            query.plan()
        assert error.value.data["missing"] == [str(missing)]
        secured.access.revoke("ann", granted)


@pytest.mark.long
def test_too_few_in_sync_replicas_are_reported_before_the_start(
    cluster: KafkaCluster, run: MakeRun
) -> None:
    strict = new_topic(cluster, "strict", min_insync_replicas=3)
    run(cluster, eos_destinations=strict).plan()
    cluster.brokers[2].kill()
    try:
        wait_until(
            lambda: min(copies_in_sync(cluster.bootstrap_servers, strict).values()) < 3,
            Deadline(60),
            "the dead broker's copies do not count",
        )
        with pytest.raises(ClusterError) as error:
            run(cluster, eos_destinations=strict).plan()
        short = {"topic": strict, "partitions": [0, 1, 2], "min.insync.replicas": 3}
        assert error.value.data == short
    finally:
        cluster.repair()
