"""The decision log as a compare-and-swap register.

Open: init the driver's transactional id, which fences every other writer of the query, then read
to the high watermark taken after that. Compare what is there with what was planned from. Write one
record and the group offset in one transaction. The order is the point: who reads before it fences
can decide a batch that its successor has already replaced.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from eos_sink.decision_log.codec import decode, encode, encode_moved, is_moved
from eos_sink.decision_log.fenced_errors import (
    Entry,
    check_forward,
    refused_member,
    superseded,
    went_back,
)
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
from eos_sink.protocol.model import Decision, LogRecord, OtherStream, PlanToken

# Writing one record takes milliseconds. A driver that dies inside holds up other queries' reading
# of the same log partition for this long at most.
_TRANSACTION_MS = 30_000
_TRIES = 3
# The step may have no time left, and its coordinator may be the one that does not answer.
_ABANDON_S = 5.0
# For a message only: who has taken over.
_GLANCE_S = 5.0
_NONE = LogRecord(seq=0, decision=None, writer="")


class DecisionRegister:
    """One query's register as one process sees it, kept between batches.

    While the process's producer holds the driver's id nobody else has written, so that opening
    and comparing again is not needed; a write that finds itself fenced does both.

    Versions before this one wrote under the query's name without its prefix. A query that has no
    record goes on from its record there. Its first write leaves a marker there, at which those
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
        # How far the log was read when it was opened, until the first append shows that the end
        # was not a deposed leader's.
        self._unproven: int | None = None

    def reach(self, deadline: Deadline) -> LogReader:
        """Make sure that the log is there, without waiting for what is open on it."""
        if self._reader is None:
            self._reader = self._kafka.log_reader(deadline)
        return self._reader

    def known(self, deadline: Deadline) -> bool:
        """Whether the query has a record already. Fences nobody, and does not wait for what a dead
        driver may have left open, behind which there may be one more."""
        return self._entry(self.reach(deadline).known(self._keys, deadline)) is not None

    def read(self, deadline: Deadline, token: PlanToken | None = None) -> Entry:
        """The latest record, without fencing anybody.

        Args:
            token: of a plan that was made from a record which has to be there.

        Raises:
            OperatorNeededError: the log has lost a record that this process has seen.
        """
        reader = self.reach(deadline)
        before = self._seen
        places = [known.position for known in (before, token) if known is not None and known.seq]
        known = max((place.offset + 1 for place in places), default=0)
        query = self._names.query
        found = reader.latest(self._keys, deadline, known)
        begun = Entry(_NONE, reader.position(query), unmarked=query not in found)
        entry = self._entry(found) or begun
        if before is not None and _is_behind(entry, before):
            raise went_back(self._names, before.seq, before.position, entry)
        self._seen = entry
        return entry

    def elsewhere(self, deadline: Deadline) -> list[tuple[QueryNames, LogRecord]]:
        """The latest record of every other query. A tombstone is no record, nor is anything under
        a key that no query has.

        Raises:
            OperatorNeededError: this version cannot read one, which may decide anything.
        """
        records = []
        for key, value in self._kafka.log_records(deadline).items():
            if value and QueryNames.of_shown(key) and not is_moved(value):
                record = decode(value, key)
                records.append((QueryNames.of_record(key, record.prefix), record))
        return [(names, record) for names, record in records if names != self._names]

    def try_read(self) -> Entry | None:
        """The latest record if it is readable soon; for messages, so it raises nothing."""
        with contextlib.suppress(Exception):
            return self.read(Deadline(_GLANCE_S))
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
        self._unproven = self.reach(deadline).reached
        return entry

    def expect(self, token: PlanToken, deadline: Deadline) -> Entry:
        """Open, unless it is open, and compare: the record that the plan was made from.

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
    ) -> Entry:
        """Write the next record if the plan's is still the latest one.

        A write whose outcome is unknown is never sent again blindly: the register is opened,
        which ends whatever was under way, and read.

        Args:
            figures: what comes to the query's figures with this record.
            before_commit: called each time that the write is tried, when the record and the offset
                are in the driver's transaction. What it raises aborts that transaction and is
                raised; but after ProducerFenced the write is tried again.
            other_streams: what is kept of other streams; None: it follows from the latest record.
            settled: the decision was seen visible as a whole.

        Raises:
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
                return self._append(token, entry, record, check, deadline)
            except BaseException as error:
                if error in refusals or not _repeatable(error):
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
        return self.open(deadline, token)

    def _compare(self, token: PlanToken, entry: Entry) -> None:
        check_forward(token, entry)
        if entry.seq != token.seq:
            self._let_go()
            raise superseded(token, entry)

    def _append(
        self,
        token: PlanToken,
        entry: Entry,
        record: LogRecord,
        before_commit: Callable[[], None],
        deadline: Deadline,
    ) -> Entry:
        producer = self._producer
        assert producer is not None
        at: list[int] = []
        marked: list[int] = []
        place = token.position
        # Not all of the time that there is: a client that is stuck is replaced, and tries again.
        answer = deadline.within(deadline.seconds / _TRIES)
        producer.begin()
        producer.produce(
            place.topic,
            encode(record),
            key=self._names.log_key.encode(),
            partition=place.partition,
            on_offset=lambda _, offset: at.append(offset),
        )
        if entry.unmarked:
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
        """The end that was read may have come from a leader that was deposed and does not know yet.
        The driver's id is this process's, so a record of the query that lies between that end and
        the new record was written before, and not compared."""
        if at and at[0] == reached:
            return
        reader = self.reach(deadline)
        if (
            not at
            or at[0] < reached
            or reader.written(self._keys, reached, at[0], last[0], deadline)
        ):
            # Opening again aborts what is under way, and reads at least as far as it: an aborted
            # marker behind the end as told would look like one more record of the query.
            raise OutcomeUnknownError(
                f"The decision log has records behind its end as it was told, {reached}.",
                remedy="",
            )

    def _abandon(self) -> None:
        """End the open transaction at once: it holds up every reader of the log partition."""
        if self._producer is not None:
            # If it fails, the next open or the time-out aborts it.
            with contextlib.suppress(Exception):
                self._producer.abort(Deadline(_ABANDON_S))
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
        """The error that tells the user what to do; None: that is the error itself."""
        if isinstance(error, MemberRefused):
            return refused_member(token.names, error, token.run, self.try_read(), token.session_ms)
        if isinstance(error, ProduceFailed):
            return ClusterError(
                f"The decision log refuses the record: {error}",
                remedy="Raise max.message.bytes of the decision log's topic, or use fewer "
                "partitions a batch.",
            )
        return None


def _read(found: tuple[LogPosition, bytes]) -> Entry:
    position, value = found
    where = f"{position.topic}[{position.partition}]@{position.offset}"
    return Entry(decode(value, where), position)


def _repeatable(error: BaseException) -> bool:
    """Opening again tells what became of the write, or gives the producer a new epoch (KIP-360)."""
    if isinstance(error, ProduceFailed):
        return error.kind is not FailureKind.MESSAGE_REJECTED
    return isinstance(error, (ProducerFenced, OutcomeUnknownError))


def _is_behind(now: Entry, before: Entry) -> bool:
    """A log only grows: a lower number, a lower offset or another record under the same number
    says that it is not the log that was read before."""
    if now.seq == before.seq:
        return now.record.writer != before.record.writer
    return now.seq < before.seq or now.position.offset < before.position.offset
