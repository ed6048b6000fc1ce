"""The decision log as a compare-and-swap register.

Open: init the driver's transactional id, which fences every other writer of the query, then read
up to the high watermark taken after that. Compare the latest record with the plan's. Write one
record and the group offset in one transaction. The order matters: a driver that reads before it
fences can decide a batch that its successor has already replaced. The next write opens again.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eos_sink.decision_log.codec import decode
from eos_sink.decision_log.driver_id import waits_for_leader
from eos_sink.decision_log.driver_transaction import (
    ROWS_S,
    TRANSACTION_MS,
    SentRecord,
    Vote,
    send_claim,
    send_record,
    send_rows,
)
from eos_sink.decision_log.opening import Opened, Opening, open_log
from eos_sink.errors import (
    EosSinkError,
    FailureKind,
    OperatorNeededError,
    OutcomeUnknownError,
    SupersededError,
)
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, LogReader
from eos_sink.messages import Reason, stop
from eos_sink.metrics.events import trace
from eos_sink.protocol.model import (
    NO_CLAIMS,
    Change,
    KnownClaims,
    LogEntry,
    LogRecord,
    PlanToken,
    claims_of,
)
from eos_sink.protocol.values import (
    RECORDED_MS,
    MemberRefused,
    Position,
    ProduceFailed,
    ProducerFenced,
    Transaction,
)

if TYPE_CHECKING:
    from eos_sink.rows.rows import Rows

_TRIES = 3
# The step may have no time left, and its coordinator may be the broker that does not answer.
_ABORT_S = 5.0
# Read for an error message only: which run has taken over.
_TRY_READ_S = 5.0
_NO_RECORD = LogRecord(seq=0, decision=None, writer="")


def check_forward(token: PlanToken, entry: LogEntry) -> None:
    """Check that a log read after a plan is at the plan's record or past it.

    Raises:
        OperatorNeededError: it has lost the record that the plan was made from.
    """
    if entry.seq < token.seq or entry.position.offset < token.position.offset:
        raise _went_back(token.seq, token.position, entry)


def check_current(token: PlanToken, entry: LogEntry) -> None:
    """Check that a log read after a plan is at the plan's record.

    Raises:
        SupersededError: the log has moved on since the plan.
        OperatorNeededError: it has moved back.
    """
    check_forward(token, entry)
    if entry.seq != token.seq:
        from eos_sink.protocol.refused import superseded

        raise superseded(token, entry)


def follow(token: PlanToken, entry: LogEntry) -> PlanToken:
    """The token that makes a plan's run the writer of the next record after one that was read since
    the plan: no older plan can be decided any more.

    Raises:
        OperatorNeededError: the log has lost the plan's record, and would start again at number 1.
    """
    check_forward(token, entry)
    return replace(token, seq=entry.seq, position=entry.position)


@dataclass
class _Write:
    """One write of the next record, in one or more attempts.

    Attributes:
        writer: tells its record from those of other writes under the same number.
        is_repeated: an attempt has failed.
        is_unanswered: EndTxn was sent in an attempt, and there was no good answer.
        maybe_written: the same, and no comparison has shown since that it was not committed.
        refusal: the error that ends the write, whatever its type.
    """

    token: PlanToken
    change: Change
    rows: Sequence[Rows]
    vote: Vote | None
    known: KnownClaims
    deadline: Deadline
    writer: str = field(default_factory=lambda: uuid.uuid4().hex)
    is_repeated: bool = False
    is_unanswered: bool = False
    maybe_written: bool = False
    refusal: BaseException | None = None

    def part(self) -> Deadline:
        return self.deadline.within(self.deadline.seconds / _TRIES)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """End the write if anything is raised here, unless another producer has the driver's id."""
        try:
            yield
        except ProducerFenced:
            raise
        except BaseException as error:
            self.refusal = error
            raise


