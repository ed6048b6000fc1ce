"""Keys go where the Java client puts them: both write, and a consumer compares.

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


def written_by_java(java: Any, servers: str, topics: list[str]) -> None:
    settings = java.java.util.Properties()
    serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
    settings.setProperty("bootstrap.servers", servers)
    settings.setProperty("key.serializer", serializer)
    settings.setProperty("value.serializer", serializer)
    producer = java.org.apache.kafka.clients.producer.KafkaProducer(settings)
    record = java.org.apache.kafka.clients.producer.ProducerRecord
    sent = [producer.send(record(topic, key, b"java")) for topic in topics for key in KEYS]
    producer.close()
    for each in sent:
        each.get()  # raises if the record was not delivered


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
    written_by_java(java, servers, list(topics.values()))
    names = [topic for topic in topics.values() for _ in KEYS * times]
    keys = KEYS * times * len(topics)
    run(kafka, **options).write(value=[b"ours"] * len(keys), key=keys, topic=names)
    for count, topic in topics.items():
        seen = read_topic(servers, topic)
        places = {
            who: {each.key: each.partition for each in seen if each.value == who}
            for who in (b"java", b"ours")
        }
        assert places[b"ours"] == places[b"java"]
        assert len(places[b"ours"]) == len(KEYS)
        assert len(set(places[b"ours"].values())) > count / 2, "they are not spread"


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
