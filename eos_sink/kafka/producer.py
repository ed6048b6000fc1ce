"""A transactional producer on confluent-kafka."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from eos_sink.errors import FailureKind, OutcomeUnknownError
from eos_sink.kafka.calls import call_with_deadline
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import (
    Meaning,
    convert_error,
    convert_errors,
    convert_setting_errors,
    get_meaning,
)
from eos_sink.kafka.interfaces import Headers, LogPosition, ProduceFailed, ProducerIdentity
from eos_sink.kafka.producer_events import Heard, place
from eos_sink.kafka_config import cap_timeouts
from eos_sink.kafka_config.acls import Acl, Permissions

if TYPE_CHECKING:
    from eos_sink.kafka.rows import Rows

# librdkafka tells the producer id in its statistics only, so they come often. They queue up unless
# somebody polls, and a task may wait long for its next rows, so a thread of the producer does.
_STATISTICS, _STATISTICS_MS = "statistics.interval.ms", 10
QUEUE_FULL_WAIT_S = 0.1
NO_ROOM = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "It is larger than all of kafka.buffer.memory")
_POLL_S = 0.01
_HEARD_S = 1.0

# Room for the rows that wait for the brokers, in each task: librdkafka's default is 1 GB. With less
# the same rows took no longer, within what a measurement tells.
_ROOM, _ROOM_KB = "queue.buffering.max.kbytes", 64 * 1024
# So few rows stay in the processor's cache until they are sent: a tenth less CPU than with
# librdkafka's 100,000 (measured with 100 bytes a row).
_ROOM_ROWS = 30_000

_SETTINGS = {
    "enable.idempotence": True,
    "acks": "all",
    # Keys land where Java clients put them.
    "partitioner": "murmur2_random",
    # Without it a fifth of all inits wait half a second for librdkafka's timer: the bootstrap
    # connection is dropped in the instant in which the coordinator is looked for (measured).
    "enable.sparse.connections": False,
}


class ConfluentProducer:
    """Implements `eos_sink.kafka.interfaces.TransactionalProducer`."""

    def __init__(
        self,
        settings: dict[str, str],
        transactional_id: str,
        timeout_ms: int,
        permissions: Permissions,
        *,
        with_identity: bool = False,
    ) -> None:
        """Args:
        permissions: what it needs, for the message if something of it is missing.
        with_identity: `identity` will be asked for.
        """
        self._permissions = permissions
        self._topics: set[str] = set()
        self._id = transactional_id
        self._heard = Heard()
        self._closed = threading.Event()
        configuration: dict[str, Any] = {
            "partitioner": _SETTINGS["partitioner"],
            _ROOM: max(_ROOM_KB, int(settings.get("message.max.bytes", 0)) // 1024 + 1),
            "queue.buffering.max.messages": _ROOM_ROWS,
            **settings,
            **cap_timeouts(settings, timeout_ms),
            **{name: value for name, value in _SETTINGS.items() if name != "partitioner"},
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
        }
        if with_identity:
            configuration[_STATISTICS] = _STATISTICS_MS
        with convert_setting_errors():
            self._producer = self._connected(configuration)

    def _connected(self, configuration: dict[str, Any]) -> Any:
        heard = self._heard
        callbacks = {"error_cb": heard.failed, "on_delivery": self._heed}
        if _STATISTICS in configuration:
            callbacks["stats_cb"] = heard.statistics
        producer = Producer({**configuration, **callbacks}, logger=heard)
        if _STATISTICS in configuration:
            poll = (producer, heard, self._closed)
            threading.Thread(target=_poll_until, args=poll, daemon=True).start()
        return producer

    def init(self, deadline: Deadline) -> None:
        self._call(
            f"Transactional id {self._id} could not be inited",
            lambda: self._producer.init_transactions(deadline.left),
            deadline,
        )

    def begin(self) -> None:
        self._topics.clear()
        self._heard.begin()
        with convert_errors(f"No transaction of {self._id} could be begun"):
            self._producer.begin_transaction()

    def produce(  # noqa: PLR0913, PLR0917 - a Kafka record has this many parts
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        on_offset: Callable[[int, int], None] | None = None,
    ) -> None:
        self._topics.add(topic)
        self._produce(topic, value, key, headers, partition, timestamp, on_offset)

    def _produce(  # noqa: PLR0913, PLR0917 - as above
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers | None,
        partition: int | None,
        timestamp: int | None,
        on_offset: Callable[[int, int], None] | None,
    ) -> None:
        optional: dict[str, Any] = {}
        if partition is not None:
            optional["partition"] = partition
        if headers:
            optional["headers"] = list(headers)
        if timestamp is not None:
            optional["timestamp"] = timestamp
        if on_offset:
            optional["on_delivery"] = self._offset_callback(on_offset)
        empty = False
        while True:
            try:
                self._producer.produce(topic, value, key, **optional)
                return
            except BufferError:
                if empty:
                    raise self._rejected(NO_ROOM, place(topic, partition)) from None
                self._poll(QUEUE_FULL_WAIT_S)
                empty = not len(self._producer)
            except KafkaException as raised:
                raise self._rejected(raised.args[0], place(topic, partition)) from raised

    def produce_rows(
        self, rows: Rows, on_offset: Callable[[str, int, int], None] | None = None
    ) -> None:
        self._topics.update(rows.topics[0])
        report = None if on_offset is None else _once(on_offset)
        for value, key, topic, headers, partition, timestamp in rows:
            told = None if report is None else partial(report, topic)
            self._produce(topic, value, key, headers, partition, timestamp, told)

    def send_offset(self, position: LogPosition, member: bytes, deadline: Deadline) -> None:
        offsets = [TopicPartition(position.topic, position.partition, position.offset)]

        def send() -> None:
            try:
                self._producer.send_offsets_to_transaction(offsets, member, deadline.left)
            except KafkaException as raised:
                raise KafkaException(self._cause(raised.args[0])) from raised

        what = f"The group offset was not added to the transaction of {self._id}"
        self._call(what, send, deadline)
        if self._heard.lost is not None:
            # librdkafka fails the transaction for most of them, but looks at a record without a
            # topic or a partition to go to only when it commits, which the driver does instead.
            error, where = self._heard.lost
            what = f"A record for {where} was not delivered"
            raise convert_error(self._reason(error), what, self._needs())

    def flush(self, deadline: Deadline) -> None:
        with convert_errors(f"Records of {self._id} were not delivered", self._needs):
            left = self._flush(deadline.within(_HEARD_S))
            # Records behind one that has failed the transaction are not sent before it is aborted.
            while left and not self._heard.trouble and not deadline.passed:
                left = self._flush(deadline.within(_HEARD_S))
        if self._heard.trouble:
            return
        # A record counts until its report was served, by whichever thread, so that each offset that
        # is known was told.
        if left:
            raise ProduceFailed(
                f"{left} records of {self._id} were not delivered in time.",
                FailureKind.DELIVERY_FAILED,
            )

    def identity(self, deadline: Deadline) -> ProducerIdentity:
        while self._heard.identity is None:
            if deadline.passed:
                raise OutcomeUnknownError(
                    f"The producer id of {self._id} did not become known.",
                    remedy="Start the query again.",
                )
            self._poll(_POLL_S)
        return self._heard.identity

    def commit(self, deadline: Deadline) -> None:
        self._call(
            f"The transaction of {self._id} was not committed",
            lambda: self._producer.commit_transaction(deadline.left),
            deadline,
        )

    def abort(self, deadline: Deadline) -> None:
        self._call(
            f"The transaction of {self._id} was not aborted",
            lambda: self._producer.abort_transaction(deadline.left),
            deadline,
        )

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        # Records that wait for a broker would otherwise keep the producer alive.
        self._producer.purge(blocking=False)
        # librdkafka's threads are waited for elsewhere: one may be looking up a name, for seconds.
        last = [self._producer]
        del self._producer
        threading.Thread(target=last.clear, name="librdkafka-close", daemon=True).start()

    def _flush(self, deadline: Deadline) -> int:
        try:
            return int(self._producer.flush(deadline.left))
        except SystemError as error:
            # confluent-kafka raises a fatal error where it hears of it, and goes on to call the
            # callbacks of records, in which any call of the client then fails like this.
            if isinstance(error.__cause__, KafkaException):
                raise error.__cause__ from error
            raise

    def _poll(self, seconds: float) -> None:
        _poll(self._producer, self._heard, seconds)

    def _call(self, what: str, call: Callable[[], None], deadline: Deadline) -> None:
        with convert_errors(what, self._needs):
            call_with_deadline(call, deadline, what)

    def _needs(self) -> tuple[Acl, ...]:
        """What may be missing, as far as it is known."""
        needs = self._permissions
        topics = sorted(self._heard.denied or self._topics)
        written = [acl for topic in topics for acl in needs.topic(topic)[:1]]
        return (needs.transactions, needs.group, *written)

    def _heed(self, error: KafkaError | None, message: Message) -> None:
        """Called for every record that is on the brokers or has failed."""
        if error is not None:
            self._heard.undelivered(error, message.topic(), message.partition())

    def _cause(self, error: KafkaError) -> KafkaError:
        """Of a transaction that failed amid a call, which says only that it has."""
        if error.code() != KafkaError._STATE:
            return error
        heard = Deadline(_HEARD_S)
        while self._heard.failure is None and not heard.passed:
            self._poll(_POLL_S)
        return self._heard.failure or error

    def _reason(self, error: KafkaError) -> KafkaError:
        """Of a record that was given up because its transaction or its producer had failed."""
        heard = Deadline(_HEARD_S)
        while get_meaning(error.code()) is Meaning.PURGED and not heard.passed:
            error = self._heard.fatal or self._heard.failure or error
            self._poll(_POLL_S)
        return error

    def _rejected(self, error: KafkaError, where: str) -> Exception:
        if error.code() == KafkaError._FATAL:
            # `produce` says only that there is a cause.
            heard = Deadline(_HEARD_S)
            while self._heard.fatal is None and not heard.passed:
                self._poll(_POLL_S)
            error = self._heard.fatal or error
        error = self._cause(error)
        what = f"A record for {where} was refused"
        if get_meaning(error.code()) is Meaning.FAILED_BEFORE:
            return ProduceFailed(f"{what}: {error.str()}.", FailureKind.TRANSACTION_FAILED)
        return convert_error(error, what, self._needs())

    def _offset_callback(
        self, on_offset: Callable[[int, int], None]
    ) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            self._heed(error, message)
            partition, offset = message.partition(), message.offset()
            # Of a record that is there already when it is sent again, or that is acknowledged with
            # a later one, librdkafka does not know where it is.
            if error is None and partition is not None and offset is not None and offset >= 0:
                on_offset(partition, offset)

        return delivered


def _once(on_offset: Callable[[str, int, int], None]) -> Callable[[str, int, int], None]:
    """Reports come from two threads."""
    waiting = [on_offset]

    def told(topic: str, partition: int, offset: int) -> None:
        try:
            report = waiting.pop()
        except IndexError:
            return
        report(topic, partition, offset)

    return told


def _poll(producer: Any, heard: Heard, seconds: float) -> None:
    """Note what is fatal, which confluent-kafka raises instead of telling `error_cb`: the next call
    of the protocol tells it, to whoever makes it."""
    try:
        producer.poll(seconds)
    except KafkaException as raised:
        heard.failed(raised.args[0])


def _poll_until(producer: Producer, heard: Heard, closed: threading.Event) -> None:
    while not closed.is_set():
        _poll(producer, heard, _POLL_S)
