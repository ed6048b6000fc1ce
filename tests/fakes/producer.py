"""The fake transactional producer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from eos_sink.errors import FailureKind, OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import (
    EndOutcome,
    Offsets,
    Position,
    ProduceFailed,
    ProducerFenced,
    ProducerIdentity,
    Transaction,
)
from eos_sink.rows.rows import Row, Rows
from tests.fakes.cluster import WRITING, Coordinators, FakeCluster
from tests.fakes.log import PartitionLog
from tests.fakes.process import Process, port

MAX_MESSAGE_BYTES = 1_000_000


class FakeProducer:
    """Implements `eos_sink.kafka.interfaces.TransactionalProducer`.

    A record reaches its partition in `produce`, or when that takes records; the callers hear of it,
    or of its failure, in `flush` and later, as with librdkafka's queue.
    """

    def __init__(
        self,
        cluster: FakeCluster,
        process: Process,
        role: str,
        transactional_id: str,
        timeout_ms: int,
        largest: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self.process = process
        self.role = role
        self._cluster = cluster
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._largest = largest
        self._identity: ProducerIdentity | None = None
        self._begun = False
        self._closed = False
        self._failure: Exception | None = None
        self._reports: list[Callable[[], None]] = []
        self._queue: list[tuple[PartitionLog, Callable[[], None]]] = []

    @port("init")
    def init(self, deadline: Deadline) -> None:
        self._usable()
        self._identity = self._cluster.init_producer(self._id, self._timeout_ms, deadline)

    @port("begin")
    def begin(self) -> None:
        self._usable()
        assert self._identity is not None, "begin before init"
        assert not self._begun, "begin within a transaction"
        self._begun = True

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        on_offset: Callable[[int, int], None] | None = None,
    ) -> None:
        self._produce((value, key, topic, None, partition, None), on_offset)

    @port("produce")
    def _produce(self, row: Row, on_offset: Callable[[int, int], None] | None) -> None:
        value, key, topic, headers, partition, timestamp = row
        self._within()
        if self._failure is not None:
            return
        if topic not in self._cluster.topics:
            self._failure = ProduceFailed(f"no topic {topic}", FailureKind.MESSAGE_REJECTED, topic)
            return
        size = len(value or b"") + len(key or b"")
        if size > self._largest:
            raise ProduceFailed("a record is too large", FailureKind.MESSAGE_REJECTED, topic)
        refusal = self._cluster.topics[topic].refusal(key, size, timestamp, self._cluster.clock.ms)
        if refusal:
            self._failure = ProduceFailed(refusal, FailureKind.MESSAGE_REJECTED, topic)
            return
        try:
            log = self._cluster.topics[topic].log_for(key, partition)
        except IndexError:
            raise ProduceFailed(
                f"{topic} has no partition {partition}", FailureKind.MESSAGE_REJECTED, topic
            ) from None
        at_ms = self._cluster.clock.ms if timestamp is None else timestamp

        def append() -> None:
            txn = self._cluster.coordinator.open(self._id, self._current)
            self._cluster.sent = partial(self._add_partitions, self._current)
            offset = log.append(txn, key, value, headers or (), at_ms)
            if on_offset is not None:
                self._reports.append(lambda: on_offset(log.partition, offset))

        self._queue.append((log, append))
        self._deliver()

    def produce_rows(
        self, rows: Rows, on_offset: Callable[[str, int, int], None] | None = None
    ) -> None:
        for row in rows:
            self._produce(row, None if on_offset is None else partial(on_offset, row[2]))
            on_offset = None

    @port("send_offset")
    def send_offset(self, position: Position, member: bytes, deadline: Deadline) -> None:
        self._within()
        self._raise_failure()
        # AddOffsetsToTxn comes first: a refused member leaves the transaction open.
        self._cluster.await_answer(deadline, *WRITING)
        txn = self._cluster.coordinator.open(self._id, self._current)
        self._cluster.await_answer(deadline, Coordinators.GROUP)
        group = self._cluster.groups.check(member)
        txn.offsets[group] = position.offset
        self._cluster.sent = partial(self._cluster.coordinator.repeat_offsets, txn, group)

    @port("send_group_offsets")
    def send_group_offsets(self, group: str, offsets: Offsets, deadline: Deadline) -> None:
        self._within()
        self._raise_failure()
        self._cluster.await_answer(deadline, *WRITING)
        txn = self._cluster.coordinator.open(self._id, self._current)
        self._cluster.await_answer(deadline, Coordinators.GROUP)
        txn.group_offsets[group] = dict(offsets)
        self._cluster.sent = partial(self._cluster.coordinator.repeat_offsets, txn, group)

    @port("flush")
    def flush(self, deadline: Deadline) -> None:
        self._usable()
        if not self._cluster.clock.wait(self._deliver, deadline.left):
            topic = self._queue[0][0].topic
            raise ProduceFailed(f"not delivered to {topic}", FailureKind.DELIVERY_FAILED, topic)
        reports, self._reports = self._reports, []
        for report in reports:
            report()

    def check(self) -> None:
        self._within()
        self._raise_failure()

    @port("identity")
    def identity(self, deadline: Deadline) -> ProducerIdentity:
        self._usable()
        return self._current

    @port("commit")
    def commit(self, deadline: Deadline) -> None:
        self._within()
        if not self._cluster.clock.wait(self._deliver, deadline.left):
            raise OutcomeUnknownError(f"{self._id} was not flushed.", remedy="Try again.")
        self._raise_failure()
        self._begun = False
        if self._end(True, deadline) is EndOutcome.REFUSED:
            self._raise_fenced()
            raise ProduceFailed(
                f"the transaction of {self._id} is no longer open", FailureKind.TRANSACTION_FAILED
            )

    @port("abort")
    def abort(self, deadline: Deadline) -> None:
        self._within()
        self._begun = False
        self._failure = None
        self._queue.clear()
        if self._end(False, deadline) is EndOutcome.REFUSED:
            self._raise_fenced()

    @port("close")
    def close(self) -> None:
        self._closed = True

    @property
    def _current(self) -> ProducerIdentity:
        assert self._identity is not None, "not inited"
        return self._identity

    def _end(self, commit: bool, deadline: Deadline) -> EndOutcome:
        mine = Transaction(self._id, self._current.producer_id, self._current.epoch)
        outcome = self._cluster.end(mine, commit)
        if outcome is None:
            self._cluster.await_answer(deadline, *WRITING)
            # It was repeated, or carried out by now; a repetition has the same answer.
            outcome = self._cluster.end(mine, commit)
        assert outcome is not None
        return outcome

    def _deliver(self) -> bool:
        """Send what can be sent, in its order for each partition; whether nothing is left."""
        stalled: list[PartitionLog] = []
        queue, self._queue = self._queue, []
        for log, append in queue:
            if self._failure is not None:
                break
            if log in stalled or not (log.takes_records and self._cluster.answers(*WRITING)):
                stalled.append(log)
                self._queue.append((log, append))
                continue
            try:
                append()
            except ProducerFenced as fenced:
                self._failure = fenced
        return not self._queue

    def _add_partitions(self, producer: ProducerIdentity) -> None:
        """AddPartitionsToTxn arrives once more: it opens a transaction, unless one is open. (Of a
        Produce request the broker knows the sequence numbers.)"""
        with contextlib.suppress(ProducerFenced):
            self._cluster.coordinator.open(self._id, producer)

    def _usable(self) -> None:
        assert not self._closed, "the producer is closed"

    def _within(self) -> None:
        self._usable()
        assert self._begun, "not within a transaction"

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _raise_fenced(self) -> None:
        now = self._cluster.coordinator.describe(self._id).transaction
        if (now.producer_id, now.epoch) != (self._current.producer_id, self._current.epoch):
            raise ProducerFenced(f"{self._id} has epoch {now.epoch}, not {self._current.epoch}")
