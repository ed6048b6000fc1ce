"""What a read_committed application sees in a topic: a plain reader that knows nothing of the sink.

`read_topic(...)` gives every visible record; `assert_each_once(rows, expected)` counts them.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from eos_sink.deadline import Deadline

_READERS_S = 20.0
_LOOK_AGAIN_S = 0.02


@dataclass(frozen=True)
class Seen:
    """One record as a reader is given it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: tuple[int, int] = (0, 0)
    """What kind of time it is (1: CreateTime), and the time in milliseconds since the epoch."""


class Rows(tuple[Seen, ...]):
    """All that is visible, each partition in its order."""

    __slots__ = ()

    def values(self) -> list[str]:
        return [(seen.value or b"").decode() for seen in self]

    def of(self, partition: int) -> list[str]:
        return [(seen.value or b"").decode() for seen in self if seen.partition == partition]


class HeldUpError(AssertionError):
    """Readers wait at a transaction that nobody has ended."""


def read_topic(bootstrap: str, topic: str, seconds: float = _READERS_S) -> Rows:
    """Every visible record, once no reader is held up.

    Raises:
        HeldUpError: a last stable offset is still below its high watermark after `seconds`.
    """
    deadline = Deadline(seconds)
    ends = wait_stable(bootstrap, topic, deadline)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"checker-{uuid.uuid4().hex[:8]}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # Where the first records were deleted.
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        return Rows(
            seen
            for partition, end in sorted(ends.items())
            for seen in _read(
                consumer, TopicPartition(topic, partition, OFFSET_BEGINNING), end, deadline
            )
        )
    finally:
        consumer.close()


def assert_each_once(rows: Rows, expected: Iterable[str]) -> None:
    """Nothing lost, nothing doubled, nothing else visible."""
    counted, wanted = Counter(rows.values()), Counter(expected)
    lost, added = wanted - counted, counted - wanted
    assert not lost, f"{lost.total()} rows lost, such as {sorted(lost)[:3]}"
    assert not added, f"{added.total()} rows doubled or foreign, such as {sorted(added)[:3]}"


def wait_stable(bootstrap: str, topic: str, deadline: Deadline) -> dict[int, int]:
    """The end of each partition, once the last stable offset has reached all of them."""
    while True:
        ends = end_offsets(bootstrap, topic, IsolationLevel.READ_UNCOMMITTED)
        stable = end_offsets(bootstrap, topic, IsolationLevel.READ_COMMITTED)
        # In this order: the high watermarks are the older of the two.
        if all(stable[partition] >= end for partition, end in ends.items()):
            return ends
        if deadline.passed:
            raise HeldUpError(f"readers of {topic} stand at {stable} of {ends}")
        time.sleep(_LOOK_AGAIN_S)


def end_offsets(bootstrap: str, topic: str, level: IsolationLevel) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    places = {
        TopicPartition(topic, partition): latest
        for partition in admin.list_topics(topic, timeout=30).topics[topic].partitions
    }
    answers = admin.list_offsets(places, isolation_level=level, request_timeout=30)
    return {place.partition: answer.result().offset for place, answer in answers.items()}


def _read(
    consumer: Consumer, place: TopicPartition, end: int, deadline: Deadline
) -> Iterator[Seen]:
    """One partition up to `end`; markers and what was aborted are passed over in silence."""
    if end == 0:
        return
    consumer.assign([place])
    while not deadline.passed:
        message = consumer.poll(0.1)
        if message is None:
            continue
        error = message.error()
        if error is None:
            yield Seen(
                place.partition,
                message.offset() or 0,
                message.key(),
                message.value(),
                tuple(cast("list[tuple[str, bytes | None]]", message.headers() or [])),
                message.timestamp(),
            )
        elif error.code() != KafkaError._PARTITION_EOF:
            raise AssertionError(error)
        elif (message.offset() or 0) >= end:
            return
    raise AssertionError(f"{place} could not be read to its end, {end}")
