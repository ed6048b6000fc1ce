"""confluent-kafka's producer, which takes rows one by one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.producer_events import ProducerEvents, RecordRefused, describe_place

if TYPE_CHECKING:
    from eos_sink.rows.rows import Row, Rows

NO_ROOM = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "It is larger than all of kafka.buffer.memory")
_QUEUE_FULL_WAIT_S = 0.1
_POLL_S = 0.01
METADATA_S = 5.0

OnOffset = Callable[[str, int, int], None]
"""Called once with topic, partition and offset of one of the records."""


class ConfluentClient(Producer):
    """A producer without the sink's errors and deadlines, as `native.client.NativeClient`.

    Calls raise KafkaException, those for rows RecordRefused. Times are in seconds.
    """

    def __init__(self, configuration: dict[str, Any], events: ProducerEvents) -> None:
        # The callbacks must not refer to this object: a cycle would delay its end.
        callbacks = {"error_cb": events.on_error, "on_delivery": events.on_delivery}
        with_statistics = "statistics.interval.ms" in configuration
        if with_statistics:
            callbacks["stats_cb"] = events.on_statistics
        super().__init__({**configuration, **callbacks}, logger=events)
        self._events = events
        self._topics: set[str] = set()
        self._closed = threading.Event()
        if with_statistics:
            # Statistics pile up until they are polled, and a task may wait long for its next rows.
            threading.Thread(target=self._poll_until_closed, daemon=True).start()

    def produce_row(self, row: Row, on_offset: OnOffset | None) -> None:
        self._produce(row, None if on_offset is None else self._make_callback(on_offset))

    def produce_rows(self, rows: Rows, on_offset: OnOffset | None) -> None:
        on_delivery = None if on_offset is None else self._make_callback(on_offset)
        for row in rows:
            self._produce(row, on_delivery)

    def refresh(self, timeout: float) -> None:
        """Ask for the partitions of the topics that it has written to, if a broker answers."""
        deadline = Deadline(timeout)
        for topic in self._topics:
            with contextlib.suppress(KafkaException):
                self.list_topics(topic, deadline.left)

    def flush(self, timeout: float = -1) -> int:
        try:
            return int(super().flush(timeout))
        except SystemError as error:
            # confluent-kafka raises a fatal error when it gets one, and still calls the callbacks
            # of records, in which any call of the client then fails like this.
            if isinstance(error.__cause__, KafkaException):
                raise error.__cause__ from error
            # Or it loses the error ("returned NULL without setting an exception", seen when a
            # producer was fenced). The log has it, and the next call of the protocol raises it.
            if error.__cause__ is None and self._events.trouble:
                return len(self)
            raise

    def poll(self, timeout: float = -1) -> int:
        """Serve events. A fatal error, which confluent-kafka raises instead of calling `error_cb`,
        is kept: the next call of the protocol raises it."""
        try:
            return super().poll(timeout)
        except KafkaException as raised:
            self._events.on_error(raised.args[0])
            return 0

    def stop(self) -> None:
        """Drop queued records, which would otherwise keep the producer alive."""
        self._closed.set()
        self.purge(blocking=False)

    def _poll_until_closed(self) -> None:
        while not self._closed.is_set():
            self.poll(_POLL_S)

    def _produce(
        self, row: Row, on_delivery: Callable[[KafkaError | None, Message], None] | None
    ) -> None:
        value, key, topic, headers, partition, timestamp = row
        optional: dict[str, Any] = {}
        if partition is not None:
            optional["partition"] = partition
        if headers:
            optional["headers"] = headers
        if timestamp is not None:
            optional["timestamp"] = timestamp
        if on_delivery is not None:
            optional["on_delivery"] = on_delivery
        self._topics.add(topic)
        empty = refreshed = False
        while True:
            try:
                self.produce(topic, value, key, **optional)
                return
            except BufferError:
                if empty:
                    raise RecordRefused(NO_ROOM, describe_place(topic, partition)) from None
                self.poll(_QUEUE_FULL_WAIT_S)
                empty = not len(self)
            except KafkaException as raised:
                unknown = raised.args[0].code() == KafkaError._UNKNOWN_PARTITION
                if not unknown or refreshed:
                    where = describe_place(topic, partition)
                    raise RecordRefused(raised.args[0], where) from None
                # It may have been added since this client has asked.
                refreshed = True
                self.refresh(METADATA_S)

    def _make_callback(self, on_offset: OnOffset) -> Callable[[KafkaError | None, Message], None]:
        on_delivery, waiting = self._events.on_delivery, [on_offset]

        def delivered(error: KafkaError | None, message: Message) -> None:
            on_delivery(error, message)
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            # librdkafka does not know the offset of a record that it sent twice, or that was
            # acknowledged with a later one.
            if error is None and partition is not None and offset is not None and offset >= 0:
                try:
                    report = waiting.pop()  # callbacks come from two threads
                except IndexError:
                    return
                report(topic or "", partition, offset)

        return delivered
