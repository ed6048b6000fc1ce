"""Declares what the operator commands ask of a cluster, beside the sink's own interface.

Nothing here changes anything or waits for open transactions. A question about one thing of many is
answered with `Unseen` where that thing may not be seen, so that a missing permission does not hide
the other answers. Otherwise the errors are those of `eos_sink.kafka.interfaces`; one about a
missing permission has the permission's name in `data["missing"]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Unseen
from eos_sink.protocol.values import Position


@dataclass(frozen=True)
class LogLine:
    """One committed record of the decision log.

    Attributes:
        key: the query that wrote it, if the sink did.
        at_ms: the record's timestamp, milliseconds since the epoch, by the writer's clock.
        value: empty for a tombstone.
    """

    key: str
    position: Position
    at_ms: int
    value: bytes


@dataclass(frozen=True)
class LogPage:
    """Records of the decision log from some offsets on.

    Attributes:
        lines: oldest first; those of one partition in the order of their offsets.
        ends: where to read on, by partition.
        recreated: the topic was deleted and created again: the given offsets were ignored, and
            earlier records are no longer valid.
        unread: why a partition could not be read; what it has is missing here.
        held: partitions that go on behind an open transaction, which is not waited for.
    """

    lines: tuple[LogLine, ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)
    recreated: bool = False
    unread: Mapping[int, str] = field(default_factory=dict)
    held: frozenset[int] = frozenset()


@dataclass(frozen=True)
class BrokerSetting:
    """A setting of a broker; `fixed`: changing it takes a restart."""

    value: str
    fixed: bool = False


@dataclass(frozen=True)
class Broker:
    """One broker, at the address that it advertises.

    Attributes:
        unreachable: why it could not be reached there; empty: it was reached.
        newest: the newest version of each API key that it supports.
    """

    id: int
    address: str
    unreachable: str = ""
    newest: Mapping[int, int] | Unseen = field(default_factory=dict)
    settings: Mapping[str, BrokerSetting] | Unseen = field(default_factory=dict)


@dataclass(frozen=True)
class Clock:
    """A clock of the cluster, read between two readings of this machine's; ms since the epoch."""

    whose: str
    theirs_ms: int
    before_ms: int
    after_ms: int


@dataclass(frozen=True)
class Quorum:
    """The KRaft controllers: their leader, and its clock if the answer has it."""

    leader: int
    clock: Clock | None = None


class Admin(Kafka, Protocol):
    """A cluster as an operator looks at it, with one query's connection settings; and the sink's
    own clients, to look up outcomes and to carry out a choice."""

    def read_log(self, since: Mapping[int, int], deadline: Deadline) -> LogPage | None:
        """All that compaction has left of the decision log, up to each partition's first open
        transaction. None: there is no such topic, and none is created.

        Args:
            since: the offset to begin at, by partition; the start for a partition that is not
                named. `LogPage.ends` of the call before reads what has come since.
        """

    def list_groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        """Consumer groups whose names start with `prefix`, as far as they may be seen."""

    def describe_brokers(self, deadline: Deadline) -> Sequence[Broker]:
        """To be called before the questions below, which it chooses a broker for.

        Raises:
            ClusterError: no broker answers.
        """

    def describe_features(self, deadline: Deadline) -> Mapping[str, int] | Unseen:
        """Finalized versions of the cluster's features (KIP-584)."""

    def describe_quorum(self, deadline: Deadline) -> Quorum | Unseen: ...

    def refusal_to_create_log(self, replicas: int, deadline: Deadline) -> str | Unseen:
        """Why the brokers would not let this principal create the decision log; empty: they
        would."""

    def may_write(self, transactional_id: str, deadline: Deadline) -> bool | Unseen:
        """True if this principal may begin and end transactions of an id, which must be unused."""

    def may_join(self, group: str, deadline: Deadline) -> bool | Unseen: ...

    def renew(self) -> None:
        """Close all clients; the next call makes them again."""
