"""What the sink needs of Kafka, as protocols; `tests/contract` holds every implementation to them.

Each call may block, but not past its deadline. Unless a method says otherwise it raises
    ClusterError: Kafka is unreachable, lacks something or denies a permission; names it.
    OutcomeUnknownError: the deadline passed without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from eos_sink.errors import FailureKind
from eos_sink.kafka.deadline import Deadline

if TYPE_CHECKING:
    # Only tasks need pyarrow.
    from eos_sink.kafka.rows import Rows

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, order=True)
class Witness:
    """Where one record of a transaction lies; reading there tells whether it was committed."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


@dataclass(frozen=True)
class Transaction:
    """One transaction of a producer: what EndTxn may end, and nothing else."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True)
class LogPosition:
    """Where a query's record lies in the decision log: the offset that its group commits."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


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
    then be repeated (KIP-691, an abortable error)."""

    def __init__(self, text: str, kind: FailureKind) -> None:
        super().__init__(text)
        self.kind = kind


class MemberState(Enum):
    """What became of a planner's membership."""

    CURRENT = auto()
    EXPIRED = auto()
    """The session ended and nobody has taken the place: recover, then go on."""
    REPLACED = auto()
    """A newer driver has joined as the same static member: this run is over."""


class Visibility(Enum):
    """What a read_committed reader finds at a witness."""

    COMMITTED = auto()
    ABORTED = auto()
    UNREADABLE = auto()
    """The record is not there any more, so that its absence proves nothing."""


class EndOutcome(Enum):
    """How EndTxn ended for one transaction."""

    DONE = auto()
    REFUSED = auto()
    """Fenced, wrong state or id expired. Says nothing about what became of the transaction."""


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


@dataclass(frozen=True)
class TransactionState:
    """A transactional id as its coordinator describes it (DescribeTransactions, KIP-664)."""

    transaction: Transaction
    status: TransactionStatus
    started_ms: int
    """Start of the open transaction, broker's clock, milliseconds since the epoch; -1: none."""
    timeout_ms: int

    def is_not(self, transaction: Transaction) -> bool:
        """Whether the id is another transaction's by now; one that is missing is nobody's."""
        return self.status is not TransactionStatus.MISSING and self.transaction != transaction


@dataclass(frozen=True)
class ProducerIdentity:
    """Producer id and epoch that a coordinator gave to a transactional producer."""

    producer_id: int
    epoch: int


OnRow = Callable[[ProducerIdentity, str, "bytes | None", "bytes | None", "Headers | None"], None]
"""Producer, topic, value, key and headers of a row."""


@dataclass(frozen=True)
class Trace:
    """What a partition still shows of one producer's transaction.

    Attributes:
        rows: its records that are there, `hidden` of them compressed with something unreadable.
        committed: what its marker says; None: no marker is there.
    """

    rows: int = 0
    hidden: int = 0
    committed: bool | None = None

    def more(self, rows: int, *, hidden: bool) -> Trace:
        return replace(self, rows=self.rows + rows, hidden=self.hidden + (rows if hidden else 0))

    def ended(self, *, committed: bool) -> Trace:
        return replace(self, committed=committed)


@dataclass(frozen=True)
class TopicView:
    """A topic as its brokers describe it to this principal.

    Attributes:
        in_sync: the number of copies in sync, by partition.
        replication: copies of the partition that has the fewest.
        min_in_sync: `min.insync.replicas`; None: it may not be read.
        allowed: Kafka's names of the operations that are granted; None: it is not told.
    """

    in_sync: Mapping[int, int]
    replication: int
    min_in_sync: int | None = None
    allowed: frozenset[str] | None = None


@dataclass(frozen=True)
class PartitionTail:
    """A partition, and what was found in it from `read_from` on.

    Attributes:
        start, stable, end: the first offset that is kept, the last stable one, the high watermark.
        unread: why not all of it could be read; empty: it was.
    """

    topic: str
    partition: int
    start: int
    stable: int
    end: int
    read_from: int
    traces: Mapping[ProducerIdentity, Trace] = field(default_factory=dict)
    unread: str = ""


