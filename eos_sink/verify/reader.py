"""Reads ranges of offsets as an application does, or with all that is undecided and aborted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from eos_sink.deadline import Deadline
from eos_sink.testing.tails import ReaderError, Source
from eos_sink.verify.identity import Row

_AT_ONCE = 5_000
_WAIT_S = 0.2
# What else is said, such as of a group, which it does not use, a reader outlives.
_FINAL = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


@dataclass(frozen=True)
class Span:
    """Offsets of a partition, from `start` to before `stop`."""

    partition: int
    start: int
    stop: int


class Scan:
    """One consumer, without a group, that reads spans when it is told to.

    Args:
        source: the topic.
        committed: as applications do; else also what is undecided or aborted.
        stall_s: so long without any answer ends it.
    """

    def __init__(self, source: Source, *, committed: bool, stall_s: float) -> None:
        self._topic = source.topic
        self._stall_s = stall_s
        self._consumer = Consumer(
            {
                **source.client(),
                "group.id": f"eos-sink-verify-{uuid.uuid4().hex[:8]}",
                "enable.auto.commit": False,
                # A range that is gone must not be replaced by another one in silence.
                "auto.offset.reset": "error",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
            }
        )
        # Where the next record of each partition is looked for.
        self.position: dict[int, int] = {}

    def read(self, spans: list[Span]) -> Iterator[list[Row]]:
        """The records of these spans, at most one of each partition, as they come.

        Raises:
            ReaderError: the reader cannot go on.
        """
        stops = {span.partition: span.stop for span in spans if span.start < span.stop}
        self.position.update({span.partition: span.start for span in spans})
        self._consumer.assign(
            [TopicPartition(self._topic, s.partition, s.start) for s in spans if s.start < s.stop]
        )
        silence = Deadline(self._stall_s)
        while stops:
            # The first one is waited for, the others are taken as they are there.
            first = self._consumer.poll(_WAIT_S)
            came = [] if first is None else [first, *self._consumer.consume(_AT_ONCE, 0)]
            rows = [message for message in came if self._is_row(message, stops)]
            if came:
                silence = Deadline(self._stall_s)
            elif silence.passed:
                raise ReaderError(
                    f"nothing came for {self._stall_s:.0f} s: partitions {sorted(stops)} of "
                    f"{self._topic} are read to {[self.position[p] for p in sorted(stops)]} only"
                )
            # Also without any: whoever shows the progress looks at the position.
            yield cast("list[Row]", rows)
            done = [place for place, stop in stops.items() if self.position[place] >= stop]
            for place in done:
                del stops[place]
            if done and stops:
                self._consumer.incremental_unassign([TopicPartition(self._topic, p) for p in done])
        self._consumer.unassign()

    def close(self) -> None:
        self._consumer.close()

    def _is_row(self, message: Message, stops: Mapping[int, int]) -> bool:
        """Whether it is a record of its span; moves the position."""
        error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
        if error is None:
            stop = stops.get(partition, 0)
            inside = offset < stop
            self.position[partition] = offset + 1 if inside else max(stop, self.position[partition])
            return inside
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


class Offsets:
    """Asks where a topic's partitions begin, and where they are at a time."""

    def __init__(self, source: Source, partitions: list[int], wait_s: float) -> None:
        self._admin = AdminClient(source.client())
        self._places = [TopicPartition(source.topic, partition) for partition in partitions]
        self._wait_s = wait_s

    def earliest(self) -> dict[int, int]:
        """The first offset that is kept.

        Raises:
            ReaderError: a leader does not answer.
        """
        spec: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        return self._ask(spec)

    def since(self, time_ms: int) -> dict[int, int]:
        """The first offset whose timestamp is not before that time, -1 if there is none.

        Raises:
            ReaderError: a leader does not answer.
        """
        spec: OffsetSpec = OffsetSpec.for_timestamp(time_ms)
        return self._ask(spec)

    def _ask(self, spec: OffsetSpec) -> dict[int, int]:
        try:
            answers = self._admin.list_offsets(
                dict.fromkeys(self._places, spec),
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=self._wait_s,
            )
            return {place.partition: answer.result().offset for place, answer in answers.items()}
        except KafkaException as error:
            raise ReaderError(f"not every partition has a leader that answers: {error}") from error
