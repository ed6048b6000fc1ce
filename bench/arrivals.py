"""Measures when rows become visible, with a read_committed reader that polls continuously."""

from __future__ import annotations

import threading
import time
import uuid
from types import TracebackType

from confluent_kafka import Consumer, TopicPartition

_FETCH_MS = 5
_POLL_S = 0.02
_MOST = 1_000
_QUIET_S = 0.3


class Arrivals:
    """Reads a topic from its beginning and stamps its rows by this machine's clock.

    Rows begin with a number and a blank.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"arrivals-{uuid.uuid4().hex[:8]}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": _FETCH_MS,
            }
        )
        self._consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
        self._changed = threading.Condition()
        self._came: list[tuple[float, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Arrivals:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def first(self, number: int, since: float, seconds: float) -> float:
        """Return when the first row with this number or a higher one came after an instant.

        Args:
            since: seconds since the epoch, as the answer.
            seconds: how long to wait for it.

        Raises:
            TimeoutError: it has not come.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._find(number, since), seconds):
                raise TimeoutError(f"no row {number} within {seconds} s")
            return self._find(number, since)

    def quiet(self) -> None:
        """Wait until no more rows come."""
        while self._came and time.time() - self._came[-1][0] < _QUIET_S:
            time.sleep(_QUIET_S)

    def _find(self, number: int, since: float) -> float:
        """0 where there is none."""
        return next((at for at, top in self._came if at >= since and top >= number), 0.0)

    def _read(self) -> None:
        while not self._ended.is_set():
            messages = self._consumer.consume(_MOST, _POLL_S)
            now = time.time()
            values = [message.value() for message in messages if message.error() is None]
            numbers = [int(value.split(b" ", 1)[0]) for value in values if value]
            if numbers:
                with self._changed:
                    self._came.append((now, max(numbers)))
                    self._changed.notify_all()
