"""Has what the protocol knows of Kafka: positions, transactions, their states, and what a call may
end with. `eos_sink.kafka` returns and raises these. And who has written a plan or a report.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from eos_sink.errors import FailureKind
from eos_sink.version import VERSION

Place = tuple[str, int]
"""Topic and partition."""
Offsets = Mapping[Place, int]
"""The next offset to read in each partition, as in Spark's checkpoint and in a consumer group."""


@dataclass(frozen=True, order=True)
class Position:
    """The topic, partition and offset of one record.

    As the witness of a transaction it shows by a read whether that was committed. In the decision
    log it is the latest record of a query, and the offset that its group commits.
    """

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


class Package(NamedTuple):
    """The version of the sink that a process runs."""

    version: str
    host: str

    def __str__(self) -> str:
        return f"eos-sink {self.version} on {self.host}"


def this_package() -> Package:
    return Package(VERSION, socket.gethostname())


@dataclass(frozen=True)
class Transaction:
    """One transaction of a producer: what EndTxn may end, and nothing else."""

    transactional_id: str
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return self.transactional_id or f"producer id {self.producer_id}"


class FirstOpen(NamedTuple):
    """The oldest open transaction of a partition, and its first offset there. Its id is empty if no
    coordinator names it, or it may not be seen."""

    transaction: Transaction
    start: int


@dataclass(frozen=True)
class ProducerIdentity:
    """Producer id and epoch that a coordinator gave to a transactional producer."""

    producer_id: int
    epoch: int


class TransactionStatus(Enum):
    """States of Kafka's transaction coordinator, by their wire names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    MISSING = "missing"
    """The coordinator does not know the id (expired or never used)."""


MOST_INLINE_BYTES = 16 * 1024 * 1024
"""Of the rows of a batch that go through the driver."""
COMMITTED = (TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT)
MAY_HAVE_COMMITTED = (*COMMITTED, TransactionStatus.EMPTY)
"""The states of ids of which `TransactionState.has_committed` may be true."""
RECORDED_MS = 30_001
"""The transaction timeout of a driver that has seen a record of its query. The driver initialises
its id long before it writes, and the id's state is `Empty` then; but it keeps the timeout, which
tells that there is a record even if the decision log is lost."""
_ENDING = (
    TransactionStatus.PREPARE_COMMIT,
    TransactionStatus.PREPARE_ABORT,
    TransactionStatus.PREPARE_EPOCH_FENCE,
)
_ENDED = (
    TransactionStatus.EMPTY,
    TransactionStatus.COMPLETE_COMMIT,
    TransactionStatus.COMPLETE_ABORT,
)


@dataclass(frozen=True)
class TransactionState:
    """A transactional id as its coordinator describes it (DescribeTransactions, KIP-664).

    Attributes:
        partitions: topics and partitions of its transaction; while that is being ended, those that
            still wait for their marker.
    """

    transaction: Transaction
    status: TransactionStatus
    started_ms: int
    """Start of the open transaction, broker's clock, milliseconds since the epoch; -1: none."""
    timeout_ms: int
    partitions: tuple[Place, ...] = ()

    @property
    def has_committed(self) -> bool:
        """True if it tells that a transaction of the id was committed, the last one or an earlier
        one, with a record: the id of `QueryNames.start` writes notes only."""
        if self.transaction.transactional_id.endswith("-start"):
            return False
        is_prepared = self.status is TransactionStatus.EMPTY and self.timeout_ms == RECORDED_MS
        return is_prepared or self.status in COMMITTED

    @property
    def is_ending(self) -> bool:
        """The outcome is certain, but markers are missing, so the id takes no other transaction."""
        return self.status in _ENDING

    @property
    def has_ended(self) -> bool:
        """No transaction of the id is open, and no marker is under way."""
        return self.status in _ENDED

    def is_not(self, transaction: Transaction) -> bool:
        """True if the id now belongs to another transaction. A missing id belongs to none."""
        return self.status is not TransactionStatus.MISSING and self.transaction != transaction


class EndOutcome(Enum):
    """The answer to EndTxn for one transaction."""

    DONE = auto()
    REFUSED = auto()
    """Fenced, wrong state or id expired. Says nothing about the outcome of the transaction."""


class Visibility(Enum):
    """The record at a witness, as a read_committed reader finds it."""

    COMMITTED = auto()
    ABORTED = auto()
    UNREADABLE = auto()
    """The record was deleted or compacted away, so its absence proves nothing."""


class MemberState(Enum):
    """The state of a planner's membership."""

    CURRENT = auto()
    EXPIRED = auto()
    """The session ended without a successor: recover, then go on."""
    REPLACED = auto()
    """A newer driver has joined as the same static member: this run is over."""


@dataclass(frozen=True)
class Hanging:
    """A transaction that its coordinator has ended, and a partition's leader has not (KAFKA-20734).

    Attributes:
        transaction: with the epoch of its records in this partition.
        start: offset of its first record there.
        coordinator_epoch: of the last marker of the producer there; -1: none.
        state: of its transactional id now.
    """

    transaction: Transaction
    topic: str
    partition: int
    start: int
    coordinator_epoch: int
    state: TransactionState

    def __str__(self) -> str:
        ended = self.transaction
        return (
            f"{self.topic}[{self.partition}]: transaction {ended.transactional_id} (producer id "
            f"{ended.producer_id}, epoch {ended.epoch}) from offset {self.start} on"
        )


class HangingLook(NamedTuple):
    """The hanging transactions of some transactional ids in some topics.

    Attributes:
        hanging: those that were found.
        unknown: the partitions that no broker answers for, for example since they have no leader,
            and those with an open transaction whose coordinator does not answer.
    """

    hanging: list[Hanging]
    unknown: frozenset[Place]


class ProducerFenced(Exception):
    """Another producer has inited the same transactional id, or the transaction timed out."""


class MemberRefused(Exception):
    """The group metadata is not (or no longer) that of the group's live member (KIP-447).

    Attributes:
        replaced: a newer driver has taken the place; otherwise the session has ended.
    """

    def __init__(self, text: str, *, replaced: bool) -> None:
        super().__init__(text)
        self.replaced = replaced


class ProduceFailed(Exception):
    """Records of the open transaction, or the transaction, failed: it has to be aborted, and may
    then be repeated (KIP-691, an abortable error).

    Attributes:
        topic: of the record that was refused; None: not known, or no single record is the cause.
        of_time: the record's time is the reason.
    """

    def __init__(
        self, text: str, kind: FailureKind, topic: str | None = None, *, of_time: bool = False
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.topic = topic
        self.of_time = of_time
