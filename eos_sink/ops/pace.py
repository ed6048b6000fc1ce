"""Looks at a cluster, one after the other: how fast each query is, and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eos_sink.kafka.admin_interface import PartitionOffsets
from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.activity import Happening, Kind, told
from eos_sink.ops.snapshot import QueryStatus, Snapshot
from eos_sink.protocol.model import Decision, LogRecord
from eos_sink.protocol.outcome import Outcome

WINDOW_MS = 60_000
"""Over which a pace is told."""

Ends = Mapping[str, "tuple[PartitionOffsets, ...] | Unseen"]


@dataclass(frozen=True)
class Pace:
    """A query, and how fast it is.

    Attributes:
        rows_per_s, batches_per_min: decided over the last minute, by the records' times.
        recent: rows of its latest decided batches, the oldest first.
        behind: offsets between the last stable one and the end, of all its topics together: what
            read_committed readers wait for, markers and rows that will be aborted included; None:
            it could not be seen.
    """

    status: QueryStatus
    rows_per_s: float
    batches_per_min: float
    recent: tuple[int, ...]
    behind: int | None


class Pacer:
    """Takes in looks and keeps what is needed to compare them.

    Args:
        recent: so many batches of each query are kept.
    """

    def __init__(self, recent: int = 20) -> None:
        self._recent = recent
        self._last: dict[str, LogRecord] = {}
        self._decided: dict[str, list[Happening]] = {}
        self._settled: dict[str, Decision] = {}

    def take(self, look: Snapshot) -> list[Happening]:
        """What has happened since the look before; at the first one, all that the log still has."""
        found = []
        for written in look.records:
            happening = told(self._last.get(written.query), written)
            self._last[written.query] = written.record
            found.append(happening)
            if happening.kind is Kind.DECIDED:
                self._decided.setdefault(written.query, []).append(happening)
            elif happening.kind is Kind.SETTLED and written.record.decision is not None:
                self._settled[written.query] = written.record.decision
        found += self._newly_settled(look)
        for decided in self._decided.values():
            old = [each for each in decided if each.at_ms < look.at_ms - WINDOW_MS]
            del decided[: min(len(old), max(0, len(decided) - self._recent))]
        return found

    def paces(self, look: Snapshot, ends: Ends) -> list[Pace]:
        """Each query of the look that was taken in last."""
        return [self._pace(status, look.at_ms, ends) for status in look.queries]

    def _newly_settled(self, look: Snapshot) -> Iterable[Happening]:
        for status in look.queries:
            decision = status.decision
            if decision is None or status.outcome is not Outcome.COMMITTED:
                continue
            if self._settled.get(status.query) != decision:
                self._settled[status.query] = decision
                batch = str(decision.batch)
                yield Happening(look.at_ms, status.query, Kind.SETTLED, batch)

    def _pace(self, status: QueryStatus, now_ms: int, ends: Ends) -> Pace:
        decided = self._decided.get(status.query, [])
        lately = [each for each in decided if each.at_ms >= now_ms - WINDOW_MS]
        return Pace(
            status=status,
            rows_per_s=sum(each.rows for each in lately) * 1000 / WINDOW_MS,
            batches_per_min=len(lately) * 60_000 / WINDOW_MS,
            recent=tuple(each.rows for each in decided[-self._recent :]),
            behind=_behind(status, ends),
        )


def topics_of(look: Snapshot) -> list[str]:
    """The topics that the latest decisions have written to."""
    return sorted({topic for q in look.queries if q.decision for topic in q.decision.topics})


def _behind(status: QueryStatus, ends: Ends) -> int | None:
    total = 0
    for topic in status.decision.topics if status.decision else ():
        found = ends.get(topic)
        if not isinstance(found, tuple):
            return None
        total += sum(each.end - each.stable for each in found)
    return total
