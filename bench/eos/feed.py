"""Input at a steady rate with creation times, and the time until each copy is visible."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition

from eos_sink_lab.testing import KafkaCluster

BYTES = 100
_TICK_S = 0.005
_FETCH_WAIT_MS = 20
_AT_ONCE = 1_000


def born(now_ns: int) -> bytes:
    """A value of `BYTES` bytes that contains its creation time."""
    return b"%-*d" % (BYTES, now_ns)


def age_ms(value: bytes, now_ns: int) -> float:
    """Of a value that `born` made and a process may have changed at its end."""
    return (now_ns - int(value[: BYTES // 2])) / 1e6


def fill(kafka: KafkaCluster, topic: str, records: int) -> None:
    """Write this many records at once, to measure throughput."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 50})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, born(time.time_ns()), b"%d" % number)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


@contextmanager
def feeding(kafka: KafkaCluster, topic: str, rate: float) -> Iterator[None]:
    """Write `rate` records a second into `topic` meanwhile."""
    stop = threading.Event()

    def feed() -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
        begun, written = time.monotonic(), 0
        while not stop.wait(_TICK_S):
            due = int((time.monotonic() - begun) * rate)
            for number in range(written, due):
                producer.produce(topic, born(time.time_ns()), b"%d" % number)
            written = due
            producer.poll(0)
        producer.flush()

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Reader:
    """Reads committed records, and records the age of each.

    Args:
        topic: all of whose partitions are read from their beginning.
    """

    def __init__(self, kafka: KafkaCluster, topic: str, partitions: int) -> None:
        self._seen: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": f"reader-{topic}",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": _FETCH_WAIT_MS,
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def ages_ms(self, since: float = 0.0) -> list[float]:
        """Of the records seen from that moment of `time.monotonic` on."""
        return [age for at, age in list(self._seen) if at >= since]

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._stop.is_set():
            found = self._consumer.consume(_AT_ONCE, 0.1)
            at, now = time.monotonic(), time.time_ns()
            for message in found:
                value = message.value()
                if message.error() is None and value is not None:
                    self._seen.append((at, age_ms(value, now)))


def thinned(samples: Sequence[float], most: int = 200) -> list[float]:
    """A small sample with the same spread: every n-th value in order of size."""
    ordered = sorted(samples)
    if len(ordered) <= most:
        return ordered
    step = (len(ordered) - 1) / (most - 1)
    return [ordered[round(place * step)] for place in range(most)]
