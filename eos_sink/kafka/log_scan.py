"""What a partition still shows of transactions: their records by producer, and their markers.

Consumers do not say who produced a record, but the batches on the wire do (KIP-98).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.record import MemoryRecords

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import (
    Headers,
    OnRow,
    PartitionTail,
    ProducerIdentity,
    Trace,
    Transaction,
    Witness,
)
from eos_sink.kafka.wire import Wire

_FETCH_VERSION = 11  # The last one that names topics; every broker that is supported has it.
_FETCH_BYTES = 4 * 1024 * 1024
_FETCH_WAIT_MS = 100
# How far behind a witness its marker is looked for: a task's rows of one partition lie between.
_MARKER_OFFSETS = 10_000_000


class TailReader:
    """Reads one partition on from an offset, all that is there, committed or not."""

    def __init__(self, wire: Wire, producers: frozenset[ProducerIdentity], on_row: OnRow) -> None:
        self._wire = wire
        self._producers = {p.producer_id: p for p in producers}
        self._on_row = on_row
        self._traces: dict[ProducerIdentity, Trace] = {}

    def read(self, leader: int, tail: PartitionTail, deadline: Deadline) -> PartitionTail:
        """The same with what was found from `read_from` to `end`; `unread` says why not all."""
        self._traces, at = {}, tail.read_from
        while at < tail.end:
            if deadline.passed:
                return self._found(tail, f"no time to read on from offset {at}")
            place = (tail.topic, tail.partition)
            answer = self._wire.run(
                lambda at=at, place=place: _fetch(self._wire, leader, place, at, deadline)
            )
            if answer is None:
                return self._found(tail, f"broker {leader} does not answer")
            code = int(answer.error_code)
            if code:
                return self._found(tail, kafka_errors.for_code(code).__name__)
            before, at = at, self._take(answer.records, tail, at)
            if at == before:
                return self._found(tail, f"nothing came at offset {at}")
        return self._found(tail, "")

    def _found(self, tail: PartitionTail, unread: str) -> PartitionTail:
        return PartitionTail(
            tail.topic,
            tail.partition,
            tail.start,
            tail.stable,
            tail.end,
            tail.read_from,
            self._traces,
            unread,
        )

    def _take(self, data: Any, tail: PartitionTail, at: int) -> int:
        """Note what the batches hold; the offset behind them."""
        records = MemoryRecords(data or b"")
        while (batch := records.next_batch()) is not None:
            at = max(at, batch.next_offset)
            producer = self._producers.get(batch.producer_id)
            if producer is not None:
                self._note(producer, batch, tail)
        return at

    def _note(self, producer: ProducerIdentity, batch: Any, tail: PartitionTail) -> None:
        trace = self._traces.get(producer, Trace())
        if batch.is_control_batch:
            if trace.committed is None and _ends(batch, producer.epoch, has_rows=trace.rows > 0):
                self._traces[producer] = trace.ended(committed=next(iter(batch)).commit)
        elif batch.producer_epoch == producer.epoch:
            self._traces[producer] = trace.more(
                batch.records_count, hidden=not self._hand_over(producer, batch, tail)
            )

    def _hand_over(self, producer: ProducerIdentity, batch: Any, tail: PartitionTail) -> bool:
        """Whether the rows could be looked at; some compressions need a library."""
        try:
            rows = [row for row in batch if row.offset >= tail.start]
        except (kafka_errors.UnsupportedCodecError, AssertionError):
            return False
        for row in rows:
            headers: Headers = [(str(key), value) for key, value in row.headers or ()]
            self._on_row(producer, tail.topic, row.value, row.key, headers or None)
        return True


class MarkerReader:
    """Looks for the markers behind witnesses of one partition."""

    def __init__(self, wire: Wire, asked: Mapping[Witness, Transaction]) -> None:
        self._wire = wire
        self._open = dict(asked)
        self._with_rows: set[Witness] = set()
        self.found: dict[Witness, bool] = {}

    def read(self, leader: int, start: int, end: int, deadline: Deadline) -> bool:
        """Read on from the first witness, or from `start` if that is further on; False if the
        leader does not answer, or is none, so that it may be tried again."""
        first = min(self._open)
        place, at = (first.topic, first.partition), max(first.offset, start)
        end = min(end, at + _MARKER_OFFSETS)
        while self._open and at < end and not deadline.passed:
            answer = self._wire.run(lambda at=at: _fetch(self._wire, leader, place, at, deadline))
            if answer is None or answer.error_code:
                return False
            before, records = at, MemoryRecords(answer.records or b"")
            while (batch := records.next_batch()) is not None:
                at = max(at, batch.next_offset)
                self._take(batch)
            if at == before:
                return False
        return True

    def _take(self, batch: Any) -> None:
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
    """Whether a marker of the same producer id is that of the transaction with this epoch.

    With transaction version 2 (KIP-890), and where the coordinator itself aborts, a marker has the
    epoch that follows. So has the marker of the transaction that follows. Rows of the transaction
    before it tell them apart: neither retention nor compaction removes a marker before the rows.
    """
    return bool(marker.producer_epoch == epoch or (has_rows and marker.producer_epoch == epoch + 1))


async def _fetch(
    wire: Wire, leader: int, place: tuple[str, int], at: int, deadline: Deadline
) -> Any:
    topic = FetchRequest.FetchTopic
    request = FetchRequest(
        max_wait_ms=_FETCH_WAIT_MS,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        isolation_level=0,
        topics=[
            topic(
                topic=place[0],
                partitions=[
                    topic.FetchPartition(
                        partition=place[1],
                        fetch_offset=at,
                        partition_max_bytes=_FETCH_BYTES,
                    )
                ],
            )
        ],
        max_version=_FETCH_VERSION,
    )
    answers = await wire.gather({"": wire.send(request, leader, deadline)}, deadline)
    response = answers[""]
    return response and response.responses[0].partitions[0]