class DecisionRegister:
    """One query's register in one process, kept between batches.

    The log may be open long before a write: as long as this process holds the driver's id no other
    one has written. A write that is fenced opens it again, and compares.

    Attributes:
        rows_part: of their time limit that the rows of the latest write took.
    """

    def __init__(
        self, kafka: Kafka, names: QueryNames, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._kafka = kafka
        self._names = names
        self._clock = clock
        self._reader: LogReader | None = None
        self._opened: Opened | None = None
        self._opening: Opening | None = None
        self._seen: LogEntry | None = None
        self.rows_part = 0.0

    def connect(self, deadline: Deadline) -> LogReader:
        """Make sure that the log exists, without waiting for its open transactions."""
        self._finish_opening(deadline)
        if self._reader is None:
            self._reader = self._kafka.log_reader(self._names, deadline)
        return self._reader

    def has_record(self, deadline: Deadline) -> bool:
        """True if the query has a record. Fences no one, and does not wait for a transaction that a
        dead driver may have left open, so there may be a newer record behind it."""
        found = self.connect(deadline).known(deadline)
        if found and self._seen is None:
            self._seen = _read(found)
        return found is not None

    def read(
        self, deadline: Deadline, token: PlanToken | None = None, *, anew: bool = False
    ) -> LogEntry:
        """The latest record. Fences no one.

        Args:
            token: of a plan whose record has to be in the log.
            anew: from the newest leader that any broker knows.

        Raises:
            OperatorNeededError: the log has lost a record that this process has read.
        """
        self._seen = self._read_latest(self.connect(deadline), deadline, token, anew=anew)
        return self._seen

    def records(self, deadline: Deadline) -> list[LogEntry]:
        """The query's committed records that the log still has, oldest first."""
        found = self.connect(deadline).records(deadline)
        return [_read(each) for each in found]

    def try_read(self) -> LogEntry | None:
        """The latest record if it can be read soon. For error messages: it raises nothing."""
        with contextlib.suppress(Exception):
            return self.read(Deadline(_TRY_READ_S))
        return None

    def open(self, deadline: Deadline, token: PlanToken | None = None) -> LogEntry:
        """Fence every other writer of the query, then read."""
        return self._open_again(deadline, token).entry

    def prepare(self, deadline: Deadline) -> None:
        """Open the log for the next write in the background, after a write of this process."""
        reader = self._reader
        if reader is not None and self._opened is None and self._opening is None:
            self._opening = Opening(lambda: self._open_after_write(reader, deadline))

    def require_current(self, token: PlanToken, deadline: Deadline) -> LogEntry:
        """Open unless open, and compare: the record that the plan was made from.

        Raises:
            SupersededError: the log has moved on since the plan.
            OperatorNeededError: it has moved back.
        """
        entry = self._open_for(token, deadline).entry
        check_current(token, entry)
        return entry

    def append(  # noqa: PLR0913
        self,
        token: PlanToken,
        change: Change,
        deadline: Deadline,
        *,
        rows: Sequence[Rows] = (),
        vote: Vote | None = None,
        known: KnownClaims = NO_CLAIMS,
    ) -> LogEntry:
        """Write the next record if the plan's is still the latest one.

        A write of unknown outcome is never sent again blindly: the register is opened, which ends
        the write, and read. Its own record is returned if it is the latest one.

        Args:
            rows: become visible together with the record, or not at all. So does the commit of the
                change's source position to its group.
            vote: called in each attempt, when all of the driver's transaction is on the brokers.
                Its error aborts the transaction and is raised, except that the write is tried again
                after ProducerFenced.
            known: of the claims of a first decision's stream, or a first position's group.

        Raises:
            ProduceFailedError: Kafka did not take one of the rows, or an earlier attempt's may be
                open still; the record is not written.
            SupersededError: the log has moved on, or the plan's member was replaced.
            OperatorNeededError: the log has moved back.
            CommitFailedError: the plan's member is no longer known to the group; or another
                identity has claimed the stream or group.
            OutcomeUnknownError: no answer by the deadline, or others have followed the record.
        """
        write = _Write(token, change, rows, vote, known, deadline)
        while True:
            try:
                if write.is_repeated:
                    self._end_in_log(deadline)
                opened = self._open_for(token, deadline)
                if opened.entry.record.writer == write.writer:
                    return opened.entry
                check_current(token, opened.entry)
                write.maybe_written = False
                self._seen = self._send(write, opened)
                return self._seen
            except BaseException as error:
                ends = self._end_attempt(write, error)
                if ends is error:
                    raise
                if ends is not None:
                    raise ends from error

    def close(self) -> None:
        """Close all clients; an open transaction stays open."""
        self._close_producer()
        if self._opening is not None:
            self._opening.close()
        self._opening = self._reader = None

    def _open_for(self, token: PlanToken, deadline: Deadline) -> Opened:
        """The log may have been opened before another process of the query wrote."""
        self._finish_opening(deadline)
        opened = self._opened
        if opened is None or opened.fresh.passed or opened.entry.seq != token.seq:
            opened = self._open_again(deadline, token)
        return opened

    def _open_again(self, deadline: Deadline, token: PlanToken | None) -> Opened:
        reader = self.connect(deadline)
        self._close_producer()
        self._opened = self._open(reader, deadline, token)
        self._seen = self._opened.entry
        return self._opened

    def _end_in_log(self, deadline: Deadline) -> None:
        """Opening takes away how the attempt before has ended."""
        from eos_sink.decision_log.hanging import end_in_log

        end_in_log(self._kafka, [self._names.driver], self.connect(deadline).home, deadline)

    def _open_after_write(self, reader: LogReader, deadline: Deadline) -> Opened:
        # The id's state is all that tells how the last transaction has ended, if a partition of the
        # log hides that (KAFKA-20734): keep it until the record can be read.
        self._read_latest(reader, deadline)
        return self._open(reader, deadline)

    def _open(
        self, reader: LogReader, deadline: Deadline, token: PlanToken | None = None
    ) -> Opened:
        def read() -> tuple[LogEntry, int]:
            return self._read_latest(reader, deadline, token), reader.reached

        has_record = any(known is not None and known.seq for known in (self._seen, token))
        # A committer that only gives up a failed batch has neither.
        has_record = has_record or reader.known(deadline) is not None
        timeout_ms = RECORDED_MS if has_record else TRANSACTION_MS
        return open_log(self._kafka, self._names, timeout_ms, read, deadline)

    def _finish_opening(self, deadline: Deadline) -> None:
        if self._opening is None:
            return
        self._opened = self._opening.wait(deadline)
        self._opening = None
        if self._opened is None:
            # A thread that was given up may still read with it.
            self._reader = None
        else:
            self._seen = self._opened.entry

    def _read_latest(
        self,
        reader: LogReader,
        deadline: Deadline,
        token: PlanToken | None = None,
        *,
        anew: bool = False,
    ) -> LogEntry:
        before = self._seen
        places = [known.position for known in (before, token) if known is not None and known.seq]
        known = max((place.offset + 1 for place in places), default=0)
        found = reader.latest(deadline, known, anew=anew)
        entry = _read(found) if found else LogEntry(_NO_RECORD, reader.home)
        if before is not None and _is_behind(entry, before):
            raise _went_back(before.seq, before.position, entry)
        return entry

    def _send(self, write: _Write, opened: Opened) -> LogEntry:
        """Send the rows, the claims and the record; when they are on the brokers vote, and commit.

        For each of the two only a part of the time: a client that hangs is replaced, and the write
        tried again.
        """
        token, change, producer = write.token, write.change, opened.producer
        if write.is_repeated and write.rows:
            with write.refusing():
                self._check_ended(write)
        record = opened.entry.record.next(change, write.writer, token.run, token.names.prefix)
        record = record.written_by(opened.identity)
        begun, answer = self._clock(), write.part()
        send_rows(producer, token, write.rows, change.source, answer)
        if write.rows:
            limit = min(ROWS_S, answer.seconds)
            self.rows_part = (self._clock() - begun) / limit if limit else 1.0
        claimed = [
            (claim, send_claim(producer, claim, self._kafka.claim_home(claim.subject)))
            for claim in claims_of(token.names, opened.entry.record, record)
        ]
        sent = send_record(producer, token, record)
        producer.flush(answer)
        producer.check()
        self._check_end(write, sent, opened.reached, answer)
        for claim, own in claimed:
            if claim.is_of_stream or claim.subject == write.known.subject:
                # Only at a stream's first decision, or the first position of all.
                from eos_sink.decision_log.claims import check_claims

                check_claims(self._kafka, claim, write.known, own.at, answer)
        answer = write.part()
        if write.vote is not None:
            with write.refusing():
                answer = write.deadline.within(min(write.vote(begun), answer.left))
            self._trace("voted", record)
        write.maybe_written = write.is_unanswered = True
        self._trace("write", record)
        producer.commit(answer)
        self._trace("written", record)
        self._close_producer()
        assert sent.at is not None
        return LogEntry(record, replace(token.position, offset=sent.at))

    def _check_ended(self, write: _Write) -> None:
        from eos_sink.decision_log.hanging import check_ended

        topics = {topic for some in write.rows for topic in some.topics[0]}
        check_ended(self._kafka, self._names.driver, topics, write.deadline)

    def _trace(self, step: str, record: LogRecord) -> None:
        def decided() -> Iterable[Transaction]:
            return record.decision.transactions(self._names) if record.decision else ()

        trace(self._names.group, step, decided, seq=record.seq, writer=record.writer)

    def _check_end(self, write: _Write, sent: SentRecord, reached: int, deadline: Deadline) -> None:
        """The end that was read may have come from a leader that does not know yet that it was
        deposed. This process holds the driver's id, so a record of the query between that end and
        the new record was written before the open, and was not compared."""
        if sent.at == reached:
            return
        reader = self.connect(deadline)
        if sent.at is None or sent.at < reached or reader.written(reached, sent.at, deadline):
            # Opening again aborts this write and reads at least up to it: an aborted marker behind
            # that end would look like another record of the query.
            write.maybe_written = write.is_unanswered
            raise stop(Reason.LOG_LONGER, reached=reached)

    def _end_attempt(self, write: _Write, error: BaseException) -> BaseException | None:
        """Return the error that ends the write, or None if it may be tried again."""
        is_row_late = write.deadline.passed and _is_of_row(error, write.token)
        if error is write.refusal or is_row_late or not _repeatable(error):
            self._abort()
            return self._explained(write, error)
        self._close_producer()
        write.is_repeated = True
        if write.deadline.passed:
            return stop(Reason.LOG_SILENT, seconds=write.deadline.seconds, error=_text(error))
        return None

    def _abort(self) -> None:
        """End the open transaction at once: it blocks every reader of the log partition."""
        if self._opened is not None:
            # If this fails, the next open or the timeout aborts it.
            with contextlib.suppress(Exception):
                self._opened.producer.abort(Deadline(_ABORT_S))
        self._close_producer()

    def _close_producer(self) -> None:
        if self._opened is not None:
            self._opened.producer.close()
        self._opened = None

    def _explained(self, write: _Write, error: BaseException) -> BaseException:
        """Return the error that says what it means for the write and what to do: the given one if
        it does, as one that names the partitions for which opening has waited."""
        from eos_sink.protocol.refused import refused_member, rows_not_taken

        token = write.token
        if waits_for_leader(error):
            return error
        if write.maybe_written and self._hides_outcome(write, error):
            is_superseded = isinstance(error, SupersededError)
            what = "others have written since." if is_superseded else _text(error)
            return stop(Reason.NO_ANSWER, what=what)
        if isinstance(error, MemberRefused):
            latest = self.try_read()
            if latest and latest.seq <= token.seq and latest.record.run != token.run:
                # The run that the plan has followed, not the one that has joined since.
                latest = None
            return refused_member(error, token.run, latest, token.session_ms)
        if isinstance(error, ProduceFailed):
            if _is_of_row(error, token):
                return rows_not_taken(self._names.driver, error)
            reason = Reason.LOG_REFUSES_TIME if error.of_time else Reason.LOG_REFUSES
            return stop(reason, error=error)
        return error

    def _hides_outcome(self, write: _Write, error: BaseException) -> bool:
        """True if an error leaves it open what became of an attempt without an answer."""
        if isinstance(error, SupersededError):
            # Each number has one record: if the plan's next one is another's, it is not this one.
            with contextlib.suppress(Exception):
                number, records = write.token.seq + 1, self.records(write.deadline)
                following = [entry for entry in records if entry.seq == number]
                return not following or following[0].record.writer == write.writer
        return isinstance(error, Exception) and not isinstance(error, OperatorNeededError)


def _read(found: tuple[Position, bytes]) -> LogEntry:
    position, value = found
    return LogEntry(decode(value, str(position)), position)


def _went_back(known: int, position: Position, entry: LogEntry) -> EosSinkError:
    decision = entry.decision
    return stop(
        Reason.LOG_WENT_BACK, known=known, position=position, entry=entry, decision=decision
    )


def _text(error: BaseException) -> str:
    return str(getattr(error, "message", error))


def _repeatable(error: BaseException) -> bool:
    """Opening again shows what became of the write, or gives the producer a new epoch (KIP-360)."""
    if isinstance(error, ProduceFailed):
        return error.kind is not FailureKind.MESSAGE_REJECTED
    return isinstance(error, (ProducerFenced, OutcomeUnknownError)) and not waits_for_leader(error)


def _is_of_row(error: BaseException, token: PlanToken) -> bool:
    """True if Kafka did not take a row, rather than the log's record."""
    return isinstance(error, ProduceFailed) and error.topic not in (None, token.position.topic)


def _is_behind(now: LogEntry, before: LogEntry) -> bool:
    """A log only grows: a lower number, a lower offset or another record under the same number
    means that it is not the log that was read before."""
    if now.seq == before.seq:
        return now.record.writer != before.record.writer
    return now.seq < before.seq or now.position.offset < before.position.offset
