"""Partition logs: data, control markers, and what a read_committed reader finds in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from zlib import crc32

from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.protocol.values import Place, Transaction, Visibility

Headers = Sequence[tuple[str, bytes | None]]


class Outcome(Enum):
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(eq=False)
class Txn:
    """One transaction, from its first record or offset to its markers."""

    transactional_id: str
    producer_id: int
    epoch: int
    outcome: Outcome = Outcome.OPEN
    logs: list[PartitionLog] = field(default_factory=list)
    unmarked: list[PartitionLog] = field(default_factory=list)
    """Partitions that take no records, and get their markers later."""
    offsets: dict[str, int] = field(default_factory=dict)
    """Group offsets that become the group's with a commit, by group."""
    group_offsets: dict[str, dict[Place, int]] = field(default_factory=dict)
    """The same for groups of sources, which have many."""

    @property
    def identity(self) -> Transaction:
        return Transaction(self.transactional_id, self.producer_id, self.epoch)

    def finish(self, outcome: Outcome) -> None:
        """Write the markers: from here on readers see or skip the transaction's records."""
        self.outcome = outcome
        self.unmarked = list(self.logs)
        self.write_markers()

    def write_markers(self) -> None:
        for log in self.unmarked:
            if log.takes_records:
                log.append_marker(self)
        self.unmarked = [log for log in self.unmarked if not log.takes_records]

    def holds_up(self, log: PartitionLog) -> bool:
        """Whether readers of the partition wait for it."""
        return self.outcome is Outcome.OPEN or log in self.unmarked


@dataclass(frozen=True, eq=False)
class Entry:
    """One offset of a partition: a record, or a control marker that readers never see."""

    offset: int
    txn: Txn
    marker: bool
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp: int = 0


class PartitionLog:
    """One partition. Offsets never shift: deleted and compacted entries leave gaps."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.start = 0
        self.has_leader = True
        self.in_sync = True
        """Whether as many replicas as `min.insync.replicas` are. Otherwise it is only read."""
        self._entries: list[Entry | None] = []

    @property
    def end(self) -> int:
        """The high watermark."""
        return len(self._entries)

    @property
    def takes_records(self) -> bool:
        return self.has_leader and self.in_sync

    @property
    def last_stable(self) -> int:
        """The first offset of the earliest open transaction, else the high watermark."""
        open_offsets = (e.offset for e in self._entries if e and e.txn.holds_up(self))
        return next(open_offsets, self.end)

    def all_from(self, offset: int) -> list[Entry]:
        """Every record and marker that is kept, whatever became of its transaction."""
        return [entry for entry in self._entries[max(offset, self.start) :] if entry]

    def append(
        self,
        txn: Txn,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
    ) -> int:
        if self not in txn.logs:
            txn.logs.append(self)
        self._entries.append(Entry(self.end, txn, False, key, value, tuple(headers), timestamp))
        return self.end - 1

    def append_marker(self, txn: Txn) -> None:
        self._entries.append(Entry(self.end, txn, True))

    def committed(self) -> list[Entry]:
        """What a read_committed reader gets, from the beginning."""
        stable = self._entries[self.start : self.last_stable]
        return [e for e in stable if e and not e.marker and e.txn.outcome is Outcome.COMMITTED]

    def settled(self) -> list[Entry]:
        """What readers get sooner or later: open transactions before it only keep it back."""
        kept = (e for e in self._entries if e and not e.marker)
        return [e for e in kept if e.txn.outcome is Outcome.COMMITTED]

    def visibility(self, offset: int, transaction: Transaction) -> Visibility | None:
        """What is to be found at an offset; None while an open transaction keeps it back, or no
        leader is there to read it from."""
        if offset > self.end:
            return Visibility.UNREADABLE  # out of range: the topic was made again
        if offset >= self.last_stable or not self.has_leader:
            return None
        entry = self._entries[offset] if offset >= self.start else None
        if entry is None or entry.txn.identity != transaction:
            return Visibility.UNREADABLE
        committed = entry.txn.outcome is Outcome.COMMITTED
        return Visibility.COMMITTED if committed else Visibility.ABORTED

    def marker(self, offset: int, transaction: Transaction) -> bool | None:
        """What the first marker of the transaction behind an offset says."""
        found = (e for e in self.all_from(offset) if e.marker and e.txn.identity == transaction)
        return next((e.txn.outcome is Outcome.COMMITTED for e in found), None)

    def delete_before(self, offset: int) -> None:
        """Retention, or DeleteRecords."""
        self.start = max(self.start, min(offset, self.end))

    def cut_off(self, end: int) -> None:
        """What an unclean election does: the records from there on are lost."""
        del self._entries[end:]

    def compact(self) -> None:
        """Keep the last committed record of each key, and all markers."""
        last = {entry.key: entry.offset for entry in self.committed()}
        for entry in self.all_from(self.start):
            ended = not entry.marker and entry.txn.outcome is not Outcome.OPEN
            if ended and last.get(entry.key) != entry.offset:
                self._entries[entry.offset] = None


class Topic:
    """A topic and how records spread over its partitions."""

    def __init__(
        self,
        name: str,
        partitions: int,
        settings: Mapping[str, str] | None = None,
        topic_id: str = "",
    ) -> None:
        self.name = name
        self.id = topic_id or name
        self.settings = {"min.insync.replicas": "1", **(settings or {})}
        self.partitions = [PartitionLog(name, number) for number in range(partitions)]
        self._next = 0

    def refusal(self, key: bytes | None, size: int, timestamp: int | None, now_ms: int) -> str:
        """Why the brokers refuse a record; "" if they take it."""
        rules = TopicRules.of(len(self.partitions), self.settings)
        age = now_ms - (now_ms if timestamp is None else timestamp)
        if size > rules.max_bytes:
            return f"{self.name} takes no record of {size} bytes"
        if rules.keyed and key is None:
            return f"{self.name} takes no record without a key"
        return (
            f"too far from now: {age} ms" if not -rules.after_ms <= age <= rules.before_ms else ""
        )

    def log_for(self, key: bytes | None, partition: int | None) -> PartitionLog:
        """Raises IndexError for a partition that does not exist."""
        if partition is not None:
            if partition < 0:
                raise IndexError(partition)
            return self.partitions[partition]
        if key is not None:
            return self.partitions[self.position(key)]
        self._next += 1
        return self.partitions[self._next % len(self.partitions)]

    def position(self, key: bytes) -> int:
        return crc32(key) % len(self.partitions)

    def committed(self) -> list[Entry]:
        return [entry for log in self.partitions for entry in log.committed()]

    def settled(self) -> list[Entry]:
        return [entry for log in self.partitions for entry in log.settled()]
