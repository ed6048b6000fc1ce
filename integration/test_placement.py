"""Keys go where the Java client puts them: its own partitioner says where.

The Java client is the one in the broker's own jars, spoken to through the py4j that pyspark has.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from eos_sink.testing import KafkaCluster
from eos_sink.testing.java import find_java
from eos_sink.testing.kafka_files import DEFAULT_VERSION, ensure_kafka
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.in_process import new_topic

pytestmark = pytest.mark.timeout(300)

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


def test_rows_without_a_key_are_spread(kafka: KafkaCluster, run: MakeRun) -> None:
    topic = new_topic(kafka, "spread")
    # Both clients put such rows together for some milliseconds, for larger batches.
    query = run(kafka, topic=topic, kafka_sticky_partitioning_linger_ms="0")
    query.write(value=["v"] * 300, key=[None] * 300)
    assert {seen.partition for seen in read_topic(kafka.bootstrap_servers, topic)} == {0, 1, 2}
