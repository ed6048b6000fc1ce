"""What a task does with its partition of a batch (Spark's DataWriter): write and prepare, or count.

A partition without rows opens no transaction. A transaction is never committed here.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import pyarrow as pa

from eos_sink.decision_log import DecisionRegister
from eos_sink.errors import FailureKind, ProduceFailedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import (
    Kafka,
    MemberRefused,
    ProduceFailed,
    ProducerFenced,
    TransactionalProducer,
    Witness,
)
from eos_sink.kafka.rows import Rows
from eos_sink.metrics import events
from eos_sink.metrics.names import Step
from eos_sink.metrics.stats import StepClock
from eos_sink.options import SinkOptions
from eos_sink.protocol.fenced_errors import refused_member, superseded
from eos_sink.protocol.model import BatchId, Entry, Plan, Prepared, TaskReport
from eos_sink.protocol.rules import Role, assign, second_frame
from eos_sink.task.columns import columns
from eos_sink.task.declared import check_rows
from eos_sink.task.fingerprint import RowDigester

_ABORT_S = 10.0
_REMEDIES = {
    FailureKind.MESSAGE_REJECTED: "Mend what is named (for a record that is too large: "
    "max.message.bytes of the topic and kafka.max.request.size), then start the query again: "
    "Spark replays the batch.",
    FailureKind.DELIVERY_FAILED: "Check the topic's brokers and its in-sync replicas "
    "(min.insync.replicas), then start the query again: Spark replays the batch.",
    FailureKind.TRANSACTION_FAILED: "Start the query again: Spark replays the batch, under a new "
    "producer epoch.",
}


class TaskWriter:
    """Writes one partition of one batch."""

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        plan: Plan,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kafka = kafka
        self._options = options
        self._plan = plan
        self._clock = StepClock(clock)
        if options.metrics_log:
            events.log_to_stderr()

    def write(
        self, batch: BatchId, partition: int, data: Iterable[pa.RecordBatch], spark_run: str = ""
    ) -> TaskReport:
        """Consume all of `data` and report.

        Args:
            spark_run: the run id of the query whose `foreachBatch` writes.

        Raises:
            ProduceFailedError, SupersededError: the transaction is aborted; Spark may try again.
            ConfigurationError, ClusterError: something in the rows or the cluster is wrong.
            OperatorNeededError: Spark runs a batch that the decision forbids.
        """
        todo = assign(self._plan, batch, partition, spark_run)
        digester = RowDigester(topic_varies=self._options.topic is None)
        # An Arrow batch may have 64 MB, so none is held here once Spark is asked for another.
        filled = filter(len, data)
        prepared = None
        if todo.role is Role.WRITE:
            prepared = self._write(todo.slot, partition, filled, digester)
        elif todo.role is Role.REFUSE:
            if next(filled, None) is not None:
                raise second_frame(self._plan.token.names, batch)
        else:
            for part in filled:
                digester.add(self._rows(part))
                del part
        decision = self._plan.decision
        return TaskReport(
            token=self._plan.token,
            batch=batch,
            partition=partition,
            slot=todo.slot,
            replayed=decision is not None and decision.batch == batch,
            digest=digester.digest,
            prepared=prepared,
            lost=self._plan.lost,
            skipped=todo.role is Role.SKIP,
            spark_run=spark_run,
            took=self._clock.took,
        )

    def _write(
        self, slot: int, partition: int, rows: Iterator[pa.RecordBatch], digester: RowDigester
    ) -> Prepared | None:
        transactional_id = self._plan.token.names.task(slot, partition)
        with _Opening(lambda: self._open(transactional_id)) as opening:
            if self._plan.wrote(partition):
                # It is likely to write again, and Spark may be a while with the first rows.
                opening.begin()
            # The second is taken before anything is written, since it tells whether there is more.
            waiting = list(islice(rows, 2))
            if not waiting:
                return None
            try:
                producer = opening.end()
            except BaseException as error:
                explained = self._explained(error, transactional_id)
                if explained is None:
                    raise
                raise explained from error
        self._clock.begin()
        try:
            producer.begin()
            witness = self._produce(producer, waiting, rows, digester)
            identity = producer.identity(Deadline(self._options.step_timeout))
        except BaseException as error:
            _give_up(producer)
            explained = self._explained(error, transactional_id)
            if explained is None:
                raise
            raise explained from error
        self._clock.end(Step.WRITE)
        producer.close()
        return Prepared(partition, identity.producer_id, identity.epoch, digester.digest, witness)

    def _open(self, transactional_id: str) -> TransactionalProducer:
        self._clock.begin()
        producer = self._kafka.producer(transactional_id, self._options.transaction_timeout_ms)
        try:
            producer.init(Deadline(self._options.step_timeout))
        except BaseException:
            producer.close()
            raise
        self._clock.end(Step.OPEN)
        return producer

    def _produce(
        self,
        producer: TransactionalProducer,
        waiting: list[pa.RecordBatch],
        rest: Iterable[pa.RecordBatch],
        digester: RowDigester,
    ) -> Witness:
        witnesses: list[Witness] = []
        self._send(
            producer, waiting.pop(0), digester, lambda *place: witnesses.append(Witness(*place))
        )
        if waiting:
            # A stale driver's task is refused here, before it has written much, and frees readers.
            self._send_offset(producer)
            self._send(producer, waiting.pop(), digester)
            for part in rest:
                self._send(producer, part, digester)
                del part
        producer.flush(Deadline(self._options.transaction_timeout_ms / 1000))
        # Behind the last row, so that a stale task never stays prepared: who replaces its driver
        # after this sees all of the transaction. And librdkafka tells of a failed record here.
        self._send_offset(producer)
        if not witnesses:
            raise ProduceFailed("No record is known to be there.", FailureKind.DELIVERY_FAILED)
        return witnesses[0]

    def _send(
        self,
        producer: TransactionalProducer,
        part: pa.RecordBatch,
        digester: RowDigester,
        on_offset: Callable[[str, int, int], None] | None = None,
    ) -> None:
        if self._options.destinations is not None:
            check_rows(part, self._options.topic, self._options.destinations)
        rows = self._rows(part)
        digester.add(rows)
        producer.produce_rows(rows, on_offset)

    def _send_offset(self, producer: TransactionalProducer) -> None:
        token, deadline = self._plan.token, Deadline(self._options.step_timeout)
        producer.send_offset(token.position, token.member, deadline)

    def _rows(self, part: pa.RecordBatch) -> Rows:
        return columns(part, self._options.topic, self._options.timestamp_column)

    def _latest(self) -> Entry | None:
        """What the log says by now, if it is readable soon."""
        register = DecisionRegister(self._kafka, self._plan.token.names)
        try:
            return register.try_read()
        finally:
            register.close()

    def _explained(self, error: BaseException, transactional_id: str) -> BaseException | None:
        """The error that tells the user what to do; None: that is the error itself."""
        token = self._plan.token
        if isinstance(error, MemberRefused):
            return refused_member(
                token.names,
                error,
                token.run,
                self._latest(),
                token.session_ms,
                while_writing=True,
            )
        if isinstance(error, ProducerFenced):
            latest = self._latest()
            if latest is not None and latest.seq > token.seq:
                # Not another attempt of this batch: the query has gone on without it.
                return superseded(token, latest)
            return ProduceFailedError(
                f"Another attempt has taken the transactional id {transactional_id}, or its "
                f"transaction timed out: {error} Nothing of the batch is visible.",
                remedy="If batches take longer than eos.transaction.timeout.ms, make them smaller "
                "or raise it. Then start the query again: Spark replays the batch.",
                data={"kind": FailureKind.TRANSACTION_FAILED.value},
            )
        if isinstance(error, ProduceFailed):
            return ProduceFailedError(
                f"Kafka did not take all records of {transactional_id} ({error.kind.value}): "
                f"{error} Nothing of the batch is visible.",
                remedy=_REMEDIES[error.kind],
                data={"kind": error.kind.value},
            )
        return None


class _Opening:
    """A producer that is opened beforehand, or when it is needed. One that nobody needed is closed:
    an id that was inited has no transaction yet."""

    def __init__(self, open_: Callable[[], TransactionalProducer]) -> None:
        self._open = open_
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="opening")
        self._begun: Future[TransactionalProducer] | None = None

    def __enter__(self) -> _Opening:
        return self

    def begin(self) -> None:
        self._begun = self._thread.submit(self._open)

    def end(self) -> TransactionalProducer:
        begun, self._begun = self._begun, None
        return self._open() if begun is None else begun.result()

    def __exit__(self, *_: object) -> None:
        if self._begun is not None:
            with contextlib.suppress(Exception):
                self._begun.result().close()
        self._thread.shutdown(wait=False)


def _give_up(producer: TransactionalProducer) -> None:
    """Abort at once, so that readers are not held up. If that fails, the driver's abort, the next
    recovery or the time-out does it; the error that led here says more."""
    with contextlib.suppress(Exception):
        producer.abort(Deadline(_ABORT_S))
    producer.close()
