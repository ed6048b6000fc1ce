"""What a cluster tells of itself to whoever looks at it, and the port through which it is asked.

Nothing is changed by asking. What may not be seen is a value too, `Unseen`, so that a permission
that is missing for one question does not hide the answers to the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.observing import Observation
from eos_sink.kafka_config.acls import Acl


@dataclass(frozen=True)
class Unseen:
    """Why something could not be seen.

    Attributes:
        why: half a sentence.
        missing: the permissions that would show it, if that is the reason.
    """

    why: str
    missing: tuple[Acl, ...] = ()


@dataclass(frozen=True)
class BrokerSetting:
    """A setting of a broker; `fixed`: it takes a restart to change it."""

    value: str
    fixed: bool = False


@dataclass(frozen=True)
class Broker:
    """One broker, at the address that it tells its clients.

    Attributes:
        unreachable: why it could not be reached there from here; empty: it was.
        newest: the newest version of each API key that it knows.
    """

    id: int
    address: str
    unreachable: str = ""
    newest: Mapping[int, int] | Unseen = field(default_factory=dict)
    settings: Mapping[str, BrokerSetting] | Unseen = field(default_factory=dict)


@dataclass(frozen=True)
class Clock:
    """A clock of the cluster, read between two looks at this machine's; ms since the epoch."""

    whose: str
    theirs_ms: int
    before_ms: int
    after_ms: int


@dataclass(frozen=True)
class Quorum:
    """The controllers (KRaft): who leads them, and the leader's clock if it is told."""

    leader: int
    clock: Clock | None = None


@dataclass(frozen=True)
class PartitionFacts:
    """Copies of a partition; `leader` is -1 while it has none."""

    leader: int
    copies: int
    in_sync: int


@dataclass(frozen=True)
class TopicFacts:
    """A topic. `allowed`: Kafka's names of the operations that are granted (KIP-430)."""

    name: str
    partitions: Mapping[int, PartitionFacts]
    settings: Mapping[str, str] | Unseen
    allowed: frozenset[str] | None = None

    @property
    def copies(self) -> int:
        """Of the partition that has the fewest."""
        return min((part.copies for part in self.partitions.values()), default=0)


@dataclass(frozen=True)
class MemberFacts:
    """A member of a consumer group; `instance` is empty for a dynamic one."""

    instance: str
    client: str
    host: str


class Survey(Observation, Protocol):
    """A cluster as it is looked at: `eos_sink.kafka.admin.survey`, or a test's fake.

    Only `brokers` has to be answered, and raises ClusterError where nobody does.
    """

    def brokers(self, deadline: Deadline) -> Sequence[Broker]: ...

    def features(self, deadline: Deadline) -> Mapping[str, int] | Unseen:
        """Finalized versions of the cluster's features (KIP-584)."""

    def quorum(self, deadline: Deadline) -> Quorum | Unseen: ...

    def topics(
        self, names: Sequence[str], deadline: Deadline
    ) -> Mapping[str, TopicFacts | Unseen | None]:
        """Each of these topics; None: there is none of that name. None is made."""

    def refusal_to_make(self, topic: str, copies: int, deadline: Deadline) -> str | Unseen:
        """Why the brokers would not let this principal make the decision log; empty: they would."""

    def may_write(self, transactional_id: str, deadline: Deadline) -> bool | Unseen:
        """Whether transactions of an id may be begun and ended, of which no other has to be."""

    def may_join(self, group: str, deadline: Deadline) -> bool | Unseen: ...

    def groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        """The consumer groups whose names start alike, as far as they may be seen."""

    def group_members(self, group: str, deadline: Deadline) -> Sequence[MemberFacts] | Unseen: ...
