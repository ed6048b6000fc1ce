"""Has the checks of a topic's brokers that depend on a record, as values.

From Kafka's LogValidator and UnifiedLog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_FOREVER = 2**63 - 1
_BEFORE, _AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
# Before Kafka 4 it stands for each of the two that is not set.
_EITHER = "message.timestamp.difference.max.ms"
# What a codec adds at most to content that it cannot compress: one byte for so many, and some. From
# zlib's deflateBound, LZ4_compressBound, ZSTD_compressBound, and snappy's literals in blocks of
# 32 KB (SnappyOutputStream), each rounded up.
_GROWS_BY_ONE_IN = {"gzip": 1_000, "snappy": 50, "lz4": 250, "zstd": 250}
_GROWS_BY = 128


@dataclass(frozen=True)
class TopicRules:
    """The limits of a topic for its records.

    Attributes:
        partitions: their number.
        max_bytes: the largest record batch, in bytes as it is stored.
        compression: `compression.type` of the topic: the brokers compress again if it is neither
            "producer" nor that of the batch. librdkafka sends a batch without compression where
            that makes it smaller.
        keyed: it is compacted, so each record needs a key.
        before_ms, after_ms: how far a record's time may be from the broker's.
    """

    partitions: int
    max_bytes: int
    compression: str = "producer"
    keyed: bool = False
    before_ms: int = _FOREVER
    after_ms: int = _FOREVER

    @property
    def sure_bytes(self) -> int:
        """A record batch that is not larger before compression is taken, even if the topic's own
        codec makes it larger (LogValidator and UnifiedLog compare the size with `max_bytes`
        again)."""
        one_in = _GROWS_BY_ONE_IN.get(self.compression)
        if one_in is None:
            return self.max_bytes
        return max((self.max_bytes - _GROWS_BY) * one_in // (one_in + 1), 1)

    @staticmethod
    def of(partitions: int, settings: Mapping[str, str]) -> TopicRules:
        """Args:
        settings: the topic's effective configuration.
        """

        def number(name: str) -> int:
            return int(settings.get(name, _FOREVER))

        either = number(_EITHER)
        before, after = (
            each if each != _FOREVER else either for each in (number(_BEFORE), number(_AFTER))
        )
        if settings.get("message.timestamp.type") == "LogAppendTime":
            before = after = _FOREVER
        return TopicRules(
            partitions=partitions,
            max_bytes=min(number("max.message.bytes"), number("segment.bytes")),
            compression=settings.get("compression.type", "producer"),
            keyed="compact" in settings.get("cleanup.policy", "delete"),
            before_ms=before,
            after_ms=after,
        )
