"""Every query of a decision log at one moment: what it has decided, what is open, who drives it.

Pure: `snapshot` judges `Facts` that somebody else has gathered, at a time that is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames, TaskId
from eos_sink.kafka.interfaces import Transaction, TransactionState, TransactionStatus
from eos_sink.ops.history import History, Unreadable, Written
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Run
from eos_sink.protocol.outcome import Evidence, Outcome, batch_outcome, outcome

_TASK_ID = re.compile(r"(.*-[0-9a-f]{10})-(?:driver|([01])-(0|[1-9][0-9]*))", re.DOTALL)


class Driver(Enum):
    """Whether somebody drives the query. A driver that died counts as live until its session ends,
    which the brokers allow to last half an hour by default, unless it died on this machine."""

    LIVE = "live"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Problem:
    """What could not be seen.

    Attributes:
        what: the whole message, with what helps.
        missing: the permissions that are lacking, as `kafka-acls` names them.
    """

    what: str
    missing: tuple[str, ...] = ()

    @staticmethod
    def of(error: EosSinkError) -> Problem:
        return Problem(str(error), tuple(error.data.get("missing", ())))


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that its coordinator calls open.

    Attributes:
        query: empty if the log knows none that it could be of.
        task: None: the driver's own, which writes the log; or `query` is empty.
        decided: the latest decision of its query names it: it must be committed.
        started_ms: broker's clock, milliseconds since the epoch.
    """

    transaction: Transaction
    query: str
    task: TaskId | None
    decided: bool
    started_ms: int
    timeout_ms: int

    def age_ms(self, now_ms: int) -> int:
        return max(0, now_ms - self.started_ms)

    def left_ms(self, now_ms: int) -> int:
        """Until its coordinator aborts it; below 0 it is late, since it looks every few seconds."""
        return self.timeout_ms - self.age_ms(now_ms)


@dataclass(frozen=True)
class QueryStatus:
    """One query.

    Attributes:
        query: as it is shown, `QueryNames.shown`.
        names: its names in Kafka, under the prefix that its record or its open transactions tell,
            else the one that was given.
        record: the latest readable one; None: there is none.
        seq: of that record.
        decided_at_ms: when its decision was written, by its driver's clock; for a record of an
            older version, when the first kept record with that decision was. None: no decision.
        outcome: of the decision; None: there is none.
        lost, doubtful: partitions of the decision.
        open: its open transactions, by id.
        hosts: of its group's members.
        hidden: the latest record is one that this version does not read; `record` is before it.
    """

    names: QueryNames
    record: LogRecord | None
    decided_at_ms: int | None
    outcome: Outcome | None
    lost: tuple[int, ...]
    doubtful: tuple[int, ...]
    open: tuple[OpenTransaction, ...]
    driver: Driver
    hosts: tuple[str, ...]
    hidden: Unreadable | None = None
    query: str = ""

    @property
    def seq(self) -> int:
        return self.record.seq if self.record else 0

    @property
    def run(self) -> Run | None:
        return self.record.run if self.record else None

    @property
    def decision(self) -> Decision | None:
        return self.record.decision if self.record else None

    @property
    def batch(self) -> BatchId | None:
        return self.decision.batch if self.decision else None

    @property
    def rows(self) -> int:
        """Of the decided batch."""
        return self.decision.total.rows if self.decision else 0

    @property
    def bytes(self) -> int:
        """Payload of the decided batch."""
        return self.decision.total.bytes if self.decision else 0

    @property
    def partitions(self) -> int:
        """Spark's partitions of the decided batch, with rows or without."""
        return self.decision.partitions if self.decision else 0

    @property
    def undecided(self) -> tuple[OpenTransaction, ...]:
        """Open transactions of tasks that no decision names."""
        return tuple(each for each in self.open if each.task and not each.decided)


@dataclass(frozen=True)
class Facts:
    """What was gathered. Each part may be missing; `problems` says why.

    Attributes:
        at_ms: when, milliseconds since the epoch.
        log: whether the log's topic is there.
        open: open transactions, cluster-wide or those under the prefix.
        evidence: of the transactions of each query's latest decision, as far as it was asked for.
        hosts: by group.
        dead: queries whose latest record's run is known to have died, since it ran here.
    """

    at_ms: int
    log: bool = True
    histories: Mapping[str, History] = field(default_factory=dict)
    unreadable: tuple[Unreadable, ...] = ()
    open: tuple[TransactionState, ...] = ()
    evidence: Mapping[str, tuple[Evidence, ...]] = field(default_factory=dict)
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dead: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """All queries of a decision log at one moment.

    Attributes:
        at_ms: when, milliseconds since the epoch, by the clock of whoever looked.
        log: whether the log's topic is there.
        queries: by name.
        strangers: open transactions under the prefix that belong to no query of the log.
        unreadable: records that this version does not read, latest or not, in the log's order.
        problems: what could not be seen; the rest is as told.
        records: what the log has got since the look before, oldest first; all of it at the first.
    """

    at_ms: int
    log: bool
    queries: tuple[QueryStatus, ...]
    strangers: tuple[OpenTransaction, ...]
    unreadable: tuple[Unreadable, ...]
    problems: tuple[Problem, ...]
    records: tuple[Written, ...] = ()

    @property
    def silent(self) -> bool:
        """A part of the cluster did not answer; what may not be seen is another matter."""
        return not all(problem.missing for problem in self.problems)

    def query(self, name: str) -> QueryStatus | None:
        return next((each for each in self.queries if each.query == name), None)


