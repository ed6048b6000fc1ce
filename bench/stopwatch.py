"""Measures how long the driver waits for each kind of answer, at the sink's Kafka interfaces."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import SinkOptions
from eos_sink.protocol.values import Position, Visibility


class Stopwatch:
    """Seconds by name, summed since `begin`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def begin(self) -> None:
        self.seconds.clear()

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                self.seconds[name] += time.perf_counter() - began

        return watched


class _Watched:
    """A client, with some of its calls timed under other names."""

    def __init__(self, client: Any, watch: Stopwatch, names: Mapping[str, str]) -> None:
        self._client, self._watch, self._names = client, watch, names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return self._watch.timed(self._names[name], found) if name in self._names else found


class WatchedKafka(ConfluentKafka):
    """The sink's own clients. Names: describe, end, list, look, read, and write (the decision)."""

    def __init__(self, options: SinkOptions, watch: Stopwatch) -> None:
        super().__init__(options)
        self._watch = watch

    def control(self) -> Any:
        names = {"describe": "describe", "end": "end", "list_open": "list"}
        return _Watched(super().control(), self._watch, names)

    def log_reader(self, deadline: Deadline) -> Any:
        return _Watched(super().log_reader(deadline), self._watch, {"latest": "read"})

    def log_producer(self, transactional_id: str, timeout_ms: int) -> Any:
        made = super().log_producer(transactional_id, timeout_ms)
        calls = ("begin", "produce", "send_offset", "flush", "commit")
        return _Watched(made, self._watch, dict.fromkeys(calls, "write"))

    def visibility(
        self, witnesses: Sequence[Position], deadline: Deadline
    ) -> Mapping[Position, Visibility]:
        found: Mapping[Position, Visibility] = self._watch.timed("look", super().visibility)(
            witnesses, deadline
        )
        return found
