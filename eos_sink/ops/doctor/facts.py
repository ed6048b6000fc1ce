"""The facts about a cluster that the checks look at, and how they are asked for.

A fact that cannot be seen is an `Unseen` and hides no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import (
    Admin,
    Broker,
    BrokerSetting,
    LogPage,
    MemberDescription,
    Quorum,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Permissions, Resource
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.kafka_config.destinations import Destinations
from eos_sink.ops.doctor.findings import Commands
from eos_sink.ops.history import (
    Unreadable,
    Written,
    histories,
    keys_of,
    read_records,
    reader_of,
)
from eos_sink.ops.holders import Holder, find_holders
from eos_sink.protocol.values import TransactionState
from eos_sink.sink_options import SourceOptions

T = TypeVar("T")

TRANSACTIONS, OFFSETS = INTERNAL = ("__transaction_state", "__consumer_offsets")
# No transactional id or group of a query ends like this.
_PROBE = "permission"

# Limits each question, so that one without an answer leaves time for the others.
_ANSWER_S = 10.0
_MAX_TOPICS, _MAX_GROUPS = 50, 200


@dataclass(frozen=True)
class Subject:
    """One query, or what all queries under a prefix have in common.

    Attributes:
        cluster: with the query's settings, as far as they are given.
        names: None: all queries.
        topics: where the rows go; empty: not known.
        transaction_timeout_ms, destinations, dead_letter_topic, timestamp_column: as in the
            query's options.
        source: as in the query's options; None: as its latest record has it.
    """

    cluster: ClusterConfig
    names: QueryNames | None = None
    topics: tuple[str, ...] = ()
    transaction_timeout_ms: int = 900_000
    destinations: Destinations | None = None
    dead_letter_topic: str | None = None
    timestamp_column: str | None = None
    source: SourceOptions | None = None

    @property
    def log(self) -> str:
        return self.cluster.log_topic

    @property
    def shown(self) -> str | None:
        return self.names.shown if self.names else None

    @property
    def prefix(self) -> str:
        return self.cluster.prefix

    @property
    def start(self) -> str:
        """The beginning of its transactional ids and groups."""
        return self.names.group if self.names else self.prefix

    @property
    def probe(self) -> str:
        """An unused name that the query's permissions have to cover."""
        return f"{self.start}-{_PROBE}" if self.names else f"{self.start}{_PROBE}"

    @cached_property
    def commands(self) -> Commands:
        settings = self.cluster.client.settings
        protocol = settings.get("security.protocol", "plaintext")
        return Commands(
            servers=self.cluster.servers,
            secured=protocol.lower() != "plaintext",
            principal=f"User:{settings.get('sasl.username', 'NAME')}",
        )


@dataclass(frozen=True)
class LogFacts:
    """The records of the decision log.

    Attributes:
        count: number of records.
        records: the latest record of each query, by the name that is shown.
        hidden: the latest record, by query, where this version cannot read it.
        foreign: the latest unreadable record of each key that no driver reads.
    """

    count: int = 0
    records: Mapping[str, Written] = field(default_factory=dict)
    hidden: Mapping[str, Unreadable] = field(default_factory=dict)
    foreign: Mapping[str, Unreadable] = field(default_factory=dict)

    @property
    def names(self) -> list[QueryNames]:
        """The names of all queries."""
        return [
            QueryNames.of_record(shown, written.record.prefix)
            for shown, written in self.records.items()
        ]


@dataclass(frozen=True)
class SourceFacts:
    """The source of a query with `eos.source.group.id`.

    Attributes:
        group: that gets the offsets.
        topics: of the source.
        members: of the group.
        may_commit: this principal may commit offsets of the group.
    """

    group: str
    topics: tuple[str, ...]
    members: Sequence[MemberDescription] | Unseen = ()
    may_commit: bool | Unseen = True


@dataclass(frozen=True)
class Facts:
    """The cluster.

    Attributes:
        topics: those of the query and of its source, the internal ones and the decision log; None:
            does not exist.
        named: the topics of the query, in order.
        log: None: there is no decision log.
        refusal: why the missing decision log cannot be created; empty: it can.
        members: of the consumer groups of the log's queries.
        transactions: of every id with the query's prefix, in any state.
        holders: of the topics of the query.
        source: None: the query has no group for its source's offsets, or no query is named.
        now_ms: this machine's clock when they had been listed.
    """

    subject: Subject
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
    holders: Sequence[Holder] | Unseen = ()
    source: SourceFacts | None = None
    now_ms: int = 0

    @property
    def commands(self) -> Commands:
        return self.subject.commands

    def setting(self, name: str) -> dict[str, BrokerSetting] | Unseen:
        """A broker setting, by the address of each broker that shows it."""
        found: dict[str, BrokerSetting] = {}
        why = Unseen("no broker shows it")
        for broker in self.brokers:
            if isinstance(broker.settings, Unseen):
                why = broker.settings
            elif name in broker.settings:
                found[broker.address] = broker.settings[name]
        return found or why


