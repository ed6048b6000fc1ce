"""A cluster as the operator commands see it, next to the sink's own clients."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka import admin_requests
from eos_sink.kafka.admin.broker_admin import BrokerAdmin
from eos_sink.kafka.admin_interface import LogLine, LogPage
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error, is_denied, is_transient
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.kafka_config.acls import Acl, permission_error
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.protocol.values import Position

# An operator waits for it, and can try again.
_FIRST_ANSWER_S = 5.0
# A partition of the log without a leader must not hide the others.
_PARTITION_S = 5.0


class ConfluentAdmin(BrokerAdmin):
    """Implements `eos_sink.kafka.admin_interface.Admin`. Imports what only single commands need
    when they call it.

    Args:
        config: of the cluster.
        timeout_s: how long the command may take.
    """

    def __init__(self, config: ClusterConfig, timeout_s: float = _FIRST_ANSWER_S) -> None:
        super().__init__(config, min(_FIRST_ANSWER_S, timeout_s))
        self.clients.permissions = replace(self.clients.permissions, of_query=False)
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

    def list_groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        from eos_sink.kafka.groups import list_groups

        soon = deadline.within(admin_requests.ANSWER_S)
        return list_groups(self.control().wire, prefix, soon)

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
        return admin_requests.unseen(error) if is_transient(error) else str(error.str())

    def renew(self) -> None:
        self.clients.renew()

    def _read_log(self, starts: Mapping[int, int], deadline: Deadline) -> LogPage:
        lines: dict[int, list[LogLine]] = {}
        ends: dict[int, int] = {}
        unread: dict[int, str] = {}
        held: set[int] = set()
        for number, start in starts.items():
            soon = deadline.within(min(_PARTITION_S, deadline.left / 2))
            try:
                lines[number], ends[number], end = self._read_partition(number, start, soon)
                if ends[number] < end:
                    held.add(number)
            except OutcomeUnknownError as silent:
                unread[number] = silent.message
        # It keeps the order of a partition's records, even if their writers' clocks differ.
        ordered = heapq.merge(*lines.values(), key=lambda line: line.at_ms)
        return LogPage(tuple(ordered), ends, unread=unread, held=frozenset(held))

    def _read_partition(
        self, number: int, start: int, deadline: Deadline
    ) -> tuple[list[LogLine], int, int]:
        """Up to the first open transaction; where to read on, which lies before the start if the
        partition ends there; and the end."""
        from eos_sink.kafka.log_reader import PartitionReader

        lines: list[LogLine] = []

        def take(record: Any) -> None:
            position = Position(self.log_topic, number, record.offset)
            key = (record.key or b"").decode(errors="replace")
            lines.append(LogLine(key, position, record.timestamp, record.value or b""))

        # Each look has a reader for each partition, and a broker may be slow to say who leads.
        reader = PartitionReader(self.clients, number, take, start=start)
        reader.asks_all = False
        fetched = reader.read(deadline)
        if fetched.end < start:
            return [], fetched.end, fetched.end
        reader.read_to(fetched.stable, deadline)
        return lines, reader.reached, fetched.end


@contextmanager
def _convert_denied(what: str, needed: Acl) -> Iterator[None]:
    """A command that only looks needs less than the query, whose errors are raised inside."""
    try:
        yield
    except ClusterError as error:
        if "missing" not in error.data:
            raise
        raise permission_error(what, [needed], of_query=False) from error
