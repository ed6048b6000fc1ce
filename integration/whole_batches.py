"""A reader that finds batches of which an application sees a part only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing.topic_scan import Offsets, Source
from eos_sink_lab.testing.waiting import wait_until
from integration.topics import unique

_ANSWER_S = 30.0
_POLL_S = 0.02
_LOOK_AGAIN_S = 0.005
_ENDING = (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)


@dataclass
class Sighting:
    """What was seen of a batch.

    Attributes:
        first, last: when its first and its latest row were seen, in seconds of a monotonic clock.
        rows: so many.
    """

    first: float
    last: float
    rows: int = 0


class PartialBatchError(AssertionError):
    """A part of a batch is visible, while no driver runs that could add the others."""


class BatchReader:
    """A read_committed consumer in a thread, which notes when it sees which rows.

    Args:
        topics: all of them have `partitions`.
        size: the rows of a batch; a row is `<batch>-...`.
    """

    def __init__(
        self, bootstrap: str, topics: Sequence[str], partitions: int, size: Callable[[int], int]
    ) -> None:
        self._size = size
        self._seen: dict[int, Sighting] = {}
        self._offsets = {topic: Offsets(Source(bootstrap, topic)) for topic in topics}
        places = [TopicPartition(t, p, OFFSET_BEGINNING) for t in topics for p in range(partitions)]
        self._reached = {(place.topic, place.partition): 0 for place in places}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": unique("reader"),
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 5,
                "log_level": 2,
            }
        )
        self._consumer.assign(places)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def latest(self) -> int:
        """The highest number of a batch of which a row was seen; -1: none."""
        return max(self._seen, default=-1)

    @property
    def partial(self) -> dict[int, int]:
        """The batches that were seen in part, or a row twice, each with the rows that were seen."""
        return {
            batch: found.rows
            for batch, found in sorted([*self._seen.items()])
            if found.rows != self._size(batch)
        }

    @property
    def longest_s(self) -> float:
        """The longest time between the first and the last row of a batch."""
        return max(found.last - found.first for found in [*self._seen.values()])

    def wait_seen(self, batch: int, deadline: Deadline) -> None:
        """Until a row of a batch from this one on was seen."""
        wait_until(lambda: self.latest >= batch, deadline, f"a row of batch {batch} is visible")

    def catch_up(self, deadline: Deadline) -> None:
        """Until it has read what readers get now: up to the last stable offsets."""
        ends = {
            (topic, partition): end
            for topic, offsets in self._offsets.items()
            for partition, end in offsets.find_stable().items()
        }
        while behind := {place for place, end in ends.items() if self._reached[place] < end}:
            assert not deadline.passed, f"the reader has not come to the ends of {behind}"
            time.sleep(_LOOK_AGAIN_S)

    def check_whole(self, kafka: ConfluentKafka, driver: str, seconds: float) -> bool:
        """The driver is dead. Each batch of which a row can be seen is seen as a whole.

        Args:
            driver: its transactional id.

        Returns:
            Whether the driver has left a transaction open.

        Raises:
            PartialBatchError: a batch is not.
        """
        deadline = Deadline(seconds)

        def status() -> TransactionStatus:
            return kafka.control().describe([driver], deadline)[driver].status

        wait_until(lambda: status() not in _ENDING, deadline, "Kafka has written its markers")
        self.catch_up(deadline)
        if self.partial:
            raise PartialBatchError(f"batches, and the rows seen of them: {self.partial}")
        return status() is TransactionStatus.ONGOING

    def close(self) -> None:
        self._over.set()
        self._thread.join(_ANSWER_S)

    def _follow(self) -> None:
        while not self._over.is_set():
            # One by one: `consume` collects messages for a while, which hides the time between.
            message = self._consumer.poll(_POLL_S)
            if message is not None:
                self._note(message, time.monotonic())
        self._consumer.close()

    def _note(self, message: Message, now: float) -> None:
        place, error = (message.topic() or "", message.partition() or 0), message.error()
        offset = message.offset() or 0
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._reached[place] = offset
            return
        value = (message.value() or b"").decode()
        found = self._seen.setdefault(int(value.split("-")[0]), Sighting(now, now))
        found.last = now
        found.rows += 1
        self._reached[place] = offset + 1