def snapshot(facts: Facts, prefix: str, records: Sequence[Written] = ()) -> Snapshot:
    """Judge the facts.

    Args:
        prefix: of queries that tell none.
        records: those that are new.
    """
    by_query = placed(facts.open, facts.histories)
    strangers = by_query.get(None, [])
    return Snapshot(
        at_ms=facts.at_ms,
        log=facts.log,
        queries=tuple(
            _status(history, facts, by_query.get(query, []), prefix)
            for query, history in facts.histories.items()
        ),
        strangers=tuple(
            _open(state, None, frozenset())
            for state in strangers
            if state.transaction.transactional_id.startswith(prefix)
        ),
        unreadable=facts.unreadable,
        problems=facts.problems,
        records=tuple(records),
    )


def placed(
    states: Iterable[TransactionState], histories: Mapping[str, History]
) -> dict[str | None, list[TransactionState]]:
    """By the query of the log whose id it is, under whatever prefix where its record tells none;
    None: of none of them."""
    by_query: dict[str | None, list[TransactionState]] = {}
    groups = {query: _group(history) for query, history in histories.items()}
    for state in states:
        match = _TASK_ID.fullmatch(state.transaction.transactional_id)
        fitting = [
            query
            for query, group in groups.items()
            if match and (match[1] == group if group else match[1].endswith(query))
        ]
        by_query.setdefault(max(fitting, key=len, default=None), []).append(state)
    return by_query


def _group(history: History) -> str:
    """As the latest record tells it, "" where it does not: another log may have the same query
    under another prefix."""
    prefix = history.latest.record.prefix if history.latest else ""
    return QueryNames.of_record(history.query, prefix).group if prefix else ""


def names_of(history: History, open_: Iterable[TransactionState], prefix: str) -> QueryNames:
    """The query's names in Kafka: under the prefix that its record tells, or its open transactions
    where the record is of an older version, else under the given one."""
    if history.latest and history.latest.record.prefix:
        return QueryNames.of_record(history.query, history.latest.record.prefix)
    if prefix and history.query.startswith(prefix):
        return QueryNames.of_record(history.query, prefix)
    shown = QueryNames.of_shown(history.query)
    if shown and shown.shown != shown.query:
        return shown
    ids = [state.transaction.transactional_id for state in open_]
    given = QueryNames(prefix, history.query)
    if any(name.startswith(f"{given.group}-") for name in ids):
        return given
    matches = (_TASK_ID.fullmatch(name) for name in ids)
    heads = {match[1].removesuffix(history.query) for match in matches if match}
    return QueryNames(heads.pop(), history.query) if len(heads) == 1 else given


def _status(
    history: History, facts: Facts, open_: list[TransactionState], prefix: str
) -> QueryStatus:
    latest, decided = history.latest, history.decided()
    record = latest.record if latest else None
    decision = record.decision if record else None
    names = names_of(history, open_, prefix)
    became = {e.entry.partition: outcome(e) for e in facts.evidence.get(history.query, ())}
    transactions = decision.transactions(names).keys() if decision else frozenset[Transaction]()
    hosts = facts.hosts.get(names.group)
    return QueryStatus(
        names=names,
        record=record,
        decided_at_ms=((record and record.stats.decided_ms) or decided.at_ms) if decided else None,
        outcome=batch_outcome(became.values()) if decision else None,
        lost=tuple(sorted(p for p, each in became.items() if each is Outcome.LOST)),
        doubtful=tuple(sorted(p for p, each in became.items() if each is Outcome.IN_DOUBT)),
        open=tuple(
            _open(state, names, transactions)
            for state in open_
            if state.status is TransactionStatus.ONGOING
        ),
        driver=_driver(hosts, dead=history.query in facts.dead or _is_of_a_tool(record)),
        hosts=hosts or (),
        hidden=history.hidden,
        query=history.query,
    )


def _driver(hosts: tuple[str, ...] | None, *, dead: bool) -> Driver:
    if dead:
        return Driver.GONE
    if hosts is None:
        return Driver.UNKNOWN
    return Driver.LIVE if hosts else Driver.GONE


def _is_of_a_tool(record: LogRecord | None) -> bool:
    """Whether the group's member is a command that has ended: a run begins with a record."""
    return bool(record and record.run and record.run.tool)


def _open(
    state: TransactionState, names: QueryNames | None, decided: Iterable[Transaction]
) -> OpenTransaction:
    return OpenTransaction(
        transaction=state.transaction,
        query=names.query if names else "",
        task=names.parse_task(state.transaction.transactional_id) if names else None,
        decided=state.transaction in decided,
        started_ms=state.started_ms,
        timeout_ms=state.timeout_ms,
    )
