"""The fake cluster as a person looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Inspection, OnRow, PartitionTail, ProducerIdentity, Trace
from tests.fakes.kafka import FakeKafka
from tests.fakes.log import Entry, Outcome, PartitionLog


class FakeInspection(FakeKafka):
    """Implements `eos_sink.kafka.interfaces.Inspection`."""

    def tails(
        self,
        topic: str,
        producers: frozenset[ProducerIdentity],
        most: int,
        on_row: OnRow,
        deadline: Deadline,
    ) -> list[PartitionTail]:
        if topic not in self.cluster.topics:
            return []
        logs = self.cluster.topics[topic].partitions
        return [_tail(log, producers, most, on_row) for log in logs]

    def records(self, deadline: Deadline) -> Mapping[str, bytes] | None:
        if self._log_topic not in self.cluster.topics:
            return None
        found = self.cluster.topics[self._log_topic].committed()
        return {(each.key or b"").decode(): each.value or b"" for each in found}

    def members(self, group: str, deadline: Deadline) -> list[str]:
        return ["fake-host"] if self.cluster.groups.has_member(group) else []

    def close(self) -> None:
        pass


def _tail(
    log: PartitionLog, producers: frozenset[ProducerIdentity], most: int, on_row: OnRow
) -> PartitionTail:
    first = max(log.start, log.end - most)
    traces: dict[ProducerIdentity, Trace] = {}
    for entry in log.all_from(first):
        producer = ProducerIdentity(entry.txn.producer_id, entry.txn.epoch)
        if producer not in producers:
            continue
        traces[producer] = _seen(traces.get(producer, Trace()), entry)
        if not entry.marker:
            on_row(producer, log.topic, entry.value, entry.key, entry.headers or None)
    return PartitionTail(
        log.topic, log.partition, log.start, log.last_stable, log.end, first, traces
    )


def _seen(trace: Trace, entry: Entry) -> Trace:
    if entry.marker:
        return trace.ended(committed=entry.txn.outcome is Outcome.COMMITTED)
    return trace.more(1, hidden=False)


if TYPE_CHECKING:

    def _implements(kafka: FakeInspection) -> Inspection:
        return kafka
