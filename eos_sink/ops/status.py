"""The status of every query of a decision log at one moment. Pure; `Observer` gathers it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames, TaskId
from eos_sink.kafka.interfaces import PartitionOffsets
from eos_sink.metrics.names import Count
from eos_sink.ops.history import History, Unreadable, Written
from eos_sink.ops.holders import Holder, is_late
from eos_sink.protocol.model import BatchId, Decision, LogRecord, RowDigest, Run, SourcePosition
from eos_sink.protocol.outcome import Evidence, Outcome, batch_outcome, outcome
from eos_sink.protocol.reconcile import View
from eos_sink.protocol.source_rules import returns_to_start
from eos_sink.protocol.values import Transaction, TransactionState

Ends = Mapping[str, tuple[PartitionOffsets, ...]]
"""The offsets of topics, as far as they could be seen; none of a topic that is gone."""

_TRANSACTIONAL_ID = re.compile(
    r"(.*-[0-9a-f]{10})-(?:driver|permission|start|[01]-(?:0|[1-9][0-9]*))", re.DOTALL
)


class Driver(Enum):
    """The state of the driver. Where its process cannot be seen, one that died counts as live until
    its group session ends, half an hour by default."""

    LIVE = "live"
    ENDED = "ended"
    """The process that wrote last has; the group lists a member, which is its or a newer run's."""
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Problem:
    """A part of the cluster that could not be read.

    Attributes:
        what: the whole message, with the remedy.
        missing: the permissions that are missing, in the words of `kafka-acls`.
    """

    what: str
    missing: tuple[str, ...] = ()

    @staticmethod
    def of(error: EosSinkError) -> Problem:
        # A command of the remedy has a line of its own.
        rest = str(error).removeprefix(error.message).replace("\n", " ")
        return Problem(f"{error.message}{rest}", tuple(error.data.get("missing", ())))


@dataclass(frozen=True)
class QueryTransaction:
    """An open transaction as its coordinator describes it, and what the log says about it.

    Attributes:
        names: of its query; None if no query of the log can own it.
        decided: the query's latest decision names this transaction: it must be committed.
    """

    state: TransactionState
    names: QueryNames | None = None
    decided: bool = False

    @property
    def transaction(self) -> Transaction:
        return self.state.transaction

    @property
    def transactional_id(self) -> str:
        return self.state.transaction.transactional_id

    @property
    def task(self) -> TaskId | None:
        """Return the task, or None for the driver's own transaction, which writes the log, and
        without a query."""
        return self.names.parse_task(self.transactional_id) if self.names else None

    def age_ms(self, now_ms: int) -> int:
        return max(0, now_ms - self.state.started_ms)

    def left_ms(self, now_ms: int) -> int:
        """Time until the coordinator aborts it. It may be negative: the coordinator looks for
        expired transactions every few seconds."""
        return self.state.timeout_ms - self.age_ms(now_ms)

    def is_late(self, now_ms: int) -> bool:
        return is_late(self.state, now_ms)


