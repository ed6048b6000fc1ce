"""Declared destinations (KIP-609): the topics and partitions that a query may write.

What is declared is looked at before anything is written, and a row for anything else is refused
before it is produced. Kafka's name for both is UnknownTopicOrPartition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.acls import Permissions, denied, operation_name
from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.ports import TopicView

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


def check_destinations(declared: Destinations, views: Mapping[str, TopicView | None]) -> list[str]:
    """Whether the brokers have what is declared, and would take acknowledged rows there.

    Args:
        declared: the option.
        views: each declared topic as it is described; None: there is none.

    Returns:
        what weakens a promise without breaking it, a sentence each.

    Raises:
        ClusterError: something is missing, denied or not in sync; names it.
    """
    warnings = []
    for topic in declared.topics:
        view = views.get(topic)
        if view is None:
            what = f"Topic {topic!r}, which option eos.destinations declares, does not exist."
            raise _missing(topic, what)
        partitions = _declared_partitions(declared, topic, view)
        _check_permissions(topic, view)
        if view.min_in_sync is not None:
            _check_in_sync(topic, view, view.min_in_sync, partitions)
            if view.min_in_sync == 1:
                warnings.append(
                    f"Topic {topic} has min.insync.replicas=1: a row that only one broker holds "
                    "counts as written, and is lost with it."
                )
    return warnings


def _declared_partitions(declared: Destinations, topic: str, view: TopicView) -> list[int]:
    ranges = declared.ranges[topic]
    there = sorted(view.in_sync)
    beyond = [part for part in ranges if part.stop > len(there)]
    if beyond:
        raise _missing(
            topic,
            f"Topic {topic!r} has {len(there)} partitions, and option eos.destinations declares "
            f"{beyond[0].start} to {beyond[0].stop - 1}.",
        )
    return [number for number in there if not ranges or any(number in part for part in ranges)]


def _missing(topic: str, what: str) -> ClusterError:
    return ClusterError(
        f"{_UNKNOWN}: {what}",
        remedy="Create what is missing (kafka-topics --create or --alter) or correct the option. "
        "Nothing was written.",
        data={"kafka_error": _UNKNOWN, "topic": topic},
    )


def _check_permissions(topic: str, view: TopicView) -> None:
    if view.allowed is None:
        return
    permitted = {operation_name(each) for each in view.allowed}
    missing = [acl for acl in Permissions.topic(topic) if acl.operation not in permitted]
    if missing:
        what = f"Topic {topic!r}, which option eos.destinations declares, cannot be used"
        raise denied(what, missing)


def _check_in_sync(topic: str, view: TopicView, needed: int, partitions: list[int]) -> None:
    short = [number for number in partitions if view.in_sync[number] < needed]
    if not short:
        return
    some = ", ".join(map(str, short[:_SOME])) + (" ..." if len(short) > _SOME else "")
    if view.replication < needed:
        cause = f"has {view.replication} copies, fewer than its min.insync.replicas={needed}"
        remedy = "Lower min.insync.replicas or add replicas (kafka-reassign-partitions)."
    else:
        least = min(view.in_sync[number] for number in short)
        cause = (
            f"has only {least} copies in sync in partition {some}, and min.insync.replicas={needed}"
        )
        remedy = "Bring the missing brokers back, then start the query again."
    raise ClusterError(
        f"Topic {topic!r} {cause}: it takes no row with acks=all.",
        remedy=f"{remedy} Nothing was written.",
        data={"topic": topic, "partitions": short, "min.insync.replicas": needed},
    )
