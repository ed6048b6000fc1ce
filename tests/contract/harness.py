"""What the contract needs of a cluster beside the ports: set it up, disturb it, read from it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import GroupMember, Kafka, TransactionalProducer
from eos_sink.protocol.values import (
    Position,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionStatus,
)

TIMEOUT_MS = 60_000
SESSION_MS = 6_000

_ENDING = {
    TransactionStatus.PREPARE_COMMIT,
    TransactionStatus.PREPARE_ABORT,
    TransactionStatus.PREPARE_EPOCH_FENCE,
}


@dataclass(frozen=True)
class Record:
    """What a reader gets.

    Attributes:
        timestamp: milliseconds since the epoch.
    """

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int | None


class Harness(Protocol):
    """A cluster under test; each test has its own query and topics on it."""

    @property
    def names(self) -> QueryNames: ...

    @property
    def max_timeout_ms(self) -> int:
        """The brokers' `transaction.max.timeout.ms`."""

    @property
    def max_session_ms(self) -> int:
        """The brokers' `group.max.session.timeout.ms`."""

    def kafka(self, **settings: str) -> Kafka:
        """The cluster as a process of its own sees it; `settings` are options, `_` for a dot."""

    def admin(self) -> Admin:
        """The cluster as an operator sees it."""

    def create_topic(
        self,
        partitions: int = 1,
        *,
        compacted: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> str: ...

    def make_again(self, topic: str) -> None:
        """Delete a topic of one partition, and create it again."""

    def delete_records(self, topic: str, partition: int, before: int) -> None: ...

    def compact(self, topic: str) -> None:
        """Return when the cleaner has removed the earlier records of key "k" in partition 0 of a
        compacted topic, after writing what it takes."""

    def read_committed(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Key and value of what a read_committed reader, not the code under test, has got once
        markers that are on their way have been written; partition after partition."""

    def read_records(self, topic: str) -> list[Record]:
        """The same, with all that a record has."""

    def expire_session(self, group: str) -> None:
        """Return when the group's member, which is closed already, has lost its session."""

    def standstill(self) -> AbstractContextManager[None]:
        """The broker of the transaction coordinator stands still inside, and goes on afterwards."""

    def idle_member(self) -> GroupMember:
        """The query's member, joined in a process that lives on without calling it for longer than
        its client allows; its session has ended."""

    def deadline(self, seconds: float = 30) -> Deadline: ...


@dataclass(frozen=True)
class Task:
    """A producer with its transactional id, as the contract's stories need it."""

    harness: Harness
    transactional_id: str
    producer: TransactionalProducer

    @staticmethod
    def start(
        harness: Harness, number: int = 0, timeout_ms: int = TIMEOUT_MS, **settings: str
    ) -> Task:
        """Inited, in a separate process, with a transaction begun."""
        name = harness.names.task(0, number)
        producer = harness.kafka(**settings).producer(name, timeout_ms)
        producer.init(harness.deadline())
        producer.begin()
        return Task(harness, name, producer)

    @property
    def transaction(self) -> Transaction:
        identity: ProducerIdentity = self.producer.identity(self.harness.deadline())
        return Transaction(self.transactional_id, identity.producer_id, identity.epoch)

    def state(self) -> TransactionState:
        return state(self.harness, self.transactional_id)

    def write(
        self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None
    ) -> list[int]:
        """Produce and flush; the offsets."""
        offsets: list[int] = []
        for value in values:
            self.producer.produce(
                topic,
                value,
                key,
                partition=partition,
                on_offset=lambda _, offset: offsets.append(offset),
            )
        self.producer.flush(self.harness.deadline())
        return offsets

    def send_offset(self, position: Position, member: bytes) -> None:
        self.producer.send_offset(position, member, self.harness.deadline())

    def write_and_commit(self, topic: str, value: bytes, partition: int = 0) -> None:
        """A refusal surfaces in either."""
        self.write(topic, value, partition=partition)
        self.commit()

    def commit(self) -> None:
        self.producer.commit(self.harness.deadline())

    def abort(self) -> None:
        self.producer.abort(self.harness.deadline())


def state(harness: Harness, transactional_id: str) -> TransactionState:
    """The state once no markers are on their way any more: EndTxn answers before they are."""
    control, deadline = harness.kafka().control(), harness.deadline()
    while True:
        found = control.describe([transactional_id], deadline)[transactional_id]
        if found.status not in _ENDING:
            return found
        assert not deadline.passed, f"the markers of {transactional_id} are not written"


def values(harness: Harness, topic: str) -> list[bytes | None]:
    return [value for _, value in harness.read_committed(topic)]
