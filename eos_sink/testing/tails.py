"""Plain Kafka clients that look at one topic: what an application is given, and where it stands."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from eos_sink.deadline import Deadline
from eos_sink.testing.account import Record

_AT_ONCE = 2_000
_REQUEST_S = 10.0
_FETCH_WAIT_S = 0.2
_FETCH_WAIT_MS = 20
_LOOK_AGAIN_S = 0.05
# A reader outlives brokers that are killed or cut off; of these it cannot.
_FINAL = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)


class ReaderError(Exception):
    """The reader cannot go on, or did not get to the end of the topic in time."""


@dataclass(frozen=True)
class Source:
    """A topic, and how to get at it.

    Attributes:
        bootstrap: the cluster.
        topic: it must exist.
        settings: further settings of the clients, such as security.
    """

    bootstrap: str
    topic: str
    settings: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    def client(self) -> dict[str, str | int | float | bool]:
        """The settings that consumers and admin clients share."""
        return {
            "bootstrap.servers": self.bootstrap,
            "reconnect.backoff.max.ms": 1000,
            "log_level": 2,
            **self.settings,
        }


class Tail:
    """A plain consumer of all partitions of a topic, from the beginning.

    Args:
        source: the topic.
        committed: read_committed, as applications do; else also what is undecided or aborted.
    """

    def __init__(self, source: Source, *, committed: bool) -> None:
        self._consumer = Consumer(
            {
                **source.client(),
                "group.id": f"eos-checker-{uuid.uuid4().hex[:8]}",
                "enable.auto.commit": False,
                # An offset that is gone is a finding, not a reason to start elsewhere.
                "auto.offset.reset": "error",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": _FETCH_WAIT_MS,
            }
        )
        self._reached: dict[int, int] = {}
        found = self._consumer.list_topics(source.topic, timeout=_REQUEST_S)
        self._consumer.assign(
            [
                TopicPartition(source.topic, partition, OFFSET_BEGINNING)
                for partition in found.topics[source.topic].partitions
            ]
        )

    def read(self, wait_s: float) -> list[Record]:
        """What has come, after at most `wait_s` seconds.

        Raises:
            ReaderError: the consumer cannot go on.
        """
        records = []
        # The first one is waited for, the others are taken as they are there.
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        for message in [first, *self._consumer.consume(_AT_ONCE, 0)]:
            error = message.error()
            partition, offset = message.partition() or 0, message.offset() or 0
            if error is None:
                records.append(Record(partition, offset, message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached[partition] = offset
            elif error.fatal() or error.code() in _FINAL:
                raise ReaderError(str(error))
        return records

    def read_to(self, ends: Mapping[int, int], deadline: Deadline) -> Iterator[Record]:
        """What comes until each partition is read to its end; markers have offsets too.

        Raises:
            ReaderError: not in time, or the consumer cannot go on.
        """
        while any(self._reached.get(partition, 0) < end for partition, end in ends.items()):
            if deadline.passed:
                raise ReaderError(f"A reader got to {self._reached} of {dict(ends)} only.")
            yield from self.read(_FETCH_WAIT_S)

    def close(self) -> None:
        self._consumer.close()


def whole(
    source: Source, ends: Mapping[int, int], deadline: Deadline, *, committed: bool
) -> Iterator[Record]:
    """Every record before these offsets, by a fresh reader.

    Raises:
        ReaderError: not in time, or the consumer cannot go on.
    """
    tail = Tail(source, committed=committed)
    try:
        yield from tail.read_to(ends, deadline)
    finally:
        tail.close()


class Ends:
    """Asks where a topic's readers stand. One client, kept."""

    def __init__(self, source: Source) -> None:
        self._admin = AdminClient(source.client())
        self._topic = source.topic

    def stable(self) -> dict[int, int]:
        """Last stable offsets: how far read_committed readers get.

        Raises:
            KafkaException: a leader does not answer.
        """
        return self._ask(IsolationLevel.READ_COMMITTED)

    def high(self) -> dict[int, int]:
        """High watermarks: how far the log is safe.

        Raises:
            KafkaException: a leader does not answer.
        """
        return self._ask(IsolationLevel.READ_UNCOMMITTED)

    def settled_high(self, deadline: Deadline) -> dict[int, int]:
        """High watermarks, as soon as every leader answers.

        Raises:
            ReaderError: not in time.
        """
        while True:
            try:
                return self.high()
            except KafkaException as error:
                if deadline.passed:
                    raise ReaderError(f"Not every partition has a leader: {error}") from error
                time.sleep(_LOOK_AGAIN_S)

    def held_up(self, high: Mapping[int, int], deadline: Deadline) -> dict[int, tuple[int, int]]:
        """Wait until readers get past what was the end: {} then.

        Args:
            high: high watermarks, asked some time ago.
            deadline: how long to wait.

        Returns:
            The partitions whose readers still wait, each with its last stable offset and the end.
        """
        while True:
            try:
                stable = self.stable()
            except KafkaException:
                stable = {}
            behind = {
                p: (stable.get(p, -1), end) for p, end in high.items() if stable.get(p, -1) < end
            }
            if not behind or deadline.passed:
                return behind
            time.sleep(_LOOK_AGAIN_S)

    def _ask(self, level: IsolationLevel) -> dict[int, int]:
        found = self._admin.list_topics(self._topic, timeout=_REQUEST_S).topics[self._topic]
        if found.error is not None:
            raise KafkaException(found.error)
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        places = {TopicPartition(self._topic, partition): latest for partition in found.partitions}
        answers = self._admin.list_offsets(
            places, isolation_level=level, request_timeout=_REQUEST_S
        )
        return {place.partition: answer.result().offset for place, answer in answers.items()}
