"""The facts about a cluster that the checks look at, and how they are asked for.

A fact that cannot be seen is an `Unseen` and hides no other, whatever the question raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin, Broker, BrokerSetting, LogPage, Quorum
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import MemberDescription, PartitionOffsets, TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Permissions, Resource
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.kafka_config.destinations import Destinations
from eos_sink.ops.doctor.findings import Commands
from eos_sink.ops.doctor.python import Python, this_python
from eos_sink.ops.history import (
    Unreadable,
    Written,
    histories,
    keys_of,
    read_records,
    reader_of,
)
from eos_sink.ops.holders import Holder, find_holders, read_ends
from eos_sink.protocol.values import TransactionState
from eos_sink.sink_options import SourceOptions

T = TypeVar("T")

TRANSACTIONS, OFFSETS = INTERNAL = ("__transaction_state", "__consumer_offsets")
SOURCE_TOPICS = "the topics of the source"
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
        unread: why a partition could not be read.
    """

    count: int = 0
    records: Mapping[str, Written] = field(default_factory=dict)
    hidden: Mapping[str, Unreadable] = field(default_factory=dict)
    foreign: Mapping[str, Unreadable] = field(default_factory=dict)
    unread: Mapping[int, str] = field(default_factory=dict)

    @property
    def names(self) -> list[QueryNames]:
        """The names of all queries."""
        return [
            QueryNames.of_record(shown, written.record.prefix)
            for shown, written in self.records.items()
        ]


@dataclass(frozen=True)
class SourceFacts:
    """The group that gets the offsets of a query with `eos.source.group.id`, and its topics."""

    group: str
    topics: tuple[str, ...] | Unseen


