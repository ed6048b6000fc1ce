"""The decision log as a compare-and-swap register.

Open: init the driver's transactional id, which fences every other writer of the query, then read
up to the high watermark taken after that. Compare the latest record with the plan's. Write one
record and the group offset in one transaction. The order matters: a driver that reads before it
fences can decide a batch that its successor has already replaced.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eos_sink.decision_log.codec import decode, encode, encode_moved, is_moved
from eos_sink.errors import ClusterError, FailureKind, OutcomeUnknownError
from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import (
    Kafka,
    LogPosition,
    LogReader,
    MemberRefused,
    ProduceFailed,
    ProducerFenced,
    TransactionalProducer,
)
from eos_sink.metrics.stats import Stats
from eos_sink.protocol import operator_errors
from eos_sink.protocol.fenced_errors import refused_member, superseded
from eos_sink.protocol.model import Decision, Entry, LogRecord, OtherStream, PlanToken
from eos_sink.protocol.produce_errors import rows_not_taken

if TYPE_CHECKING:
    from eos_sink.kafka.rows import Rows

# A write takes milliseconds. A driver that dies meanwhile blocks readers of the same log partition,
# and of its rows' partitions, for at most this long.
_TRANSACTION_MS = 30_000
_TRIES = 3
# The step may have no time left, and its coordinator may be the broker that does not answer.
_ABORT_S = 5.0
# Read for an error message only: which run has taken over.
_TRY_READ_S = 5.0
_NO_RECORD = LogRecord(seq=0, decision=None, writer="")


def check_forward(token: PlanToken, entry: Entry) -> None:
    """Check that a log read after a plan is at the plan's record or past it.

    Raises:
        OperatorNeededError: it has lost the record that the plan was made from.
    """
    if entry.seq < token.seq or entry.position.offset < token.position.offset:
        raise operator_errors.went_back(token.names, token.seq, token.position, entry)


class DecisionRegister:
    """One query's register in one process, kept between batches.

    While this process's producer holds the driver's id no other process has written, so it need not
    open and compare again; a write that is fenced does both.

    Older versions wrote under the query's name without its prefix. A query without a record of its
    own continues from the record there. Its first write puts a marker there, at which those
    versions stop, unless a query of another prefix has its record there.
    """

    def __init__(self, kafka: Kafka, names: QueryNames) -> None:
        self._kafka = kafka
        self._names = names
        self._reader: LogReader | None = None
        self._producer: TransactionalProducer | None = None
        self._held: Entry | None = None
        self._seen: Entry | None = None
        self._keys = (names.log_key, names.query)
        # How far the log was read when it was opened; None once an append has shown that this end
        # did not come from a deposed leader.
        self._unproven: int | None = None

    def connect(self, deadline: Deadline) -> LogReader:
        """Make sure that the log exists, without waiting for its open transactions."""
        if self._reader is None:
            self._reader = self._kafka.log_reader(deadline)
        return self._reader

    def has_record(self, deadline: Deadline) -> bool:
        """Whether the query has a record. Fences no one, and does not wait for a transaction that a
        dead driver may have left open, so there may be a newer record behind it."""
        return self._entry(self.connect(deadline).known(self._keys, deadline)) is not None

    def read(self, deadline: Deadline, token: PlanToken | None = None) -> Entry:
        """The latest record. Fences no one.

        Args:
            token: of a plan whose record has to be in the log.

        Raises:
            OperatorNeededError: the log has lost a record that this process has read.
        """
        reader = self.connect(deadline)
        before = self._seen
        places = [known.position for known in (before, token) if known is not None and known.seq]
        known = max((place.offset + 1 for place in places), default=0)
        query = self._names.query
        found = reader.latest(self._keys, deadline, known)
        entry = self._entry(found) or Entry(
            _NO_RECORD, reader.position(query), unmarked=query not in found
        )
        if before is not None and _is_behind(entry, before):
            raise operator_errors.went_back(self._names, before.seq, before.position, entry)
        self._seen = entry
        return entry

    def read_other_queries(self, deadline: Deadline) -> list[tuple[QueryNames, LogRecord]]:
        """The latest record of every other query, without tombstones and keys of other programs.

        Raises:
            OperatorNeededError: this version cannot read one, so its decision is unknown.
        """
        records = []
        for key, value in self._kafka.log_records(deadline).items():
            if value and QueryNames.of_shown(key) and not is_moved(value):
                record = decode(value, key)
                records.append((QueryNames.of_record(key, record.prefix), record))
        return [(names, record) for names, record in records if names != self._names]

    def try_read(self) -> Entry | None:
        """The latest record if it can be read soon. For error messages: it raises nothing."""
        with contextlib.suppress(Exception):
            return self.read(Deadline(_TRY_READ_S))
        return None

    def open(self, deadline: Deadline, token: PlanToken | None = None) -> Entry:
        """Fence every other writer of the query, then read."""
        self._let_go()
        producer = self._kafka.log_producer(self._names.driver, _TRANSACTION_MS)
        try:
            producer.init(deadline)
        except BaseException:
            producer.close()
            raise
        entry = self.read(deadline, token)
        self._producer, self._held = producer, entry
        self._unproven = self.connect(deadline).reached
        return entry

    def expect(self, token: PlanToken, deadline: Deadline) -> Entry:
        """Open unless open, and compare: the record that the plan was made from.

        Raises:
            SupersededError: the log has moved on since the plan.
            OperatorNeededError: it has moved back.
        """
        entry = self._current(token, deadline)
        self._compare(token, entry)
        return entry

    def write(  # noqa: PLR0913
        self,
        token: PlanToken,
        decision: Decision | None,
        deadline: Deadline,
        figures: Stats | None = None,
        *,
        before_commit: Callable[[], None] | None = None,
        other_streams: tuple[OtherStream, ...] | None = None,
        settled: bool = False,
        rows: Sequence[Rows] = (),
    ) -> Entry:
        """Write the next record if the plan's is still the latest one.

        A write of unknown outcome is never sent again blindly: the register is opened, which ends
        the write, and read.

        Args:
            figures: added to the query's figures by this record.
            before_commit: called in each attempt, when the record and the offset are in the
                driver's transaction. Its error aborts the transaction and is raised, except that
                the write is tried again after ProducerFenced.
            other_streams: replaces the latest record's; None: they follow from it.
            settled: the decision was seen visible as a whole.
            rows: become visible together with the record, or not at all.

        Raises:
            ProduceFailedError: Kafka did not take one of the rows; the record is not written.
            SupersededError: the log has moved on, or the plan's member was replaced.
            OperatorNeededError: the log has moved back.
            CommitFailedError: the plan's member is no longer known to the group.
            OutcomeUnknownError: no answer by the deadline.
        """
        writer = uuid.uuid4().hex
        refusals: list[BaseException] = []

        def check() -> None:
            try:
                if before_commit is not None:
                    before_commit()
            except ProducerFenced:
                raise
            except BaseException as error:
                refusals.append(error)
                raise

        while True:
            try:
                entry = self._current(token, deadline)
                if entry.record.writer == writer:
                    return entry
                self._compare(token, entry)
                prefix = token.names.prefix
                record = entry.record.next(
                    decision, writer, token.run, prefix, figures, settled=settled
                )
                if other_streams is not None:
                    record = replace(record, other_streams=other_streams)
                return self._append(token, record, rows, check, deadline)
            except BaseException as error:
                is_row_late = deadline.passed and _is_of_row(error, token)
                if error in refusals or is_row_late or not _repeatable(error):
                    self._abandon()
                    explained = self._explained(token, error)
                    if explained is None:
                        raise
                    raise explained from error
                self._let_go()
                if deadline.passed:
                    cause = getattr(error, "message", error)
                    raise OutcomeUnknownError(
                        f"The decision log did not answer within {deadline.seconds:.0f} s: {cause}",
                        remedy="Start the query again: it reads back what was decided and finishes "
                        "it.",
                    ) from error

    def close(self) -> None:
        """Close all clients; an open transaction stays open."""
        self._let_go()
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _current(self, token: PlanToken, deadline: Deadline) -> Entry:
        """The entry that is held may be old: another process of the query may have written."""
        if self._held is not None and self._held.seq == token.seq:
            return self._held
        return self.open(deadline, token)

    def _compare(self, token: PlanToken, entry: Entry) -> None:
        check_forward(token, entry)
        if entry.seq != token.seq:
            self._let_go()
            raise superseded(token, entry)

    def _append(
        self,
        token: PlanToken,
        record: LogRecord,
        rows: Sequence[Rows],
        before_commit: Callable[[], None],
        deadline: Deadline,
    ) -> Entry:
        producer, held = self._producer, self._held
        assert producer is not None
        assert held is not None
        at: list[int] = []
        marked: list[int] = []
        place = token.position
        # Only a part of the time: a client that hangs is replaced, and the write tried again.
        answer = deadline.within(deadline.seconds / _TRIES)
        producer.begin()
        for some in rows:
            producer.produce_rows(some)
        producer.produce(
            place.topic,
            encode(record),
            key=self._names.log_key.encode(),
            partition=place.partition,
            on_offset=lambda _, offset: at.append(offset),
        )
        if held.unmarked:
            moved, former = encode_moved(self._names), self._names.query.encode()
            producer.produce(
                place.topic,
                moved,
                key=former,
                partition=place.partition,
                on_offset=lambda _, offset: marked.append(offset),
            )
        if self._unproven is not None:
            producer.flush(answer)
        producer.send_offset(place, token.member, answer)
        if self._unproven is not None:
            self._check_end(at, marked or at, self._unproven, answer)
        before_commit()
        answer = deadline.within(deadline.seconds / _TRIES)
        producer.commit(answer)
        producer.flush(answer)
        if not at:
            raise OutcomeUnknownError("The record was committed at an unknown offset.", remedy="")
        self._held = self._seen = Entry(record, LogPosition(place.topic, place.partition, at[0]))
        self._unproven = None
        return self._held

    def _check_end(
        self, at: Sequence[int], last: Sequence[int], reached: int, deadline: Deadline
    ) -> None:
        """The end that was read may have come from a leader that does not know yet that it was
        deposed. This process holds the driver's id, so a record of the query between that end and
        the new record was written before the open, and was not compared."""
        if at and at[0] == reached:
            return
        reader = self.connect(deadline)
        if (
            not at
            or at[0] < reached
            or reader.written(self._keys, reached, at[0], last[0], deadline)
        ):
            # Opening again aborts this write and reads at least up to it: an aborted marker behind
            # that end would look like another record of the query.
            raise OutcomeUnknownError(
                f"The decision log has records behind the end that it reported, {reached}.",
                remedy="",
            )

    def _abandon(self) -> None:
        """Abort the open transaction at once: it blocks every reader of the log partition."""
        if self._producer is not None:
            # If this fails, the next open or the timeout aborts it.
            with contextlib.suppress(Exception):
                self._producer.abort(Deadline(_ABORT_S))
        self._let_go()

    def _let_go(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self._producer = self._held = None

    def _entry(self, found: Mapping[str, tuple[LogPosition, bytes]]) -> Entry | None:
        names = self._names
        if names.log_key in found:
            return _read(found[names.log_key])
        if names.query not in found or is_moved(found[names.query][1]):
            return None
        former = _read(found[names.query])
        is_own = (former.record.prefix or DEFAULT_PREFIX) == names.prefix
        return replace(former, unmarked=True) if is_own else None

    def _explained(self, token: PlanToken, error: BaseException) -> BaseException | None:
        """The error with a remedy for the user; None if the error has one itself."""
        if isinstance(error, MemberRefused):
            return refused_member(token.names, error, token.run, self.try_read(), token.session_ms)
        if isinstance(error, ProduceFailed):
            if _is_of_row(error, token):
                return rows_not_taken(self._names.driver, error)
            return ClusterError(
                f"The decision log refuses the record: {error}",
                remedy="Raise max.message.bytes of the decision log's topic, or use fewer "
                "partitions a batch.",
            )
        return None


def _read(found: tuple[LogPosition, bytes]) -> Entry:
    position, value = found
    return Entry(decode(value, str(position)), position)


def _repeatable(error: BaseException) -> bool:
    """Opening again shows what became of the write, or gives the producer a new epoch (KIP-360)."""
    if isinstance(error, ProduceFailed):
        return error.kind is not FailureKind.MESSAGE_REJECTED
    return isinstance(error, (ProducerFenced, OutcomeUnknownError))


def _is_of_row(error: BaseException, token: PlanToken) -> bool:
    """Whether Kafka did not take a row, rather than the log's record."""
    return isinstance(error, ProduceFailed) and error.topic not in (None, token.position.topic)


def _is_behind(now: Entry, before: Entry) -> bool:
    """A log only grows: a lower number, a lower offset or another record under the same number
    means that it is not the log that was read before."""
    if now.seq == before.seq:
        return now.record.writer != before.record.writer
    return now.seq < before.seq or now.position.offset < before.position.offset
