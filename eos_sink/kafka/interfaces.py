"""Declares what the sink needs of Kafka; `tests/contract` holds every implementation to it.

Each call may block, but not past its deadline. Unless a method says otherwise it raises
    ClusterError: Kafka is unreachable, lacks something or denies a permission; names it.
    OutcomeUnknownError: the deadline passed without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from eos_sink.errors import ClusterError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Acl, operation_name, permission_error
from eos_sink.protocol.values import (
    EndOutcome,
    FirstOpen,
    Hanging,
    HangingLook,
    MemberState,
    Offsets,
    Place,
    Position,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)

if TYPE_CHECKING:
    # Only tasks need pyarrow.
    from eos_sink.rows.rows import Row, Rows

OnRow = Callable[[ProducerIdentity, "Row"], None]
"""The producer, and a row as it digests it, without partition and time."""


@dataclass(frozen=True)
class Unseen:
    """Why the brokers do not show something.

    Attributes:
        why: half a sentence.
        missing: the permissions that would show it, if that is the reason.
        remedy: what to do, if it is not.
    """

    why: str
    missing: tuple[Acl, ...] = ()
    remedy: str = "Look at the broker's log for the cause."

    def error(self, what: str, needed: Sequence[Acl] = ()) -> ClusterError:
        """The error that `what` cannot be seen.

        Args:
            needed: the permissions that a query needs for it. Without them it is an operator's
                command, which needs no more than to see it.
        """
        if self.missing:
            return permission_error(what, needed or self.missing, of_query=bool(needed))
        return ClusterError(f"{what}: {self.why}.", remedy=self.remedy)


@dataclass(frozen=True)
class PartitionState:
    """Replicas of a partition; `leader` is -1 while it has none."""

    leader: int
    replicas: int
    in_sync: int


@dataclass(frozen=True)
class TopicDescription:
    """A topic as the brokers describe it to this principal.

    Attributes:
        settings: its effective configuration; reading it takes DescribeConfigs on the topic.
        allowed: Kafka's names of the granted operations (KIP-430); None: the broker did not say.
    """

    name: str
    partitions: Mapping[int, PartitionState]
    settings: Mapping[str, str] | Unseen
    allowed: frozenset[str] | None = None
    id: str = ""

    @property
    def replicas(self) -> int:
        """Of the partition that has the fewest."""
        return min((part.replicas for part in self.partitions.values()), default=0)

    @property
    def leaderless(self) -> list[int]:
        return sorted(number for number, part in self.partitions.items() if part.leader < 0)

    def setting(self, name: str) -> str | None:
        """Return the value, or None if there is no such setting, or it may not be seen."""
        return None if isinstance(self.settings, Unseen) else self.settings.get(name)

    def lacking(self, needs: Iterable[Acl]) -> list[Acl]:
        """Those permissions that the broker did not grant, as far as it said."""
        if self.allowed is None:
            return []
        permitted = {operation_name(each) for each in self.allowed}
        return [acl for acl in needs if acl.operation not in permitted]


@dataclass(frozen=True)
class MemberDescription:
    """A member of a consumer group; `instance` is empty for a dynamic one."""

    instance: str
    client: str
    host: str


@dataclass(frozen=True)
class PartitionOffsets:
    """Offsets of a partition.

    Attributes:
        start: the first one that is kept.
        stable: the last stable offset: how far a read_committed reader gets.
        end: the high watermark.
    """

    partition: int
    start: int
    stable: int
    end: int


@dataclass(frozen=True)
class Sizes:
    """The most that a producer sends, in bytes, in place of what its settings say.

    Attributes:
        record: the largest record, before compression; None: as the settings say.
        batch: the largest batch of several records, before compression, if the settings do not say
            less.
    """

    record: int | None
    batch: int


@dataclass(frozen=True)
class Trace:
    """The traces in a partition of one producer's transaction.

    Attributes:
        rows: its records that are there.
        committed: the outcome in its marker; None: no marker was found.
    """

    rows: int = 0
    committed: bool | None = None

    def more(self, rows: int) -> Trace:
        return replace(self, rows=self.rows + rows)

    def ended(self, *, committed: bool) -> Trace:
        return replace(self, committed=committed)


@dataclass(frozen=True)
class PartitionTail:
    """A partition, and the traces found in it from `read_from` on.

    Attributes:
        start, stable, end: offsets, as in `PartitionOffsets`.
        unread: why a part of it could not be read; empty: all was read.
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
    """A producer for one transaction. Dropping it leaves an open transaction open."""

    def init(self, deadline: Deadline) -> None:
        """Fence older producers of the id and abort what they left open (InitProducerId)."""

    def begin(self) -> None: ...

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        on_offset: Callable[[int, int], None] | None = None,
    ) -> None:
        """Queue a record; blocks while the queue is full. `on_offset(partition, offset)` is called
        from `flush` or a later `produce` once the record is on the broker, unless the client does
        not know the offset (it was acknowledged with another one).

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

    def send_offset(self, position: Position, member: bytes, deadline: Deadline) -> None:
        """Add a group offset to the transaction, checked against the group's member (KIP-447).

        Raises:
            MemberRefused, ProducerFenced, ProduceFailed: an earlier record failed.
        """

    def send_group_offsets(self, group: str, offsets: Offsets, deadline: Deadline) -> None:
        """Add offsets of another group, which has no members, to the transaction.

        Raises:
            ProducerFenced, ProduceFailed: an earlier record failed.
        """

    def flush(self, deadline: Deadline) -> None:
        """Wait until each queued record is on the brokers or has failed; a failure surfaces in the
        next `check`, `send_offset` or `commit`."""

    def check(self) -> None:
        """Sends nothing.

        Raises:
            ProducerFenced, ProduceFailed: a record, or the transaction, has failed.
        """

    def identity(self, deadline: Deadline) -> ProducerIdentity:
        """Producer id and epoch of this producer."""

    def commit(self, deadline: Deadline) -> None:
        """Raises:
        ProducerFenced, ProduceFailed: not committed.
        OutcomeUnknownError: it may or may not be.
        """

    def abort(self, deadline: Deadline) -> None: ...

    def close(self) -> None:
        """Close threads and sockets at once. Sends nothing."""


class GroupMember(Protocol):
    """The one static member of a query's group."""

    def join(self, deadline: Deadline) -> bytes:
        """Join, replacing an older member of the same instance id; its group metadata.

        Raises:
            MemberRefused: replaced by a newer one while joining.
            ConfigurationError: the brokers grant no session of this length.
        """

    def state(self) -> MemberState: ...

    def wait_stable(self, position: Position, deadline: Deadline) -> bool:
        """Read the group's offset with require_stable (KIP-447): True once none of the query's
        transactions is pending, False if some still were at the deadline.

        Args:
            position: in the partition of the query's records, whose offsets its transactions add.

        Raises:
            MemberRefused: replaced by a newer member while waiting.
        """

    def close(self) -> None: ...


