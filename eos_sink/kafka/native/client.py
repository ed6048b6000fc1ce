"""librdkafka's producer through its C API, which takes rows from Arrow's buffers."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_void_p
from functools import partial
from itertools import islice, repeat
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from eos_sink.kafka.confluent_client import METADATA_S, NO_ROOM, OnOffset
from eos_sink.kafka.connection.token_cache import TokenCache
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.native import library as rdkafka
from eos_sink.kafka.native.library import Library, load_library
from eos_sink.kafka.native.native_events import Events
from eos_sink.kafka.native.vectors import (
    Calls,
    Group,
    build_calls,
    can_group,
    group_rows,
    place_by_key,
)
from eos_sink.kafka.producer_events import ProducerEvents, RecordRefused, describe_place
from eos_sink.rows.rows import Row, Rows

_CLOSED_WITHIN_S = 5.0
# The partitioners that place a row with a key as the Java client does.
_BY_KEY = ("murmur2", "murmur2_random")
# Fewer rows of a topic are not worth a request to ask for its number of partitions.
_MANY_ROWS = 1000
# The number of partitions is asked for again as often as by the Java client (metadata.max.age.ms).
_METADATA_AGE_S = 300.0
# librdkafka sends a request when it is full, or linger.ms after its first record, and has one in
# flight for each partition. If linger.ms passes for the records behind it, the broker's thread
# polls without a pause until the answer is there, which takes up to half of a task's CPU time. So
# records linger for this share of the time after which they expire, and the client sends the rest
# when nothing is on its way, and now and then, while Spark brings rows slowly.
_LINGER_SHARE = 0.1
# librdkafka's default of `message.timeout.ms`: it refuses a linger that is not below it, however
# long the transaction may last.
_USUAL_EXPIRY_MS = 300_000
_STICKY_MS = 10  # the default would be twice linger.ms
_ON_ITS_WAY_S = 0.005
_SEND_MS = 1
_NOW_AND_THEN_S = 0.1


class NativeClient:
    """Methods of the same names do what those of `confluent_client.ConfluentClient` do.

    Needs `load_library` to succeed. The producer is destroyed when the last reference is gone: a
    call that was given up still has one.
    """

    _handle: int | None = None

    def __init__(self, configuration: Mapping[str, Any], events: ProducerEvents) -> None:
        library = load_library()
        assert library is not None, "librdkafka's own API cannot be used"
        self._c = library
        self._topics: dict[str, int] = {}
        self._counts: dict[str, tuple[int, Deadline]] = {}
        self._by_key = configuration.get("partitioner") in _BY_KEY
        self._rest_sent = Deadline(_NOW_AND_THEN_S)
        # librdkafka's API has an event in place of confluent-kafka's callback.
        tokens: TokenCache | None = configuration.get("oauth_cb")
        settings = {name: value for name, value in configuration.items() if name != "oauth_cb"}
        usual_ms = min(int(settings.get("transaction.timeout.ms", 60_000)), _USUAL_EXPIRY_MS)
        expires_ms = min(int(settings.get("delivery.timeout.ms", usual_ms)), _USUAL_EXPIRY_MS)
        own = {"log.queue": True, "linger.ms": int(expires_ms * _LINGER_SHARE)}
        sticky = {"sticky.partitioning.linger.ms": _STICKY_MS}
        handle = self._new({**sticky, **settings, **own}, tokens is not None)
        try:
            self._events = Events(library, handle, events, tokens)
        except BaseException:
            # The machine may start no more threads.
            library.destroy(handle)
            raise
        self._handle = handle
        # From here on the log goes to the events, with its earlier lines.
        library.set_log_queue(self._handle, None)
        self.poll = self._events.wait

    def __len__(self) -> int:
        """Records and events that are on their way."""
        return int(self._c.outq_len(self._handle))

    def init_transactions(self, timeout: float) -> None:
        self._check(self._c.init_transactions(self._handle, _ms(timeout)))

    def begin_transaction(self) -> None:
        self._check(self._c.begin_transaction(self._handle))

    def commit_transaction(self, timeout: float) -> None:
        self._check(self._c.commit_transaction(self._handle, _ms(timeout)))

    def abort_transaction(self, timeout: float) -> None:
        self._check(self._c.abort_transaction(self._handle, _ms(timeout)))

    def send_offsets_to_transaction(
        self, positions: Sequence[TopicPartition], member: bytes, timeout: float
    ) -> None:
        group = c_void_p()
        self._check(self._c.consumer_group_metadata_read(byref(group), member, len(member)))
        offsets = self._c.topic_partition_list_new(len(positions))
        try:
            for position in positions:
                place = offsets, position.topic.encode(), position.partition
                self._c.topic_partition_list_add(*place)
                self._c.topic_partition_list_set_offset(*place, position.offset)
            sent = self._c.send_offsets_to_transaction(self._handle, offsets, group, _ms(timeout))
        finally:
            self._c.topic_partition_list_destroy(offsets)
            self._c.consumer_group_metadata_destroy(group)
        self._check(sent)

    def flush(self, timeout: float) -> int:
        deadline = Deadline(timeout)
        # It waits for the events, too, and leaves them to their thread.
        while not self._send_the_rest():
            if deadline.passed:
                return max(len(self), 1)
            while self._events.wait(_ON_ITS_WAY_S) and len(self) and not deadline.passed:
                pass
        return 0

    def stop(self) -> None:
        self._c.purge(self._handle, rdkafka.PURGE)

    def produce_row(self, row: Row, on_offset: OnOffset | None) -> None:
        self.produce_rows(Rows.of([row]), on_offset)

    def produce_rows(self, rows: Rows, on_offset: OnOffset | None) -> None:
        private = 0 if on_offset is None else self._events.expect(on_offset)
        if self._by_key and len(rows) >= _MANY_ROWS * len(rows.topics[0]):
            rows = place_by_key(rows, self._count_partitions)
        if can_group(rows):
            for group in group_rows(rows, private):
                where = describe_place(group.topic, group.partition)
                self._queue(partial(self._queue_group, group), len(group.messages), where)
        else:
            calls = build_calls(rows, private, self._topic)
            where = f"topic {' or '.join(sorted(rows.topics[0]))}"
            self._queue(partial(self._queue_calls, calls), len(rows), where)
        if self._rest_sent.passed:
            self._send_the_rest()
            self._rest_sent = Deadline(_NOW_AND_THEN_S)

    def refresh(self, timeout: float) -> None:
        found = POINTER(rdkafka.Metadata)()
        # Of all topics that this client knows, in one request.
        if not self._c.metadata(self._handle, 0, None, byref(found), _ms(timeout)):
            until = Deadline(_METADATA_AGE_S)
            for each in found.contents.topics[: found.contents.topic_cnt]:
                count = 0 if each.err else each.partition_cnt
                self._counts[each.topic.decode()] = count, until
            self._c.metadata_destroy(found)

    def _count_partitions(self, topic: str) -> int:
        """Return the number that librdkafka knows; 0 if that cannot be found out."""
        count, until = self._counts.get(topic, (0, None))
        if until is None or until.passed:
            # Makes it known.
            self._topic(topic)
            self._counts[topic] = count, Deadline(_METADATA_AGE_S)
            self.refresh(METADATA_S)
        return self._counts[topic][0]

    def _queue(self, offer: Callable[[int], tuple[int, int]], count: int, where: str) -> None:
        """Queue rows, and wait while there is no room for them.

        Args:
            offer: queues the rows from the given number on, as many as there is room for. Returns
                how many, and the error of the next one; 0: all were queued.
        """
        taken, refreshed = 0, False
        while taken < count:
            empty = not len(self)
            more, code = offer(taken)
            taken += more
            if code == KafkaError._UNKNOWN_PARTITION and not refreshed:
                # It may have been added since this client has asked.
                refreshed = True
                self.refresh(METADATA_S)
                continue
            if code and code != KafkaError._QUEUE_FULL:
                raise RecordRefused(KafkaError(code), where)
            if code and empty and not more:
                raise RecordRefused(NO_ROOM, where)
            if code and not self._events.wait(_ON_ITS_WAY_S):
                self._send_the_rest()

    def _send_the_rest(self) -> bool:
        """Send records that fill no request. Returns whether none is left on its way."""
        return not self._c.flush(self._handle, _SEND_MS)

    def _queue_group(self, group: Group, begin: int) -> tuple[int, int]:
        messages = group.messages[begin:]
        address, count = messages.ctypes.data, len(messages)
        topic = self._topic(group.topic)
        taken = self._c.produce_batch(topic, group.partition, rdkafka.COPY, address, count)
        if taken == count:
            return count, 0
        errors = messages["err"]
        first = int(errors.nonzero()[0][0])
        code = int(errors[first])
        if code == KafkaError._QUEUE_FULL and taken != first:
            # librdkafka takes none behind one without room; otherwise rows would change places.
            return first, KafkaError._INCONSISTENT
        return first, code

    def _queue_calls(self, calls: Calls, begin: int) -> tuple[int, int]:
        addresses, counts = islice(calls.addresses, begin, None), islice(calls.counts, begin, None)
        errors = map(self._c.produceva, repeat(self._handle), addresses, counts)
        for taken, error in enumerate(errors):
            if error:
                code = self._c.error_code(error)
                self._c.error_destroy(error)
                return taken, code
        return len(calls.counts) - begin, 0

    def _topic(self, name: str) -> int:
        """The rd_kafka_topic_t of a topic."""
        if name not in self._topics:
            # C would take the name up to a zero.
            made = None if "\0" in name else self._c.topic_new(self._handle, name.encode(), None)
            if not made:
                raise RecordRefused(KafkaError(KafkaError.TOPIC_EXCEPTION), f"topic {name}")
            self._topics[name] = made
        return self._topics[name]

    def __del__(self) -> None:
        if self._handle is None:
            return
        end = partial(_end, self._c, self._handle, self._events, list(self._topics.values()))
        if self._events.served_here:
            # The garbage collector runs in any thread; this one has to end first.
            threading.Thread(target=end, name="librdkafka-close", daemon=True).start()
        else:
            end()

    def _new(self, configuration: Mapping[str, Any], with_tokens: bool) -> int:
        reason = ctypes.create_string_buffer(rdkafka.ERROR_SIZE)
        settings = self._c.conf_new()
        for name, value in configuration.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if self._c.conf_set(settings, name.encode(), text.encode(), reason, rdkafka.ERROR_SIZE):
                break
        else:
            events = rdkafka.EVENTS | (rdkafka.EVENT_TOKEN if with_tokens else 0)
            self._c.conf_set_events(settings, events)
            handle: int = self._c.new(rdkafka.PRODUCER, settings, reason, rdkafka.ERROR_SIZE)
            if handle:
                return handle
        self._c.conf_destroy(settings)
        refusal = reason.value.decode(errors="replace")
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, refusal))

    def _check(self, error: int | None) -> None:
        if not error:
            return
        c = self._c
        text = c.error_string(error).decode(errors="replace")
        flags = c.error_is_fatal, c.error_is_retriable, c.error_txn_requires_abort
        raised = KafkaError(c.error_code(error), text, *(bool(flag(error)) for flag in flags))
        c.error_destroy(error)
        raise KafkaException(raised)


def _end(library: Library, handle: int, events: Events, topics: Sequence[int]) -> None:
    if events.close(_CLOSED_WITHIN_S):
        for topic in topics:
            library.topic_destroy(topic)
        library.destroy(handle)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
