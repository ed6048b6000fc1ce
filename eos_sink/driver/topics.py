"""Topics as the brokers show them to a driver: one that cannot be seen is an error."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, PartitionOffsets, Unseen
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import SourcePosition
from eos_sink.protocol.source_rules import SourceLogs
from eos_sink.protocol.values import Place


def list_partitions(
    kafka: Kafka, topics: Collection[str], deadline: Deadline, needs: str
) -> list[Place]:
    """The partitions of those of these topics that exist, by topic.

    Args:
        needs: the operation on them that the query must be allowed to do.

    Raises:
        ClusterError: one cannot be seen.
    """
    places: list[Place] = []
    for name, topic in kafka.describe_topics(sorted(topics), deadline, settings=False).items():
        if isinstance(topic, Unseen):
            raise _unseen_topic(name, topic, needs)
        if topic is not None:
            places += ((name, number) for number in topic.partitions)
    return places


def read_logs(
    kafka: Kafka, known: SourcePosition | None, deadline: Deadline, begins: Iterable[Place] = ()
) -> SourceLogs:
    """Ask the brokers for the topics of a position.

    Args:
        begins: more partitions.

    Raises:
        ClusterError: a partition cannot be seen.
    """
    places = known.reached if known else {}
    ids = kafka.topic_ids({topic for topic, _ in places}, deadline)
    return SourceLogs(ids, read_bounds(kafka, {*places, *begins}, deadline))


def read_bounds(
    kafka: Kafka, places: Collection[Place], deadline: Deadline
) -> dict[Place, tuple[int, int]]:
    """The first offset and the end of each of these partitions of a source that exists.

    Raises:
        ClusterError: one cannot be seen.
    """
    seen = _list_offsets(kafka, places, deadline, "Read")
    return {place: (at.start, at.end) for place, at in seen.items()}


def await_readers(kafka: Kafka, topics: Collection[str], deadline: Deadline) -> None:
    """Wait until readers have all that is in topics of the sink now. An operator who is asked which
    rows are there could not see those behind an open transaction.

    Raises:
        ClusterError: a topic or a partition cannot be seen.
        OutcomeUnknownError: they do not.
    """
    from eos_sink.kafka.retry import retry_until

    places = list_partitions(kafka, topics, deadline, "Write")
    goals = _list_offsets(kafka, places, deadline, "Write")

    def held() -> list[str]:
        now = _list_offsets(kafka, goals, deadline, "Write")
        late = [place for place, at in sorted(now.items()) if at.stable < goals[place].end]
        return [f"{topic}[{number}]" for topic, number in late]

    if waiting := retry_until(deadline, held, lambda found: not found):
        raise stop(Reason.ROWS_HELD_BACK, partitions=waiting)


def _list_offsets(
    kafka: Kafka, places: Collection[Place], deadline: Deadline, needs: str
) -> dict[Place, PartitionOffsets]:
    found: dict[Place, PartitionOffsets] = {}
    for place, at in kafka.list_offsets(places, deadline).items():
        if isinstance(at, Unseen):
            raise _unseen_topic(place[0], at, needs)
        found[place] = at
    return found


def _unseen_topic(name: str, why: Unseen, needs: str) -> ClusterError:
    return why.error(f"Topic {name} cannot be seen", [Acl(needs, Resource.TOPIC, name)])
