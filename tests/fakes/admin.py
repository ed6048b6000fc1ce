"""The fake cluster as an operator looks at it; a test may take permissions or answers away."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.admin_interface import (
    Admin,
    Broker,
    LogLine,
    LogPage,
    MemberDescription,
    PartitionOffsets,
    Quorum,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from eos_sink.protocol.values import Position, TransactionState
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import LOG_TOPIC, FakeKafka
from tests.fakes.log import PartitionLog, Topic


class FakeAdmin(FakeKafka):
    """Implements `eos_sink.kafka.admin_interface.Admin`.

    Attributes:
        denied: kinds of things that may not be seen; TRANSACTIONAL_ID: but for ids under `allowed`.
        silent: questions that no broker answers.
        asked: the questions so far, with what they were about.
    """

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(cluster)
        self.denied: set[Resource] = set()
        self.allowed = "\0"
        self.silent: set[str] = set()
        self.asked: list[tuple[str, str]] = []
        self._log: Topic | None = None

    def read_log(self, since: Mapping[int, int], deadline: Deadline) -> LogPage | None:
        if Resource.TOPIC in self.denied:
            acl = Acl("Read", Resource.TOPIC, LOG_TOPIC)
            raise permission_error("The decision log cannot be seen", [acl], of_query=False)
        log, before = self.cluster.topics.get(LOG_TOPIC), self._log
        if log is None:
            return None
        self._log = log
        again = before not in (None, log)
        again = again or any(log.partitions[n].last_stable < at for n, at in since.items())
        starts = {} if again else since
        lines = [
            [
                LogLine(
                    (entry.key or b"").decode(errors="replace"),
                    Position(log.name, partition.partition, entry.offset),
                    entry.timestamp,
                    entry.value or b"",
                )
                for entry in partition.committed()
                if entry.offset >= starts.get(partition.partition, 0)
            ]
            for partition in log.partitions
            if partition.has_leader
        ]
        ends = {each.partition: each.last_stable for each in log.partitions if each.has_leader}
        unread = {p.partition: "no leader" for p in log.partitions if not p.has_leader}
        ordered = heapq.merge(*lines, key=lambda line: line.at_ms)
        return LogPage(tuple(ordered), ends, again and bool(since), unread)

    def list_transactions(
        self, prefix: str, deadline: Deadline, *, ended: bool = False
    ) -> list[TransactionState]:
        self._check_ids([prefix], prefix)
        coordinator = self.cluster.coordinator
        names = (coordinator.list_all if ended else coordinator.list_open)(prefix)
        return [coordinator.describe(name) for name in sorted(names)]

    def check_coordinators(self, prefix: str, deadline: Deadline) -> None:
        self._check_ids([prefix], prefix)
        self._note("check_coordinators", prefix)

    def describe_transactions(
        self, ids: Iterable[str], deadline: Deadline
    ) -> Mapping[str, TransactionState]:
        ids = list(ids)
        self._check_ids(ids, "eos-sink-")
        return self.control().describe(ids, deadline)

    def list_offsets(
        self, topics: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[PartitionOffsets, ...] | Unseen]:
        return {
            name: self._denied_topic(name)
            or tuple(
                PartitionOffsets(log.partition, log.start, log.last_stable, log.end)
                for log in self._partitions(name)
            )
            for name in topics
        }

    def list_groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        self._note("list_groups", prefix)
        return [name for name in self.cluster.groups.names() if name.startswith(prefix)]

    def describe_groups(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[MemberDescription, ...] | Unseen]:
        found: dict[str, tuple[MemberDescription, ...] | Unseen] = {}
        for group in groups:
            self._note("describe_groups", group)
            member = MemberDescription(f"{group}-driver", "fake", "fake-host")
            there = self.cluster.groups.has_member(group)
            acl = Acl("Describe", Resource.GROUP, group)
            denied = Resource.GROUP in self.denied
            found[group] = _lacks(acl) if denied else (member,) if there else ()
        return found

    def describe_brokers(self, deadline: Deadline) -> Sequence[Broker]:
        self._note("describe_brokers")
        return (Broker(1, "fake:9092"),)

    def describe_features(self, deadline: Deadline) -> Mapping[str, int] | Unseen:
        self._note("describe_features")
        return {"metadata.version": 27}

    def describe_quorum(self, deadline: Deadline) -> Quorum | Unseen:
        self._note("describe_quorum")
        return Quorum(1)

    def refusal_to_create_log(self, replicas: int, deadline: Deadline) -> str | Unseen:
        self._note("refusal_to_create_log")
        return ""

    def may_write(self, transactional_id: str, deadline: Deadline) -> bool | Unseen:
        self._note("may_write", transactional_id)
        return True

    def may_join(self, group: str, deadline: Deadline) -> bool | Unseen:
        self._note("may_join", group)
        return True

    def renew(self) -> None:
        pass

    def _partitions(self, name: str) -> list[PartitionLog]:
        topic = self.cluster.topics.get(name)
        return topic.partitions if topic else []

    def _denied_topic(self, name: str) -> Unseen | None:
        denied = Resource.TOPIC in self.denied
        return _lacks(Acl("Describe", Resource.TOPIC, name)) if denied else None

    def _check_ids(self, ids: list[str], prefix: str) -> None:
        if Resource.TRANSACTIONAL_ID not in self.denied:
            return
        if not all(name.startswith(self.allowed) for name in ids):
            acl = Acl("Describe", Resource.TRANSACTIONAL_ID, prefix, prefixed=True)
            raise permission_error("Transactions cannot be seen", [acl], of_query=False)

    def _note(self, question: str, about: str = "") -> None:
        self.asked.append((question, about))
        if question in self.silent:
            raise OutcomeUnknownError("No broker answers.", remedy="Wait.")


def _lacks(acl: Acl) -> Unseen:
    return Unseen(f"this principal lacks {acl}", (acl,))


if TYPE_CHECKING:

    def _implements(admin: FakeAdmin) -> Admin:
        return admin