def gather(admin: Admin, subject: Subject, deadline: Deadline) -> Facts:
    """Ask the cluster once for everything. Creates no topic.

    Raises:
        ClusterError: no broker answers, or the login is refused.
    """

    def soon() -> Deadline:
        return deadline.within(_ANSWER_S)

    brokers = admin.describe_brokers(deadline)
    half = deadline.within(max(_ANSWER_S, deadline.left / 2))
    log = _seen(
        lambda: read_log(admin.read_log({}, half)),
        Permissions(subject.prefix, subject.log).log_read,
    )
    records = log.records if isinstance(log, LogFacts) else {}
    decisions = (w.record.decision for q, w in records.items() if subject.shown in (None, q))
    decided = sorted({topic for decision in decisions if decision for topic in decision.topics})
    named = subject.topics or tuple(decided[:_MAX_TOPICS])
    source = _find_source(admin, subject, records, deadline)
    everything = [*named, *INTERNAL, subject.log, *(source.topics if source else ())]
    seen = _seen(lambda: admin.kafka.describe_topics(everything, soon()))
    topics = dict.fromkeys(everything, seen) if isinstance(seen, Unseen) else seen

    refusal: str | Unseen = ""
    if topics[subject.log] is None:
        replicas = max(1, min(subject.cluster.log_replication, len(brokers)))
        refusal = _seen(lambda: admin.refusal_to_create_log(replicas, soon()))
    groups = [subject.start]
    if subject.names is None:
        known = log.names if isinstance(log, LogFacts) else []
        groups = sorted(names.group for names in known)[:_MAX_GROUPS]
    asked = [*groups, source.group] if source else groups
    members: dict[str, Sequence[MemberDescription] | Unseen] = {}
    if topics[OFFSETS] is not None:  # Asking for a group's coordinator would create the topic.
        described = _seen(lambda: admin.describe_groups(asked, soon()))
        members |= dict.fromkeys(asked, described) if isinstance(described, Unseen) else described
    if source is not None:
        may_commit = _seen(lambda: admin.may_join(asked[-1], soon()))
        source = replace(source, members=members.get(asked[-1], ()), may_commit=may_commit)
    transactions: Sequence[TransactionState] | Unseen = ()
    if topics[TRANSACTIONS] is not None:
        needed = Acl("Describe", Resource.TRANSACTIONAL_ID, subject.start, prefixed=True)
        transactions = _seen(
            lambda: admin.list_transactions(subject.start, soon(), ended=True), needed
        )
    return Facts(
        now_ms=int(time.time() * 1000),
        subject=subject,
        brokers=brokers,
        features=_seen(lambda: admin.describe_features(soon())),
        quorum=_seen(lambda: admin.describe_quorum(soon())),
        topics=topics,
        named=named,
        may_write=_seen(lambda: admin.may_write(subject.probe, soon())),
        may_join=_seen(lambda: admin.may_join(subject.probe, soon())),
        log=log,
        refusal=refusal,
        groups=_seen(lambda: admin.list_groups(subject.prefix, soon())),
        members={group: members[group] for group in groups if group in members},
        transactions=transactions,
        source=source,
        holders=_seen(lambda: _find_holders(admin, named, soon())),
    )


def _find_source(
    admin: Admin, subject: Subject, records: Mapping[str, Written], deadline: Deadline
) -> SourceFacts | None:
    """The group and the topics; those of the options count, if both are known."""
    given, written = subject.source, records.get(subject.shown or "")
    known = written.record.source if written else None
    first = given or known
    if first is None:
        return None
    selected = given.topics if given else None
    if selected is None:
        found = {topic for topic, _ in known.end} if known else set()
    elif selected.names is not None:
        found = {*selected.names}
    else:
        names = _seen(lambda: admin.kafka.list_topics(deadline.within(_ANSWER_S)))
        found = set() if isinstance(names, Unseen) else {*filter(selected.selects, names)}
    return SourceFacts(first.group, tuple(sorted(found)[:_MAX_TOPICS]))


def _find_holders(admin: Admin, topics: Iterable[str], deadline: Deadline) -> list[Holder]:
    return [
        holder
        for topic, ends in admin.list_offsets(topics, deadline).items()
        if isinstance(ends, tuple)
        for holder in find_holders(admin, topic, ends, deadline)
    ]


def read_log(page: LogPage | None) -> LogFacts | None:
    """Decode the lines of the log; None: there is no log."""
    if page is None:
        return None
    records, unreadable = read_records(page.lines)
    known = histories(records, unreadable)
    latest = {query: each.latest for query, each in known.items() if each.latest}
    hidden = {query: each.hidden for query, each in known.items() if each.hidden}
    keys = keys_of(latest.values())
    foreign = {each.key: each for each in unreadable if reader_of(each.key, keys) is None}
    return LogFacts(len(page.lines), latest, hidden, foreign)


def _seen(ask: Callable[[], T], needed: Acl | None = None) -> T | Unseen:
    """Return the answer, or why there is none; `needed` is the permission to ask."""
    try:
        return ask()
    except EosSinkError as error:
        if "missing" in error.data and needed is not None:
            return Unseen(f"this principal lacks {needed}", (needed,))
        return Unseen(error.message.rstrip("."))
