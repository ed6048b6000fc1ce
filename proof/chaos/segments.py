"""Reads the transactions of a topic from a broker's disk, and whether each was committed.

They are compared with what readers get, since Kafka's own filter does not apply here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka.record import MemoryRecords

from eos_sink_lab.testing.row_check import Bits, RowCheck


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
    """Read them from the directories of a topic's partitions on one broker."""
    found = Transactions()
    for partition, directory in directories.items():
        visible = found.visible.setdefault(partition, Bits())
        hidden = found.hidden.setdefault(partition, Bits())
        pending: dict[int, list[range]] = {}
        for batch in _read_batches(directory):
            offsets = range(batch.base_offset, batch.next_offset)
            if batch.is_control_batch:
                (marker,) = batch
                if data := pending.pop(batch.producer_id, None):
                    found.committed += marker.commit
                    found.aborted += marker.abort
                    for each in data:
                        _add(visible if marker.commit else hidden, each)
            elif batch.is_transactional:
                pending.setdefault(batch.producer_id, []).append(offsets)
            else:
                _add(visible, offsets)
        found.open += len(pending)
    return found


def _read_batches(directory: Path) -> Iterator[Any]:
    """Every record batch of a partition, in the order of offsets; incomplete ones are left out."""
    for segment in sorted(directory.glob("*.log")):
        yield from MemoryRecords(segment.read_bytes())


def _add(bits: Bits, offsets: range) -> None:
    for offset in offsets:
        bits.add(offset)


def _both(one: Bits, other: Bits | None) -> int:
    return 0 if other is None else len(one) - (one - other)
