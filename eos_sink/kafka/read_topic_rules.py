"""Read what topics take, for the driver and for tasks."""

from __future__ import annotations

from collections.abc import Sequence

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Unseen
from eos_sink.kafka_config.acls import Permissions
from eos_sink.protocol.topic_rules import TopicRules


def read_topic_rules(
    kafka: Kafka, topics: Sequence[str], deadline: Deadline, *, hidden: bool = False
) -> dict[str, TopicRules | None]:
    """Return the limits of each topic; None: it does not exist.

    Args:
        hidden: one that cannot be seen is None, too.

    Raises:
        ClusterError: one cannot be seen; names the permission that is missing.
    """
    found: dict[str, TopicRules | None] = {}
    for name, view in kafka.describe_topics(topics, deadline).items():
        if view is None:
            found[name] = None
            continue
        settings = view if isinstance(view, Unseen) else view.settings
        if isinstance(settings, Unseen):
            if hidden:
                found[name] = None
                continue
            what = f"Which rows topic {name} takes cannot be seen"
            needed = Permissions.topic(name, settings=True)
            shown = needed if isinstance(view, Unseen) else needed[-1:]
            raise settings.error(what, shown)
        assert not isinstance(view, Unseen)
        found[name] = TopicRules.of(len(view.partitions), settings)
    return found
