"""The decision log as a compare-and-swap register.

Open: init the driver's transactional id, which fences every other writer of the query, then read
to the high watermark taken after that. Compare what is there with what was planned from. Write one
record and the group offset in one transaction. The order is the point: who reads before it fences
can decide a batch that its successor has already replaced.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass

from eos_sink.deadline import Deadline
from eos_sink.errors import (
    BatchFailedError,
    ClusterError,
    CommitFailedError,
    FailureKind,
    OutcomeUnknownError,
    ProduceFailedError,
    SupersededError,
)
from eos_sink.identity import QueryNames
from eos_sink.log.record import decode, encode
from eos_sink.model import Decision, LogPosition, LogRecord, PlanToken
from eos_sink.ports import (
    Kafka,
    LogReader,
    MemberRefused,
    ProduceFailed,
    ProducerFenced,
    TransactionalProducer,
)

# Writing one record takes milliseconds. A driver that dies inside holds up other queries' reading
# of the same log partition for this long at most.
_TRANSACTION_MS = 30_000
_NONE = LogRecord(seq=0, decision=None, writer="")


@dataclass(frozen=True)
class Entry:
    """The query's latest record and where it lies; seq 0 where there is none yet."""

    record: LogRecord
    position: LogPosition

    @property
    def seq(self) -> int:
        return self.record.seq

    @property
    def decision(self) -> Decision | None:
        return self.record.decision


