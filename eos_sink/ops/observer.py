"""Takes snapshots of a cluster, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from eos_sink.driver.evidence import ask_topic_ids, ask_topics
from eos_sink.driver.processes import is_dead_here
from eos_sink.driver.reconcile import list_committed
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import MemberDescription, PartitionOffsets, Unseen
from eos_sink.ops.history import (
    History,
    Unreadable,
    Written,
    find_names,
    histories,
    read_records,
)
from eos_sink.ops.holders import Holder, find_holders, read_ends
from eos_sink.ops.status import (
    Ends,
    Problem,
    QueryStatus,
    QueryTransaction,
    Snapshot,
    group_by_query,
)
from eos_sink.protocol.model import Decision
from eos_sink.protocol.outcome import Evidence, Outcome, Source, evidence_in_log, missing, outcome
from eos_sink.protocol.values import Transaction, TransactionState, TransactionStatus

T = TypeVar("T")
# Records kept of a query. More than the records that repeat one decision, so that the first record
# of the latest decision is among them.
_KEPT = 200
# Cap the wait for witnesses: an operator should not block until a transaction times out.
_TOPICS_S, _TOPICS_AGAIN_MS = 2.0, 30_000
# A silent part of a cluster costs no more than this, so that the rest is shown.
_SHARE, _SHARE_S = 3, 15.0


def now_ms() -> int:
    return int(time.time() * 1000)


class Observer:
    """Takes snapshots of all queries of one decision log.

    The first one reads the whole log, later ones what is new. Settled decisions are not asked for
    again. After a snapshot without an answer of some part of the cluster, the next one has new
    clients: librdkafka (2.16) may wait for a coordinator long after its broker has restarted.
    """

    def __init__(self, admin: Admin, prefix: str, clock_ms: Callable[[], int] = now_ms) -> None:
        """Args:
        prefix: `eos.transactional.id.prefix` of queries whose records cannot be read.
        clock_ms: now, milliseconds since the epoch.
        """
        self._admin = admin
        self._prefix = prefix
        self._clock_ms = clock_ms
        self._records: dict[str, list[Written]] = {}
        self._unreadable: list[Unreadable] = []
        self._ends: dict[int, int] = {}
        self._settled: dict[str, Decision] = {}
        self._answers: dict[Transaction, Evidence] = {}
        self._ask_again_ms: dict[Transaction, int] = {}
        self._problems: list[Problem] = []
        self._is_whole = True
        self._was_silent = False

    def look(self, deadline: Deadline) -> Snapshot:
        """Take a snapshot.

        Raises:
            EosSinkError: the log cannot be read, and no missing permission is the reason.
        """
        if self._was_silent:
            self._admin.renew()
        # It imports kafka-python, which takes a while.
        from eos_sink.kafka.hanging import check_coordinators

        self._problems, self._was_silent = [], True
        log, new = self._read_log(deadline)
        known = histories(chain.from_iterable(self._records.values()), self._unreadable)
        names = {query: find_names(history, self._prefix) for query, history in known.items()}
        listed, seen = self._list_open(names.values(), deadline)
        with self._collect_problems():
            check_coordinators(self._admin.control(), self._prefix, _share(deadline))
        # One may have ended while it was described.
        open_ = [each for each in listed or () if each.status is TransactionStatus.ONGOING]
        states = group_by_query(open_, names)
        evidence = self._gather_evidence(known, names, deadline)
        at_ms = self._clock_ms()
        hosts = self._list_hosts(names, deadline)
        ends = self._read_ends(known.values(), deadline)
        queries = tuple(
            QueryStatus(
                history,
                names[query],
                evidence.get(query, ()),
                None
                if listed is None or not names[query].group.startswith(seen)
                else _open_of(history, names[query], states.get(query, ())),
                hosts.get(names[query].group),
                dead=history.run is not None and is_dead_here(history.run),
                ends=ends,
            )
            for query, history in known.items()
        )
        nobodys = tuple(
            QueryTransaction(state)
            for state in states.get(None, ())
            if state.transaction.transactional_id.startswith(self._prefix)
        )
        unrecorded = () if known else self._list_unrecorded(deadline)
        written = {self._admin.log_topic, *(topic for each in queries for topic in each.topics)}
        written_ends = {topic: ends[topic] for topic in sorted(written & ends.keys())}
        holders = self._find_holders(written_ends, deadline)
        found = Snapshot(
            at_ms,
            log,
            queries,
            None if listed is None else nobodys,
            tuple(self._unreadable),
            tuple(self._problems),
            tuple(new),
            unrecorded,
            tuple(holders),
            self._is_whole,
            written_ends,
        )
        self._was_silent = found.silent
        return found

    def _read_log(self, deadline: Deadline) -> tuple[bool, list[Written]]:
        """Return True if there is a log, and its new records."""
        try:
            page = self._admin.read_log(self._ends, deadline)
        except EosSinkError as error:
            if not error.data.get("missing"):
                raise
            self._problems.append(Problem.of(error))
            return True, []
        if page is None:
            return False, []
        if page.recreated:
            self._records, self._unreadable, self._settled, self._ends = {}, [], {}, {}
        self._ends |= page.ends
        self._is_whole = not page.unread
        for number, why in page.unread.items():
            what = f"Partition {number} of the decision log is not seen, nor its queries: {why}"
            self._problems.append(Problem(what))
        new, unreadable = read_records(page.lines)
        for written in new:
            records = self._records.setdefault(written.query, [])
            records.append(written)
            del records[:-_KEPT]
        self._unreadable += unreadable
        return True, new

    def _list_open(
        self, queries: Iterable[QueryNames], deadline: Deadline
    ) -> tuple[list[TransactionState] | None, str]:
        """Open transactions of the whole cluster, since queries may have other prefixes; without
        the permission for that, those under the given prefix. None: they cannot be listed.

        Returns:
            Them, and the prefix of all ids that were listed.
        """
        share, found, prefix = _share(deadline), None, ""
        with self._collect_problems():
            list_open = self._admin.control().list_transactions
            try:
                found = list_open("", share, TransactionStatus.ONGOING)
            except EosSinkError as error:
                if not (error.data.get("missing") and self._prefix):
                    raise
                prefix = self._prefix
                if not all(each.group.startswith(prefix) for each in queries):
                    self._problems.append(Problem.of(error))
                found = list_open(prefix, share, TransactionStatus.ONGOING)
        return found, prefix

    def _list_unrecorded(self, deadline: Deadline) -> tuple[str, ...] | None:
        """Nothing is committed without a record, so a log without queries may have lost them, if
        it was read as a whole."""
        if self._is_whole:
            with self._collect_problems():
                states = list_committed(self._admin, self._prefix, _share(deadline))
                return tuple(each.transaction.transactional_id for each in states)
        return None

    def _gather_evidence(
        self, known: dict[str, History], names: dict[str, QueryNames], deadline: Deadline
    ) -> dict[str, tuple[Evidence, ...]]:
        """Return the evidence about the transactions of each query's latest decision."""
        found: dict[str, tuple[Evidence, ...]] = {}
        ids: dict[str, list[str]] = {}
        for query, history in known.items():
            if history.latest is None or (decision := history.decision) is None:
                continue
            settled = history.latest.record.settled or self._settled.get(query) == decision
            found[query] = evidence_in_log(names[query], decision, settled=settled)
            ids.setdefault(names[query].prefix, []).extend(
                each.transaction.transactional_id
                for each in found[query]
                if missing(each) is Source.COORDINATOR
            )
        share, states = _share(deadline), dict[str, TransactionState]()
        for ids_of_prefix in filter(None, ids.values()):
            with self._collect_problems():
                states.update(self._admin.control().describe(ids_of_prefix, share))
        for query, evidence in found.items():
            found[query] = self._ask_topics(evidence, states, deadline)
            decision = known[query].decision
            if decision and all(outcome(each) is Outcome.COMMITTED for each in found[query]):
                self._settled[query] = decision
        return found

    def _ask_topics(
        self,
        known: tuple[Evidence, ...],
        states: dict[str, TransactionState],
        deadline: Deadline,
    ) -> tuple[Evidence, ...]:
        """Add what coordinators have answered, and ask topics for what is still missing.

        Topics are asked only while nothing of the decision is open, which would hide it. Their
        answers do not change; a topic that gave none is asked again later.
        """
        now = self._clock_ms()
        remembered = []
        for each in known:
            before = self._answers.get(each.transaction, each)
            state = states.get(each.transaction.transactional_id)
            remembered.append(
                replace(each, state=state, witness=before.witness, marker=before.marker)
            )
        known = tuple(remembered)
        with self._collect_problems():
            known = ask_topic_ids(self._admin, known, deadline.within(_TOPICS_S))
        wanted = [
            each
            for each in known
            if missing(each) in (Source.WITNESS, Source.MARKER)
            and each.state is not None
            and now >= self._ask_again_ms.get(each.transaction, 0)
        ]
        if not wanted or any(outcome(each) is Outcome.OPEN for each in known):
            return known
        for each in wanted:
            self._ask_again_ms[each.transaction] = now + _TOPICS_AGAIN_MS
        found: dict[Transaction, Evidence] = {}
        with self._collect_problems():
            asked = ask_topics(self._admin, wanted, deadline.within(_TOPICS_S))
            found = {each.transaction: each for each in asked}
        self._answers.update(found)
        return tuple(found.get(each.transaction, each) for each in known)

    def _list_hosts(
        self, names: dict[str, QueryNames], deadline: Deadline
    ) -> dict[str, tuple[str, ...]]:
        """The hosts of each group's members, as far as the groups may be read."""
        answers: Mapping[str, tuple[MemberDescription, ...] | Unseen] = {}
        with self._collect_problems():
            groups = [each.group for each in names.values()]
            answers = self._admin.describe_groups(groups, _share(deadline))
        members = self._keep_seen("The group", answers)
        return {each: tuple(sorted(m.host for m in members[each])) for each in members}

    def _read_ends(self, known: Iterable[History], deadline: Deadline) -> Ends:
        """The ends of the topics that queries write to and read, and of the log, as far as they may
        be seen."""
        topics: set[str] = set()
        for record in (history.latest.record for history in known if history.latest):
            topics.update(record.decision.topics if record.decision else ())
            if record.source and not record.source.stale:
                topics.update(topic for topic, _ in record.source.end)
        answers: Mapping[str, tuple[PartitionOffsets, ...] | Unseen] = {}
        with self._collect_problems():
            if topics:
                share, names = _share(deadline), sorted({*topics, self._admin.log_topic})
                views = self._admin.describe_topics(names, share, settings=False)
                answers = read_ends(self._admin, views, share)
        return self._keep_seen("Topic", answers)

    def _keep_seen(self, what: str, answers: Mapping[str, T | Unseen]) -> dict[str, T]:
        found: dict[str, T] = {}
        for name, answer in answers.items():
            with self._collect_problems():
                if isinstance(answer, Unseen):
                    raise answer.error(f"{what} {name} cannot be seen")
                found[name] = answer
        return found

    def _find_holders(self, ends: Ends, deadline: Deadline) -> list[Holder]:
        """Find who holds up readers, but for transactions that are under way."""
        share, found = _share(deadline), list[Holder]()
        for topic, partitions in ends.items():
            with self._collect_problems():
                found += find_holders(self._admin, topic, partitions, share)
        now = self._clock_ms()
        return [each for each in found if each.state is None or each.hangs or each.is_late(now)]

    @contextmanager
    def _collect_problems(self) -> Iterator[None]:
        """Note what could not be read, and go on with the rest."""
        try:
            yield
        except EosSinkError as error:
            problem = Problem.of(error)
            if problem not in self._problems:
                self._problems.append(problem)


def _share(deadline: Deadline) -> Deadline:
    return deadline.within(min(_SHARE_S, deadline.left / _SHARE))


def _open_of(
    history: History, names: QueryNames, states: Iterable[TransactionState]
) -> tuple[QueryTransaction, ...]:
    decided = history.decision.transactions(names) if history.decision else {}
    return tuple(QueryTransaction(state, names, state.transaction in decided) for state in states)
