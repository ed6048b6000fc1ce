"""A transactional producer on confluent-kafka."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from eos_sink.acls import Acl, Permissions
from eos_sink.clients.bounded import bounded
from eos_sink.clients.librdkafka import LOGGER, accepted_settings, judged, step
from eos_sink.deadline import Deadline
from eos_sink.errors import FailureKind, OutcomeUnknownError
from eos_sink.kafka_settings import within_transaction
from eos_sink.model import LogPosition
from eos_sink.ports import Headers, ProduceFailed, ProducerIdentity

if TYPE_CHECKING:
    from eos_sink.rows import Rows

# librdkafka tells the producer id in its statistics only, so they come often. They queue up unless
# somebody polls, and a task may wait long for its next rows, so a thread of the producer does.
_STATISTICS_MS = 10
# `produce` into a transaction that has failed already.
_BROKEN = {KafkaError._FATAL, KafkaError._STATE}
_GIVEN_UP = {KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE}
_QUEUE_FULL_WAIT_S = 0.1
_POLL_S = 0.01
_HEARD_S = 1.0
# The error names no topic; the log line before it does.
_DENIED_TOPIC = re.compile(r'partition "([^"]+)" .*Topic authorization failed')
_FAILURE = re.compile(r"\((_?[A-Z]+(?:_[A-Z]+)*)\)$")

_SETTINGS = {
    "enable.idempotence": True,
    "acks": "all",
    # Keys land where Java clients put them.
    "partitioner": "murmur2_random",
    # Without it a fifth of all inits wait half a second for librdkafka's timer: the bootstrap
    # connection is dropped in the instant in which the coordinator is looked for (measured).
    "enable.sparse.connections": False,
}


class _Overheard:
    """librdkafka's log on its way to ours: what has failed a transaction stands there first."""

    def __init__(self) -> None:
        self.failure: KafkaError | None = None
        self.denied: set[str] = set()

    def log(self, level: int, text: str, facility: str, *more: str) -> None:
        """Called by confluent-kafka as `logging.Logger.log`."""
        named = _FAILURE.search(more[-1]) if facility == "TXNERR" else None
        code = getattr(KafkaError, named[1], None) if named else None
        if code is not None:
            self.failure = KafkaError(code, more[-1], False, False, True)
        if facility == "ADDPARTS":
            self.denied.update(_DENIED_TOPIC.findall(more[-1]))
        LOGGER.log(level, text, facility, *more)