@dataclass(frozen=True)
class QueryStatus:
    """The status of one query.

    Attributes:
        history: its records. The latest one of the log may be unreadable (`history.hidden`); then
            everything here is about the latest readable one.
        evidence: about each transaction of the latest decision.
        open: its open transactions, by id; None: they could not be listed.
        hosts: of its group's members; None if the group could not be read.
        dead: the run of the latest record is known to have died.
        ends: of all topics that queries of the log write to and read.
    """

    history: History
    names: QueryNames
    evidence: tuple[Evidence, ...] = ()
    open: tuple[QueryTransaction, ...] | None = ()
    hosts: tuple[str, ...] | None = None
    dead: bool = False
    ends: Ends = field(default_factory=dict)

    @property
    def query(self) -> str:
        return self.history.query

    @property
    def record(self) -> LogRecord | None:
        return self.history.latest.record if self.history.latest else None

    @property
    def view(self) -> View:
        """Return what a driver would know of it."""
        listed = frozenset(each.transaction for each in self.undecided)
        return View(self.names, self.history.entry, self.evidence, listed=listed)

    @property
    def run(self) -> Run | None:
        return self.history.run

    @property
    def decision(self) -> Decision | None:
        return self.history.decision

    @property
    def batch(self) -> BatchId | None:
        return self.decision.batch if self.decision else None

    @property
    def total(self) -> RowDigest:
        """The rows of the decided batch."""
        return self.decision.total if self.decision else RowDigest()

    @property
    def dead_letter_rows(self) -> int:
        """Of all batches so far."""
        return self.record.stats.count(Count.DEAD_LETTERS) if self.record else 0

    @property
    def decided_at_ms(self) -> int | None:
        """When the decision was written, by its driver's clock; None without a decision."""
        decided = self.history.decided()
        if decided is None or self.record is None:
            return None
        # Records of older versions do not have the time of the decision.
        return self.record.stats.decided_ms or decided.at_ms

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the decision; None without one."""
        return batch_outcome(map(outcome, self.evidence)) if self.decision else None

    @property
    def state(self) -> str | None:
        """The outcome as it is shown: the latest record may be unreadable."""
        if self.history.hidden is not None:
            return "unreadable"
        return self.outcome.value if self.outcome else None

    @property
    def source(self) -> SourcePosition | None:
        """Return the position in the source, or None without `eos.source.group.id`."""
        if self.record is None or self.decision is None:
            return self.record.source if self.record else None
        return returns_to_start(self.record, self.view.lost) or self.record.source

    @property
    def source_lag(self) -> int | None:
        ends = {(topic, p.partition): p.end for topic in self.ends for p in self.ends[topic]}
        return self.source.lag(ends) if self.source else None

    @property
    def topics(self) -> list[str]:
        """The topics that the decision has written to."""
        return sorted(self.decision.topics) if self.decision else []

    @property
    def topics_gone(self) -> list[str]:
        return [topic for topic in self.topics if self.ends.get(topic) == ()]

    @property
    def readers_behind(self) -> int | None:
        """The offsets of its topics that read_committed readers wait for, markers and rows that may
        be aborted among them. None: not all could be seen, or one is gone."""
        if not all(self.ends.get(topic) for topic in self.topics):
            return None
        return sum(count_held(self.ends[topic]) for topic in self.topics)

    @property
    def driver(self) -> Driver:
        if self.hosts is None:
            return Driver.UNKNOWN
        # The run of a command has ended: a run of the query begins with a record.
        if not self.hosts or (self.run is not None and bool(self.run.tool)):
            return Driver.GONE
        return Driver.ENDED if self.dead else Driver.LIVE

    @property
    def last_run_ended(self) -> bool:
        """True if the run that wrote last is known to have ended."""
        return self.dead or self.driver is Driver.GONE

    @property
    def undecided(self) -> tuple[QueryTransaction, ...]:
        """Open transactions of tasks that the decision does not name."""
        return tuple(each for each in self.open or () if each.task and not each.decided)

    @property
    def counts(self) -> tuple[int, int] | tuple[None, None]:
        """The numbers of open transactions that the decision names, and of those of tasks that it
        does not."""
        if self.open is None:
            return None, None
        return sum(each.decided for each in self.open), len(self.undecided)

    def left_ms(self, now_ms: int) -> int | None:
        """The time until Kafka aborts the first of the open transactions; None if none is open."""
        return min((each.left_ms(now_ms) for each in self.open or ()), default=None)


@dataclass(frozen=True)
class Snapshot:
    """The status of all queries of a decision log.

    Attributes:
        at_ms: milliseconds since the epoch, by the local clock.
        log: whether the log's topic exists.
        queries: by name.
        unknown: open transactions under the prefix that no query of the log owns; None: they could
            not be listed.
        unreadable: all unreadable records, in the order of the log.
        problems: what could not be read; everything else is complete.
        records: new records since the previous snapshot, oldest first; in the first one, all.
        unrecorded: if the log has no query: ids under the prefix whose last transaction was
            committed, so there was a record of their query; None: they could not be listed, or not
            all of the log was read.
        holders: what readers of these topics wait for, without transactions that are under way.
        is_whole: all partitions of the log were read.
        ends: of the log, and of the topics that the latest decisions have written to.
    """

    at_ms: int
    log: bool
    queries: tuple[QueryStatus, ...]
    unknown: tuple[QueryTransaction, ...] | None
    unreadable: tuple[Unreadable, ...]
    problems: tuple[Problem, ...]
    records: tuple[Written, ...] = ()
    unrecorded: tuple[str, ...] | None = ()
    holders: tuple[Holder, ...] = ()
    is_whole: bool = True
    ends: Ends = field(default_factory=dict)

    @property
    def silent(self) -> bool:
        """True if a part of the cluster did not answer; a missing permission is an answer."""
        return not all(problem.missing for problem in self.problems)

    def select(self, queries: tuple[QueryStatus, ...]) -> Snapshot:
        """The same, about these queries only."""
        hidden = tuple(each.history.hidden for each in queries if each.history.hidden)
        starts = tuple(f"{each.names.group}-" for each in queries)
        unrecorded = self.unrecorded
        if unrecorded is not None:
            unrecorded = tuple(each for each in unrecorded if each.startswith(starts))
        topics = {topic for each in queries for topic in each.topics}
        others = {topic for each in self.queries for topic in each.topics} - topics
        # The log is everybody's.
        holders = tuple(each for each in self.holders if each.topic not in others)
        seen = replace(self, queries=queries, unknown=(), unreadable=hidden)
        return replace(seen, holders=holders, unrecorded=unrecorded)

    def query(self, name: str) -> QueryStatus | None:
        return next((each for each in self.queries if each.query == name), None)


def count_held(partitions: Iterable[PartitionOffsets]) -> int:
    """The offsets between the last stable offsets and the ends of partitions."""
    return sum(max(0, each.end - each.stable) for each in partitions)


def parse_group(transactional_id: str) -> str | None:
    """The group of the query that an id belongs to; None: it is none of the sink's."""
    match = _TRANSACTIONAL_ID.fullmatch(transactional_id)
    return match[1] if match else None


def group_by_query(
    states: Iterable[TransactionState], names: Mapping[str, QueryNames]
) -> dict[str | None, list[TransactionState]]:
    """Group transactions by owning query; ids of no known query are under None."""
    queries = {each.group: query for query, each in names.items()}
    by_query: dict[str | None, list[TransactionState]] = {}
    for state in states:
        group = parse_group(state.transaction.transactional_id)
        by_query.setdefault(queries.get(group or ""), []).append(state)
    return by_query
