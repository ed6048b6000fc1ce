"""Reads what a topic still shows of transactions: their records by producer, and their markers.

Consumers do not say which producer wrote a record, but the batches on the wire do (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError
from eos_sink.kafka.admin_requests import describe_topics, list_offsets
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import is_transient
from eos_sink.kafka.fetch import fetch, read_records
from eos_sink.kafka.interfaces import OnRow
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.kafka.topic_traces import PartitionTail, Trace
from eos_sink.kafka.wire import Wire
from eos_sink.protocol.values import Place, Position, ProducerIdentity, Transaction

# How far behind a witness its marker is searched: a task's rows of one partition lie between.
_MARKER_OFFSETS = 10_000_000
# A response has at least one batch, however large it is.
_NEWEST, _NEWEST_BYTES = 32, 64 * 1024


def scan_topic(  # noqa: PLR0913, PLR0917 - see `Kafka.scan_topic`
    clients: SharedClients,
    topic: str,
    producers: frozenset[ProducerIdentity],
    most: int,
    on_row: OnRow,
    deadline: Deadline,
) -> list[PartitionTail]:
    """See `eos_sink.kafka.interfaces.Kafka.scan_topic`."""
    wire = clients.control().wire
    described = describe_topics(wire, [topic], deadline, settings=False)[topic]
    if isinstance(described, KafkaError):
        return []
    places = [(topic, number) for number in sorted(described.partitions)]
    found = []
    for place, offsets in sorted(list_offsets(wire, places, deadline).items()):
        if isinstance(offsets, KafkaError):
            return []
        first = max(offsets.start, offsets.end - most)
        tail = PartitionTail(*place, offsets.start, offsets.stable, offsets.end, first)
        scan = _TailScan(tail, producers, on_row)
        unread = ""
        try:
            for batch in _batches(wire, place, first, tail.end, deadline):
                scan.add(batch)
        except (_StoppedError, ClusterError) as stopped:
            unread = str(stopped)
        found.append(replace(tail, traces=scan.traces, unread=unread))
    return found


class _TailScan:
    """Collects the traces of producers in one partition."""

    def __init__(
        self, tail: PartitionTail, producers: frozenset[ProducerIdentity], on_row: OnRow
    ) -> None:
        self.traces: dict[ProducerIdentity, Trace] = {}
        self._tail = tail
        self._producers = producers
        self._on_row = on_row

    def add(self, batch: Any) -> None:
        number, epoch = batch.producer_id, batch.producer_epoch
        producer = ProducerIdentity(number, epoch)
        if batch.is_control_batch:
            for each in {producer, ProducerIdentity(number, epoch - 1)} & self._producers:
                trace = self.traces.get(each, Trace())
                if trace.committed is None and _ends(batch, each.epoch, has_rows=trace.rows > 0):
                    self.traces[each] = trace.ended(committed=next(iter(batch)).commit)
        elif producer in self._producers:
            for row in read_records(batch):
                if row.offset >= self._tail.start:
                    headers = [(str(key), value) for key, value in row.headers or ()] or None
                    found = (row.value, row.key, self._tail.topic, headers, None, None)
                    self._on_row(producer, found)
            trace = self.traces.get(producer, Trace())
            self.traces[producer] = trace.more(batch.records_count)


def find_markers(
    clients: SharedClients, asked: Mapping[Position, Transaction], deadline: Deadline
) -> dict[Position, bool]:
    """See `eos_sink.kafka.interfaces.Kafka.markers`."""
    found: dict[Position, bool] = {}
    for place in sorted({(each.topic, each.partition) for each in asked}):
        here = {w: t for w, t in asked.items() if (w.topic, w.partition) == place}
        search = _MarkerSearch(clients, place, here)
        # Repeated, since the partition may have found another leader meanwhile.
        retry_until(deadline, partial(search.read, deadline), bool)
        found |= search.found
    return found


def read_newest_values(
    clients: SharedClients, places: Sequence[Place], deadline: Deadline
) -> dict[str, list[bytes]]:
    """The first value of each of the newest batches, as many as one small response has; see
    `eos_sink.kafka.interfaces.Kafka.newest_values`."""
    wire, found = clients.control().wire, dict[str, list[bytes]]()
    for place, known in list_offsets(wire, places, deadline).items():
        if isinstance(known, KafkaError) or known.start == known.end:
            continue
        start, values = max(known.start, known.end - _NEWEST), found.setdefault(place[0], [])
        step = partial(fetch, committed=False, most_bytes=_NEWEST_BYTES)
        with suppress(ClusterError):
            fetched = wire.run(step, wire, place, start, deadline)
            if isinstance(fetched, KafkaError):
                continue
            for batch in fetched.batches:
                # A task's batch may have thousands, and decoding them would take a second.
                first = None if batch.is_control_batch else next(read_records(batch), None)
                if first is not None and first.value is not None:
                    values.append(first.value)
    return found


class _MarkerSearch:
    """Looks for the markers behind witnesses of one partition."""

    def __init__(
        self, clients: SharedClients, place: Place, asked: Mapping[Position, Transaction]
    ) -> None:
        self.found: dict[Position, bool] = {}
        self._clients = clients
        self._place = place
        self._open = dict(asked)
        self._with_rows: set[Position] = set()

    def read(self, deadline: Deadline) -> bool:
        """Read on from the first witness, or from the first offset that is kept. False: the leader
        did not answer or has changed, so that another attempt may find more."""
        wire = self._clients.control().wire
        offsets = list_offsets(wire, [self._place], deadline)[self._place]
        if isinstance(offsets, KafkaError):
            return not is_transient(offsets)
        start = max(min(self._open).offset, offsets.start)
        end = min(offsets.end, start + _MARKER_OFFSETS)
        try:
            for batch in _batches(wire, self._place, start, end, deadline):
                self._add(batch)
                if not self._open:
                    break
        except _StoppedError:
            return False
        return True

    def _add(self, batch: Any) -> None:
        for witness, transaction in list(self._open.items()):
            if batch.producer_id != transaction.producer_id or batch.next_offset <= witness.offset:
                continue
            if not batch.is_control_batch:
                if batch.producer_epoch == transaction.epoch and batch.records_count:
                    self._with_rows.add(witness)
            elif _ends(batch, transaction.epoch, has_rows=witness in self._with_rows):
                self.found[witness] = next(iter(batch)).commit
                del self._open[witness]


def _ends(marker: Any, epoch: int, *, has_rows: bool) -> bool:
    """True if a marker of the same producer id belongs to the transaction with this epoch.

    With transaction version 2 (KIP-890), and where the coordinator itself aborts, a marker has the
    next epoch. So has the marker of the next transaction. Rows of the transaction before it tell
    them apart: neither retention nor compaction removes a marker before the rows.
    """
    return bool(marker.producer_epoch == epoch or (has_rows and marker.producer_epoch == epoch + 1))


class _StoppedError(Exception):
    """A partition could not be read on; says why."""


def _batches(wire: Wire, place: Place, start: int, end: int, deadline: Deadline) -> Iterator[Any]:
    """All record batches of a partition from one offset to another, committed or not."""
    wire.forget_leader(place)
    at = start
    while at < end:
        if deadline.passed:
            raise _StoppedError(f"no time to read on from offset {at}")
        fetched = wire.run(partial(fetch, committed=False), wire, place, at, deadline)
        if isinstance(fetched, KafkaError):
            raise _StoppedError(fetched.str())
        if not fetched.batches:
            raise _StoppedError(f"nothing came at offset {at}")
        yield from fetched.batches
        at = fetched.next
