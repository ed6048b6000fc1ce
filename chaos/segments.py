"""What a broker has on disk of a topic: each transaction, and whether it was committed.

A second opinion beside what readers are given: here Kafka's own filter has no say. The layout is
that of record batches, version 2 (https://kafka.apache.org/documentation/#recordbatch).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eos_sink.testing.row_check import Bits, RowCheck

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_COUNTS_FROM = 12
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_MARKER_KEY = struct.Struct(">hh")
_COMMIT = 1


@dataclass(frozen=True)
class Batch:
    """The header of a record batch, and of a control batch what it says.

    Attributes:
        first, last: offsets.
        producer: its id, -1 for none.
        transactional: part of a transaction, or its marker.
        commit: of a marker: True for a commit, False for an abort; None of data.
    """

    first: int
    last: int
    producer: int
    transactional: bool
    commit: bool | None


@dataclass
class Transactions:
    """Those of a topic.

    Attributes:
        committed, aborted, open: how many have data in a partition, summed up over partitions.
        visible: offsets of records that a read_committed reader has to be given, by partition.
        hidden: those of aborted transactions.
    """

    committed: int = 0
    aborted: int = 0
    open: int = 0
    visible: dict[int, Bits] = field(default_factory=dict)
    hidden: dict[int, Bits] = field(default_factory=dict)

    def aborted_but_given(self, check: RowCheck) -> int:
        """Records of aborted transactions that a reader was given."""
        return sum(_both(bits, check.offsets.get(p)) for p, bits in self.hidden.items())

    def committed_but_withheld(self, check: RowCheck) -> int:
        """Committed records that a reader was not given."""
        return sum(
            bits - check.offsets.get(partition, Bits()) for partition, bits in self.visible.items()
        )


def transactions(directories: dict[int, Path]) -> Transactions:
    """Those in the directories of a topic's partitions on one broker."""
    found = Transactions()
    for partition, directory in directories.items():
        _judge(directory, found, partition)
    return found


def batches(directory: Path) -> Iterator[Batch]:
    """Every batch of a partition, in the order of offsets."""
    for segment in sorted(directory.glob("*.log")):
        yield from _parsed(segment.read_bytes())


def _judge(directory: Path, found: Transactions, partition: int) -> None:
    visible = found.visible.setdefault(partition, Bits())
    hidden = found.hidden.setdefault(partition, Bits())
    pending: dict[int, list[Batch]] = {}
    for batch in batches(directory):
        if batch.commit is None:
            if batch.transactional:
                pending.setdefault(batch.producer, []).append(batch)
            else:
                _add(visible, batch)
        elif data := pending.pop(batch.producer, None):
            found.committed += batch.commit
            found.aborted += not batch.commit
            for each in data:
                _add(visible if batch.commit else hidden, each)
    found.open += len(pending)


def _parsed(data: bytes) -> Iterator[Batch]:
    place = 0
    while place + _HEADER.size <= len(data):
        first, length, _, magic, _, attributes, last, _, _, producer, _, _, _ = _HEADER.unpack_from(
            data, place
        )
        if magic != 2 or place + _LENGTH_COUNTS_FROM + length > len(data):
            return  # space that is allocated and not written yet
        commit = None
        if attributes & _CONTROL:
            # One record: its length, attributes, two deltas and the key's length, a byte each.
            _, kind = _MARKER_KEY.unpack_from(data, place + _HEADER.size + 5)
            commit = kind == _COMMIT
        transactional = bool(attributes & _TRANSACTIONAL)
        yield Batch(first, first + last, producer, transactional, commit)
        place += _LENGTH_COUNTS_FROM + length


def _add(bits: Bits, batch: Batch) -> None:
    for offset in range(batch.first, batch.last + 1):
        bits.add(offset)


def _both(one: Bits, other: Bits | None) -> int:
    return 0 if other is None else len(one) - (one - other)
