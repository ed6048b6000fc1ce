"""A transactional producer that takes rows from Arrow's buffers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from eos_sink.kafka.interfaces import Headers
from eos_sink.kafka.native.client import Client
from eos_sink.kafka.native.library import library
from eos_sink.kafka.native.vectors import calls, groupable, groups
from eos_sink.kafka.producer import NO_ROOM, QUEUE_FULL_WAIT_S, ConfluentProducer
from eos_sink.kafka.producer_events import place
from eos_sink.kafka.rows import Rows

_Offer = Callable[[int], "tuple[int, int]"]


class NativeProducer(ConfluentProducer):
    """Implements `eos_sink.kafka.interfaces.TransactionalProducer`. Ask `library` before."""

    def _connected(self, configuration: dict[str, Any]) -> Any:
        found = library()
        assert found is not None, "librdkafka's own API cannot be used"
        return Client(found, configuration, self._heard)

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
        pairs = list(headers) if headers else None
        rows = Rows.of([(value, key, topic, pairs, partition, timestamp)])
        self.produce_rows(rows, None if on_offset is None else lambda _, *at: on_offset(*at))

    def produce_rows(
        self, rows: Rows, on_offset: Callable[[str, int, int], None] | None = None
    ) -> None:
        self._topics.update(rows.topics[0])
        private = 0 if on_offset is None else self._producer.expect(on_offset)
        try:
            if groupable(rows):
                for group in groups(rows, private):
                    offer = partial(self._producer.produce_group, group)
                    where = place(group.topic, group.partition)
                    self._queue(offer, len(group.messages), where)
            else:
                made = calls(rows, private, self._producer.topic)
                offer = partial(self._producer.produce_calls, made)
                self._queue(offer, len(rows), f"topic {' or '.join(sorted(rows.topics[0]))}")
        except KafkaException as raised:
            where = f"topic {' or '.join(sorted(rows.topics[0]))}"
            raise self._rejected(raised.args[0], where) from raised

    def _queue(self, offer: _Offer, count: int, where: str) -> None:
        """Queue rows, and wait for room where there is none.

        Args:
            offer: `Client.produce_group` or `produce_calls`.
        """
        taken = 0
        while True:
            empty = not len(self._producer)
            more, code = offer(taken)
            taken += more
            if taken == count:
                return
            if code != KafkaError._QUEUE_FULL:
                raise self._rejected(KafkaError(code), where)
            if empty and not more:
                raise self._rejected(NO_ROOM, where)
            self._poll(QUEUE_FULL_WAIT_S)