class ConfluentProducer:
    """Implements `eos_sink.ports.TransactionalProducer`."""

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
        self._identity: ProducerIdentity | None = None
        self._fatal: KafkaError | None = None
        self._log = _Overheard()
        self._undelivered: tuple[KafkaError, str] | None = None
        self._offsets_awaited = 0
        self._closed = threading.Event()
        configuration: dict[str, Any] = {
            "partitioner": _SETTINGS["partitioner"],
            **settings,
            **within_transaction(settings, timeout_ms),
            **{name: value for name, value in _SETTINGS.items() if name != "partitioner"},
            "transactional.id": transactional_id,
            "error_cb": self._leave_to_the_next_call,
            "on_delivery": self._heed,
            "transaction.timeout.ms": timeout_ms,
        }
        if with_identity:
            configuration["statistics.interval.ms"] = _STATISTICS_MS
            configuration["stats_cb"] = self._learn_identity
        with accepted_settings():
            self._producer = Producer(configuration, logger=self._log)
        if with_identity:
            poll = (self._producer, self._closed)
            threading.Thread(target=_poll_until, args=poll, daemon=True).start()

    def init(self, deadline: Deadline) -> None:
        self._call(
            f"Transactional id {self._id} could not be inited",
            lambda: self._producer.init_transactions(deadline.left),
            deadline,
        )

    def begin(self) -> None:
        self._topics.clear()
        with step(f"No transaction of {self._id} could be begun"):
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
        optional: dict[str, Any] = {}
        if partition is not None:
            optional["partition"] = partition
        if headers:
            optional["headers"] = list(headers)
        if timestamp is not None:
            optional["timestamp"] = timestamp
        if on_offset:
            optional["on_delivery"] = self._offset_callback(on_offset)
            self._offsets_awaited += 1
        while True:
            try:
                self._producer.produce(topic, value, key, **optional)
                return
            except BufferError:
                self._producer.poll(_QUEUE_FULL_WAIT_S)
            except KafkaException as raised:
                raise self._rejected(raised.args[0], _place(topic, partition)) from raised

    def produce_rows(
        self, rows: Rows, on_offset: Callable[[str, int, int], None] | None = None
    ) -> None:
        for value, key, topic, headers, partition, timestamp in rows:
            report = None if on_offset is None else partial(on_offset, topic)
            self.produce(topic, value, key, headers, partition, timestamp, report)
            on_offset = None

    def send_offset(self, position: LogPosition, member: bytes, deadline: Deadline) -> None:
        offsets = [TopicPartition(position.topic, position.partition, position.offset)]

        def send() -> None:
            try:
                self._producer.send_offsets_to_transaction(offsets, member, deadline.left)
            except KafkaException as raised:
                raise KafkaException(self._cause(raised.args[0])) from raised

        what = f"The group offset was not added to the transaction of {self._id}"
        self._call(what, send, deadline)
        if self._undelivered is not None:
            # librdkafka fails the transaction for most of them, but looks at a record without a
            # topic or a partition to go to only when it commits, which the driver does instead.
            error, place = self._undelivered
            what = f"A record for {place} was not delivered"
            raise judged(self._reason(error), what, self._needs())

    def flush(self, deadline: Deadline) -> None:
        with step(f"Records of {self._id} were not delivered", self._needs()):
            left = self._producer.flush(deadline.within(_HEARD_S).left)
            # Records behind one that has failed the transaction are not sent before it is aborted.
            while left and not self._failed and not deadline.passed:
                left = self._producer.flush(deadline.within(_HEARD_S).left)
        if self._failed:
            return
        if left:
            raise ProduceFailed(
                f"{left} records of {self._id} were not delivered in time.",
                FailureKind.DELIVERY_FAILED,
            )
        while self._offsets_awaited and not deadline.passed:
            # The polling thread is inside the callback.
            self._producer.poll(_POLL_S)

    def identity(self, deadline: Deadline) -> ProducerIdentity:
        while self._identity is None:
            if deadline.passed:
                raise OutcomeUnknownError(
                    f"The producer id of {self._id} did not become known.",
                    remedy="Start the query again.",
                )
            self._producer.poll(_POLL_S)
        return self._identity

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
        self._producer.purge()
        del self._producer

    @property
    def _failed(self) -> bool:
        """Something is known that the next call of the protocol will tell."""
        return bool(self._undelivered or self._log.failure or self._fatal)

    def _call(self, what: str, call: Callable[[], None], deadline: Deadline) -> None:
        try:
            bounded(call, deadline, what)
        except KafkaException as raised:
            raise judged(raised.args[0], what, self._needs()) from raised

    def _needs(self) -> tuple[Acl, ...]:
        """What may be missing, as far as it is known."""
        needs = self._permissions
        topics = sorted(self._log.denied or self._topics)
        written = [acl for topic in topics for acl in needs.topic(topic)[:1]]
        return (needs.transactions, needs.group, *written)

    def _learn_identity(self, statistics: str) -> None:
        if self._identity is None:
            eos = json.loads(statistics).get("eos", {})
            if eos.get("producer_id", -1) >= 0 and eos.get("producer_epoch", -1) >= 0:
                self._identity = ProducerIdentity(eos["producer_id"], eos["producer_epoch"])

    def _heed(self, error: KafkaError | None, message: Message) -> None:
        """Called for every record that is on the brokers or has failed."""
        if error is not None and self._undelivered is None:
            self._undelivered = (error, _place(message.topic(), message.partition()))

    def _leave_to_the_next_call(self, error: KafkaError) -> None:
        """What a transaction suffers is told by its next call; `poll` would raise it at random."""
        if error.fatal():
            self._fatal = error

    def _cause(self, error: KafkaError) -> KafkaError:
        """Of a transaction that failed amid a call, which says only that it has."""
        if error.code() != KafkaError._STATE:
            return error
        heard = Deadline(_HEARD_S)
        while self._log.failure is None and not heard.passed:
            self._producer.poll(_POLL_S)
        return self._log.failure or error

    def _reason(self, error: KafkaError) -> KafkaError:
        """Of a record that was given up because its transaction or its producer had failed."""
        heard = Deadline(_HEARD_S)
        while error.code() in _GIVEN_UP and not heard.passed:
            error = self._fatal or self._log.failure or error
            self._producer.poll(_POLL_S)
        return error

    def _rejected(self, error: KafkaError, place: str) -> Exception:
        if error.code() == KafkaError._FATAL and self._fatal is not None:
            # `produce` says only that there is a cause.
            error = self._fatal
        error = self._cause(error)
        what = f"A record for {place} was refused"
        if error.code() in _BROKEN:
            return ProduceFailed(f"{what}: {error.str()}.", FailureKind.TRANSACTION_FAILED)
        return judged(error, what, self._needs())

    def _offset_callback(
        self, on_offset: Callable[[int, int], None]
    ) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            self._heed(error, message)
            self._offsets_awaited -= 1
            if error is None:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                on_offset(partition, offset)

        return delivered


def _place(topic: str | None, partition: int | None) -> str:
    """Without a partition where none was chosen yet."""
    chosen = partition is not None and partition >= 0
    return f"topic {topic}, partition {partition}" if chosen else f"topic {topic}"


def _poll_until(producer: Producer, closed: threading.Event) -> None:
    # What is fatal is told by the next call of the protocol, to whoever makes it.
    with contextlib.suppress(KafkaException):
        while not closed.is_set():
            producer.poll(_POLL_S)
