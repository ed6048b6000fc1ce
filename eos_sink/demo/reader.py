"""Readers of the topic: plain consumers that know nothing of the sink."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from eos_sink.deadline import Deadline
from eos_sink.demo.errors import DemoError
from eos_sink.demo.ledger import Count, Ledger
from eos_sink.testing.tails import Ends, ReaderError, Source, whole

_AT_ONCE = 2_000
_ROW_FIRST = b'{"row":'
_PASSING = frozenset(
    {KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT}
)


class Record(NamedTuple):
    """What the demo looks at in a record: its partition, key, and the row in its JSON."""

    partition: int
    key: bytes
    row: int


class Tail:
    """Reads a topic from its beginning, as it grows.

    Args:
        bootstrap: the cluster.
        topic: it must exist.
        partitions: how many it has.
        committed: read_committed, what an application should use; else read_uncommitted, which
            sees what is written before anybody decides on it.
        wait_ms: how long a broker may sit on a request that it has nothing to answer to.
    """

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, *, committed: bool, wait_ms: int = 100
    ) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"demo-reader-{uuid.uuid4().hex[:8]}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "fetch.wait.max.ms": wait_ms,
                "log_level": 2,
            }
        )
        self._consumer.assign(
            [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)]
        )

    def raw(self, wait_s: float) -> list[tuple[int, bytes, bytes]]:
        """Partition, key and value of what has come, after at most `wait_s` seconds."""
        found = []
        for message in self._consumer.consume(_AT_ONCE, wait_s):
            error = message.error()
            if error is None:
                partition, key, value = message.partition(), message.key(), message.value()
                found.append((partition if partition is not None else -1, key or b"", value or b""))
            elif error.code() not in _PASSING:
                raise DemoError(f"The reader cannot read: {error}")
        return found

    def read(self, wait_s: float) -> list[Record]:
        """The same as records of flights."""
        return [
            Record(partition, key, quick_row_of(value))
            for partition, key, value in self.raw(wait_s)
        ]

    def next_record(self, wait_s: float) -> bool:
        """Whether a record has come, as soon as one has and after at most `wait_s` seconds."""
        message = self._consumer.poll(wait_s)
        return message is not None and message.error() is None

    def close(self) -> None:
        """Leave. May be called once."""
        self._consumer.close()


def row_of(value: bytes) -> int:
    """The row number in a flight's JSON, -1 if there is none."""
    try:
        return int(json.loads(value)["row"])
    except (ValueError, KeyError, TypeError):
        return -1


def quick_row_of(value: bytes) -> int:
    """The same, fast where the row comes first: a live reader has to keep up with the writer."""
    if value.startswith(_ROW_FIRST):
        start = len(_ROW_FIRST)
        try:
            return int(value[start : value.index(b",", start)])
        except ValueError:
            pass
    return row_of(value)


@dataclass(frozen=True)
class Audit:
    """What fresh readers find when everything is over.

    Attributes:
        count: what a read_committed reader is given.
        hidden: records in the log that it is not given: of transactions that were aborted.
        held_up: partitions whose readers wait, because a transaction was left open in them.
    """

    count: Count
    hidden: int
    held_up: tuple[int, ...]


def audit(bootstrap: str, topic: str, batches: tuple[int, ...], timeout_s: float) -> Audit:
    """Read the whole topic twice, from its beginning: as an application would, and uncommitted.

    Raises:
        DemoError: a reader did not get to its end in time.
    """
    source, deadline = Source(bootstrap, topic), Deadline(timeout_s)
    ledger = Ledger(batches)
    try:
        ends = Ends(source)
        stable, high = ends.stable(), ends.high()
        for record in whole(source, stable, deadline, committed=True):
            ledger.add(record.partition, record.key or b"", row_of(record.value or b""))
        count = ledger.count()
        everything = sum(1 for _ in whole(source, high, deadline, committed=False))
    except (KafkaException, ReaderError) as error:
        raise DemoError(f"The reader did not get to the end of {topic}: {error}") from error
    held_up = tuple(partition for partition in high if stable[partition] < high[partition])
    return Audit(count, everything - count.records, held_up)
