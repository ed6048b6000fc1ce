"""Which broker leads each partition, from Metadata requests over the control connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.calls import retry_until
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, convert_error, get_meaning, is_transient
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Permissions

Place = tuple[str, int]
"""Topic and partition."""

# As in librdkafka and Java.
_KEPT_S = 300.0


class TopicLeaders:
    """Leaders by topic and partition, kept for five minutes; -1 for a partition without one.

    Topics of rows are created where brokers do so automatically, as librdkafka's producer does; the
    decision log never.

    Args:
        permissions: of the query.
        patience_s: how long a topic that was created a moment ago may be unknown to a broker.
    """

    def __init__(self, permissions: Permissions, patience_s: float) -> None:
        self._permissions = permissions
        self._patience_s = patience_s
        self._known: dict[str, tuple[Deadline, Mapping[int, int]]] = {}

    def forget(self) -> None:
        self._known.clear()

    def find(
        self, topics: Iterable[str], wire: Wire, deadline: Deadline
    ) -> Mapping[str, Mapping[int, int]]:
        """The leaders of each topic.

        Raises:
            ClusterError: a topic does not exist, or may not be written.
        """
        topics = set(topics)
        patience = deadline.within(self._patience_s)
        refused: dict[str, KafkaError] = {}

        async def ask() -> bool:
            refused.clear()
            unknown = topics - self._fresh().keys()
            log = {self._permissions.log}
            for names, create in ((unknown & log, False), (unknown - log, True)):
                if not names:
                    continue
                found = await wire.fetch_metadata(names, create, deadline)
                if found is None:
                    return False
                for topic in found:
                    if topic.error_code:
                        refused[topic.name] = KafkaError(topic.error_code)
                    elif topic.partitions:
                        leaders = {p.partition_index: p.leader_id for p in topic.partitions}
                        self._known[topic.name] = (Deadline(_KEPT_S), leaders)
            return topics <= self._known.keys()

        def attempt() -> bool:
            if wire.run(ask):
                return True
            for name, error in refused.items():
                missing = get_meaning(error.code()) is Meaning.MISSING
                if not (is_transient(error) or missing) or (missing and patience.passed):
                    needs = self._permissions.topic(name)[:1]
                    raise convert_error(error, f"Topic {name} cannot be written", needs)
            return False

        if topics <= self._fresh().keys() or retry_until(deadline, attempt, bool):
            return {topic: self._known[topic][1] for topic in topics}
        raise _no_leader(topics, deadline)

    def connect(
        self, places: Iterable[Place], wire: Wire, deadline: Deadline
    ) -> Mapping[Place, int]:
        """The leader of each partition, to which requests go at once. Waits while a partition has
        none, or one that cannot be reached.

        Raises:
            OutcomeUnknownError: that lasted until the deadline.
        """
        places = set(places)

        def attempt() -> Mapping[Place, int] | None:
            leaders = self.find({topic for topic, _ in places}, wire, deadline)
            found = {(topic, number): leaders[topic].get(number, -1) for topic, number in places}
            nodes = set(found.values())
            if -1 not in nodes and (
                all(map(wire.is_connected, nodes)) or wire.run(wire.connect, nodes, deadline)
            ):
                return found
            self.forget()
            return None

        found = retry_until(deadline, attempt, lambda it: it is not None)
        if found is None:
            raise _no_leader(places, deadline)
        return found

    def _fresh(self) -> Mapping[str, tuple[Deadline, Mapping[int, int]]]:
        self._known = {name: it for name, it in self._known.items() if not it[0].passed}
        return self._known


def _no_leader(what: Iterable[object], deadline: Deadline) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"No leader could be reached within {deadline.seconds:.0f} s for {sorted(map(str, what))}.",
        remedy="Check that the brokers are available, then start the query again.",
    )
