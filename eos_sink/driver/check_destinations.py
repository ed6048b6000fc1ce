"""Check declared destinations (KIP-609) against the topics that the brokers describe."""

from __future__ import annotations

from collections.abc import Mapping

from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka_config.acls import Permissions, permission_error
from eos_sink.kafka_config.destinations import Destinations
from eos_sink.messages import Reason, stop

_UNKNOWN = "UnknownTopicOrPartition"


def check_destinations(
    declared: Destinations, topics: Mapping[str, TopicDescription | Unseen | None]
) -> list[str]:
    """Check that the declared places exist and would accept rows with acks=all.

    Args:
        declared: the option `eos.destinations`.
        topics: each declared topic as the brokers describe it; None: it does not exist.

    Returns:
        warnings about settings that weaken durability.

    Raises:
        ClusterError: something is missing, denied or not in sync; names it.
    """
    warnings = []
    for topic in declared.topics:
        view = topics.get(topic)
        if view is None:
            raise stop(Reason.NO_DESTINATION, topic=topic, kafka_error=_UNKNOWN)
        if isinstance(view, Unseen):
            what = f"Topic {topic!r}, which option eos.destinations declares, cannot be seen"
            if view.missing:
                raise permission_error(what, Permissions.topic(topic))
            raise view.error(what)
        partitions = _declared_partitions(declared, topic, view)
        missing = view.lacking(Permissions.topic(topic))
        if missing:
            what = f"Topic {topic!r}, which option eos.destinations declares, cannot be used"
            raise permission_error(what, missing)
        min_in_sync = view.setting("min.insync.replicas")
        if min_in_sync is not None:
            _check_in_sync(topic, view, int(min_in_sync), partitions)
            if min_in_sync == "1":
                warnings.append(
                    f"Topic {topic} has min.insync.replicas=1: a row that only one broker holds "
                    "counts as written, and is lost with it."
                )
    return warnings


def _declared_partitions(declared: Destinations, topic: str, view: TopicDescription) -> list[int]:
    ranges = declared.ranges[topic]
    there = sorted(view.partitions)
    beyond = [part for part in ranges if part.stop > len(there)]
    if beyond:
        raise stop(
            Reason.NO_PARTITION,
            topic=topic,
            kafka_error=_UNKNOWN,
            number=len(there),
            first=beyond[0].start,
            last=beyond[0].stop - 1,
        )
    return [number for number in there if not ranges or any(number in part for part in ranges)]


def _check_in_sync(topic: str, view: TopicDescription, needed: int, partitions: list[int]) -> None:
    short = [number for number in partitions if view.partitions[number].in_sync < needed]
    if not short:
        return
    known = {"topic": topic, "partitions": short, "needed": needed}
    if view.replicas < needed:
        raise stop(Reason.TOO_FEW_COPIES, copies=view.replicas, **known)
    least = min(view.partitions[number].in_sync for number in short)
    raise stop(Reason.TOO_FEW_IN_SYNC, copies=least, **known)
