"""The fake cluster as an operator looks at it; a test may take permissions or answers away."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.admin_interface import Admin, Broker, LogLine, LogPage, Quorum
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import MemberDescription, TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Permissions, Resource, permission_error
from eos_sink.protocol.values import Position, TransactionState, TransactionStatus
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import LOG_TOPIC, FakeControl, FakeKafka
from tests.fakes.log import Topic


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
        held = frozenset(p.partition for p in log.partitions if p.last_stable < p.end)
        return LogPage(tuple(ordered), ends, again and bool(since), unread, held - unread.keys())

    def control(self) -> FakeControl:
        return _Control(self)

    def describe_topics(
        self, topics: Sequence[str], deadline: Deadline, *, settings: bool = True
    ) -> Mapping[str, TopicDescription | Unseen | None]:
        if Resource.TOPIC in self.denied:
            return {name: _lacks(Acl("Describe", Resource.TOPIC, name)) for name in topics}
        return super().describe_topics(topics, deadline, settings=settings)

    def list_groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        self._note("list_groups", prefix)
        return [name for name in self.cluster.groups.names() if name.startswith(prefix)]

    def describe_groups(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[MemberDescription, ...] | Unseen]:
        groups = list(groups)
        for group in groups:
            self._note("describe_groups", group)
        if Resource.GROUP in self.denied:
            return {group: _lacks(Acl("Describe", Resource.GROUP, group)) for group in groups}
        return super().describe_groups(groups, deadline)

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

    def check_ids(self, ids: list[str]) -> None:
        if Resource.TRANSACTIONAL_ID not in self.denied:
            return
        if not all(name.startswith(self.allowed) for name in ids):
            acl = Permissions("eos-sink-", LOG_TOPIC).look
            raise permission_error("Transactions cannot be seen", [acl], of_query=False)

    def _note(self, question: str, about: str = "") -> None:
        self.asked.append((question, about))
        if question in self.silent:
            raise OutcomeUnknownError("No broker answers.", remedy="Wait.")


class _Control(FakeControl):
    """A command's, which may be denied or find silence."""

    def __init__(self, admin: FakeAdmin) -> None:
        super().__init__(admin.cluster, admin.process)
        self._admin = admin

    def list_transactions(
        self, prefix: str, deadline: Deadline, *statuses: TransactionStatus
    ) -> list[TransactionState]:
        self._admin.check_ids([prefix])
        return super().list_transactions(prefix, deadline, *statuses)

    def describe(
        self, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        ids = list(ids)
        self._admin.check_ids(ids)
        return super().describe(ids, deadline, anew=anew)


def _lacks(acl: Acl) -> Unseen:
    return Unseen(f"this principal lacks {acl}", (acl,))


if TYPE_CHECKING:

    def _implements(admin: FakeAdmin) -> Admin:
        return admin
