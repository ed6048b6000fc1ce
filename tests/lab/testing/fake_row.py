"""A record as confluent-kafka returns it, without Kafka."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FakeRow:
    of_key: bytes | None = None
    of_value: bytes | None = None
    of_headers: tuple[tuple[str, bytes | None], ...] = ()
    place: tuple[int, int] = (0, 0)
    time_ms: int = 0

    def key(self) -> bytes | None:
        return self.of_key

    def value(self) -> bytes | None:
        return self.of_value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self.of_headers) or None

    def partition(self) -> int:
        return self.place[0]

    def offset(self) -> int:
        return self.place[1]

    def timestamp(self) -> tuple[int, int]:
        return 1, self.time_ms
