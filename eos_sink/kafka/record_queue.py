"""Records that wait for the brokers, and the record batches that they become. Pure."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeVar

from eos_sink.errors import FailureKind
from eos_sink.kafka.interfaces import ProduceFailed
from eos_sink.kafka.partitioner import Partitioning
from eos_sink.kafka.record_batches import (
    HEADER_BYTES,
    EncodedRecords,
    encode_records,
    encode_rows,
    measure_record,
    measure_rows,
)

if TYPE_CHECKING:
    from eos_sink.kafka.rows import Int64s, Row, Rows

Place = tuple[str, int]
"""Topic and partition."""
OnOffset = Callable[[str, int, int], None]
Leaders = Mapping[str, Mapping[int, int]]
"""Of each topic's partitions; -1 for a partition without one."""
T = TypeVar("T")

# As librdkafka's `batch.size`; a topic takes 1 MB by default.
_BATCH_BYTES = 1_000_000
_LARGEST_BYTES = 1_000_000


class UnknownPartition(Exception):
    """A record names a partition that its topic does not have."""

    def __init__(self, place: Place) -> None:
        super().__init__(f"Topic {place[0]} has no partition {place[1]}.")
        self.topic = place[0]


@dataclass(frozen=True)
class Batch:
    """One record batch.

    Attributes:
        rows: its records, in their order.
        reports: records by their numbers, and what to call with their offsets.
    """

    place: Place
    rows: Rows | Sequence[Row]
    records: EncodedRecords
    reports: Sequence[tuple[int, OnOffset]]

    def halve(self) -> tuple[Batch, Batch]:
        """Two batches of the same records, with their times."""
        rows, half, now = self.rows, len(self.rows) // 2, self.records.first_ms
        parts: tuple[Rows | Sequence[Row], Rows | Sequence[Row]]
        if isinstance(rows, Sequence):
            parts = rows[:half], rows[half:]
            first, second = (encode_records(part, now) for part in (rows[:half], rows[half:]))
        else:
            import numpy as np

            parts = rows.slice(0, half), rows.slice(half)
            first, second = encode_rows(rows, np.array([0, half, len(rows)]), now)
        early = [each for each in self.reports if each[0] < half]
        late = [(number - half, call) for number, call in self.reports if number >= half]
        return (
            Batch(self.place, parts[0], first, early),
            Batch(self.place, parts[1], second, late),
        )


