"""Read what topics take, for the driver and for tasks."""

from __future__ import annotations

from collections.abc import Sequence

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Unseen
from eos_sink.kafka_config.acls import Permissions, permission_error
from eos_sink.kafka_config.topic_rules import TopicRules


def read_topic_rules(
    kafka: Kafka, topics: Sequence[str], deadline: Deadline
) -> dict[str, TopicRules | None]:
    """What each topic takes; None: it does not exist.

    Raises:
        ClusterError: one cannot be seen; names the permission that is missing.
    """
    found: dict[str, TopicRules | None] = {}
    for name, view in kafka.describe_topics(topics, deadline).items():
        if view is None:
            found[name] = None
            continue
        hidden = view if isinstance(view, Unseen) else view.settings
        if isinstance(hidden, Unseen):
            what = f"Which rows topic {name} takes cannot be seen"
            needed = Permissions.topic(name, settings=True)
            shown = needed if isinstance(view, Unseen) else needed[-1:]
            raise permission_error(what, shown) if hidden.missing else hidden.error(what)
        assert not isinstance(view, Unseen)
        found[name] = TopicRules.of(len(view.partitions), hidden)
    return found
