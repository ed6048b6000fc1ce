"""What librdkafka tells of itself and of records, as events (rdkafka.h, "Events interface")."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Callable
from ctypes import c_char_p, c_int
from typing import Any, Protocol

from confluent_kafka import KafkaError

from eos_sink.kafka.error_codes import LOGGER
from eos_sink.kafka.native.library import (
    ERROR_SIZE,
    EVENT_DELIVERY,
    EVENT_ERROR,
    EVENT_LOG,
    EVENT_STATISTICS,
    Library,
)

_POLL_MS = 100
# From syslog's levels, as confluent-kafka does.
_LEVELS = (*[logging.CRITICAL] * 3, logging.ERROR, logging.WARNING, *[logging.INFO] * 2)


class Listener(Protocol):
    """Who is told, from the thread that serves the events."""

    def undelivered(self, error: KafkaError, topic: str, partition: int) -> None:
        """For each request of records that failed, of one of them."""

    def failed(self, error: KafkaError) -> None: ...

    def statistics(self, document: bytes) -> None: ...

    def log(self, level: int, text: str, facility: str, *more: str) -> None: ...


class Events:
    """The events of one client, and the thread that serves them.

    librdkafka makes one event of all records that a request has delivered, or that have failed
    together (rd_kafka_dr_msgq0), with one error for them. Where a broker blames single records of
    a request (KIP-467), all of it has failed, and each record has an error too. So the event and
    its first record tell what is to be known.
    """

    def __init__(self, library: Library, client: int, listener: Listener) -> None:
        self._c = library
        self._client = client
        self._listener = listener
        self._name = library.name(client).decode()
        self._queue = library.queue_get_main(client)
        self._awaited: dict[int, Callable[[str, int, int], None]] = {}
        self._numbered = 0
        self._count = self._seen = 0
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="librdkafka-events", daemon=True)
        self._thread.start()

    def expect(self, on_offset: Callable[[str, int, int], None]) -> int:
        """What records have to carry so that one of them is told once it is on the broker."""
        self._numbered += 1
        self._awaited[self._numbered] = on_offset
        return self._numbered

    def wait(self, seconds: float) -> None:
        """Until something has been told since the last wait."""
        with self._changed:
            if self._count == self._seen:
                self._changed.wait(seconds)
            self._seen = self._count

    @property
    def served_here(self) -> bool:
        """Whether this is the thread that serves them."""
        return threading.current_thread() is self._thread

    def close(self, within: float) -> bool:
        """End the thread. Returns whether it has ended, so that its client may be destroyed."""
        self._closed.set()
        self._c.queue_yield(self._queue)
        self._thread.join(within)
        if self._thread.is_alive():
            return False
        self._c.queue_destroy(self._queue)
        return True

    def _serve(self) -> None:
        while not self._closed.is_set():
            event = self._c.queue_poll(self._queue, _POLL_MS)
            if not event:
                continue
            try:
                self._hear(event)
            except Exception as error:  # noqa: BLE001 - an event not heeded may be a lost record
                LOGGER.exception("An event of librdkafka was not understood.")
                self._listener.undelivered(KafkaError(KafkaError._FAIL, str(error)), "?", -1)
            finally:
                # Frees the room of its records.
                self._c.event_destroy(event)
            with self._changed:
                self._count += 1
                self._changed.notify_all()

    def _hear(self, event: int) -> None:
        kind = self._c.event_type(event)
        if kind == EVENT_DELIVERY:
            self._hear_delivery(event)
        elif kind == EVENT_STATISTICS:
            self._listener.statistics(self._c.event_stats(event))
        elif kind == EVENT_ERROR:
            self._hear_error(event)
        elif kind == EVENT_LOG:
            self._hear_log(event)

    def _hear_delivery(self, event: int) -> None:
        code = self._c.event_error(event)
        message = self._c.event_message_next(event)
        if not message:
            return
        first = message.contents
        if code or first.err:
            error = KafkaError(first.err or code)
            self._listener.undelivered(error, self._topic(first), first.partition)
            return
        while self._awaited and message:
            record = message.contents
            # The offset of a record that was sent twice may be unknown; another one's will do.
            if record.offset >= 0 and record.private in self._awaited:
                on_offset = self._awaited.pop(record.private)
                on_offset(self._topic(record), record.partition, record.offset)
            message = self._c.event_message_next(event)

    def _topic(self, record: Any) -> str:
        name: str = self._c.topic_name(record.rkt).decode()
        return name

    def _hear_error(self, event: int) -> None:
        code, text = self._c.event_error(event), self._c.event_error_string(event).decode()
        fatal = code == KafkaError._FATAL
        if fatal:
            # The event says only that there is a cause.
            buffer = ctypes.create_string_buffer(ERROR_SIZE)
            code = self._c.fatal_error(self._client, buffer, ERROR_SIZE)
            text = buffer.value.decode(errors="replace")
        self._listener.failed(KafkaError(code, text, fatal))

    def _hear_log(self, event: int) -> None:
        facility, text, level = c_char_p(), c_char_p(), c_int()
        self._c.event_log(event, facility, text, level)
        said = [(part.value or b"").decode(errors="replace") for part in (facility, text)]
        number = _LEVELS[level.value] if level.value < len(_LEVELS) else logging.DEBUG
        self._listener.log(number, "%s [%s] %s", said[0], self._name, said[1])
