"""Looks at a cluster, again and again, and asks each time only for what may have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from eos_sink.driver.evidence import ask_topics
from eos_sink.driver.processes import died_here
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin, LogPage
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Transaction, TransactionState, Unseen
from eos_sink.ops.history import History, Unreadable, Written, histories, read_records
from eos_sink.ops.snapshot import (
    Facts,
    Problem,
    Snapshot,
    names_of,
    placed,
    snapshot,
)
from eos_sink.protocol.model import Decision
from eos_sink.protocol.outcome import Evidence, Outcome, Source, evidence_in_log, missing, outcome

# Records of one query that are kept: more than voids follow each other, so that the first record
# of the latest decision is among them.
_KEPT = 200
# Whoever waits behind an open transaction waits for a time-out; a person does not.
_TOPICS_S, _TOPICS_AGAIN_MS = 2.0, 30_000
# What one silent part of a cluster may cost, so that the rest is shown.
_SHARE, _SHARE_S = 3, 15.0


def now_ms() -> int:
    return int(time.time() * 1000)


class Observer:
    """Takes snapshots of all queries of one decision log.

    The first reads all of the log, each further one what has come since; what is known to be
    settled is not asked for again.
    """

    def __init__(self, admin: Admin, prefix: str, clock_ms: Callable[[], int] = now_ms) -> None:
        """Args:
        prefix: `eos.transactional.id.prefix` of queries that do not tell theirs.
        clock_ms: now, milliseconds since the epoch.
        """
        self._admin = admin
        self._prefix = prefix
        self._clock_ms = clock_ms
        self._records: dict[str, list[Written]] = {}
        self._unreadable: list[Unreadable] = []
        self._ends: dict[int, int] = {}
        self._settled: dict[str, Decision] = {}
        self._seen: dict[Transaction, Evidence] = {}
        self._again: dict[Transaction, int] = {}
        self._problems: list[Problem] = []
        self._there = False

    def look(self, deadline: Deadline, *, keep: int = _KEPT) -> Snapshot:
        """What there is now.

        Args:
            keep: so many records of each query.

        Raises:
            EosSinkError: the log cannot be read, for another reason than a permission.
        """
        self._problems = []
        page = self._read(deadline)
        new = self._take(page, keep) if page else []
        known = histories(
            (w for records in self._records.values() for w in records), self._unreadable
        )
        open_ = self._open(deadline)
        by_query = placed(open_, known)
        names = {
            query: names_of(history, by_query.get(query, ()), self._prefix)
            for query, history in known.items()
        }
        evidence = self._evidence(known, names, deadline)
        for query, decision in _decisions(known):
            if all(outcome(each) is Outcome.COMMITTED for each in evidence[query]):
                self._settled[query] = decision
        facts = Facts(
            at_ms=self._clock_ms(),
            log=self._there,
            histories=known,
            unreadable=tuple(self._unreadable),
            open=tuple(open_),
            evidence=evidence,
            hosts=self._hosts([each.group for each in names.values()], deadline),
            dead=frozenset(query for query, history in known.items() if _is_dead(history)),
            problems=tuple(self._problems),
        )
        return snapshot(facts, self._prefix, new)

    def history(self, query: str) -> History | None:
        """What the last look has left of a query's records."""
        records = self._records.get(query, [])
        return histories(records, self._unreadable).get(query)

    def _read(self, deadline: Deadline) -> LogPage | None:
        try:
            page = self._admin.read_log(self._ends, deadline)
        except EosSinkError as error:
            if not error.data.get("missing"):
                raise
            self._problems.append(Problem.of(error))
            self._there = True
            return None
        self._there = page is not None
        return page

    def _take(self, page: LogPage, keep: int) -> list[Written]:
        if page.anew:
            self._records, self._unreadable, self._settled = {}, [], {}
        self._ends = dict(page.ends)
        new, unreadable = read_records(page.lines)
        for written in new:
            records = self._records.setdefault(written.query, [])
            records.append(written)
            del records[:-keep]
        self._unreadable += unreadable
        return new

    def _open(self, deadline: Deadline) -> list[TransactionState]:
        """Of the whole cluster, since queries may have other prefixes; else under the one given."""
        share = _share(deadline)
        try:
            return self._admin.list_transactions("", share)
        except EosSinkError as error:
            if not (error.data.get("missing") and self._prefix):
                self._problems.append(Problem.of(error))
                return []
        try:
            return self._admin.list_transactions(self._prefix, share)
        except EosSinkError as error:
            self._add(Problem.of(error))
            return []

    def _evidence(
        self, known: dict[str, History], names: dict[str, QueryNames], deadline: Deadline
    ) -> dict[str, tuple[Evidence, ...]]:
        """Of each query's latest decision."""
        self._settled = {q: d for q, d in _decisions(known) if self._settled.get(q) == d}
        found: dict[str, tuple[Evidence, ...]] = {}
        for query, decision in _decisions(known):
            latest = known[query].latest
            settled = query in self._settled or bool(latest and latest.record.settled)
            found[query] = evidence_in_log(names[query], decision, settled=settled)
        states = self._described(names, found, deadline)
        return {query: self._asked(known, states, deadline) for query, known in found.items()}

    def _described(
        self,
        names: dict[str, QueryNames],
        evidence: dict[str, tuple[Evidence, ...]],
        deadline: Deadline,
    ) -> dict[str, TransactionState]:
        """The decided transactions that are not known to be settled."""
        share = _share(deadline)
        wanted: dict[str, list[str]] = {}
        found: dict[str, TransactionState] = {}
        for query, each in evidence.items():
            ids = wanted.setdefault(names[query].prefix, [])
            ids += [
                e.transaction.transactional_id for e in each if missing(e) is Source.COORDINATOR
            ]
        for ids_of_prefix in filter(None, wanted.values()):
            try:
                found.update(self._admin.describe_transactions(ids_of_prefix, share))
            except EosSinkError as error:
                self._add(Problem.of(error))
        return found

    def _asked(
        self,
        known: tuple[Evidence, ...],
        states: dict[str, TransactionState],
        deadline: Deadline,
    ) -> tuple[Evidence, ...]:
        """With what coordinators and topics say. Topics are asked where nothing of the decision is
        open, which would hide it. An answer stays true; without one it is asked for later."""
        now = self._clock_ms()
        known = tuple(self._remembered(each, states) for each in known)
        wanted = [
            each
            for each in known
            if missing(each) in (Source.WITNESS, Source.MARKER)
            and each.state is not None
            and now >= self._again.get(each.transaction, 0)
        ]
        if not wanted or any(outcome(each) is Outcome.OPEN for each in known):
            return known
        self._again.update(dict.fromkeys((e.transaction for e in wanted), now + _TOPICS_AGAIN_MS))
        try:
            asked = ask_topics(self._admin.kafka, wanted, deadline.within(_TOPICS_S))
        except EosSinkError as error:
            self._add(Problem.of(error))
            return known
        found = {each.transaction: each for each in asked}
        self._seen.update(found)
        return tuple(found.get(each.transaction, each) for each in known)

    def _remembered(self, known: Evidence, states: dict[str, TransactionState]) -> Evidence:
        seen = self._seen.get(known.transaction, known)
        state = states.get(known.transaction.transactional_id)
        return replace(known, state=state, witness=seen.witness, marker=seen.marker)

    def _hosts(self, groups: Iterable[str], deadline: Deadline) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        try:
            answers = self._admin.describe_groups(groups, _share(deadline))
        except EosSinkError as error:
            self._add(Problem.of(error))
            return found
        for group, answer in answers.items():
            if isinstance(answer, Unseen):
                self._add(Problem.of(answer.error(f"The group {group} cannot be seen")))
            else:
                found[group] = tuple(sorted(member.host for member in answer))
        return found

    def _add(self, problem: Problem) -> None:
        if problem not in self._problems:
            self._problems.append(problem)


def _share(deadline: Deadline) -> Deadline:
    return deadline.within(min(_SHARE_S, deadline.left / _SHARE))


def _decisions(known: dict[str, History]) -> list[tuple[str, Decision]]:
    found = ((query, h.latest.record.decision) for query, h in known.items() if h.latest)
    return [(query, decision) for query, decision in found if decision is not None]


def _is_dead(history: History) -> bool:
    owner = history.latest.record.owner if history.latest else None
    return owner is not None and died_here(owner)
