"""A record that librdkafka acknowledges without an offset is no witness; another one is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from eos_sink.kafka.confluent_client import ConfluentClient
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.native.native_events import Events
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.producer_events import ProducerEvents
from eos_sink.kafka_config.acls import Permissions
from eos_sink.rows.rows import Rows

Report = Callable[[KafkaError | None, Any], None]


class Queue(ConfluentClient):
    """A producer without librdkafka, which keeps the callbacks."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self._events = ProducerEvents()
        self._topics = set()

    def produce(self, *_: object, on_delivery: Report | None = None, **__: object) -> None:
        self.reports += [on_delivery] if on_delivery else []

    def flush(self, timeout: float = -1) -> int:
        return 0

    def poll(self, timeout: float = -1) -> int:
        return 0

    def __len__(self) -> int:
        return 0


def producer_on(queue: Queue) -> ConfluentProducer:
    settings = {"bootstrap.servers": "127.0.0.1:1"}
    producer = ConfluentProducer(settings, "id", 60_000, Permissions("p-", "log"))
    producer._client = queue
    return producer


def delivered(offset: int | None, partition: int = 0) -> Any:
    return SimpleNamespace(topic=lambda: "t", partition=lambda: partition, offset=lambda: offset)


ROWS = Rows.of([(value, None, "t", None, None, None) for value in (b"a", b"b", b"c")])


def test_only_the_first_row_with_a_known_offset_is_reported() -> None:
    queue, told = Queue(), list[tuple[str, int, int]]()
    producer = producer_on(queue)
    producer.produce_rows(ROWS, lambda *place: told.append(place))
    for report, offset in zip(queue.reports, (None, 7, 8), strict=True):
        report(None, delivered(offset))
    producer.flush(Deadline(5))
    assert told == [("t", 0, 7)]


@pytest.mark.parametrize("offset", [None, -1001])
def test_a_flush_does_not_wait_for_offsets_that_are_unknown(offset: int | None) -> None:
    queue, told = Queue(), list[tuple[str, int, int]]()
    producer = producer_on(queue)
    producer.produce_rows(ROWS, lambda *place: told.append(place))
    for report in queue.reports:
        report(None, delivered(offset))
    deadline = Deadline(30)
    producer.flush(deadline)
    assert deadline.left > 25
    assert told == []


def test_a_single_record_without_an_offset_is_not_reported() -> None:
    queue, told = Queue(), list[tuple[int, int]]()
    producer = producer_on(queue)
    producer.produce("t", b"a", partition=0, on_offset=lambda *place: told.append(place))
    queue.reports[0](None, delivered(None))
    producer.flush(Deadline(5))
    assert told == []


class Deliveries:
    """librdkafka's event of rows that one request has delivered, by their offsets."""

    def __init__(self, private: int, *offsets: int) -> None:
        self._left = [SimpleNamespace(contents=self._record(private, each)) for each in offsets]

    @staticmethod
    def _record(private: int, offset: int) -> Any:
        return SimpleNamespace(err=0, offset=offset, private=private, partition=0, rkt=0)

    def event_error(self, _: int) -> int:
        return 0

    def event_message_next(self, _: int) -> Any:
        return self._left.pop(0) if self._left else None

    def topic_name(self, _: int) -> bytes:
        return b"t"


@pytest.mark.parametrize(("offsets", "told"), [((-1001, 7, 8), [("t", 0, 7)]), ((-1001,), [])])
def test_the_native_producer_takes_the_first_known_offset_too(
    offsets: tuple[int, ...], told: list[tuple[str, int, int]]
) -> None:
    events, seen = Events.__new__(Events), list[tuple[str, int, int]]()
    events._c = Deliveries(1, *offsets)  # type: ignore[assignment]
    events._awaited = {1: lambda *place: seen.append(place)}
    events._report_delivery(0)
    assert seen == told
