"""Check declared destinations (KIP-609) against the topics that the brokers describe."""

from __future__ import annotations

from collections.abc import Mapping

from eos_sink.errors import ClusterError
from eos_sink.kafka.interfaces import TopicView
from eos_sink.kafka_config.acls import Permissions, operation_name, permission_error
from eos_sink.kafka_config.destinations import Destinations

_UNKNOWN = "UnknownTopicOrPartition"
_SOME = 5


def check_destinations(declared: Destinations, views: Mapping[str, TopicView | None]) -> list[str]:
    """Check that the declared places exist and would accept rows with acks=all.

    Args:
        declared: the option `eos.destinations`.
        views: each declared topic as the brokers describe it; None: it does not exist.

    Returns:
        warnings about settings that weaken durability.

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
        raise permission_error(what, missing)


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
