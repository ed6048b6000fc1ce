"""Fetches record batches, one request at a time, over the control connections.

A consumer fetches in the background, reads no markers and does not say which producer wrote a
record; the batches on the wire do (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError
from kafka import errors as kafka_errors
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest
from kafka.record import MemoryRecords

from eos_sink.errors import ClusterError
from eos_sink.kafka.admin_requests import Place
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.decompress import decompress
from eos_sink.kafka.wire import Leader, Wire

LATEST, EARLIEST = -1, -2  # ListOffsetsRequest.java

# Every supported broker has it. From version 11 on the leader may name another replica to read from
# instead of answering (KIP-392): one that is behind, and a response that looks like an empty log.
_FETCH_VERSION = 10
_LIST_OFFSETS_VERSION = 5  # It has the leader epoch; every supported broker has it.
_FETCH_BYTES = 4 * 1024 * 1024
_NO_REPLICA = -1


@dataclass(frozen=True)
class Fetched:
    """What one response says of a partition.

    Attributes:
        leader: the broker that answered.
        stable: the last stable offset.
        end: the high watermark.
        next: where to read on.
        batches: all record batches, with markers; the first one may begin before the offset that
            was asked for. They can be read once.
        aborted: the response's aborted transactions.
    """

    leader: Leader
    stable: int
    end: int
    next: int
    batches: Sequence[Any] = ()
    aborted: Sequence[Any] = ()

    def records(self) -> Iterator[Any]:
        """All records, without markers and, if it was fetched so, only those of committed
        transactions."""
        for batch in _select_committed(self.batches, self.aborted):
            yield from read_records(batch)


async def fetch(  # noqa: PLR0913
    wire: Wire,
    place: Place,
    at: int,
    deadline: Deadline,
    *,
    committed: bool,
    most_bytes: int = _FETCH_BYTES,
) -> Fetched | KafkaError:
    """What a partition has from an offset on, as much as one response holds; does not wait for
    records. After an error, the next call looks up the leader.

    Args:
        wire: to the brokers.
        place: topic and partition.
        at: the first offset.
        deadline: for the answer.
        committed: up to the last stable offset, with the aborted transactions; else all that is
            there up to the high watermark.
        most_bytes: of a response; a single record batch may be larger.
    """

    def make(leader: Leader) -> Any:
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=place[1],
            current_leader_epoch=leader.epoch,
            fetch_offset=at,
            partition_max_bytes=most_bytes,
        )
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=most_bytes,
            isolation_level=int(committed),
            topics=[FetchRequest.FetchTopic(topic=place[0], partitions=[partition])],
            max_version=_FETCH_VERSION,
        )

    asked = await _ask_leader(wire, place, make, lambda response: response.responses, deadline)
    if isinstance(asked, KafkaError):
        return asked
    leader, answer = asked
    records, batches = MemoryRecords(answer.records or b""), []
    while (batch := records.next_batch()) is not None:
        batches.append(batch)
    readable = answer.last_stable_offset if committed else answer.high_watermark
    if batches:
        at = max(at, batches[-1].next_offset)
    elif not answer.records:
        # There is nothing up to there: compaction has removed it.
        at = max(at, readable)
    return Fetched(
        leader,
        answer.last_stable_offset,
        answer.high_watermark,
        at,
        batches,
        answer.aborted_transactions or (),
    )


async def find_offset(
    wire: Wire, place: Place, which: int, deadline: Deadline
) -> tuple[Leader, int] | KafkaError:
    """The partition's LATEST (high watermark) or EARLIEST offset, and who said so.

    A new leader refuses to answer until it knows how far its predecessor came (KIP-207). A Fetch
    response of it may contain an earlier high watermark.
    """

    def make(leader: Leader) -> Any:
        topic = ListOffsetsRequest.ListOffsetsTopic
        partition = topic.ListOffsetsPartition(
            partition_index=place[1], current_leader_epoch=leader.epoch, timestamp=which
        )
        return ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            isolation_level=0,
            topics=[topic(name=place[0], partitions=[partition])],
            max_version=_LIST_OFFSETS_VERSION,
        )

    asked = await _ask_leader(wire, place, make, lambda response: response.topics, deadline)
    return asked if isinstance(asked, KafkaError) else (asked[0], int(asked[1].offset))


async def _ask_leader(
    wire: Wire, place: Place, make: Any, read_topics: Any, deadline: Deadline
) -> tuple[Leader, Any] | KafkaError:
    """The answer of the leader about its partition, without an error code."""
    found = (await wire.find_leaders([place], deadline)).get(place)
    if found is None:
        return KafkaError(KafkaError._TIMED_OUT)
    if not isinstance(found, Leader):
        return KafkaError(found)
    sent = {"": wire.send(make(found), found.node, deadline)}
    response = (await wire.gather(sent, deadline))[""]
    # A broker whose quota is used up answers without any partition.
    topics = read_topics(response) if response is not None else ()
    if topics and not topics[0].partitions[0].error_code:
        return found, topics[0].partitions[0]
    wire.forget_leader(place)
    code = topics[0].partitions[0].error_code if topics else KafkaError._TIMED_OUT
    return KafkaError(code)


def read_records(batch: Any) -> Iterator[Any]:
    """The records of a batch, whatever codec it is compressed with.

    Raises:
        ClusterError: it cannot be decoded.
    """
    try:
        decompress(batch)
        yield from batch
    except (kafka_errors.KafkaError, EOFError, OSError, ValueError) as error:
        raise ClusterError(
            f"The record batch at offset {batch.base_offset} cannot be decoded: {error}.",
            remedy="Read it with another client. If that fails too, the log is corrupt.",
        ) from error


def _select_committed(batches: Sequence[Any], aborted: Sequence[Any]) -> Iterator[Any]:
    """Without markers and batches of aborted transactions, as in Kafka's CompletedFetch."""
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    for batch in batches:
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_control_batch:
            # Decoding each marker would double the time for a log with one record per transaction.
            marker = next(iter(batch), None) if batch.producer_id in producers else None
            if marker is not None and marker.abort:
                producers.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in producers):
            yield batch
