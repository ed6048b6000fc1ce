"""Has what the end of a topic still shows of transactions: the answer of `Kafka.scan_topic`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eos_sink.protocol.values import ProducerIdentity


@dataclass(frozen=True)
class Trace:
    """The traces in a partition of one producer's transaction.

    Attributes:
        rows: its records that are there.
        committed: the outcome in its marker; None: no marker was found.
    """

    rows: int = 0
    committed: bool | None = None

    def more(self, rows: int) -> Trace:
        return replace(self, rows=self.rows + rows)

    def ended(self, *, committed: bool) -> Trace:
        return replace(self, committed=committed)


@dataclass(frozen=True)
class PartitionTail:
    """A partition, and the traces found in it from `read_from` on.

    Attributes:
        start, stable, end: offsets, as in `eos_sink.kafka.admin_interface.PartitionOffsets`.
        unread: why a part of it could not be read; empty: all was read.
    """

    topic: str
    partition: int
    start: int
    stable: int
    end: int
    read_from: int
    traces: Mapping[ProducerIdentity, Trace] = field(default_factory=dict)
    unread: str = ""