class RecordQueue:
    """Records in the order in which they were given.

    Args:
        settings: librdkafka's, of the user.
        log: the decision log, whose topic alone limits its records.
    """

    def __init__(self, settings: Mapping[str, str], log: str) -> None:
        self._settings = settings
        self._largest = int(settings.get("message.max.bytes", _LARGEST_BYTES))
        self._limit = min(_BATCH_BYTES, self._largest) - HEADER_BYTES
        self._log = log
        self._waiting: list[tuple[Rows | Row, OnOffset | None]] = []
        self.topics: set[str] = set()

    @cached_property
    def _partitioning(self) -> Partitioning:
        """Made for rows only: those of a query with another partitioner never come here."""
        return Partitioning.of(self._settings)

    def clear(self) -> None:
        self._waiting.clear()
        self.topics.clear()

    def add(self, row: Row, on_offset: OnOffset | None) -> None:
        value, key, topic, *_ = row
        if topic != self._log:
            self._check_size(len(value or b"") + len(key or b""), topic)
        self._waiting.append((row, on_offset))
        self.topics.add(topic)

    def add_rows(self, rows: Rows, on_offset: OnOffset | None) -> None:
        if rows.headers is not None and rows.headers.null_count < len(rows):
            for row in rows:
                self.add(row, on_offset)
                on_offset = None
        elif len(rows):
            topics, which = rows.topics
            sizes = rows.sizes
            self._check_size(int(sizes.max()), topics[which[sizes.argmax()]])
            self._waiting.append((rows, on_offset))
            self.topics.update(topics)

    def take(self, leaders: Leaders) -> dict[Place, deque[Batch]]:
        """The batches of each partition, to be sent one after the other. Empties the queue.

        Raises:
            UnknownPartition: the queue is as it was.
        """
        batches: dict[Place, deque[Batch]] = {}
        now_ms = int(time.time() * 1000)
        single: dict[Place, list[tuple[Row, OnOffset | None]]] = {}

        def put(made: Iterator[Batch]) -> None:
            for batch in made:
                batches.setdefault(batch.place, deque()).append(batch)

        for rows, on_offset in self._waiting:
            if isinstance(rows, tuple):
                single.setdefault(self._place(rows, leaders), []).append((rows, on_offset))
                continue
            put(self._join(single, now_ms))
            put(self._split(rows, on_offset, leaders, now_ms))
        put(self._join(single, now_ms))
        self.clear()
        return batches

    def _check_size(self, size: int, topic: str) -> None:
        if size > self._largest:
            raise ProduceFailed(
                f"A record for topic {topic} was refused: it has {size} bytes, more than "
                f"message.max.bytes ({self._largest}).",
                FailureKind.MESSAGE_REJECTED,
                topic,
            )

    def _place(self, row: Row, leaders: Leaders) -> Place:
        _, key, topic, _, partition, _ = row
        known = leaders[topic]
        if partition is None:
            return topic, self._partitioning.place(key, len(known), _available(known))
        if partition not in known:
            raise UnknownPartition((topic, partition))
        return topic, partition

    def _join(
        self, single: dict[Place, list[tuple[Row, OnOffset | None]]], now_ms: int
    ) -> Iterator[Batch]:
        """Batches of records that came one by one; forgets these."""
        while single:
            place = next(iter(single))
            given = single.pop(place)
            sizes = list(accumulate((measure_record(row) for row, _ in given), initial=0))
            for start, end in pairwise(_cut(sizes, 0, len(given), self._limit)):
                part = [row for row, _ in given[start:end]]
                calls = enumerate(call for _, call in given[start:end])
                reports = [(number, call) for number, call in calls if call is not None]
                yield Batch(place, part, encode_records(part, now_ms), reports)

    def _split(
        self, rows: Rows, on_offset: OnOffset | None, leaders: Leaders, now_ms: int
    ) -> Iterator[Batch]:
        """Batches of rows; all are encoded at once."""
        import numpy as np

        topics, which = rows.topics
        partitions = self._place_rows(rows, leaders)
        order = np.lexsort((partitions, which))
        rows, which, partitions = rows.take(order), which[order], partitions[order]
        changes = np.flatnonzero(np.diff(which) | np.diff(partitions)) + 1
        total = np.concatenate(([0], np.cumsum(measure_rows(rows)))).tolist()
        edges = [0]
        for start, end in pairwise([0, *changes.tolist(), len(rows)]):
            edges += _cut(total, start, end, self._limit)[1:]
        encoded = encode_rows(rows, np.array(edges), now_ms)
        for (start, end), records in zip(pairwise(edges), encoded, strict=True):
            place = topics[which[start]], int(partitions[start])
            reports = [] if on_offset is None else [(0, on_offset)]
            on_offset = None
            yield Batch(place, rows.slice(start, end - start), records, reports)

    def _place_rows(self, rows: Rows, leaders: Leaders) -> Int64s:
        import numpy as np

        from eos_sink.kafka.rows import find_valid

        topics, which = rows.topics
        placed, free = np.empty(len(rows), np.int64), np.ones(len(rows), bool)
        if rows.partition is not None:
            free = ~find_valid(rows.partition)
            placed[~free] = rows.partition.drop_null().to_numpy()
        for number, topic in enumerate(topics):
            known = leaders[topic]
            mine = which == number
            named = np.unique(placed[mine & ~free])
            if len(unknown := np.setdiff1d(named, list(known))):
                raise UnknownPartition((topic, int(unknown[0])))
            some = np.flatnonzero(mine & free)
            if len(some):
                keys = None if rows.key is None else rows.key.take(some)
                placed[some] = self._partitioning.place_rows(
                    keys, rows.sizes[some], len(known), _available(known)
                )
        return placed


def _available(leaders: Mapping[int, int]) -> Sequence[int]:
    """Partitions for rows without a key; all of them if none has a leader at present."""
    return [number for number, leader in leaders.items() if leader >= 0] or list(leaders)


def _cut(total: Sequence[int], start: int, end: int, limit: int) -> list[int]:
    """Edges of runs that have at most `limit` bytes, or one record.

    Args:
        total: the size of all records before each.
    """
    if total[end] - total[start] <= limit:
        return [start, end]
    edges = [start]
    for number in range(start + 1, end):
        if total[number + 1] - total[edges[-1]] > limit:
            edges.append(number)
    return [*edges, end]
