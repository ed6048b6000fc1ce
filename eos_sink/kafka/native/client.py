"""librdkafka's producer by its C API, with what the sink uses of confluent-kafka's `Producer`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from ctypes import byref, c_void_p
from functools import partial
from itertools import islice, repeat
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from eos_sink.kafka.native.events import Events, Listener
from eos_sink.kafka.native.library import (
    COPY,
    ERROR_SIZE,
    EVENT_DELIVERY,
    EVENT_ERROR,
    EVENT_LOG,
    EVENT_STATISTICS,
    PRODUCER,
    PURGE_INFLIGHT,
    PURGE_NON_BLOCKING,
    PURGE_QUEUE,
    Library,
)
from eos_sink.kafka.native.vectors import Calls, Group

_EVENTS = EVENT_DELIVERY | EVENT_ERROR | EVENT_LOG | EVENT_STATISTICS
_CLOSED_WITHIN_S = 5.0


class Client:
    """A producer. Methods of the same names do what those of `confluent_kafka.Producer` do, and
    raise the same; times are in seconds.

    It is destroyed when nobody refers to it any more: a call that was given up still does.
    """

    _handle = None

    def __init__(
        self, library: Library, configuration: Mapping[str, Any], listener: Listener
    ) -> None:
        self._c = library
        self._topics: dict[str, int] = {}
        self._handle = self._new({**configuration, "log.queue": True})
        self._events = Events(library, self._handle, listener)
        # From here on the log goes to the events, with what it has said before.
        library.set_log_queue(self._handle, None)
        self.poll, self.expect = self._events.wait, self._events.expect

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
        # It waits for the events, too, and leaves them to the thread.
        return max(len(self), 1) if self._c.flush(self._handle, _ms(timeout)) else 0

    def purge(self, *, blocking: bool) -> None:
        all_ = PURGE_QUEUE | PURGE_INFLIGHT
        self._c.purge(self._handle, all_ if blocking else all_ | PURGE_NON_BLOCKING)

    def produce_group(self, group: Group, begin: int) -> tuple[int, int]:
        """Queue a group's rows from the `begin`-th on.

        Returns:
            How many were taken, and why the next one was not; 0: all were.
        """
        messages = group.messages[begin:]
        address, count = messages.ctypes.data, len(messages)
        topic = self.topic(group.topic)
        taken = self._c.produce_batch(topic, group.partition, COPY, address, count)
        if taken == count:
            return count, 0
        errors = messages["err"]
        first = int(errors.nonzero()[0][0])
        code = int(errors[first])
        if code == KafkaError._QUEUE_FULL and taken != first:
            # It takes none behind one that had no room; else rows would overtake each other.
            return first, KafkaError._INCONSISTENT
        return first, code

    def produce_calls(self, calls: Calls, begin: int) -> tuple[int, int]:
        """The same for rows that need a call each."""
        addresses, counts = islice(calls.addresses, begin, None), islice(calls.counts, begin, None)
        made = map(self._c.produceva, repeat(self._handle), addresses, counts)
        taken = 0
        for error in made:
            if error:
                code = self._c.error_code(error)
                self._c.error_destroy(error)
                return taken, code
            taken += 1
        return taken, 0

    def topic(self, name: str) -> int:
        """The rd_kafka_topic_t of a topic."""
        if name not in self._topics:
            # C would take the name up to a zero.
            made = None if "\0" in name else self._c.topic_new(self._handle, name.encode(), None)
            if not made:
                raise KafkaException(KafkaError(KafkaError.TOPIC_EXCEPTION))
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

    def _new(self, configuration: Mapping[str, Any]) -> int:
        said = ctypes.create_string_buffer(ERROR_SIZE)

        def refused() -> KafkaException:
            text = said.value.decode(errors="replace")
            return KafkaException(KafkaError(KafkaError._INVALID_ARG, text))

        settings = self._c.conf_new()
        try:
            for name, value in configuration.items():
                text = str(value).lower() if isinstance(value, bool) else str(value)
                if self._c.conf_set(settings, name.encode(), text.encode(), said, ERROR_SIZE):
                    raise refused()
            self._c.conf_set_events(settings, _EVENTS)
            handle: int | None = self._c.new(PRODUCER, settings, said, ERROR_SIZE)
            if not handle:
                raise refused()
        except KafkaException:
            self._c.conf_destroy(settings)
            raise
        return handle

    def _check(self, error: int | None) -> None:
        if not error:
            return
        c = self._c
        text = c.error_string(error).decode(errors="replace")
        flags = c.error_is_fatal, c.error_is_retriable, c.error_txn_requires_abort
        said = KafkaError(c.error_code(error), text, *(bool(flag(error)) for flag in flags))
        c.error_destroy(error)
        raise KafkaException(said)


def _end(library: Library, handle: int, events: Events, topics: Sequence[int]) -> None:
    if events.close(_CLOSED_WITHIN_S):
        for topic in topics:
            library.topic_destroy(topic)
        library.destroy(handle)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
