"""Compares each snapshot of the queries with the one before, and measures their throughput."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.metrics.names import Count
from eos_sink.ops.history import Written
from eos_sink.ops.status import QueryStatus, Snapshot
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Run
from eos_sink.protocol.outcome import Outcome

WINDOW_MS = 60_000
"""The time over which throughput is measured."""


class EventKind(Enum):
    """The event that a record of the log, or a transaction coordinator, shows."""

    DECIDED = "decided"
    SETTLED = "settled"
    """The whole batch is visible."""
    REWRITTEN = "lost partitions written again"
    REPLAYED = "repeated by Spark, nothing written"
    STARTED = "a run has begun"
    RECOVERED = "recovered"
    GIVEN_UP = "a batch was given up"
    CHOSEN = "an operator has chosen"
    REPEATED = "written again"
    """The record repeats the one before: batches planned before it can no longer be decided."""


_DECIDING = (EventKind.DECIDED, EventKind.REWRITTEN)


@dataclass(frozen=True)
class QueryEvent:
    """One event of a query.

    Attributes:
        at_ms: milliseconds since the epoch, by the clock of the record's driver; of a SETTLED that
            no record shows, by the local clock.
        batch: the decided one, if there is one.
        rows: of a DECIDED batch, else 0.
        dead_letters: those of them that are in the dead letter topic.
        run: the one that has started, or the command of an operator that has chosen.
    """

    at_ms: int
    query: str
    kind: EventKind
    batch: BatchId | None = None
    rows: int = 0
    run: Run | None = None
    dead_letters: int = 0


@dataclass(frozen=True)
class Throughput:
    """A query and its throughput.

    Attributes:
        rows_per_s, batches_per_min: decided within the last minute, by the records' times.
        recent: rows of the latest decided batches, oldest first.
    """

    status: QueryStatus
    rows_per_s: float
    batches_per_min: float
    recent: tuple[int, ...]


class ActivityTracker:
    """Compares each snapshot with the ones before.

    Args:
        recent: how many batches of each query `Throughput.recent` has.
    """

    def __init__(self, recent: int = 20) -> None:
        self._recent = recent
        self._last: dict[str, LogRecord] = {}
        self._decided: dict[str, list[QueryEvent]] = {}
        self._settled: dict[str, Decision] = {}

    def update(self, look: Snapshot) -> list[QueryEvent]:
        """The events since the last snapshot; for the first one, all that the log still has."""
        found = []
        for written in look.records:
            event = _read_event(self._last.get(written.query), written)
            self._last[written.query] = written.record
            found.append(event)
            if event.kind is EventKind.DECIDED:
                self._decided.setdefault(written.query, []).append(event)
            if written.record.settled and event.kind in _DECIDING:
                # The driver has written all rows together with the decision.
                found.append(replace(event, kind=EventKind.SETTLED, rows=0, dead_letters=0))
            if found[-1].kind is EventKind.SETTLED and written.decision is not None:
                self._settled[written.query] = written.decision
        for status in look.queries:
            decision, query = status.decision, status.query
            if decision is None or status.outcome is not Outcome.COMMITTED:
                continue
            if self._settled.get(query) != decision:
                self._settled[query] = decision
                found.append(QueryEvent(look.at_ms, query, EventKind.SETTLED, decision.batch))
        for decided in self._decided.values():
            old = [each for each in decided if each.at_ms < look.at_ms - WINDOW_MS]
            del decided[: min(len(old), max(0, len(decided) - self._recent))]
        return found

    def measure(self, look: Snapshot) -> list[Throughput]:
        """The throughput of each query of the last snapshot."""
        found = []
        for status in look.queries:
            decided = self._decided.get(status.query, [])
            lately = [each for each in decided if each.at_ms >= look.at_ms - WINDOW_MS]
            found.append(
                Throughput(
                    status=status,
                    rows_per_s=sum(each.rows for each in lately) * 1000 / WINDOW_MS,
                    batches_per_min=len(lately) * 60_000 / WINDOW_MS,
                    recent=tuple(each.rows for each in decided[-self._recent :]),
                )
            )
        return found


_COUNTED = {
    Count.RUNS: EventKind.STARTED,
    Count.ABORTS: EventKind.GIVEN_UP,
    Count.RECOVERIES: EventKind.RECOVERED,
    Count.REPLAYS: EventKind.REPLAYED,
}


def _read_event(before: LogRecord | None, written: Written) -> QueryEvent:
    """Return what a record shows beyond the one before it, which compaction may have dropped
    (None)."""
    record, decision = written.record, written.decision
    kind = _kind_of(before, record)
    return QueryEvent(
        at_ms=written.at_ms,
        query=written.query,
        kind=kind,
        batch=decision.batch if decision else None,
        rows=decision.total.rows if decision and kind is EventKind.DECIDED else 0,
        dead_letters=decision.dead_letter_rows if decision and kind is EventKind.DECIDED else 0,
        run=record.run if kind in (EventKind.STARTED, EventKind.CHOSEN) else None,
    )


def _kind_of(before: LogRecord | None, record: LogRecord) -> EventKind:
    if record.run is not None and record.run.tool:
        return EventKind.CHOSEN
    earlier = before.decision if before else None
    if record.decision is not None and not record.decision.repeats(earlier):
        again = earlier is not None and earlier.batch == record.decision.batch
        return EventKind.REWRITTEN if again else EventKind.DECIDED
    for count, kind in _COUNTED.items():
        if record.stats.count(count) > (before.stats.count(count) if before else 0):
            return kind
    if record.settled and before and not before.settled:
        return EventKind.SETTLED
    return EventKind.REPEATED