@dataclass(frozen=True)
class Facts:
    """The cluster, which is asked for each fact once, when a check needs it. Creates no topic.

    Attributes:
        brokers: to be asked for first; without any broker there are no facts.
        deadline: of all questions.
    """

    admin: Admin
    subject: Subject
    deadline: Deadline
    brokers: Sequence[Broker]

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

    @cached_property
    def python(self) -> Python:
        return this_python()

    @cached_property
    def log(self) -> LogFacts | Unseen | None:
        """The decision log; None: there is none."""
        half = self.deadline.within(max(_ANSWER_S, self.deadline.left / 2))
        needed = Permissions(self.subject.prefix, self.subject.log).log_read
        return _seen(lambda: read_log(self.admin.read_log({}, half)), needed)

    @property
    def records(self) -> Mapping[str, Written]:
        """The latest record of each query, as far as they are seen."""
        return self.log.records if isinstance(self.log, LogFacts) else {}

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The topics of the query, in order."""
        shown = self.subject.shown
        decisions = (w.record.decision for q, w in self.records.items() if shown in (None, q))
        decided = {topic for decision in decisions if decision for topic in decision.topics}
        return self.subject.topics or tuple(sorted(decided)[:_MAX_TOPICS])

    @cached_property
    def source(self) -> SourceFacts | None:
        """That of the options, else that of the latest record; None: the query has no group for
        its source's offsets, or no query is named."""
        given, written = self.subject.source, self.records.get(self.subject.shown or "")
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
            names = self._ask(lambda soon: self.admin.topic_ids(None, soon))
            if isinstance(names, Unseen):
                return SourceFacts(first.group, names)
            found = {*filter(selected.selects, names)}
        return SourceFacts(first.group, tuple(sorted(found)[:_MAX_TOPICS]))

    @cached_property
    def topics(self) -> Mapping[str, TopicDescription | Unseen | None]:
        """Those of the query and of its source, the internal ones and the decision log; None: does
        not exist."""
        names = [*self.named, *INTERNAL, self.subject.log]
        if self.source and not isinstance(self.source.topics, Unseen):
            names += self.source.topics
        seen = self._ask(lambda soon: self.admin.describe_topics(names, soon))
        return dict.fromkeys(names, seen) if isinstance(seen, Unseen) else seen

    @cached_property
    def refusal(self) -> str | Unseen:
        """Why the missing decision log cannot be created; empty: it can."""
        replicas = max(1, min(self.subject.cluster.log_replication, len(self.brokers)))
        return self._ask(lambda soon: self.admin.refusal_to_create_log(replicas, soon))

    @cached_property
    def members(self) -> Mapping[str, Sequence[MemberDescription] | Unseen]:
        """Of the group of the query, or of all queries of the log."""
        groups = [self.subject.start]
        if self.subject.names is None:
            names = self.log.names if isinstance(self.log, LogFacts) else []
            groups = sorted(each.group for each in names)[:_MAX_GROUPS]
        return self._describe_groups(groups)

    @cached_property
    def source_members(self) -> Sequence[MemberDescription] | Unseen:
        groups = [self.source.group] if self.source else []
        return next(iter(self._describe_groups(groups).values()), ())

    def _describe_groups(
        self, groups: Sequence[str]
    ) -> Mapping[str, Sequence[MemberDescription] | Unseen]:
        if self.topics[OFFSETS] is None:
            return {}  # Asking for a group's coordinator would create the topic.
        found = self._ask(lambda soon: self.admin.describe_groups(groups, soon))
        return dict.fromkeys(groups, found) if isinstance(found, Unseen) else found

    @cached_property
    def transactions(self) -> Sequence[TransactionState] | Unseen:
        """Of every id with the query's prefix, in any state."""
        if self.topics[TRANSACTIONS] is None:
            return ()
        start = self.subject.start
        return self._ask(
            lambda soon: self.admin.control().list_transactions(start, soon),
            Acl("Describe", Resource.TRANSACTIONAL_ID, start, prefixed=True),
        )

    @cached_property
    def now_ms(self) -> int:
        """This machine's clock, after the transactions were listed: none begins later."""
        _ = self.transactions
        return int(time.time() * 1000)

    @cached_property
    def features(self) -> Mapping[str, int] | Unseen:
        return self._ask(self.admin.describe_features)

    @cached_property
    def quorum(self) -> Quorum | Unseen:
        return self._ask(self.admin.describe_quorum)

    @cached_property
    def may_write(self) -> bool | Unseen:
        return self._ask(lambda soon: self.admin.may_write(self.subject.probe, soon))

    @cached_property
    def may_join(self) -> bool | Unseen:
        return self._ask(lambda soon: self.admin.may_join(self.subject.probe, soon))

    @cached_property
    def may_commit(self) -> bool | Unseen:
        """This principal may commit offsets of the source's group."""
        group = self.source.group if self.source else self.subject.probe
        return self._ask(lambda soon: self.admin.may_join(group, soon))

    @cached_property
    def groups(self) -> Sequence[str] | Unseen:
        return self._ask(lambda soon: self.admin.list_groups(self.subject.prefix, soon))

    @cached_property
    def holders(self) -> Mapping[str, Sequence[Holder] | Unseen] | Unseen:
        """The transactions that hold up readers of each topic of the query."""
        topics = {name: self.topics[name] for name in self.named}
        ends = self._ask(lambda soon: read_ends(self.admin, topics, soon))
        if isinstance(ends, Unseen):
            return ends
        return {topic: self._find_holders(topic, each) for topic, each in ends.items()}

    def _find_holders(
        self, topic: str, ends: Sequence[PartitionOffsets] | Unseen
    ) -> Sequence[Holder] | Unseen:
        if isinstance(ends, Unseen):
            return ends
        return self._ask(lambda soon: find_holders(self.admin, topic, ends, soon))

    def _ask(
        self, question: Callable[[Deadline], T | Unseen], needed: Acl | None = None
    ) -> T | Unseen:
        return _seen(lambda: question(self.deadline.within(_ANSWER_S)), needed)


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
    return LogFacts(len(page.lines), latest, hidden, foreign, page.unread)


def _seen(ask: Callable[[], T | Unseen], needed: Acl | None = None) -> T | Unseen:
    """Return the answer, or why there is none; `needed` is the permission to ask."""
    try:
        return ask()
    except EosSinkError as error:
        if "missing" in error.data and needed is not None:
            return Unseen(f"this principal lacks {needed}", (needed,))
        return Unseen(error.message.rstrip("."))
    except Exception as error:  # noqa: BLE001 - an answer that a client cannot read hides no other
        return Unseen(f"{type(error).__name__}: {error}")
