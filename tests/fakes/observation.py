"""The fake cluster as an operator looks at it; a test may take permissions away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import LogPosition, TransactionState
from eos_sink.kafka.observing import LogLine, LogPage, Observation, PartitionEnds
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from tests.fakes.cluster import FakeCluster
from tests.fakes.inspection import FakeInspection
from tests.fakes.kafka import LOG_TOPIC
from tests.fakes.log import Topic
from tests.fakes.process import Process


class FakeObservation(FakeInspection):
    """Implements `eos_sink.kafka.observing.Observation`.

    Attributes:
        denied: kinds of things that may not be seen; TRANSACTIONAL_ID: but for ids under `allowed`.
    """

    def __init__(
        self, cluster: FakeCluster, process: Process | None = None, log_topic: str = LOG_TOPIC
    ) -> None:
        super().__init__(cluster, process, log_topic)
        self.denied: set[Resource] = set()
        self.allowed = "\0"
        self._log: Topic | None = None

    def log_lines(self, since: Mapping[int, int], deadline: Deadline) -> LogPage | None:
        self._check(Resource.TOPIC, "The decision log cannot be seen", self._log_topic, "Read")
        log, before = self.cluster.topics.get(self._log_topic), self._log
        if log is None:
            return None
        self._log = log
        again = before not in (None, log)
        again = again or any(log.partitions[n].last_stable < at for n, at in since.items())
        starts = {} if again else since
        lines = [
            LogLine(
                (entry.key or b"").decode(errors="replace"),
                LogPosition(log.name, partition.partition, entry.offset),
                entry.timestamp,
                entry.value or b"",
            )
            for partition in log.partitions
            for entry in partition.committed()
            if entry.offset >= starts.get(partition.partition, 0)
        ]
        ends = {partition.partition: partition.last_stable for partition in log.partitions}
        lines.sort(key=lambda line: line.at_ms)
        return LogPage(tuple(lines), ends, again and bool(since))

    def transactions(
        self, prefix: str, deadline: Deadline, *, ended: bool = False
    ) -> list[TransactionState]:
        if not prefix.startswith(self.allowed):
            what = "Transactions cannot be seen"
            self._check(Resource.TRANSACTIONAL_ID, what, prefix, "Describe", prefixed=True)
        coordinator = self.cluster.coordinator
        names = (coordinator.list_all if ended else coordinator.list_open)(prefix)
        return [coordinator.describe(name) for name in sorted(names)]

    def described(self, ids: Iterable[str], deadline: Deadline) -> Mapping[str, TransactionState]:
        if Resource.TRANSACTIONAL_ID in self.denied and not all(
            name.startswith(self.allowed) for name in ids
        ):
            acl = Acl("Describe", Resource.TRANSACTIONAL_ID, "eos-sink-", prefixed=True)
            raise permission_error("Transactions cannot be seen", [acl], of_query=False)
        return self.control().describe(ids, deadline)

    def ends(
        self, topics: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[PartitionEnds, ...] | EosSinkError]:
        return {topic: self._ends(topic) for topic in topics}

    def hosts(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[str, ...] | EosSinkError]:
        found: dict[str, tuple[str, ...] | EosSinkError] = {}
        for group in groups:
            try:
                self._check(Resource.GROUP, f"The group {group} cannot be seen", group, "Describe")
                found[group] = tuple(self.members(group, deadline))
            except EosSinkError as error:
                found[group] = error
        return found

    def _ends(self, name: str) -> tuple[PartitionEnds, ...] | EosSinkError:
        try:
            what = f"The offsets of topic {name} cannot be seen"
            self._check(Resource.TOPIC, what, name, "Describe")
        except EosSinkError as error:
            return error
        topic = self.cluster.topics.get(name)
        return tuple(
            PartitionEnds(log.partition, log.start, log.last_stable, log.end)
            for log in (topic.partitions if topic else ())
        )

    def _check(
        self, kind: Resource, what: str, name: str, operation: str, *, prefixed: bool = False
    ) -> None:
        if kind in self.denied:
            raise permission_error(what, [Acl(operation, kind, name, prefixed)], of_query=False)


if TYPE_CHECKING:

    def _implements(kafka: FakeObservation) -> Observation:
        return kafka
