"""What is looked at, and all that was seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Broker, BrokerSetting, MemberDescription, Quorum
from eos_sink.kafka.interfaces import TopicDescription, TransactionState, Unseen
from eos_sink.kafka_config.destinations import Destinations
from eos_sink.ops.history import Unreadable, Written

TRANSACTIONS, OFFSETS = "__transaction_state", "__consumer_offsets"
INTERNAL = (TRANSACTIONS, OFFSETS)
PROBE = "permission"
"""No query's id or group ends like this."""


@dataclass(frozen=True)
class Subject:
    """The query that it is about, or what all queries under a prefix have in common.

    Attributes:
        query: None: all of them.
        topics: where its rows go; empty: not known.
        destinations: option `eos.destinations`.
        transaction_timeout_ms: of its tasks' transactions.
        log_copies: option `eos.log.replication.factor`.
        own_times: it gives records times of their own.
        largest: bytes of the largest record that its client sends.
        warnings: what its options say of themselves.
    """

    prefix: str
    log: str
    transaction_timeout_ms: int
    query: str | None = None
    topics: tuple[str, ...] = ()
    destinations: Destinations | None = None
    log_copies: int = 3
    own_times: bool = False
    largest: int = 1_000_000
    warnings: tuple[str, ...] = ()

    @property
    def shown(self) -> str | None:
        return QueryNames(self.prefix, self.query).shown if self.query else None

    @property
    def start(self) -> str:
        """What its names begin with."""
        return QueryNames(self.prefix, self.query).group if self.query else self.prefix

    @property
    def probe(self) -> str:
        """A name that its permissions have to cover, and that nobody uses."""
        return f"{self.start}-{PROBE}" if self.query else f"{self.start}{PROBE}"


@dataclass(frozen=True)
class LogFacts:
    """The decision log's records.

    Attributes:
        count: how many are there.
        records: the latest one of each query, by how it is shown.
        unreadable: the latest under its key, where that is no record that this version reads.
        newer: the formats of those that a newer version wrote, by key.
    """

    count: int = 0
    records: Mapping[str, Written] = field(default_factory=dict)
    unreadable: Mapping[str, Unreadable] = field(default_factory=dict)
    newer: Mapping[str, int] = field(default_factory=dict)

    def names(self, prefix: str) -> dict[str, QueryNames]:
        """Of each query; `prefix` is that of those that do not tell theirs."""
        return {
            shown: QueryNames.of_record(shown, written.record.prefix or prefix)
            for shown, written in self.records.items()
        }


@dataclass(frozen=True)
class Facts:
    """All that was seen of a cluster.

    Attributes:
        topics: those of the query, the internal ones and the decision log; None: not there.
        named: the topics of the query, in order.
        refusal: why the decision log cannot be made where it is missing; empty: it can.
        log: its records; None: there is no log.
        members: of the groups of the log's queries.
        transactions: every id that begins as the query's do, whatever its state.
        now_ms: this machine's clock once they were told.
    """

    brokers: Sequence[Broker]
    features: Mapping[str, int] | Unseen
    quorum: Quorum | Unseen
    topics: Mapping[str, TopicDescription | Unseen | None]
    named: tuple[str, ...]
    may_write: bool | Unseen
    may_join: bool | Unseen
    log: LogFacts | Unseen | None
    refusal: str | Unseen
    groups: Sequence[str] | Unseen
    members: Mapping[str, Sequence[MemberDescription] | Unseen]
    transactions: Sequence[TransactionState] | Unseen
    now_ms: int = 0

    def setting(self, name: str) -> dict[str, BrokerSetting] | Unseen:
        """A setting of each broker that tells, by the broker's address."""
        found: dict[str, BrokerSetting] = {}
        why = Unseen("no broker tells")
        for broker in self.brokers:
            if isinstance(broker.settings, Unseen):
                why = broker.settings
            elif name in broker.settings:
                found[broker.address] = broker.settings[name]
        return found or why
