"""What a topic takes: the checks of its brokers that depend on a record, as values.

From Kafka's LogValidator and UnifiedLog (partitions, size, time, key) and from Topic.validate and
Topic.INTERNAL_TOPICS (name).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
# Only Kafka itself writes them.
_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_FOREVER = 2**63 - 1
_BEFORE, _AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
# Before Kafka 4 it stands for each of the two that is not set.
_EITHER = "message.timestamp.difference.max.ms"


def is_topic_name(name: str) -> bool:
    """Whether there can be a topic of this name that applications write."""
    return bool(_NAME.fullmatch(name)) and name not in (".", "..", *_INTERNAL)


@dataclass(frozen=True)
class TopicRules:
    """What a topic takes.

    Attributes:
        partitions: their number.
        max_bytes: the largest record batch, in bytes as it is stored.
        compression: `compression.type` of the topic: the brokers compress anew if it is neither
            "producer" nor that of the batch.
        keyed: it is compacted, so each record needs a key.
        before_ms, after_ms: how far a record's time may be from the broker's.
    """

    partitions: int
    max_bytes: int
    compression: str = "producer"
    keyed: bool = False
    before_ms: int = _FOREVER
    after_ms: int = _FOREVER

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
