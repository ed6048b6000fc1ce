"""Declared destinations (KIP-609): the topics and partitions that a query may write.

What is declared is looked at before anything is written, and a row for anything else is refused
before it is produced. Kafka's name for both is UnknownTopicOrPartition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.errors import ConfigurationError

_ENTRY = re.compile(r"([A-Za-z0-9._-]{1,249})(?::(\d{1,9})(?:-(\d{1,9}))?)?")
_UNKNOWN = "UnknownTopicOrPartition"
_SOME = 5


@dataclass(frozen=True)
class Destinations:
    """What option `eos.destinations` declares.

    Attributes:
        ranges: each topic's partitions; empty: all that it has.
    """

    ranges: Mapping[str, tuple[range, ...]]

    @property
    def topics(self) -> list[str]:
        return sorted(self.ranges)

    def allow(self, topic: str, partition: int | None) -> bool:
        """Whether a row may go there; `partition` is None where the partitioner would choose."""
        declared = self.ranges.get(topic)
        if not declared:
            return declared is not None
        return partition is not None and any(partition in part for part in declared)

    def refused(self, topic: str, partition: int | None) -> ConfigurationError:
        """The error of a row for which `allow` says no."""
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
        ConfigurationError: it cannot be read.
    """
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    ranges: dict[str, tuple[range, ...]] = {}
    whole = set()
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise _unreadable(entry, "is no topic, topic:partition or topic:first-last")
        topic, first, last = match[1], match[2], match[3] or match[2]
        if first is None:
            whole.add(topic)
            ranges.setdefault(topic, ())
        elif int(last) < int(first):
            raise _unreadable(entry, "ends before it begins")
        else:
            ranges[topic] = (*ranges.get(topic, ()), range(int(first), int(last) + 1))
    both = sorted(topic for topic in whole if ranges[topic])
    if both:
        raise _unreadable(both[0], "is declared whole and by its partitions")
    return Destinations(ranges) if entries else None


def _unreadable(entry: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"In option eos.destinations {entry!r} {why}.",
        remedy="Write it like 'payments, audit:0-3, audit:7'. Nothing was written.",
    )