class TransactionControl(Protocol):
    """The part of the transaction protocol that works from outside the producer."""

    def check_brokers(self, deadline: Deadline) -> None:
        """Raises ClusterError if a broker is too old for the sink; names what it lacks and which
        Kafka has it."""

    def check_timeout(self, transactional_id: str, timeout_ms: int, deadline: Deadline) -> None:
        """Raises ConfigurationError if `timeout_ms` is above the broker's maximum. Fences
        producers of the id (InitProducerId)."""

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        """EndTxn for each, pipelined to each coordinator, repeated while retriable. What has no
        answer at the deadline is left out of the result, and so is what may have been forgotten in
        a partition that has lost its leader meanwhile (KAFKA-20734)."""

    def list_transactions(
        self, prefix: str, deadline: Deadline, *statuses: TransactionStatus
    ) -> list[TransactionState]:
        """Each transactional id, cluster-wide, that starts with `prefix` and has one of the states,
        or any if none is given; sorted. It is described after that, and may have another by then.
        """

    def describe(
        self, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        """The coordinator's state of each id; MISSING for an unknown one. `anew`: the brokers are
        asked again who coordinates them."""

    def find_hanging(
        self, topics: Iterable[str], ids: Collection[str], prefix: str, deadline: Deadline
    ) -> HangingLook:
        """Look for hanging transactions in these topics. A topic that does not exist has none.
        Read only.

        Args:
            topics: where to look.
            ids: transactional ids whose coordinators have to answer.
            prefix: of other ids; empty: there are none.
            deadline: for all answers.

        Raises:
            OutcomeUnknownError: no answer about one of `ids`, or from a broker.
            ClusterError: Read on a topic is missing.
        """

    def find_holders(
        self, places: Iterable[Place], deadline: Deadline
    ) -> dict[Place, FirstOpen | None]:
        """What read_committed readers wait for in those of these partitions where a transaction is
        open; None: no broker tells."""

    def end_hanging(self, hanging: Hanging, commit: bool, deadline: Deadline) -> bool:
        """Write the marker that is missing (WriteTxnMarkers, KIP-664). False: the leader refuses it
        or does not answer.

        Raises:
            ClusterError: Alter on the cluster is missing.
        """


class LogReader(Protocol):
    """Reads the records of one query in the decision log."""

    @property
    def reached(self) -> int:
        """The offset up to which it has read."""

    def latest(
        self, deadline: Deadline, known: int = 0, *, anew: bool = False
    ) -> tuple[Position, bytes] | None:
        """The latest committed record, up to the high watermark at the call. An end
        before `known` is a deposed leader's or that of a log that lost records: it is asked for
        again, and believed if it does not change within seconds. `anew`: of the newest leader that
        any broker knows."""

    def known(self, deadline: Deadline) -> tuple[Position, bytes] | None:
        """The same up to the first open transaction, which is not waited for."""

    def written(self, start: int, end: int, deadline: Deadline) -> bool:
        """Return True if a record of the query lies from `start` to before `end`, committed or
        not. There is a record at `end`, so the next `latest` reads past it, even if a deposed
        leader returns an earlier end."""

    def records(self, deadline: Deadline) -> Sequence[tuple[Position, bytes]]:
        """The committed records that compaction has left, oldest first, up to the high
        watermark of the newest leader."""

    @property
    def home(self) -> Position:
        """The place of the query's records (offset 0), for the first write."""


class ReadBack(Protocol):
    """Reads back what topics show of transactions, and of what they contain."""

    def visibility(
        self, witnesses: Mapping[Position, Transaction], deadline: Deadline
    ) -> Mapping[Position, Visibility]:
        """Return what a read_committed reader finds at each record, once the last stable offset is
        past it. It is unreadable if another transaction's record is there: the topic was made
        again. One that stays open until the deadline is left out."""

    def markers(
        self, asked: Mapping[Position, Transaction], deadline: Deadline
    ) -> Mapping[Position, bool]:
        """True if the marker behind each witness commits or aborts its transaction, as far as one
        is found by the deadline; the witness itself may be gone."""

    def scan_topic(
        self,
        topic: str,
        producers: frozenset[ProducerIdentity],
        most: int,
        on_row: OnRow,
        deadline: Deadline,
    ) -> list[PartitionTail]:
        """Return what the last `most` offsets of each partition show of the producers'
        transactions, committed or not. Each of their rows is passed to `on_row`. What cannot be
        read says why; empty if there is no such topic."""

    def newest_values(
        self, topics: Collection[str], deadline: Deadline
    ) -> Mapping[str, Sequence[bytes]]:
        """A few of the newest values of each partition, committed or not, as far as they can be
        read, and only of topics with as many partitions as a decision log and, as far as it can be
        seen, its cleanup.policy."""


class Kafka(Protocol):
    """A cluster that is connected to: makes the clients above."""

    @property
    def log_topic(self) -> str:
        """The decision log."""

    def producer(
        self, transactional_id: str, timeout_ms: int, sizes: Sizes | None = None
    ) -> TransactionalProducer:
        """For rows, with the user's producer settings.

        Raises:
            ConfigurationError: the client refuses a setting.
        """

    def check_settings(self, transactional_id: str, timeout_ms: int) -> None:
        """Check, without a broker, that `producer` can be made.

        Raises:
            ConfigurationError: the client refuses a setting.
        """

    def log_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        """For the driver's transactions: records of the decision log, and rows of small tasks."""

    def member(self, group: str, instance_id: str, session_ms: int) -> GroupMember: ...

    def longest_session(self, deadline: Deadline) -> int | None:
        """The longest session in ms that every broker grants to a member; None: this principal may
        not see it, or not all brokers answer soon."""

    def control(self) -> TransactionControl:
        """Shared by the process; do not close."""

    def log_reader(self, names: QueryNames, deadline: Deadline) -> LogReader:
        """Creates the decision log's topic where it is missing."""

    def claim_home(self, subject: str) -> Position:
        """The place of all claims of a subject in the decision log (offset 0)."""

    def claim_records(
        self,
        subject: str,
        suffix: str,
        deadline: Deadline,
        start: int = 0,
        end: int | None = None,
    ) -> tuple[Mapping[str, bytes], int]:
        """The latest committed record of each key there that ends with the suffix, from an offset
        on and at least up to another one, or to the high watermark of the newest leader at the
        call: open transactions before it are waited for. The log's topic exists.

        Returns:
            The records, and where to read on.
        """

    def read_back(self) -> ReadBack: ...

    def check_topic(self, topic: str, deadline: Deadline) -> None:
        """Raises ClusterError if the topic does not exist or may not be seen."""

    def describe_topics(
        self, topics: Sequence[str], deadline: Deadline, *, settings: bool = True
    ) -> Mapping[str, TopicDescription | Unseen | None]:
        """Each topic as it is now; None: it does not exist. Creates none of them.

        Args:
            settings: False: without their settings, which take a request and a permission each.
        """

    def topic_ids(self, topics: Collection[str] | None, deadline: Deadline) -> Mapping[str, str]:
        """The id (KIP-516) of each of the topics that exists and may be seen; None: of all."""

    def describe_groups(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[MemberDescription, ...] | Unseen]:
        """The members of each group; none for an unknown one. A member whose process died stays
        one until its session ends."""

    def group_offsets(self, group: str, deadline: Deadline) -> Offsets:
        """The offsets of a group, once no transaction holds others that are pending (KIP-447)."""

    def list_offsets(
        self, places: Collection[Place], deadline: Deadline
    ) -> Mapping[Place, PartitionOffsets | Unseen]:
        """Of each partition, without those that do not exist."""

    def close(self) -> None:
        """Close what the process shares, for good."""
