"""A transactional producer on librdkafka."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from eos_sink.errors import FailureKind, OutcomeUnknownError
from eos_sink.kafka.confluent_client import ConfluentClient, OnOffset
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import (
    Meaning,
    convert_error,
    convert_errors,
    convert_setting_errors,
    get_meaning,
    is_consequence,
)
from eos_sink.kafka.producer_events import ProducerEvents, RecordRefused
from eos_sink.kafka.retry import call_with_deadline
from eos_sink.kafka_config.acls import Acl, Permissions
from eos_sink.kafka_config.cluster_config import cap_timeouts
from eos_sink.protocol.values import Offsets, Position, ProduceFailed, ProducerIdentity

if TYPE_CHECKING:
    from eos_sink.kafka.native.client import NativeClient
    from eos_sink.rows.rows import Rows

T = TypeVar("T")

# Only librdkafka's statistics contain the producer id, so they come often; each takes 1 ms of CPU.
_STATISTICS_MS = 25
_POLL_S = 0.01
_EVENTS_S = 1.0

# Room for the values that wait for the brokers, in each task; librdkafka's default is 1 GB. With
# librdkafka's own 220 bytes for each row it makes 70 MB at most.
_ROOM_KB = 48 * 1024
# A request has up to 10,000 rows (batch.num.messages) for one partition. With too few rows no
# request is full when there is no more room, and all wait for linger.ms: with 4 partitions, 20 ms
# and 30,000 rows, a task takes 1.7 times as long.
_ROOM_ROWS = 100_000

_DEFAULTS = {
    # Keys go to the same partitions as with Java clients.
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": _ROOM_ROWS,
}
_FIXED = {
    "enable.idempotence": True,
    "acks": "all",
    # Otherwise a fifth of all inits wait half a second for librdkafka's timer: the bootstrap
    # connection is closed at the moment when the coordinator is looked up (measured).
    "enable.sparse.connections": False,
}


class ConfluentProducer:
    """Implements `eos_sink.kafka.interfaces.TransactionalProducer`."""

    def __init__(  # noqa: PLR0913
        self,
        settings: dict[str, str],
        transactional_id: str,
        timeout_ms: int,
        permissions: Permissions,
        *,
        with_identity: bool = False,
        client: type[ConfluentClient | NativeClient] = ConfluentClient,
    ) -> None:
        """Args:
        settings: librdkafka's.
        timeout_ms: of its transactions.
        permissions: those that it needs, for errors about missing ones.
        with_identity: `identity` will be called.
        client: how it calls librdkafka.
        """
        self._permissions = permissions
        self._topics: set[str] = set()
        self._groups: dict[str, bytes] = {}
        self._id = transactional_id
        self._events = ProducerEvents()
        self._closed = False
        largest_record_kb = int(settings.get("message.max.bytes", 0)) // 1024 + 1
        configuration: dict[str, Any] = {
            **_DEFAULTS,
            "queue.buffering.max.kbytes": max(_ROOM_KB, largest_record_kb),
            **settings,
            **cap_timeouts(settings, timeout_ms),
            **_FIXED,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
        }
        if with_identity:
            configuration["statistics.interval.ms"] = _STATISTICS_MS
        with convert_setting_errors():
            self._client: ConfluentClient | NativeClient = client(configuration, self._events)

    def init(self, deadline: Deadline) -> None:
        what = f"Transactional id {self._id} could not be initialized"
        self._call(what, lambda: self._client.init_transactions(deadline.left), deadline)

    def begin(self) -> None:
        self._topics.clear()
        self._events.begin()
        with convert_errors(f"No transaction of {self._id} could be begun"):
            self._client.begin_transaction()

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        on_offset: Callable[[int, int], None] | None = None,
    ) -> None:
        self._topics.add(topic)
        with self._convert_refusals(topic):
            self._client.produce_row(
                (value, key, topic, None, partition, None),
                None if on_offset is None else lambda _, *at: on_offset(*at),
            )

    def produce_rows(self, rows: Rows, on_offset: OnOffset | None = None) -> None:
        topics = rows.topics[0]
        self._topics.update(topics)
        with self._convert_refusals(*topics[:1]):
            self._client.produce_rows(rows, on_offset)

    def send_offset(self, position: Position, member: bytes, deadline: Deadline) -> None:
        offset = {(position.topic, position.partition): position.offset}
        self._send_offsets(offset, member, self._needs, deadline)
        # librdkafka fails the transaction for most lost records. But it checks a record without an
        # existing topic or partition only in its commit, which tasks do not call.
        self.check()

    def send_group_offsets(self, group: str, offsets: Offsets, deadline: Deadline) -> None:
        # Few queries have such a group.
        from eos_sink.kafka.groups import metadata_without_member

        if group not in self._groups:
            self._groups = {group: metadata_without_member(group)}
        acls = self._permissions
        topics = sorted({topic for topic, _ in offsets})
        needs = (acls.transactions, *acls.source(group, topics))
        self._send_offsets(offsets, self._groups[group], lambda: needs, deadline)

    def _send_offsets(
        self,
        offsets: Offsets,
        group: bytes,
        needs: Callable[[], tuple[Acl, ...]],
        deadline: Deadline,
    ) -> None:
        each = [TopicPartition(*place, offset) for place, offset in offsets.items()]

        def send() -> None:
            try:
                self._client.send_offsets_to_transaction(each, group, deadline.left)
            except KafkaException as raised:
                error = raised.args[0]
                if get_meaning(error.code()) is Meaning.UNKNOWN and error.txn_requires_abort():
                    # So it says of records that were too late.
                    self.check()
                raise KafkaException(self._find_cause(error)) from raised

        what = f"The group offset was not added to the transaction of {self._id}"
        self._call(what, send, deadline, needs)

    def flush(self, deadline: Deadline) -> None:
        with convert_errors(f"Records of {self._id} were not delivered", self._needs):
            left = self._client.flush(deadline.within(_EVENTS_S).left)
            # After a record has failed the transaction, those behind it are not sent any more.
            while left and not self._events.trouble and not deadline.passed:
                left = self._client.flush(deadline.within(_EVENTS_S).left)
        # A record counts until its report was served, by any thread: every known offset has been
        # reported by now.
        if left and not self._events.trouble:
            topics = ", ".join(sorted(self._topics))
            why = f": {self._events.refused}" if self._events.refused else ""
            raise ProduceFailed(
                f"{left} records of {self._id} were not delivered in time (to {topics}){why}.",
                FailureKind.DELIVERY_FAILED,
            )

    def check(self) -> None:
        events = self._events
        error = events.lost[0] if events.lost else events.failure or events.fatal
        if error is None:
            return
        which = f"A record for {events.lost[2]}" if events.lost else f"A record of {self._id}"
        with self._name_topic():
            raise convert_error(
                self._find_cause(error), f"{which} was not delivered", self._needs()
            )

    def identity(self, deadline: Deadline) -> ProducerIdentity:
        identity = self._wait_for(lambda: self._events.identity, deadline)
        if identity is None:
            raise OutcomeUnknownError(
                f"The producer id of {self._id} did not become known.",
                remedy="Start the query again.",
            )
        return identity

    def commit(self, deadline: Deadline) -> None:
        what = f"The transaction of {self._id} was not committed"
        self._call(what, lambda: self._client.commit_transaction(deadline.left), deadline)

    def abort(self, deadline: Deadline) -> None:
        what = f"The transaction of {self._id} was not aborted"
        self._call(what, lambda: self._client.abort_transaction(deadline.left), deadline)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._client.stop()
        # The last reference is dropped in a thread: it waits for those of librdkafka, one of which
        # may be looking up a host name, for seconds.
        last = [self._client]
        del self._client
        threading.Thread(target=last.clear, name="librdkafka-close", daemon=True).start()

    def _call(
        self,
        what: str,
        call: Callable[[], None],
        deadline: Deadline,
        needs: Callable[[], tuple[Acl, ...]] | None = None,
    ) -> None:
        with self._name_topic(), convert_errors(what, needs or self._needs):
            try:
                call_with_deadline(call, deadline)
            except KafkaException as raised:
                raise KafkaException(self._events.explain(raised.args[0])) from raised
        self._events.refused = ""

    @contextmanager
    def _name_topic(self) -> Iterator[None]:
        """Add the topic of the first record that was not delivered."""
        try:
            yield
        except ProduceFailed as failed:
            failed.topic = self._events.lost[1] if self._events.lost else None
            raise

    def _needs(self) -> tuple[Acl, ...]:
        """The permissions that may be missing, as far as they are known."""
        needs = self._permissions
        topics = sorted(self._events.denied or self._topics)
        written = [acl for topic in topics for acl in needs.topic(topic)[:1]]
        return (needs.transactions, needs.group, *written)

    @contextmanager
    def _convert_refusals(self, topic: str | None = None) -> Iterator[None]:
        try:
            yield
        except RecordRefused as refused:
            error = self._find_cause(refused.args[0])
            what = f"A record for {refused.where} was refused"
            if get_meaning(error.code()) is Meaning.FAILED_BEFORE:
                failed = ProduceFailed(f"{what}: {error.str()}.", FailureKind.TRANSACTION_FAILED)
                raise failed from refused
            converted = convert_error(error, what, self._needs())
            if isinstance(converted, ProduceFailed):
                converted.topic = topic
            raise converted from refused

    def _find_cause(self, error: KafkaError) -> KafkaError:
        """The root cause of an error that says only that the producer or its transaction failed."""
        events = self._events
        soon = Deadline(_EVENTS_S)
        if not is_consequence(error):
            return events.explain(error)
        if error.code() == KafkaError._FATAL:
            return self._wait_for(lambda: events.fatal, soon) or error
        found = self._wait_for(lambda: events.fatal or events.lost_first or events.failure, soon)
        return found or error

    def _wait_for(self, find: Callable[[], T | None], deadline: Deadline) -> T | None:
        while (found := find()) is None and not deadline.passed:
            self._client.poll(_POLL_S)
        return found
