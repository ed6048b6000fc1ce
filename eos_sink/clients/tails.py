"""What a partition still shows of transactions: their records by producer, and their markers.

A reader of records is not told who produced them, but the batches on the wire say it (KIP-98).
"""

from __future__ import annotations

from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.record import MemoryRecords

from eos_sink.clients.wire import Wire
from eos_sink.deadline import Deadline
from eos_sink.ports import Headers, OnRow, PartitionTail, ProducerIdentity, Trace

_FETCH_VERSION = 11  # The last one that names topics; every broker that is supported has it.
_FETCH_BYTES = 4 * 1024 * 1024
_FETCH_WAIT_MS = 100


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
            answer = self._wire.run(lambda at=at: self._fetch(leader, tail, at, deadline))
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

    async def _fetch(self, leader: int, tail: PartitionTail, at: int, deadline: Deadline) -> Any:
        topic = FetchRequest.FetchTopic
        request = FetchRequest(
            max_wait_ms=_FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=0,
            topics=[
                topic(
                    topic=tail.topic,
                    partitions=[
                        topic.FetchPartition(
                            partition=tail.partition,
                            fetch_offset=at,
                            partition_max_bytes=_FETCH_BYTES,
                        )
                    ],
                )
            ],
            max_version=_FETCH_VERSION,
        )
        answers = await self._wire.gather({"": self._wire.send(request, leader, deadline)})
        response = answers[""]
        return response and response.responses[0].partitions[0]

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
            # With transaction version 2 a marker carries the epoch that follows (KIP-890).
            own = batch.producer_epoch == producer.epoch
            follows = trace.rows > 0 and batch.producer_epoch == producer.epoch + 1
            if trace.committed is None and (own or follows):
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
