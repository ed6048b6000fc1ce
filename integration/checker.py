"""A reader of its own: what a read_committed consumer sees of a topic, and whether it is held up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition

from eos_sink.deadline import Deadline


@dataclass(frozen=True)
class Seen:
    """One visible record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None

    @property
    def text(self) -> str:
        return (self.value or b"").decode()


def read_committed(bootstrap: str, topic: str, seconds: float = 30) -> list[Seen]:
    """All visible records, in the order of their partitions.

    Raises AssertionError if a read_committed reader does not reach the end of each partition, that
    is the high watermark, within `seconds`: an open transaction holds it up.
    """
    deadline = Deadline(seconds)
    plain = _consumer(bootstrap, "read_uncommitted")
    partitions = plain.list_topics(topic, timeout=seconds).topics[topic].partitions
    ends = {
        p: plain.get_watermark_offsets(TopicPartition(topic, p), timeout=seconds)[1]
        for p in partitions
    }
    plain.close()
    reader = _consumer(bootstrap, "read_committed")
    reader.assign([TopicPartition(topic, p, 0) for p in ends])
    at = dict.fromkeys(ends, 0)
    seen: list[Seen] = []
    while any(at[p] < end for p, end in ends.items()):
        assert not deadline.passed, f"readers of {topic} are held up at {at}, the ends are {ends}"
        message = reader.poll(min(0.2, deadline.left))
        if message is None:
            continue
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        error = message.error()
        if error is None:
            at[partition] = offset + 1
            seen.append(
                Seen(partition, offset, message.key(), message.value(), message.headers())  # type: ignore[arg-type]
            )
        elif error.code() == KafkaError._PARTITION_EOF:
            at[partition] = max(at[partition], offset)
    reader.close()
    return sorted(seen, key=lambda record: (record.partition, record.offset))


def assert_each_once(seen: list[Seen], expected: list[str]) -> None:
    """Nothing lost, nothing doubled, nothing else visible."""
    counted, wanted = Counter(record.text for record in seen), Counter(expected)
    lost, doubled = wanted - counted, counted - wanted
    assert not lost, f"{sum(lost.values())} rows lost, such as {list(lost)[:3]}"
    assert not doubled, f"{sum(doubled.values())} rows too many, such as {list(doubled)[:3]}"


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
