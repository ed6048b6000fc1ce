"""An order-independent fingerprint of rows: equal for equal rows in any order and partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from struct import Struct

from eos_sink.model import Tally
from eos_sink.task.columns import Row

_LENGTHS = Struct("<qq").pack
_NULL = -1


class Tallier:
    """Counts and fingerprints rows as they pass: BLAKE2b of each, summed modulo 2^64."""

    def __init__(self, *, topic_varies: bool) -> None:
        self._topic_varies = topic_varies
        self._rows = self._bytes = self._sum = 0

    def through(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, tallied."""
        hash_, number, lengths, varies = blake2b, int.from_bytes, _LENGTHS, self._topic_varies
        count = size = total = 0
        for row in rows:
            value, key, topic, headers, partition, timestamp = row
            framed = lengths(
                _NULL if value is None else len(value), _NULL if key is None else len(key)
            )
            data = framed + (value or b"") + (key or b"")
            count += 1
            size += len(data) - len(framed)
            if varies or headers or partition is not None:
                data += repr((topic if varies else None, headers, partition)).encode()
            if timestamp is not None:
                data += b"%d" % timestamp
            total += number(hash_(data, digest_size=8).digest(), "little")
            yield row
        self._rows += count
        self._bytes += size
        self._sum += total

    @property
    def tally(self) -> Tally:
        return Tally(self._rows, self._bytes, self._sum % 2**64)
