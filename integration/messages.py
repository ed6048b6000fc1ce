"""Sends and receives as an application does that has no part in the sink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.topic_scan import Scan, Source
from integration.topics import unique


@contextmanager
def transaction(bootstrap_servers: str, end: str = "commit") -> Iterator[Producer]:
    """A transaction that ends behind the block; `end` is commit, abort or neither."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": unique("application"),
            "linger.ms": 0,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer
    producer.flush(30)
    if end == "commit":
        producer.commit_transaction(30)
    elif end == "abort":
        producer.abort_transaction(30)


def send(bootstrap_servers: str, topic: str, *values: str) -> None:
    """Send them in one transaction."""
    with transaction(bootstrap_servers) as producer:
        for value in values:
            producer.produce(topic, value)


def received(bootstrap_servers: str, topic: str, count: int) -> list[str]:
    """What a read_committed reader sees, once it has seen that many."""
    scan, deadline = Scan(Source(bootstrap_servers, topic), committed=True), Deadline(30)
    values: list[str] = []
    while len(values) < count and not deadline.passed:
        values += [(row.value() or b"").decode() for row in scan.follow(deadline.left)]
    scan.close()
    return sorted(values)