class TransactionalProducer(Protocol):
    """One transactional producer. Dropping it leaves an open transaction open."""

    def init(self, deadline: Deadline) -> None:
        """Fence older producers of the id and abort what they left open (InitProducerId)."""

    def begin(self) -> None: ...

    def produce(  # noqa: PLR0913, PLR0917 - a Kafka record has this many parts
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        on_offset: Callable[[int, int], None] | None = None,
    ) -> None:
        """Queue a record; blocks while the queue is full. `on_offset(partition, offset)` is called
        from `flush` or a later `produce` once the record is on the broker, unless the client does
        not know the offset (it was acknowledged with another one). `timestamp` is the record's
        CreateTime in milliseconds since the epoch, at least 1; None: now.

        Raises:
            ProduceFailed: the client refuses the record (too large, unknown partition, ...).
        """

    def produce_rows(
        self, rows: Rows, on_offset: Callable[[str, int, int], None] | None = None
    ) -> None:
        """Queue records, as `produce` does with each; those for one partition keep their order.
        `on_offset(topic, partition, offset)` is called once, with one of them that is on the
        broker at a known offset, from `flush` or before. The rows may be let go of on return.

        Raises:
            ProduceFailed: the client refuses one of the records. Others may be queued.
        """

    def send_offset(self, position: LogPosition, member: bytes, deadline: Deadline) -> None:
        """Add a group offset to the transaction, checked against the group's member (KIP-447).

        Raises:
            MemberRefused, ProducerFenced, ProduceFailed: an earlier record failed.
        """

    def flush(self, deadline: Deadline) -> None:
        """Wait until each queued record is on the brokers or has failed; a failure surfaces in the
        next `send_offset` or `commit`."""

    def identity(self, deadline: Deadline) -> ProducerIdentity:
        """Producer id and epoch of this very producer."""

    def commit(self, deadline: Deadline) -> None:
        """Raises:
        ProducerFenced, ProduceFailed: not committed.
        OutcomeUnknownError: it may or may not be.
        """

    def abort(self, deadline: Deadline) -> None: ...

    def close(self) -> None:
        """Let go of threads and sockets at once. Sends nothing."""


class GroupMember(Protocol):
    """The one static member of a query's group."""

    def join(self, deadline: Deadline) -> bytes:
        """Join, replacing an older member of the same instance id; its group metadata.

        Raises:
            MemberRefused: replaced by a newer one while joining.
            ConfigurationError: the brokers grant no session of this length.
        """

    def state(self) -> MemberState: ...

    def wait_stable(self, deadline: Deadline) -> bool:
        """Read the group's offset with require_stable (KIP-447): True once none of the query's
        transactions is pending, False if some still were at the deadline.

        Raises:
            MemberRefused: replaced by a newer member while waiting.
        """

    def close(self) -> None: ...


class TransactionControl(Protocol):
    """The part of the transaction protocol that works from outside the producer."""

    def check_brokers(self, deadline: Deadline) -> None:
        """Raises ClusterError if a broker is too old for what the sink asks of it; says what it
        lacks and which Kafka brings it."""

    def check_timeout(self, transactional_id: str, timeout_ms: int, deadline: Deadline) -> None:
        """Raises ConfigurationError if `timeout_ms` is above the broker's maximum. Fences
        producers of the id (InitProducerId)."""

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        """EndTxn for each, pipelined to each coordinator, repeated while retriable. What has no
        answer at the deadline is left out of the result."""

    def list_open(self, prefix: str, deadline: Deadline) -> list[str]:
        """Transactional ids that start with `prefix` and have an open transaction, cluster-wide."""

    def list_committed(self, prefix: str, deadline: Deadline) -> list[str]:
        """Transactional ids that start with `prefix` and whose last transaction was committed, or
        is being committed, cluster-wide; an id that was inited since is none of them."""

    def describe(self, ids: Iterable[str], deadline: Deadline) -> dict[str, TransactionState]:
        """The coordinator's state of each id; MISSING for an unknown one."""

    def close(self) -> None: ...


