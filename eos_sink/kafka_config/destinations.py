"""The names of topics, from Kafka's Topic.validate and Topic.INTERNAL_TOPICS, and declared
destinations (KIP-609): the topics and partitions that a query may write.

Declared topics are checked before anything is written, and a row for another topic or partition is
refused before it is produced. Kafka's name for both errors is UnknownTopicOrPartition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.errors import ConfigurationError

_NAME_LENGTH = 249
_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{_NAME_LENGTH}}}")
# Only Kafka itself writes them.
_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_ENTRY = re.compile(rf"({_NAME.pattern})(?::(\d{{1,9}})(?:-(\d{{1,9}}))?)?")
_UNKNOWN = "UnknownTopicOrPartition"


def is_topic_name(name: str) -> bool:
    """True if there can be a topic of this name that applications write."""
    return bool(_NAME.fullmatch(name)) and name not in (".", "..", *_INTERNAL)


def quote_name(name: str) -> str:
    """For messages: what a row has in place of a topic's name may be as large as the row."""
    return repr(name if len(name) <= _NAME_LENGTH else f"{name[:_NAME_LENGTH]}...")


@dataclass(frozen=True)
class Destinations:
    """The value of option `eos.destinations`.

    Attributes:
        ranges: the partitions by topic; empty: all partitions.
    """

    ranges: Mapping[str, tuple[range, ...]]

    @property
    def topics(self) -> list[str]:
        return sorted(self.ranges)

    def allow(self, topic: str, partition: int | None) -> bool:
        """True if a row may go there; `partition` is None if the partitioner would choose it."""
        declared = self.ranges.get(topic)
        if not declared:
            return declared is not None
        return partition is not None and any(partition in part for part in declared)

    def make_error(self, topic: str, partition: int | None) -> ConfigurationError:
        """The error for a row that `allow` rejects."""
        data = {"kafka_error": _UNKNOWN, "topic": topic, "partition": partition}
        if partition is None and topic in self.ranges:
            return ConfigurationError(
                f"{_UNKNOWN}: a row for topic {topic!r} has no partition, and option "
                "eos.destinations declares only some of the topic's.",
                remedy="Select a column 'partition', or declare the whole topic. Nothing of the "
                "batch is visible.",
                data=data,
            )
        place = topic if partition is None else f"{topic}, partition {partition}"
        return ConfigurationError(
            f"{_UNKNOWN}: a row goes to {place}, which option eos.destinations does not declare.",
            remedy=f"Declared are {', '.join(self.topics)}: correct the row or the option. Nothing "
            "of the batch is visible.",
            data=data,
        )


def parse_destinations(text: str) -> Destinations | None:
    """`payments, audit:0-3, audit:7`: whole topics, or some of their partitions; None if blank.

    Raises:
        ConfigurationError: it is malformed.
    """
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    ranges: dict[str, tuple[range, ...]] = {}
    whole = set()
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise _unreadable(entry, "is not a topic, topic:partition or topic:first-last")
        topic, first, last = match[1], match[2], match[3] or match[2]
        if first is None:
            whole.add(topic)
            ranges.setdefault(topic, ())
        elif int(last) < int(first):
            raise _unreadable(entry, "has its last partition before its first")
        else:
            ranges[topic] = (*ranges.get(topic, ()), range(int(first), int(last) + 1))
    both = sorted(topic for topic in whole if ranges[topic])
    if both:
        raise _unreadable(both[0], "is declared as a whole and by partitions")
    return Destinations(ranges) if entries else None


def _unreadable(entry: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"In option eos.destinations {entry!r} {why}.",
        remedy="Write it like 'payments, audit:0-3, audit:7'. Nothing was written.",
    )
