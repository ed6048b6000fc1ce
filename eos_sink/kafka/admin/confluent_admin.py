"""A cluster as the operator commands see it, next to the sink's own clients."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka import admin_requests
from eos_sink.kafka.admin_interface import (
    Broker,
    LogLine,
    LogPage,
    MemberDescription,
    PartitionOffsets,
    Quorum,
)
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error, is_denied
from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.protocol.values import Place, Position, TransactionState, TransactionStatus

if TYPE_CHECKING:
    from eos_sink.kafka.admin.broker_admin import BrokerAdmin

# An operator waits for it, and can try again.
_FIRST_ANSWER_S = 5.0
# A partition of the log without a leader must not hide the others.
_PARTITION_S = 5.0


class ConfluentAdmin(ConfluentKafka):
    """Implements `eos_sink.kafka.admin_interface.Admin`. Imports what only single commands need
    when they call it.

    Args:
        config: of the cluster.
        timeout_s: how long the command may take.
    """

    def __init__(self, config: ClusterConfig, timeout_s: float = _FIRST_ANSWER_S) -> None:
        super().__init__(config, min(_FIRST_ANSWER_S, timeout_s))
        self._log_id = ""

    def read_log(self, since: Mapping[int, int], deadline: Deadline) -> LogPage | None:
        topic, wire = self.log_topic, self.control().wire
        what = f"The decision log {topic} cannot be seen"
        needed = self.clients.permissions.log_read
        described = admin_requests.describe_topics(wire, [topic], deadline, settings=False)[topic]
        with _convert_denied(what, needed):
            if isinstance(described, KafkaError):
                if described.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return None
                raise convert_error(described, what, [needed])
            before, self._log_id = self._log_id, described.id
            if since and before in ("", self._log_id):
                starts = {number: since.get(number, 0) for number in described.partitions}
                page = self._read_log(starts, deadline)
                if all(page.ends.get(each, start) >= start for each, start in starts.items()):
                    return page
            page = self._read_log(dict.fromkeys(described.partitions, 0), deadline)
            return replace(page, recreated=bool(since))

    def list_transactions(
        self, prefix: str, deadline: Deadline, *, ended: bool = False
    ) -> list[TransactionState]:
        control = self.control()
        with _convert_denied("Transactions cannot be seen", _describe_ids(prefix)):
            wanted = () if ended else (TransactionStatus.ONGOING,)
            names = control.list_ids(prefix, wanted, deadline)
            states = control.describe(sorted(set(names)), deadline)
        return [states[name] for name in sorted(states)]

    def check_coordinators(self, prefix: str, deadline: Deadline) -> None:
        from eos_sink.kafka.hanging import all_coordinate

        control = self.control()
        with _convert_denied("Transactions cannot be seen", _describe_ids(prefix)):
            if not all_coordinate(control, prefix, deadline):
                raise OutcomeUnknownError(
                    "A partition of __transaction_state has no coordinator that answers: the "
                    "transactions of its ids are not seen.",
                    remedy="Bring its broker back, then look again.",
                )

    def describe_transactions(
        self, ids: Iterable[str], deadline: Deadline
    ) -> Mapping[str, TransactionState]:
        needed = _describe_ids(self.clients.permissions.prefix)
        with _convert_denied("Transactions cannot be seen", needed):
            return self.control().describe(ids, deadline)

    def list_offsets(
        self, topics: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[PartitionOffsets, ...] | Unseen]:
        wire = self.control().wire
        described = admin_requests.describe_topics(wire, topics, deadline, settings=False)
        found: dict[str, tuple[PartitionOffsets, ...] | Unseen] = {}
        places: list[Place] = []
        for name, answer in described.items():
            topic = admin_requests.show_topic(name, answer, "Describe")
            found[name] = topic if isinstance(topic, Unseen) else ()
            if isinstance(topic, TopicDescription):
                places += [(name, number) for number in topic.partitions]
        offsets = admin_requests.list_offsets(wire, places, deadline)
        for (name, _), part in sorted(offsets.items()):
            known = found[name]
            if isinstance(part, KafkaError):
                found[name] = admin_requests.unseen(part, Acl("Describe", Resource.TOPIC, name))
            elif isinstance(known, tuple):
                found[name] = (*known, part)
        return found

    def list_groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        from eos_sink.kafka.admin.groups import list_groups

        soon = deadline.within(admin_requests.ANSWER_S)
        return list_groups(self.control().wire, prefix, soon)

    def describe_groups(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[MemberDescription, ...] | Unseen]:
        from eos_sink.kafka.admin.groups import describe_groups

        return describe_groups(self.control().wire, groups, deadline)

    def describe_brokers(self, deadline: Deadline) -> Sequence[Broker]:
        return self._brokers.describe_brokers(deadline)

    def describe_features(self, deadline: Deadline) -> Mapping[str, int] | Unseen:  # noqa: ARG002
        return self._brokers.describe_features()

    def describe_quorum(self, deadline: Deadline) -> Quorum | Unseen:
        return self._brokers.describe_quorum(deadline)

    def refusal_to_create_log(self, replicas: int, deadline: Deadline) -> str | Unseen:
        soon = deadline.within(admin_requests.ANSWER_S)
        wire = self.control().wire
        error = admin_requests.create_topic(
            wire, self.log_topic, LOG_PARTITIONS, replicas, {}, soon, validate_only=True
        )
        if error is None:
            return ""
        if is_denied(error.code()):
            return f"this principal lacks {self.clients.permissions.log_create}"
        return admin_requests.unseen(error) if error.retriable() else str(error.str())

    def may_write(self, transactional_id: str, deadline: Deadline) -> bool | Unseen:
        return self._brokers.may_write(transactional_id, deadline)

    def may_join(self, group: str, deadline: Deadline) -> bool | Unseen:
        return self._brokers.may_join(group, deadline)

    def renew(self) -> None:
        self.clients.renew()

    @cached_property
    def _brokers(self) -> BrokerAdmin:
        from eos_sink.kafka.admin.broker_admin import BrokerAdmin

        return BrokerAdmin(self.clients)

    def _read_log(self, starts: Mapping[int, int], deadline: Deadline) -> LogPage:
        lines: dict[int, list[LogLine]] = {}
        ends: dict[int, int] = {}
        unread: dict[int, str] = {}
        for number, start in starts.items():
            soon = deadline.within(min(_PARTITION_S, deadline.left / 2))
            try:
                lines[number], ends[number] = self._read_partition(number, start, soon)
            except OutcomeUnknownError as silent:
                unread[number] = silent.message
        # It keeps the order of a partition's records, even if their writers' clocks differ.
        ordered = heapq.merge(*lines.values(), key=lambda line: line.at_ms)
        return LogPage(tuple(ordered), ends, unread=unread)

    def _read_partition(
        self, number: int, start: int, deadline: Deadline
    ) -> tuple[list[LogLine], int]:
        """Up to the first open transaction; and where to read on, which lies before the start if
        the partition ends there."""
        from eos_sink.kafka.log_reader import PartitionReader

        lines: list[LogLine] = []

        def take(record: Any) -> None:
            position = Position(self.log_topic, number, record.offset)
            key = (record.key or b"").decode(errors="replace")
            lines.append(LogLine(key, position, record.timestamp, record.value or b""))

        reader = PartitionReader(self.clients, number, take, start=start)
        fetched = reader.read(deadline)
        if fetched.end < start:
            return [], fetched.end
        reader.read_to(fetched.stable, deadline)
        return lines, reader.reached


def _describe_ids(prefix: str) -> Acl:
    return Acl("Describe", Resource.TRANSACTIONAL_ID, prefix or "*", prefixed=bool(prefix))


@contextmanager
def _convert_denied(what: str, needed: Acl) -> Iterator[None]:
    """A command that only looks needs less than the query, whose errors are raised inside."""
    try:
        yield
    except ClusterError as error:
        if "missing" not in error.data:
            raise
        raise permission_error(what, [needed], of_query=False) from error
