"""What records of the decision log tell, one after the other: what has happened to a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from eos_sink.metrics.names import Count
from eos_sink.ops.history import Written
from eos_sink.protocol.model import LogRecord


class Kind(Enum):
    """What a record, or a look at the coordinators, tells."""

    DECIDED = "decided"
    SETTLED = "settled"
    """All of the decided batch is visible."""
    REWRITTEN = "lost partitions written again"
    REPLAYED = "repeated by Spark, nothing written"
    STARTED = "a run has begun"
    RECOVERED = "recovered"
    GIVEN_UP = "a batch was given up"
    RULED = "a person has chosen"
    REPEATED = "written again"
    """The same record under the next number: a batch that was planned before it is void."""


@dataclass(frozen=True)
class Happening:
    """One event of a query.

    Attributes:
        at_ms: milliseconds since the epoch, by the clock of the record's driver; SETTLED, unless
            a record says it: by the clock of the one who looked.
        batch: the decided batch; empty: there is none.
        rows: that were decided by it; 0 for everything but DECIDED.
        who: the run that began, or that was replaced by a person's choice; else empty.
    """

    at_ms: int
    query: str
    kind: Kind
    batch: str = ""
    rows: int = 0
    who: str = ""


_COUNTED = (
    (Count.RUNS, Kind.STARTED),
    (Count.ABORTS, Kind.GIVEN_UP),
    (Count.RECOVERIES, Kind.RECOVERED),
    (Count.REPLAYS, Kind.REPLAYED),
)


def told(before: LogRecord | None, written: Written) -> Happening:
    """What a record says beyond the one before it; None: compaction has left none."""
    record = written.record
    decision, kind = record.decision, _kind(before, record)
    return Happening(
        at_ms=written.at_ms,
        query=written.query,
        kind=kind,
        batch=str(decision.batch) if decision else "",
        rows=decision.total.rows if decision and kind is Kind.DECIDED else 0,
        who=str(record.run) if record.run and kind in (Kind.STARTED, Kind.RULED) else "",
    )


def _kind(before: LogRecord | None, record: LogRecord) -> Kind:
    if record.run is not None and record.run.tool:
        return Kind.RULED
    earlier = before.decision if before else None
    if record.decision is not None and not record.decision.repeats(earlier):
        if earlier is not None and earlier.batch == record.decision.batch:
            return Kind.REWRITTEN
        return Kind.DECIDED
    counts: Mapping[Count, int] = before.stats.counts if before else {}
    grown = [kind for count, kind in _COUNTED if record.stats.count(count) > counts.get(count, 0)]
    if grown:
        return grown[0]
    return Kind.SETTLED if record.settled and before and not before.settled else Kind.REPEATED
