"""Reads one topic with plain Kafka clients, and finds how far readers get."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from eos_sink.kafka.deadline import Deadline

_AT_ONCE = 5_000
_REQUEST_S = 10.0
_POLL_S = 0.2
_FETCH_WAIT_MS = 20
_STALL_S = 60.0
_LOOK_AGAIN_S = 0.05
# A reader survives brokers that are killed or cut off, but none of these errors.
_FINAL = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


class Row(Protocol):
    """A record as confluent-kafka returns it."""

    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> list[tuple[str, bytes | None]] | None: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def timestamp(self) -> tuple[int, int]:
        """The kind of time (0: none, 1: CreateTime), and milliseconds since the epoch."""


class ReaderError(Exception):
    """The reader cannot go on, or did not get to the end of the topic in time."""


@dataclass(frozen=True)
class Source:
    """An existing topic, its cluster, and further client settings, such as security."""

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


@dataclass(frozen=True)
class Span:
    """Offsets of a partition, from `start` to before `stop`."""

    partition: int
    start: int
    stop: int


class Scan:
    """One consumer without a group: it follows the topic from its beginning, or reads spans.

    Every method raises ReaderError if the consumer cannot go on.

    Args:
        source: the topic.
        committed: read_committed, as applications do; else also undecided and aborted records.
        stall_s: reading spans fails after so long without progress.

    Attributes:
        position: the next offset of each partition.
    """

    def __init__(self, source: Source, *, committed: bool, stall_s: float = _STALL_S) -> None:
        self._topic = source.topic
        self._stall_s = stall_s
        self._consumer = Consumer(
            {
                **source.client(),
                "group.id": f"eos-reader-{uuid.uuid4().hex[:8]}",
                "enable.auto.commit": False,
                # An offset that is gone is a finding, not a reason to start elsewhere.
                "auto.offset.reset": "error",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": _FETCH_WAIT_MS,
            }
        )
        self.position: dict[int, int] = {}
        self._follows = False
        self._stops: dict[int, int] = {}

    def follow(self, wait_s: float) -> list[Row]:
        """Return the records that came since; wait up to `wait_s` seconds for the first."""
        if not self._follows:
            found = self._consumer.list_topics(self._topic, timeout=_REQUEST_S)
            for partition in found.topics[self._topic].partitions:
                self.position.setdefault(partition, OFFSET_BEGINNING)
            self._assign(self.position)
            self._follows = True
        deadline = Deadline(wait_s)
        while True:
            rows = self._poll(deadline.left)
            if rows or deadline.passed:
                return rows

    def read(self, spans: list[Span]) -> Iterator[list[Row]]:
        """Yield the records of these spans, at most one span a partition, as they come."""
        self._follows = False
        stops = self._stops = {
            span.partition: span.stop for span in spans if span.start < span.stop
        }
        self.position.update({span.partition: span.start for span in spans})
        self._assign({partition: self.position[partition] for partition in stops})
        silence = Deadline(self._stall_s)
        while stops:
            before = dict(self.position)
            rows = self._poll(_POLL_S)
            if self.position != before:
                silence = Deadline(self._stall_s)
            elif silence.passed:
                raise ReaderError(
                    f"nothing came for {self._stall_s:.0f} s: partitions {sorted(stops)} of "
                    f"{self._topic} are read to {[self.position[p] for p in sorted(stops)]} only"
                )
            # Also without rows: the caller shows the progress.
            yield rows
            done = [place for place, stop in stops.items() if self.position[place] >= stop]
            for place in done:
                del stops[place]
            if done and stops:
                self._consumer.incremental_unassign([TopicPartition(self._topic, p) for p in done])
        self._consumer.unassign()

    def read_to(self, ends: Mapping[int, int]) -> Iterator[Row]:
        """Yield the records from the position, at first the beginning, to these offsets."""
        spans = [Span(p, self.position.get(p, OFFSET_BEGINNING), end) for p, end in ends.items()]
        for rows in self.read(spans):
            yield from rows

    def close(self) -> None:
        self._consumer.close()

    def _assign(self, offsets: Mapping[int, int]) -> None:
        self._consumer.assign([TopicPartition(self._topic, p, at) for p, at in offsets.items()])

    def _poll(self, wait_s: float) -> list[Row]:
        # Wait for the first message; take the others as far as they are there.
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        came = [first, *self._consumer.consume(_AT_ONCE, 0)]
        return cast("list[Row]", [message for message in came if self._is_row(message)])

    def _is_row(self, message: Message) -> bool:
        """Advance the position; return whether the message is a wanted record."""
        error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
        if error is None:
            if not self._follows and offset >= (stop := self._stops.get(partition, 0)):
                self.position[partition] = max(stop, self.position[partition])
                return False
            self.position[partition] = offset + 1
            return True
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self.position[partition] = max(self.position[partition], offset)
        elif code == KafkaError._AUTO_OFFSET_RESET:
            raise ReaderError(
                f"{self._topic}[{partition}] was cut while it was read, at offset "
                f"{self.position[partition]}: {error.str()}. Run it again, or read the newest "
                "rows only, with --last"
            )
        elif error.fatal() or code in _FINAL:
            raise ReaderError(f"{self._topic}[{partition}] cannot be read: {error.str()}")
        return False


def read_whole(
    source: Source, ends: Mapping[int, int], *, committed: bool, stall_s: float
) -> Iterator[Row]:
    """Yield every record before these offsets, from a new consumer. Raises: as `Scan.read_to`."""
    with contextlib.closing(Scan(source, committed=committed, stall_s=stall_s)) as scan:
        yield from scan.read_to(ends)


class Offsets:
    """Reads offsets of every partition of a topic; ReaderError: a leader does not answer."""

    def __init__(self, source: Source, request_s: float = _REQUEST_S) -> None:
        self._admin = AdminClient(source.client())
        self._topic = source.topic
        self._request_s = request_s

    def find_earliest(self) -> dict[int, int]:
        """The first offset that still exists."""
        return self._ask(OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def find_since(self, time_ms: int) -> dict[int, int]:
        """The first offset whose timestamp is not before that time, -1 if there is none."""
        return self._ask(OffsetSpec.for_timestamp(time_ms))

    def find_stable(self) -> dict[int, int]:
        """Last stable offsets: how far read_committed readers get."""
        return self._ask(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]

    def find_high(self) -> dict[int, int]:
        """High watermarks: how far the log is safe."""
        return self._ask(OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def wait_high(self, deadline: Deadline) -> dict[int, int]:
        """High watermarks, as soon as every leader answers."""
        while True:
            try:
                return self.find_high()
            except ReaderError:
                if deadline.passed:
                    raise
                time.sleep(_LOOK_AGAIN_S)

    def wait_readers(
        self, high: Mapping[int, int], deadline: Deadline
    ) -> dict[int, tuple[int, int]]:
        """Wait until read_committed readers get to these high watermarks.

        Returns:
            Partitions whose readers still wait, each with its last stable offset and the end.
        """
        while True:
            try:
                stable = self.find_stable()
            except ReaderError:
                stable = dict.fromkeys(high, -1)
            behind = {p: (stable[p], end) for p, end in high.items() if stable[p] < end}
            if not behind or deadline.passed:
                return behind
            time.sleep(_LOOK_AGAIN_S)

    def _ask(
        self, spec: OffsetSpec, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[int, int]:
        try:
            found = self._admin.list_topics(self._topic, timeout=self._request_s)
            topic = found.topics[self._topic]
            if topic.error is not None:
                raise KafkaException(topic.error)
            answers = self._admin.list_offsets(
                {TopicPartition(self._topic, partition): spec for partition in topic.partitions},
                isolation_level=level,
                request_timeout=self._request_s,
            )
            return {place.partition: answer.result().offset for place, answer in answers.items()}
        except KafkaException as error:
            raise ReaderError(f"not every partition has a leader that answers: {error}") from error
