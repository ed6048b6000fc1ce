"""Fetches record batches, one request at a time, over the control connections.

A consumer fetches in the background, reads no markers and does not say which producer wrote a
record; the batches on the wire do (KIP-98).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError
from kafka import errors as kafka_errors
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest
from kafka.record import MemoryRecords

from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.internals import decompress
from eos_sink.kafka.wire import Leader, Wire
from eos_sink.protocol.values import Place

LATEST, EARLIEST = -1, -2  # ListOffsetsRequest.java

# Every supported broker has it. From version 11 on the leader may name another replica to read from
# instead of answering (KIP-392): one that is behind, and a response that looks like an empty log.
_FETCH_VERSION = 10
_LIST_OFFSETS_VERSION = 5  # It has the leader epoch; every supported broker has it.
_FETCH_BYTES = 4 * 1024 * 1024
_NO_REPLICA = -1


@dataclass(frozen=True)
class Fetched:
    """One partition of a response.

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
        for batch in select_committed(self.batches, self.aborted):
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
    """See `fetch_each`, for one offset."""
    places = {place: at}
    return (await fetch_each(wire, places, deadline, committed=committed, most_bytes=most_bytes))[
        place
    ]


async def fetch_each(
    wire: Wire,
    places: Mapping[Place, int],
    deadline: Deadline,
    *,
    committed: bool,
    most_bytes: int = _FETCH_BYTES,
) -> dict[Place, Fetched | KafkaError]:
    """Return what each partition has from an offset on, as much as one response holds; does not
    wait for records. After an error, the next call looks up the leader.

    Args:
        wire: to the brokers.
        places: topics and partitions, each with the first offset.
        deadline: for the answers.
        committed: up to the last stable offset, with the aborted transactions; else all that is
            there up to the high watermark.
        most_bytes: of a response; a single record batch may be larger.
    """

    def make(place: Place, leader: Leader) -> Any:
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=place[1],
            current_leader_epoch=leader.epoch,
            fetch_offset=places[place],
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

    found = dict[Place, Fetched | KafkaError]()
    leaders, sent = dict[Place, Leader](), dict[Place, Any]()
    for place, leader in (await wire.find_leaders(places, deadline)).items():
        if isinstance(leader, Leader):
            leaders[place] = leader
            sent[place] = wire.send(make(place, leader), leader.node, deadline)
        else:
            found[place] = KafkaError(leader)
    for place, response in (await wire.gather(sent, deadline)).items():
        # A broker whose quota is used up answers without any partition.
        rows = response.responses if response else ()
        for answer in (part for row in rows for part in row.partitions):
            found[place] = (
                KafkaError(answer.error_code)
                if answer.error_code
                else _read(answer, leaders[place], places[place], committed=committed)
            )
    found = {place: found.get(place, wire.silence) for place in places}
    for place in leaders:
        if isinstance(found[place], KafkaError):
            wire.forget_leader(place)
    return found


def _read(answer: Any, leader: Leader, at: int, *, committed: bool) -> Fetched:
    records, batches = MemoryRecords(answer.records or b""), []
    while (batch := records.next_batch()) is not None:
        batches.append(batch)
    stable, end = answer.last_stable_offset, answer.high_watermark
    if batches:
        at = max(at, batches[-1].next_offset)
    elif not answer.records:
        # There is nothing up to there: compaction has removed it.
        at = max(at, stable if committed else end)
    return Fetched(leader, stable, end, at, batches, answer.aborted_transactions or ())


async def find_offset(
    wire: Wire, place: Place, which: int, deadline: Deadline
) -> tuple[Leader, int] | KafkaError:
    """See `find_offsets`, for one partition."""
    return (await find_offsets(wire, [place], which, deadline))[place]


async def find_offsets(
    wire: Wire,
    places: Collection[Place],
    which: int,
    deadline: Deadline,
    *,
    committed: bool = False,
) -> dict[Place, tuple[Leader, int] | KafkaError]:
    """Each partition's LATEST or EARLIEST offset, and who said so; one request for each leader.
    After an error, the next call looks up the leader.

    A new leader refuses to answer until it knows how far its predecessor came (KIP-207). A Fetch
    response of it may contain an earlier high watermark.

    Args:
        wire: to the brokers.
        places: topics and partitions.
        which: LATEST or EARLIEST.
        deadline: for the answers.
        committed: LATEST is the last stable offset; else it is the high watermark.
    """
    topic = ListOffsetsRequest.ListOffsetsTopic

    def make(asked: Collection[Place]) -> Any:
        by_topic: dict[str, list[Any]] = {}
        for name, number in asked:
            epoch = leaders[name, number].epoch
            partition = topic.ListOffsetsPartition(
                partition_index=number, current_leader_epoch=epoch, timestamp=which
            )
            by_topic.setdefault(name, []).append(partition)
        return ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            isolation_level=int(committed),
            topics=[topic(name=name, partitions=parts) for name, parts in by_topic.items()],
            max_version=_LIST_OFFSETS_VERSION,
        )

    found = dict[Place, tuple[Leader, int] | KafkaError]()
    leaders, by_node = dict[Place, Leader](), dict[int, list[Place]]()
    for place, leader in (await wire.find_leaders(places, deadline)).items():
        if isinstance(leader, Leader):
            leaders[place] = leader
            by_node.setdefault(leader.node, []).append(place)
        else:
            found[place] = KafkaError(leader)
    sent = {node: wire.send(make(asked), node, deadline) for node, asked in by_node.items()}
    for response in (await wire.gather(sent, deadline)).values():
        # A broker whose quota is used up answers without any partition.
        for row in response.topics if response is not None else ():
            for part in row.partitions:
                place, code = (row.name, part.partition_index), part.error_code
                found[place] = KafkaError(code) if code else (leaders[place], int(part.offset))
    found = {place: found.get(place, wire.silence) for place in places}
    for place, answer in found.items():
        if isinstance(answer, KafkaError):
            wire.forget_leader(place)
    return found


def read_records(batch: Any) -> Iterator[Any]:
    """The records of a batch, compressed with any codec.

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


def select_committed(batches: Sequence[Any], aborted: Sequence[Any]) -> Iterator[Any]:
    """Yield the batches without markers and those of aborted transactions, as Kafka's
    CompletedFetch does."""
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