class DecisionRegister:
    """One query's register as one process sees it, kept between batches.

    While the process's producer holds the driver's id nobody else has written, so that opening
    and comparing again is not needed; a write that finds itself fenced does both.
    """

    def __init__(self, kafka: Kafka, names: QueryNames) -> None:
        self._kafka = kafka
        self._names = names
        self._reader: LogReader | None = None
        self._producer: TransactionalProducer | None = None
        self._held: Entry | None = None

    def reach(self, deadline: Deadline) -> LogReader:
        """Make sure that the log is there, without waiting for what is open on it."""
        if self._reader is None:
            self._reader = self._kafka.log_reader(deadline)
        return self._reader

    def read(self, deadline: Deadline) -> Entry:
        """The latest record, without fencing anybody."""
        reader = self.reach(deadline)
        found = reader.latest(self._names.query, deadline)
        if found is None:
            return Entry(_NONE, reader.position(self._names.query))
        position, value = found
        where = f"{position.topic}[{position.partition}]@{position.offset}"
        return Entry(decode(value, where), position)

    def open(self, deadline: Deadline) -> Entry:
        """Fence every other writer of the query, then read."""
        self._let_go()
        producer = self._kafka.log_producer(self._names.driver, _TRANSACTION_MS)
        try:
            producer.init(deadline)
        except BaseException:
            producer.close()
            raise
        entry = self.read(deadline)
        self._producer, self._held = producer, entry
        return entry

    def expect(self, token: PlanToken, deadline: Deadline) -> Entry:
        """Open, unless it is open, and compare: the record that the plan was made from.

        Raises:
            SupersededError: the log has moved on since the plan.
        """
        entry = self._current(token, deadline)
        self._compare(token, entry)
        return entry

    def write(self, token: PlanToken, decision: Decision | None, deadline: Deadline) -> Entry:
        """Write the next record if the plan's is still the latest one.

        A write whose outcome is unknown is never sent again blindly: the register is opened,
        which ends whatever was under way, and read.

        Raises:
            SupersededError: the log has moved on, or the plan's member was replaced.
            CommitFailedError: the plan's member is no longer known to the group.
            OutcomeUnknownError: no answer by the deadline.
        """
        writer = uuid.uuid4().hex
        while True:
            try:
                entry = self._current(token, deadline)
                if entry.record.writer == writer:
                    return entry
                self._compare(token, entry)
                return self._append(token, entry.record.next(decision, writer), deadline)
            except BaseException as error:
                if not _repeatable(error):
                    self._abandon()
                    raise _explained(token, error) from error
                self._let_go()
                if deadline.passed:
                    raise OutcomeUnknownError(
                        f"The decision log did not answer within {deadline.seconds:.0f} s: {error}",
                        remedy="Start the query again: what was decided is read back and finished.",
                    ) from error

    def close(self) -> None:
        """Let go of all clients; what is open stays open."""
        self._let_go()
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _current(self, token: PlanToken, deadline: Deadline) -> Entry:
        """What is held may be old: another process of the query has written meanwhile."""
        if self._held is not None and self._held.seq == token.seq:
            return self._held
        return self.open(deadline)

    def _compare(self, token: PlanToken, entry: Entry) -> None:
        if entry.seq != token.seq:
            self._let_go()
            raise superseded(token, entry)

    def _append(self, token: PlanToken, record: LogRecord, deadline: Deadline) -> Entry:
        producer = self._producer
        assert producer is not None
        at: list[int] = []
        place = token.position
        producer.begin()
        producer.produce(
            place.topic,
            encode(record),
            key=self._names.query.encode(),
            partition=place.partition,
            on_offset=lambda _, offset: at.append(offset),
        )
        producer.send_offset(place, token.member, deadline)
        producer.commit(deadline)
        producer.flush(deadline)
        if not at:
            raise OutcomeUnknownError("The record was committed at an unknown offset.", remedy="")
        self._held = Entry(record, LogPosition(place.topic, place.partition, at[0]))
        return self._held

    def _abandon(self) -> None:
        """End the open transaction at once: it holds up every reader of the log partition."""
        if self._producer is not None:
            # If it fails, the next open or the time-out aborts it.
            with contextlib.suppress(Exception):
                self._producer.abort(Deadline(_TRANSACTION_MS / 1000))
        self._let_go()

    def _let_go(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self._producer = self._held = None


def _repeatable(error: BaseException) -> bool:
    """Opening again tells what became of the write, or gives the producer a new epoch (KIP-360)."""
    if isinstance(error, ProduceFailed):
        return error.kind is not FailureKind.MESSAGE_REJECTED
    return isinstance(error, (ProducerFenced, OutcomeUnknownError))


def _explained(token: PlanToken, error: BaseException) -> BaseException:
    if isinstance(error, MemberRefused):
        return refused_member(token.names, error)
    if isinstance(error, ProduceFailed):
        return ClusterError(
            f"The decision log refuses the record: {error}",
            remedy="Raise max.message.bytes of the decision log's topic, or use fewer partitions "
            "a batch.",
        )
    return error


def superseded(token: PlanToken, entry: Entry) -> SupersededError:
    return SupersededError(
        f"Query {token.names.query}: the decision log is at seq {entry.seq} while this batch was "
        f"planned from seq {token.seq}; another run of the query has taken over, or this batch was "
        "given up already. This run makes nothing of it visible.",
        remedy="If two applications run this query, stop one; otherwise start it again.",
        data={"seq": entry.seq, "planned": token.seq},
    )


def refused_member(
    names: QueryNames, refused: MemberRefused, *, while_writing: bool = False
) -> SupersededError | BatchFailedError:
    """What a task (`while_writing`) or the driver says whose member the group refuses."""
    query = names.query
    if refused.replaced:
        return SupersededError(
            f"Query {query}: a newer driver has joined group {names.group}, so this run may "
            "write nothing any more.",
            remedy="If two applications run this query, stop one; if this is the old one, let it "
            "end.",
        )
    failed = ProduceFailedError if while_writing else CommitFailedError
    return failed(
        f"Query {query}: the driver's membership in group {names.group} has ended: "
        f"{refused} Nothing of the batch is visible.",
        remedy="Start the query again: Spark replays the batch.",
        data={"kind": FailureKind.TRANSACTION_FAILED.value} if while_writing else {},
    )