class LogReader(Protocol):
    """Reads the decision log for one query, whose `keys` are the same in every call."""

    @property
    def reached(self) -> int:
        """The offset up to which it has read."""

    def latest(
        self, keys: Sequence[str], deadline: Deadline, known: int = 0
    ) -> Mapping[str, tuple[LogPosition, bytes]]:
        """The latest committed record under each key, up to the high watermark at the call. An end
        before `known` is a deposed leader's or that of a log that lost records: it is asked for
        again, and believed if it does not change within seconds."""

    def known(
        self, keys: Sequence[str], deadline: Deadline
    ) -> Mapping[str, tuple[LogPosition, bytes]]:
        """The same up to the first open transaction, which is not waited for."""

    def written(
        self, keys: Sequence[str], start: int, end: int, last: int, deadline: Deadline
    ) -> bool:
        """Whether a record under one of the keys lies from `start` to before `end`, whatever became
        of its transaction. There are records at `end` and at `last`, so the next `latest` reads
        past them, whatever end a deposed leader tells."""

    def position(self, query: str) -> LogPosition:
        """Where the query's records go (offset 0), for the first write."""

    def close(self) -> None: ...


class Kafka(Protocol):
    """A cluster, with the query's connection settings applied: makes the clients above."""

    def producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        """For rows, with the user's producer settings.

        Raises:
            ConfigurationError: the client refuses a setting.
        """

    def log_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        """For records of the decision log."""

    def member(self, group: str, instance_id: str, session_ms: int) -> GroupMember: ...

    def longest_session(self, deadline: Deadline) -> int | None:
        """The longest session in ms that every broker grants to a member; None: this principal may
        not see it, or not all brokers answer soon."""

    def control(self) -> TransactionControl:
        """Shared by the process; do not close."""

    def log_reader(self, deadline: Deadline) -> LogReader:
        """Creates the decision log's topic where it is missing."""

    def log_records(self, deadline: Deadline) -> Mapping[str, bytes]:
        """The latest committed record of every query in the decision log, by key, up to the high
        watermarks at the call. Reads all of the log."""

    def visibility(
        self, witnesses: Sequence[Witness], deadline: Deadline
    ) -> Mapping[Witness, Visibility]:
        """What a read_committed reader finds at each, once the last stable offset is past it. One
        that stays open until the deadline is left out."""

    def markers(
        self, asked: Mapping[Witness, Transaction], deadline: Deadline
    ) -> Mapping[Witness, bool]:
        """Whether the marker behind each witness commits or aborts its transaction, as far as one
        is found by the deadline; the witness itself may be gone."""

    def check_topic(self, topic: str, deadline: Deadline) -> None:
        """Raises ClusterError if the topic does not exist or may not be seen."""

    def view_topics(
        self, topics: Sequence[str], deadline: Deadline
    ) -> Mapping[str, TopicView | None]:
        """Each topic as it is now; None: it does not exist."""

    def close(self) -> None:
        """Close what the process shares; the next call that needs it makes it again."""


class Inspection(Kafka, Protocol):
    """A cluster as a person looks at it (`eos-sink resolve`); changes nothing by itself."""

    def tails(
        self,
        topic: str,
        producers: frozenset[ProducerIdentity],
        most: int,
        on_row: OnRow,
        deadline: Deadline,
    ) -> list[PartitionTail]:
        """What the last `most` offsets of each partition show of transactions, committed or not.
        Each of their rows is handed to `on_row`. Empty if the topic cannot be seen."""

    def records(self, deadline: Deadline) -> Mapping[str, bytes] | None:
        """The latest record of each query in the decision log before the first open transaction of
        each partition, by key; None: there is no such topic, and none is made."""

    def members(self, group: str, deadline: Deadline) -> list[str]:
        """The hosts of a group's members, as far as its coordinator knows."""
