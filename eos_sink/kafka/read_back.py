"""Reads back what topics show of transactions: the outcomes of single records, markers, and rows.

Consumers do not say which producer wrote a record, but the batches on the wire do (KIP-98).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError
from eos_sink.kafka.admin_requests import describe_topics, list_offsets
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, convert_error, get_meaning, is_missing, is_transient
from eos_sink.kafka.fetch import Fetched, fetch, fetch_each, read_records, select_committed
from eos_sink.kafka.interfaces import OnRow, PartitionTail, TopicDescription, Trace
from eos_sink.kafka.log_topic import may_be_log
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Permissions
from eos_sink.protocol.values import Place, Position, ProducerIdentity, Transaction, Visibility

# A response has at least one batch, however large it is.
_SMALL_BYTES = 64 * 1024
_ANSWERS_S = 5.0
# A broker may not know yet of a topic, and answers without records until it has brought those of a
# tiered topic from their store (KIP-405).
_LEARNS_S = 5.0
# How far behind a witness its marker is searched: a task's rows of one partition lie between.
_MARKER_OFFSETS = 10_000_000
_NEWEST = 32


class ReadBack:
    """Implements `eos_sink.kafka.interfaces.ReadBack`."""

    def __init__(self, clients: SharedClients) -> None:
        self._clients = clients

    def visibility(
        self, witnesses: Mapping[Position, Transaction], deadline: Deadline
    ) -> dict[Position, Visibility]:
        """A Fetch response has the records up to the last stable offset, committed or not, and the
        list of the aborted transactions among them (KIP-98). Retention or compaction may have
        removed a committed record, so one that is not there proves nothing."""
        wanted, seen = witnesses.keys(), dict[Position, Visibility]()
        learning = dict[Position | Place, Deadline]()

        def look() -> bool:
            # One of each partition at a time; the others follow in their order.
            first: dict[Place, Position] = {}
            for witness in sorted(wanted - seen.keys()):
                first.setdefault((witness.topic, witness.partition), witness)
            ask = partial(fetch_each, committed=True, most_bytes=_SMALL_BYTES)
            places = {place: witness.offset for place, witness in first.items()}
            known, wire = len(seen), self._wire
            for place, answer in wire.run(ask, wire, places, deadline.within(_ANSWERS_S)).items():
                witness = first[place]
                subject = _get_unlearned(witness, answer)
                learning_of: set[Position | Place] = {place, witness}
                for other in learning_of - {subject}:
                    learning.pop(other, None)
                # Time to learn begins with the first such answer, and has to be had in full.
                learned = (
                    subject is not None and learning.setdefault(subject, Deadline(_LEARNS_S)).passed
                )
                found = _judge(witness, witnesses[witness], answer, learned=learned)
                if found is not None:
                    seen[witness] = found
            return len(seen) > known

        while len(seen) < len(wanted) and retry_until(deadline, look, bool):
            pass
        return seen

    def markers(
        self, asked: Mapping[Position, Transaction], deadline: Deadline
    ) -> dict[Position, bool]:
        found, with_rows = dict[Position, bool](), set[Position]()

        def read(place: Place) -> bool:
            """Read on from the first witness, or from the first offset that is kept. False: the
            leader did not answer or has changed, so that another attempt may find more."""
            left = {w: t for w, t in asked.items() if (w.topic, w.partition) == place}
            left = {witness: its for witness, its in left.items() if witness not in found}
            wire = self._wire
            offsets = list_offsets(wire, [place], deadline)[place]
            if isinstance(offsets, KafkaError):
                return not is_transient(offsets)
            start = max(min(left).offset, offsets.start)
            end = min(offsets.end, start + _MARKER_OFFSETS)
            try:
                for batch in _batches(wire, place, start, end, deadline):
                    for witness, its in list(left.items()):
                        is_before = batch.next_offset <= witness.offset
                        if is_before or batch.producer_id != its.producer_id:
                            continue
                        if not batch.is_control_batch:
                            if batch.producer_epoch == its.epoch and batch.records_count:
                                with_rows.add(witness)
                        elif _ends(batch, its.epoch, has_rows=witness in with_rows):
                            found[witness] = next(iter(batch)).commit
                            del left[witness]
                    if not left:
                        break
            except _StoppedError:
                return False
            return True

        for place in sorted({(each.topic, each.partition) for each in asked}):
            # Repeated, since the partition may have found another leader meanwhile.
            retry_until(deadline, partial(read, place), bool)
        return found

    def scan_topic(
        self,
        topic: str,
        producers: frozenset[ProducerIdentity],
        most: int,
        on_row: OnRow,
        deadline: Deadline,
    ) -> list[PartitionTail]:
        wire = self._wire
        described = describe_topics(wire, [topic], deadline, settings=False)[topic]
        if isinstance(described, KafkaError):
            return [] if is_missing(described) else [_unread((topic, 0), described)]
        places = [(topic, number) for number in sorted(described.partitions)]
        found = []
        for place, offsets in sorted(list_offsets(wire, places, deadline).items()):
            if isinstance(offsets, KafkaError):
                found.append(_unread(place, offsets))
                continue
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

    def newest_values(self, topics: Collection[str], deadline: Deadline) -> dict[str, list[bytes]]:
        """The first value of each of the newest batches, as many as one small response has."""
        wire, found = self._wire, dict[str, list[bytes]]()
        described = describe_topics(wire, topics, deadline).values()
        shown = [each for each in described if isinstance(each, TopicDescription)]
        logs = filter(may_be_log, shown)
        places = [(topic.name, number) for topic in logs for number in topic.partitions]
        for place, known in list_offsets(wire, places, deadline).items():
            if isinstance(known, KafkaError) or known.start == known.end:
                continue
            start, values = max(known.start, known.end - _NEWEST), found.setdefault(place[0], [])
            step = partial(fetch, committed=False, most_bytes=_SMALL_BYTES)
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

    @property
    def _wire(self) -> Wire:
        return self._clients.control().wire


def _unread(place: Place, error: KafkaError) -> PartitionTail:
    return PartitionTail(*place, 0, 0, 0, 0, unread=error.str())


def _get_unlearned(witness: Position, answer: Fetched | KafkaError) -> Position | Place | None:
    """Return what the broker may have to learn of, or None: the partition, which is the same for
    all its witnesses, or the records at this one."""
    if isinstance(answer, KafkaError):
        return (witness.topic, witness.partition) if is_missing(answer) else None
    return witness if answer.stable > witness.offset and not answer.batches else None


def _judge(
    witness: Position,
    transaction: Transaction,
    answer: Fetched | KafkaError,
    *,
    learned: bool,
) -> Visibility | None:
    """Return what the answer shows, or None to ask again."""
    if isinstance(answer, KafkaError):
        meaning = get_meaning(answer.code())
        if meaning in (Meaning.DENIED, Meaning.LOGIN_REFUSED):
            needed = Permissions.witness(witness.topic)
            raise convert_error(answer, f"{witness} is unreadable", [needed])
        gone = meaning is Meaning.OUT_OF_RANGE or learned
        return Visibility.UNREADABLE if gone else None
    if answer.stable <= witness.offset:
        return None
    if not answer.batches:
        return Visibility.UNREADABLE if learned else None
    first = answer.batches[0]
    if (first.producer_id, first.producer_epoch) != (transaction.producer_id, transaction.epoch):
        return Visibility.UNREADABLE  # The topic was deleted and made again.
    if first.is_control_batch or all(row.offset != witness.offset for row in read_records(first)):
        return Visibility.UNREADABLE
    aborted = next(select_committed([first], answer.aborted), None) is None
    return Visibility.ABORTED if aborted else Visibility.COMMITTED


class _TailScan:
    """Collects the traces of producers in one partition."""

    def __init__(
        self, tail: PartitionTail, producers: frozenset[ProducerIdentity], on_row: OnRow
    ) -> None:
        self.traces: dict[ProducerIdentity, Trace] = {}
        self._tail = tail
        self._producers = producers
        self._by_id: dict[int, list[ProducerIdentity]] = {}
        for each in producers:
            self._by_id.setdefault(each.producer_id, []).append(each)
        self._on_row = on_row

    def add(self, batch: Any) -> None:
        producer = ProducerIdentity(batch.producer_id, batch.producer_epoch)
        if batch.is_control_batch:
            for each in self._by_id.get(producer.producer_id, ()):
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


def _ends(marker: Any, epoch: int, *, has_rows: bool) -> bool:
    """True if a marker of the same producer id belongs to the transaction with this epoch.

    With transaction version 2 (KIP-890), and where the coordinator itself aborts, a marker has the
    next epoch, and one of Kafka 4.0.0 the one after it (KAFKA-19367). So have markers of later
    transactions. Rows before it tell them apart: a leader has one open transaction of a producer,
    which the first marker ends, and neither retention nor compaction removes a marker before the
    rows.
    """
    epochs_on = marker.producer_epoch - epoch
    return bool(epochs_on == 0 or (has_rows and epochs_on > 0))


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
