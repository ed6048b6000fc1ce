"""Keys go where the Java client puts them: its own partitioner says where.

The Java client is the one in the broker's own jars, spoken to through the py4j that pyspark has.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_files import DEFAULT_VERSION, ensure_kafka
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.topics import new_topic

# Keys whose partition a client could get wrong.
_CHANCE = random.Random(7)
KEYS = [
    b"",
    b"\0",
    b"k",
    b"payment-4711",
    "schlüssel".encode(),
    "鍵🔑".encode(),
    bytes(range(256)),
    b"\xff" * 7,
    b"long" * 5_000,
    # Each length modulo four ends the hash in another way.
    *(_CHANCE.randbytes(_CHANCE.randrange(1, 40)) for _ in range(120)),
]
PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = pa.array([[{"key": "h", "value": b"v"}]], pa.list_(PAIR))


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """Java with Kafka's classes."""
    runtime = find_java()
    files = ensure_kafka(DEFAULT_VERSION, runtime)
    jar = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    port, process = launch_gateway(
        jarpath=str(jar),
        classpath=files.classpath,
        die_on_exit=True,
        java_path=str(runtime.executable),
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    yield gateway.jvm
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)


def place_by_java(java: Any, count: int) -> dict[bytes, int]:
    """What KafkaProducer.partition returns for keys in a topic of so many partitions."""
    partitioner = java.org.apache.kafka.clients.producer.internals.BuiltInPartitioner
    return {key: partitioner.partitionForKey(key, count) for key in KEYS}


@pytest.mark.parametrize(
    "counts", [(1, 3, 50), pytest.param(tuple(range(2, 50)), marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    ("times", "options"),
    [
        pytest.param(1, {"eos_inline_bytes": "10000000"}, id="driver"),
        pytest.param(1, {}, id="librdkafka"),
        pytest.param(10, {}, id="column"),
    ],
)
def test_a_key_goes_where_the_java_client_puts_it(
    kafka: KafkaCluster,
    run: MakeRun,
    java: Any,
    counts: tuple[int, ...],
    times: int,
    options: dict[str, str],
) -> None:
    """The driver, librdkafka, and a task for many rows of a topic place keys."""
    servers = kafka.bootstrap_servers
    topics = {count: new_topic(kafka, f"keys-{count}", partitions=count) for count in counts}
    names = [topic for topic in topics.values() for _ in KEYS * times]
    keys = KEYS * times * len(topics)
    run(kafka, **options).write(value=[b"ours"] * len(keys), key=keys, topic=names)
    for count, topic in topics.items():
        seen = {each.key: each.partition for each in read_topic(servers, topic)}
        assert seen == place_by_java(java, count)
        assert len(set(seen.values())) > count / 2, "they are not spread"


def test_rows_with_keys_keep_their_order_in_a_partition(kafka: KafkaCluster, run: MakeRun) -> None:
    """Also across Arrow batches, some with few rows, and while there is no room for all."""
    topic = new_topic(kafka, "order")
    edges = [0, 10, 3_000, 3_100, 6_000]
    parts = [
        {"value": [str(n) for n in numbers], "key": [f"k{n % 97}" for n in numbers]}
        for numbers in starmap(range, pairwise(edges))
    ]
    run(kafka, topic=topic, kafka_queue_buffering_max_messages="300").write(*parts)
    seen = read_topic(kafka.bootstrap_servers, topic)
    assert sorted(int(each.value or 0) for each in seen) == list(range(edges[-1]))
    for partition in range(3):
        found = [int(each.value or 0) for each in seen if each.partition == partition]
        assert found == sorted(found)
        assert found


@pytest.mark.parametrize("inline", ["0", "65536"], ids=["by a task", "by the driver"])
def test_rows_without_a_key_are_spread(kafka: KafkaCluster, run: MakeRun, inline: str) -> None:
    topic = new_topic(kafka, "spread")
    # Both clients put such rows together for some milliseconds, for larger batches.
    own = {"kafka_sticky_partitioning_linger_ms": "0", "eos_inline_bytes": inline}
    query = run(kafka, topic=topic, **own)
    query.write(value=["v"] * 300, key=[None] * 300)
    assert {seen.partition for seen in read_topic(kafka.bootstrap_servers, topic)} == {0, 1, 2}


# Partitions are added while the query runs. The driver keeps its producer, each task has a new one.


def add_partitions(cluster: KafkaCluster, topic: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(30)
    wait_until(
        lambda: len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == count,
        Deadline(30),
        f"{topic} has {count} partitions",
    )


@pytest.mark.parametrize("native", ["true", "false"])
def test_the_driver_writes_to_a_partition_that_was_added_since_its_last_batch(
    kafka: KafkaCluster, run: MakeRun, native: str
) -> None:
    topic = new_topic(kafka, "added", partitions=1)
    query = run(kafka, topic=topic, eos_inline_bytes="65536", eos_native=native)
    query.write(value=["before"], partition=pa.array([0], pa.int32()))
    add_partitions(kafka, topic, 3)
    query.write(value=["first", "second"], partition=pa.array([0, 2], pa.int32()))
    # With headers rows go another way.
    query.write(value=["third"], partition=pa.array([1], pa.int32()), headers=HEADERS)
    seen = read_topic(kafka.bootstrap_servers, topic)
    assert [seen.of(partition) for partition in range(3)] == [
        ["before", "first"],
        ["third"],
        ["second"],
    ]


@pytest.mark.parametrize("native", ["true", "false"])
@pytest.mark.parametrize("many", [500, pytest.param(1500, marks=pytest.mark.long)])
def test_a_key_stays_in_one_partition_for_the_driver_and_the_tasks_when_some_are_added(
    kafka: KafkaCluster, run: MakeRun, native: str, many: int
) -> None:
    """In a batch with small and large tasks, and in a batch of small ones after a large one."""
    topic = new_topic(kafka, "grows", partitions=2)
    query = run(kafka, topic=topic, eos_inline_bytes="8192", eos_native=native)

    def rows(name: str, count: int) -> dict[str, Any]:
        return {"value": [name] * count, "key": [f"k{n % 100}" for n in range(count)]}

    def places(name: str) -> set[tuple[bytes | None, int]]:
        seen = read_topic(kafka.bootstrap_servers, topic)
        return {(each.key, each.partition) for each in seen if each.value == name.encode()}

    reports = query.write_tasks([rows("before", 100)])
    add_partitions(kafka, topic, 7)
    reports += query.write_tasks([rows("small", 100)], [rows("large" * 5, many)])
    assert places("small") == places("large" * 5)
    assert {partition for _, partition in places("small")} == set(range(7))
    add_partitions(kafka, topic, 11)
    reports += query.write_tasks([rows("later" * 5, many)])
    reports += query.write_tasks([rows("small again", 100)])
    assert places("small again") == places("later" * 5)
    assert [bool(report.inline) for report in reports] == [True, True, False, False, True]
