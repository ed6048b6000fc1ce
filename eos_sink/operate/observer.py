"""Looks at a cluster, again and again, and asks each time only for what may have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from eos_sink.deadline import Deadline
from eos_sink.driver.processes import died_here
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.model import Decision, Witness
from eos_sink.observing import LogPage, Observation
from eos_sink.operate.history import History, Unreadable, Written, histories, read_records
from eos_sink.operate.snapshot import (
    Facts,
    Problem,
    Settled,
    Snapshot,
    names_of,
    placed,
    snapshot,
    verdict,
)
from eos_sink.ports import TransactionState, Visibility
from eos_sink.verdicts import Settling, settling

# Records of one query that are kept: more than voids follow each other, so that the first record
# of the latest decision is among them.
_KEPT = 200
# Whoever waits behind an open transaction waits for a time-out; a person does not.
_WITNESSES_S, _WITNESSES_AGAIN_MS = 2.0, 30_000
# What one silent part of a cluster may cost, so that the rest is shown.
_SHARE, _SHARE_S = 3, 15.0


def now_ms() -> int:
    return int(time.time() * 1000)


class Observer:
    """Takes snapshots of all queries of one decision log.

    The first reads all of the log, each further one what has come since; what is known to be
    settled is not asked for again.
    """

    def __init__(
        self, kafka: Observation, prefix: str, clock_ms: Callable[[], int] = now_ms
    ) -> None:
        """Args:
        prefix: `eos.transactional.id.prefix` of queries that do not tell theirs.
        clock_ms: now, milliseconds since the epoch.
        """
        self._kafka = kafka
        self._prefix = prefix
        self._clock_ms = clock_ms
        self._records: dict[str, list[Written]] = {}
        self._unreadable: list[Unreadable] = []
        self._ends: dict[int, int] = {}
        self._settled: dict[str, Decision] = {}
        self._seen: dict[Witness, Visibility] = {}
        self._again: dict[Witness, int] = {}
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
        described = self._described(known, names, deadline)
        self._look_at_witnesses(known, names, described, deadline)
        for query, decision in _decisions(known):
            if verdict(decision, names[query], described, self._seen)[0] is Settled.YES:
                self._settled[query] = decision
        facts = Facts(
            at_ms=self._clock_ms(),
            log=self._there,
            histories=known,
            unreadable=tuple(self._unreadable),
            open=tuple(open_),
            described=described,
            seen=self._seen,
            settled=frozenset(self._settled),
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
            page = self._kafka.log_lines(self._ends, deadline)
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
            return self._kafka.transactions("", share)
        except EosSinkError as error:
            if not (error.data.get("missing") and self._prefix):
                self._problems.append(Problem.of(error))
                return []
        try:
            return self._kafka.transactions(self._prefix, share)
        except EosSinkError as error:
            self._add(Problem.of(error))
            return []

    def _described(
        self, known: dict[str, History], names: dict[str, QueryNames], deadline: Deadline
    ) -> dict[str, TransactionState]:
        """The decided transactions that are not known to be settled."""
        share = _share(deadline)
        self._settled = {q: d for q, d in _decisions(known) if self._settled.get(q) == d}
        wanted: dict[str, list[str]] = {}
        found: dict[str, TransactionState] = {}
        for query, decision in _decisions(known):
            if query not in self._settled:
                ids = wanted.setdefault(names[query].prefix, [])
                ids += [t.transactional_id for t in decision.transactions(names[query])]
        for ids_of_prefix in wanted.values():
            try:
                found.update(self._kafka.described(ids_of_prefix, share))
            except EosSinkError as error:
                self._add(Problem.of(error))
        return found

    def _look_at_witnesses(
        self,
        known: dict[str, History],
        names: dict[str, QueryNames],
        described: dict[str, TransactionState],
        deadline: Deadline,
    ) -> None:
        """Where a coordinator can no longer tell, and nothing of the decision is open, which would
        hide it. An answer stays true; without one it is asked for later."""
        now = self._clock_ms()
        for query, decision in _decisions(known):
            steps = {
                entry.witness: settling(transaction, state)
                for transaction, entry in decision.transactions(names[query]).items()
                if (state := described.get(transaction.transactional_id))
            }
            if Settling.END in steps.values():
                continue
            wanted = [
                witness
                for witness, step in steps.items()
                if step is Settling.LOOK
                and witness not in self._seen
                and now >= self._again.get(witness, 0)
            ]
            if not wanted:
                continue
            self._again.update(dict.fromkeys(wanted, now + _WITNESSES_AGAIN_MS))
            try:
                self._seen.update(self._kafka.visibility(wanted, deadline.within(_WITNESSES_S)))
            except EosSinkError as error:
                self._add(Problem.of(error))

    def _hosts(self, groups: Iterable[str], deadline: Deadline) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        try:
            answers = self._kafka.hosts(groups, _share(deadline))
        except EosSinkError as error:
            self._add(Problem.of(error))
            return found
        for group, answer in answers.items():
            if isinstance(answer, EosSinkError):
                self._add(Problem.of(answer))
            else:
                found[group] = answer
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
