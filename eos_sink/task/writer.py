"""Write one partition of a batch (Spark's DataWriter), or only count its rows.

A task never commits its transaction. It opens none for a partition without rows, nor for a small
one, which the driver writes in the decision's transaction.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

import pyarrow as pa

from eos_sink.errors import EosSinkError, FailureKind
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Sizes, TransactionalProducer
from eos_sink.messages import Reason, named, stop
from eos_sink.metrics.names import Step
from eos_sink.metrics.stats import StepClock
from eos_sink.protocol.inline import NOTHING_INLINE, inline_share
from eos_sink.protocol.model import BatchId, LogEntry, Plan, Prepared, TaskReport
from eos_sink.protocol.rules import Role, assign, check_same_version
from eos_sink.protocol.values import (
    MemberRefused,
    Position,
    ProduceFailed,
    ProducerFenced,
    this_package,
)
from eos_sink.rows.fingerprint import RowDigester
from eos_sink.rows.rows import Rows, pack
from eos_sink.sink_options import SinkOptions
from eos_sink.task.columns import check_destinations_of, check_topics, to_rows

# Few tasks complete a batch, have a dead letter topic, or are fenced and read the log. What they
# need for that is imported then.
if TYPE_CHECKING:
    from eos_sink.task.missing_rows import MissingRows
    from eos_sink.task.rejected import RejectedRows

_ABORT_S = 10.0
# Rows, and one slice of dead letters among them.
_WITH_LETTERS = 2


class TaskWriter:
    """Writes one partition of one batch."""

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        plan: Plan,
        clock: Callable[[], float] = time.monotonic,
        attempt: int = 0,
    ) -> None:
        """Args:
        attempt: Spark's number of this attempt of the task; 0: the first.
        """
        self._kafka = kafka
        self._options = options
        self._plan = plan
        self._clock = StepClock(clock)
        self._attempt = attempt
        self._rejected: RejectedRows | None = None
        self._topics: dict[str, str] = {}
        if options.metrics_log:
            from eos_sink.metrics import events

            events.log_to_stderr()

    def write(
        self, batch: BatchId, partition: int, data: Iterable[pa.RecordBatch], spark_run: str = ""
    ) -> TaskReport:
        """Consume all of `data` and report.

        Args:
            spark_run: Spark's run id of the query whose `foreachBatch` writes.

        Raises:
            ProduceFailedError, SupersededError: the transaction is aborted; Spark may try again.
            ConfigurationError, ClusterError: something is wrong with the rows, the cluster, or the
                versions.
            OperatorNeededError: the decision does not allow this batch.
        """
        with named(self._plan.token.names, self._plan.token.position.topic):
            return self._report(batch, partition, data, spark_run)

    def _report(
        self, batch: BatchId, partition: int, data: Iterable[pa.RecordBatch], spark_run: str
    ) -> TaskReport:
        check_same_version(getattr(self._plan.token, "package", None), this_package())
        todo = assign(self._plan, batch, partition, spark_run)
        partition += todo.first
        digester = RowDigester(topic_varies=self._options.topic is None)
        # An Arrow batch may have 64 MB: keep none when Spark is asked for the next one.
        filled = filter(len, data)
        missing: MissingRows | None = None
        if todo.role is Role.COMPLETE and self._plan.visible is not None:
            from eos_sink.task.missing_rows import MissingRows

            varies = self._options.topic is None
            missing = MissingRows(self._plan.visible, self._rows, topic_varies=varies)
            filled = filter(len, missing.select(filled))
        written: Prepared | list[bytes] | None = None
        if todo.role in (Role.WRITE, Role.COMPLETE):
            if self._options.dead_letter_topic is not None:
                from eos_sink.task.rejected import RejectedRows

                rules = self._plan.rules
                self._rejected = RejectedRows(self._kafka, self._options, rules, partition)
            written = self._write(todo.slot, partition, filled, digester)
        elif todo.role is Role.REFUSE:
            if next(filled, None) is not None:
                raise stop(Reason.SECOND_FRAME, batch=batch)
        else:
            for part in filled:
                digester.add(self._rows(part))
                del part
        decision = self._plan.decision
        counted = digester if missing is None else missing
        inline, *inline_dead_letters = written if isinstance(written, list) else [b""]
        return TaskReport(
            token=self._plan.token,
            batch=batch,
            partition=partition,
            slot=todo.slot,
            replayed=decision is not None and decision.batch == batch,
            digest=counted.digest,
            prepared=written if isinstance(written, Prepared) else None,
            lost=self._plan.lost,
            skipped=todo.role is Role.SKIP,
            spark_run=spark_run,
            took=self._clock.took,
            inline=inline,
            inline_dead_letters=b"".join(inline_dead_letters),
            dead_letters={} if self._rejected is None else dict(self._rejected.counts),
            topics=self._topics,
        )

    def _write(
        self, slot: int, partition: int, rows: Iterator[pa.RecordBatch], digester: RowDigester
    ) -> Prepared | list[bytes] | None:
        """Write the partition; return the prepared transaction, or packed rows to inline, and the
        dead letters among them if there are any; None: there are no rows."""
        transactional_id = self._plan.token.names.task(slot, partition)
        # Once the early opening has begun, in a thread, nothing more is read for it.
        sizes = self._sizes()
        with (
            self._explain(transactional_id),
            _Opening(lambda: self._open(transactional_id, sizes)) as opening,
        ):
            if self._plan.wrote(partition) and not self._learns_sizes:
                # It is likely to write again, and Spark may take a while to bring the first rows.
                opening.begin()
            # The second Arrow batch is fetched before the first is written: is there more than one?
            waiting = list(islice(rows, 2))
            if not waiting:
                return None
            if self._rejected is not None:
                for part in waiting:
                    self._rejected.know(self._rows(part))
                sizes = self._sizes()
            share, first = self._share(partition, sizes), None
            if len(waiting) == 1 and waiting[0].nbytes <= share:
                left = share - waiting[0].nbytes
                first = list(self._take(waiting.pop(), digester))
                # A dead letter may be many times as large as its row.
                packed = [pack(rows) for rows in first[:3]]
                if len(packed) == 1 or (len(packed) == _WITH_LETTERS and len(packed[1]) <= left):
                    known = self._plan.topics
                    self._topics = {t: known[t] for r in first for t in r.topics[0] if known.get(t)}
                    return packed
            producer = opening.end()
        self._clock.begin()
        with self._explain(transactional_id):
            try:
                producer.begin()
                witness = self._produce(producer, first, waiting, rows, digester)
                identity = producer.identity(Deadline(self._options.step_timeout))
            except BaseException:
                _give_up(producer)
                raise
        self._clock.end(Step.WRITE)
        producer.close()
        return Prepared(partition, identity.producer_id, identity.epoch, digester.digest, witness)

    @property
    def _learns_sizes(self) -> bool:
        """True if topics come from a column, so size limits are known only after reading rows."""
        return self._rejected is not None and self._options.topic is None

    def _sizes(self) -> Sizes | None:
        if self._rejected is not None:
            return self._rejected.sizes()
        sure = [rules.sure_bytes for rules in self._plan.rules.values()]
        return Sizes(None, min(sure)) if sure else None

    def _share(self, partition: int, sizes: Sizes | None) -> int:
        """The largest Arrow batch whose rows the driver writes."""
        most = self._options.inline_bytes
        # The driver's record batches may have so many bytes.
        too_narrow = sizes is not None and sizes.batch < most
        # Another completion could not read back what the driver writes.
        if too_narrow or self._plan.visible is not None:
            return NOTHING_INLINE
        return inline_share(most, partition, self._plan)

    def _open(self, transactional_id: str, sizes: Sizes | None) -> TransactionalProducer:
        self._clock.begin()
        timeout_ms = self._options.transaction_timeout_ms
        producer = self._kafka.producer(transactional_id, timeout_ms, sizes)
        try:
            producer.init(Deadline(self._options.step_timeout))
            # Which has aborted what an earlier attempt has left: everywhere?
            self._check_earlier_attempt(transactional_id)
        except BaseException:
            producer.close()
            raise
        self._clock.end(Step.OPEN)
        return producer

    def _check_earlier_attempt(self, transactional_id: str) -> None:
        if not self._attempt:
            return
        from eos_sink.decision_log.hanging import check_ended, topics_of

        topics, deadline = topics_of(self._options, self._plan.decision), self._options.step_timeout
        check_ended(self._kafka, transactional_id, topics, Deadline(deadline))

    def _produce(
        self,
        producer: TransactionalProducer,
        first: list[Rows] | None,
        waiting: list[pa.RecordBatch],
        rest: Iterable[pa.RecordBatch],
        digester: RowDigester,
    ) -> Position:
        """Args:
        first: the rows of the first Arrow batch, if they were taken already.
        """
        sender = _Sender(producer, self._know_topics)
        sender.send(self._take(waiting.pop(0), digester) if first is None else first)
        if waiting:
            # Kafka refuses a stale driver's task here, before it has written much.
            self._send_offset(producer)
            sender.send(self._take(waiting.pop(), digester))
            for part in rest:
                sender.send(self._take(part, digester))
                del part
        producer.flush(Deadline(self._options.transaction_timeout_ms / 1000))
        # Behind the last row, so that a stale task never stays prepared: a driver that takes over
        # later sees all of the transaction. And librdkafka reports a failed record here.
        self._send_offset(producer)
        if sender.witness is None:
            raise ProduceFailed("No record is known to be there.", FailureKind.DELIVERY_FAILED)
        return sender.witness

    def _take(self, part: pa.RecordBatch, digester: RowDigester) -> Iterable[Rows]:
        """Check and count rows that will be written: the rows, and slices of dead letters."""
        rows, options = self._rows(part, checked=self._rejected is None), self._options
        if self._rejected is None:
            if options.topic is None:
                check_topics(rows, options.log_topic)
            if options.destinations is not None:
                check_destinations_of(part, options.topic, options.destinations)
        # Of all rows, in any topic: a repeated batch has the same ones.
        digester.add(rows)
        dead_letters: Iterator[Rows] = iter(())
        if self._rejected is not None:
            rows, dead_letters = self._rejected.sort_out(rows)
        return chain([rows], dead_letters)

    def _know_topics(self, topics: Sequence[str]) -> None:
        """Note the ids of topics before the first row of this task is written there: the driver
        does not decide the batch if they are other topics by then."""
        new = [topic for topic in topics if topic not in self._topics]
        ids = {topic: self._plan.topics.get(topic, "") for topic in new}
        if unknown := [topic for topic in new if not ids[topic]]:
            ids |= self._kafka.topic_ids(unknown, Deadline(self._options.step_timeout))
        self._topics |= ids

    def _send_offset(self, producer: TransactionalProducer) -> None:
        token, deadline = self._plan.token, Deadline(self._options.step_timeout)
        producer.send_offset(token.position, token.member, deadline)

    def _rows(self, part: pa.RecordBatch, *, checked: bool = False) -> Rows:
        """Rows that are only counted are in a decided batch: it is too late to refuse one."""
        options = self._options
        return to_rows(part, options.topic, options.timestamp_column, checked=checked)

    @contextlib.contextmanager
    def _explain(self, transactional_id: str) -> Iterator[None]:
        """Turn refusals of Kafka into errors with a remedy for the user."""
        try:
            yield
        except (MemberRefused, ProducerFenced, ProduceFailed) as error:
            raise self._explained(transactional_id, error) from error

    def _explained(
        self, transactional_id: str, error: MemberRefused | ProducerFenced | ProduceFailed
    ) -> EosSinkError:
        from eos_sink.protocol.refused import refused_member, rows_not_taken, superseded

        if isinstance(error, ProduceFailed):
            rules = self._plan.rules.get(error.topic or "")
            return rows_not_taken(transactional_id, error, rules)
        token, latest = self._plan.token, self._read_latest()
        if isinstance(error, MemberRefused):
            return refused_member(error, token.run, latest, token.session_ms, while_writing=True)
        if latest is not None and latest.seq > token.seq:
            # Not another attempt of this batch: the query has gone on without it.
            return superseded(token, latest)
        kind = FailureKind.TRANSACTION_FAILED.value
        return stop(Reason.ID_TAKEN, transactional_id=transactional_id, error=error, kind=kind)

    def _read_latest(self) -> LogEntry | None:
        from eos_sink.decision_log import DecisionRegister

        register = DecisionRegister(self._kafka, self._plan.token.names)
        try:
            return register.try_read()
        finally:
            register.close()


class _Opening:
    """Opens a producer early, in a thread, or when it is needed. A producer that is not needed is
    closed: its id was inited, but has no transaction."""

    def __init__(self, open_: Callable[[], TransactionalProducer]) -> None:
        self._open = open_
        self._begun: Future[TransactionalProducer] | None = None

    def __enter__(self) -> _Opening:
        return self

    def begin(self) -> None:
        begun = self._begun = Future()
        # A daemon: a broker that does not answer must not keep the worker from ending.
        threading.Thread(target=self._run, args=(begun,), name="opening", daemon=True).start()

    def end(self) -> TransactionalProducer:
        begun, self._begun = self._begun, None
        return self._open() if begun is None else begun.result()

    def __exit__(self, *_: object) -> None:
        if self._begun is not None:
            with contextlib.suppress(Exception):
                self._begun.result().close()

    def _run(self, begun: Future[TransactionalProducer]) -> None:
        try:
            begun.set_result(self._open())
        except BaseException as error:  # noqa: BLE001 - `end` raises it
            begun.set_exception(error)


class _Sender:
    """Sends rows and the dead letters among them, and finds a witness."""

    def __init__(
        self, producer: TransactionalProducer, know_topics: Callable[[Sequence[str]], None]
    ) -> None:
        self._producer = producer
        self._know_topics = know_topics
        # Of the rows in their own topics, and of the dead letters, once there are any.
        self._known: dict[int, list[Position]] = {}

    def send(self, taken: Iterable[Rows]) -> None:
        for number, rows in enumerate(taken):
            if not len(rows):
                continue
            kind = min(number, 1)
            on_offset = None if kind in self._known else partial(self._note, kind)
            self._known.setdefault(kind, [])
            self._know_topics(rows.topics[0])
            self._producer.produce_rows(rows, on_offset)

    @property
    def witness(self) -> Position | None:
        """A row in its own topic, if the transaction has one; known when all rows are there."""
        return next((each for _, found in sorted(self._known.items()) for each in found), None)

    def _note(self, kind: int, topic: str, partition: int, offset: int) -> None:
        self._known[kind].append(Position(topic, partition, offset))


def _give_up(producer: TransactionalProducer) -> None:
    """Abort at once, so that readers are not blocked. If that fails, the driver's abort, the next
    recovery or the timeout does it, and the error that led here says more."""
    with contextlib.suppress(Exception):
        producer.abort(Deadline(_ABORT_S))
    producer.close()
