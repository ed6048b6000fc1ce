"""A cluster as a person looks at it: the query itself needs none of this."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import OffsetSpec

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import convert_error
from eos_sink.kafka.interfaces import OnRow, PartitionTail, ProducerIdentity
from eos_sink.kafka.log_reader import read_log
from eos_sink.kafka.log_scan import TailReader


class ConfluentInspection(ConfluentKafka):
    """Implements `eos_sink.kafka.interfaces.Inspection`."""

    # A person waits for it, and can try again.
    first_answer_s = 5.0

    def tails(
        self,
        topic: str,
        producers: frozenset[ProducerIdentity],
        most: int,
        on_row: OnRow,
        deadline: Deadline,
    ) -> list[PartitionTail]:
        try:
            leaders = {p.id: p.leader.id for p in self._describe(topic, deadline).partitions}
            start = self._offsets(topic, leaders, OffsetSpec.earliest(), deadline)  # type: ignore[no-untyped-call]
            latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
            end = self._offsets(topic, leaders, latest, deadline)
            stable = self._offsets(topic, leaders, latest, deadline, IsolationLevel.READ_COMMITTED)
        except KafkaException:
            return []
        reader = TailReader(self.control().wire, producers, on_row)
        found = []
        for number, leader in sorted(leaders.items()):
            first = max(start[number], end[number] - most)
            tail = PartitionTail(topic, number, start[number], stable[number], end[number], first)
            found.append(reader.read(leader, tail, deadline))
        return found

    def records(self, deadline: Deadline) -> Mapping[str, bytes] | None:
        options = self._options
        try:
            self._describe(options.log_topic, deadline)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            needs = [self._permissions.log_read]
            what = f"The decision log {options.log_topic} cannot be seen"
            raise convert_error(error, what, needs) from raised
        # What stands behind an open transaction is not waited for.
        group = options.names.group
        return read_log(self._connection, group, self._permissions, deadline)

    def members(self, group: str, deadline: Deadline) -> list[str]:
        futures = self._admin(deadline).describe_consumer_groups(
            [group], request_timeout=deadline.left
        )
        try:
            described = self._answer(futures[group], deadline)
        except KafkaException:
            return []
        return sorted(str(member.host) for member in described.members)
