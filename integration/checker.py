"""Reads a topic as a read_committed application does, for tests that name each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.topic_scan import Offsets, Source, read_whole

_READERS_S = 20.0


@dataclass(frozen=True)
class Seen:
    """One record as a reader gets it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: tuple[int, int] = (0, 0)
    """What kind of time it is (1: CreateTime), and the time in milliseconds since the epoch."""


class Rows(tuple[Seen, ...]):
    """All visible records, in the order of each partition."""

    __slots__ = ()

    def values(self) -> list[str]:
        return [(seen.value or b"").decode() for seen in self]

    def of(self, partition: int) -> list[str]:
        return [(seen.value or b"").decode() for seen in self if seen.partition == partition]


class HeldUpError(AssertionError):
    """Readers wait for a transaction that is still open."""


def read_topic(bootstrap: str, topic: str, seconds: float = _READERS_S) -> Rows:
    """Every visible record, once no reader is held up.

    Raises:
        HeldUpError: a last stable offset is below its high watermark for `seconds`.
        ReaderError: the topic cannot be read.
    """
    source, deadline = Source(bootstrap, topic), Deadline(seconds)
    offsets = Offsets(source)
    ends = offsets.wait_high(deadline)
    if behind := offsets.wait_readers(ends, deadline):
        raise HeldUpError(f"readers of {topic} wait at {behind}")
    rows = read_whole(source, ends, committed=True, stall_s=seconds)
    seen = (
        Seen(
            row.partition(),
            row.offset(),
            row.key(),
            row.value(),
            tuple(row.headers() or ()),
            row.timestamp(),
        )
        for row in rows
    )
    return Rows(sorted(seen, key=lambda each: (each.partition, each.offset)))


def assert_each_once(rows: Rows, expected: Iterable[str]) -> None:
    """Nothing lost, nothing doubled, nothing else visible."""
    counted, wanted = Counter(rows.values()), Counter(expected)
    lost, added = wanted - counted, counted - wanted
    assert not lost, f"{lost.total()} rows lost, such as {sorted(lost)[:3]}"
    assert not added, f"{added.total()} rows doubled or foreign, such as {sorted(added)[:3]}"
