"""librdkafka's events about itself and about records (rdkafka.h, "Events interface")."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Callable
from ctypes import c_char_p, c_int
from typing import Any

from confluent_kafka import KafkaError

from eos_sink.errors import EosSinkError
from eos_sink.kafka.connection.token_cache import TokenCache
from eos_sink.kafka.error_codes import LOGGER
from eos_sink.kafka.native import library as rdkafka
from eos_sink.kafka.native.library import Library
from eos_sink.kafka.producer_events import ProducerEvents

_POLL_MS = 100
# The same levels for syslog's as in confluent-kafka.
_LEVELS = (*[logging.CRITICAL] * 3, logging.ERROR, logging.WARNING, *[logging.INFO] * 2)


class Events:
    """The events of one client, and the thread that serves them.

    librdkafka sends one event for all records that a request has delivered, or that have failed
    together (rd_kafka_dr_msgq0), with one error for all. If a broker blames single records of a
    request (KIP-467), the whole request has failed, and each record has an error too. So the event
    and its first record are enough.
    """

    def __init__(
        self,
        library: Library,
        client: int,
        listener: ProducerEvents,
        tokens: TokenCache | None = None,
    ) -> None:
        self._c = library
        self._tokens = tokens
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
        """A number for records: `on_offset` is called for one of those that carry it."""
        self._numbered += 1
        self._awaited[self._numbered] = on_offset
        return self._numbered

    def wait(self, seconds: float) -> bool:
        """Wait for an event since the last wait. Returns whether there was one."""
        with self._changed:
            happened = self._count != self._seen or self._changed.wait(seconds)
            self._seen = self._count
            return happened

    @property
    def served_here(self) -> bool:
        """True if the current thread is the one that serves the events."""
        return threading.current_thread() is self._thread

    def close(self, within: float) -> bool:
        """End the thread. Returns whether it has ended; only then the client may be destroyed."""
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
                self._report(event)
            except Exception as error:  # noqa: BLE001 - a missed event may be a lost record
                LOGGER.exception("An event of librdkafka could not be read.")
                self._listener.on_lost(KafkaError(KafkaError._FAIL, str(error)), "?", -1)
            finally:
                # Frees the room of its records.
                self._c.event_destroy(event)
            with self._changed:
                self._count += 1
                self._changed.notify_all()

    def _report(self, event: int) -> None:
        kind = self._c.event_type(event)
        if kind == rdkafka.EVENT_DELIVERY:
            self._report_delivery(event)
        elif kind == rdkafka.EVENT_STATISTICS:
            self._listener.on_statistics(self._c.event_stats(event))
        elif kind == rdkafka.EVENT_ERROR:
            self._report_error(event)
        elif kind == rdkafka.EVENT_LOG:
            self._report_log(event)
        elif kind == rdkafka.EVENT_TOKEN:
            self._set_token()

    def _report_delivery(self, event: int) -> None:
        code = self._c.event_error(event)
        message = self._c.event_message_next(event)
        if not message:
            return
        first = message.contents
        if code or first.err:
            error = KafkaError(first.err or code)
            self._listener.on_lost(error, self._topic(first), first.partition)
            return
        while self._awaited and message:
            record = message.contents
            # The offset of a record that was sent twice may be unknown; use that of another one.
            if record.offset >= 0 and record.private in self._awaited:
                on_offset = self._awaited.pop(record.private)
                on_offset(self._topic(record), record.partition, record.offset)
            message = self._c.event_message_next(event)

    def _topic(self, record: Any) -> str:
        name: str = self._c.topic_name(record.rkt).decode()
        return name

    def _report_error(self, event: int) -> None:
        code, text = self._c.event_error(event), self._c.event_error_string(event).decode()
        fatal = code == KafkaError._FATAL
        if fatal:
            # The event does not contain the cause.
            buffer = ctypes.create_string_buffer(rdkafka.ERROR_SIZE)
            code = self._c.fatal_error(self._client, buffer, rdkafka.ERROR_SIZE)
            text = buffer.value.decode(errors="replace")
        self._listener.on_error(KafkaError(code, text, fatal))

    def _set_token(self) -> None:
        """Give librdkafka a token; it asks again after 80 % of its life, or ten seconds after a
        failure. Other events wait meanwhile."""
        assert self._tokens is not None
        reason = ctypes.create_string_buffer(rdkafka.ERROR_SIZE)
        try:
            value, expires, principal, extensions = self._tokens()
            words = [word.encode() for pair in extensions.items() for word in pair]
            pairs = (c_char_p * len(words))(*words)
            life = int(expires * 1000), principal.encode(), pairs, len(words)
            refused = self._c.oauthbearer_set_token(
                self._client, value.encode(), *life, reason, rdkafka.ERROR_SIZE
            )
        except EosSinkError:
            refused = True
        if refused:
            # The reason may contain the token; `TokenCache` has logged its own.
            self._c.oauthbearer_set_token_failure(self._client, b"no usable token")

    def _report_log(self, event: int) -> None:
        facility, text, level = c_char_p(), c_char_p(), c_int()
        self._c.event_log(event, facility, text, level)
        name, line = ((part.value or b"").decode(errors="replace") for part in (facility, text))
        number = _LEVELS[level.value] if level.value < len(_LEVELS) else logging.DEBUG
        self._listener.log(number, "%s [%s] %s", name, self._name, line)
