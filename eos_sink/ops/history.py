"""The decision log's lines as records: each query's history, and what is not of the sink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eos_sink.decision_log.record_format import decode, is_moved
from eos_sink.errors import OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import LogLine
from eos_sink.kafka.interfaces import LogPosition
from eos_sink.protocol.model import BatchId, LogRecord


@dataclass(frozen=True)
class Written:
    """A record as the log has it.

    Attributes:
        query: as it is shown, `QueryNames.shown`.
        at_ms: when it was written, milliseconds since the epoch, by its driver's clock.
    """

    query: str
    record: LogRecord
    position: LogPosition
    at_ms: int


@dataclass(frozen=True)
class Unreadable:
    """A record that this version does not read: of a newer version, or of something else.

    Attributes:
        why: as the decoder says it.
    """

    key: str
    position: LogPosition
    why: str

    @property
    def where(self) -> str:
        return f"{self.position.topic}[{self.position.partition}]@{self.position.offset}"


@dataclass(frozen=True)
class History:
    """What the log still has of one query.

    Attributes:
        query: as it is shown, `QueryNames.shown`.
        records: the oldest first.
        hidden: the latest record, where it is unreadable: the sink stops there.
    """

    query: str
    records: tuple[Written, ...]
    hidden: Unreadable | None = None

    @property
    def latest(self) -> Written | None:
        return self.records[-1] if self.records else None

    def decided(self) -> Written | None:
        """The first kept record with the latest decision: later ones repeat it."""
        latest = self.latest
        decision = latest.record.decision if latest else None
        if latest is None or decision is None:
            return None
        found = latest
        for earlier in reversed(self.records[:-1]):
            if not decision.repeats(earlier.record.decision):
                break
            found = earlier
        return found

    def of_batch(self, batch: int) -> list[Written]:
        """The records that decide a batch of this number, of whichever stream."""
        numbers = [(w, w.record.decision) for w in self.records]
        return [w for w, decision in numbers if decision and decision.batch.batch == batch]

    @property
    def streams(self) -> list[str]:
        """All that are known, the latest first."""
        batches: list[BatchId] = []
        for written in reversed(self.records):
            batches += reversed(written.record.decided)
        return list(dict.fromkeys(batch.stream for batch in batches))


def read_records(lines: Iterable[LogLine]) -> tuple[list[Written], list[Unreadable]]:
    """Lines as records, in their order, and those that are none. A query that has gone on under its
    own key keeps what older versions wrote of it."""
    records: list[Written] = []
    unreadable: list[Unreadable] = []
    for line in lines:
        place = line.position
        if is_moved(line.value):
            continue
        try:
            record = decode(line.value, f"{place.topic}[{place.partition}]@{place.offset}")
        except OperatorNeededError as error:
            cause = error.__cause__ or error
            why = "a tombstone" if not line.value else f"{cause}" or type(cause).__name__
            unreadable.append(Unreadable(line.key, place, why))
        else:
            query = QueryNames.of_record(line.key, record.prefix).shown
            records.append(Written(query, record, place, line.at_ms))
    return records, unreadable


def histories(records: Iterable[Written], unreadable: Iterable[Unreadable]) -> dict[str, History]:
    """Each query that has a record, or an unreadable one under a name that only the sink makes."""
    kept: dict[str, list[Written]] = {}
    hidden: dict[str, list[Unreadable]] = {}
    for written in records:
        kept.setdefault(written.query, []).append(written)
    for each in unreadable:
        query = shown_key(each.key)
        if query in kept or QueryNames.of_shown(query):
            hidden.setdefault(query, []).append(each)
    found: dict[str, History] = {}
    for query in sorted(kept.keys() | hidden.keys()):
        known = tuple(sorted(kept.get(query, ()), key=lambda w: w.position.offset))
        end = known[-1].position.offset if known else -1
        latest = max(hidden.get(query, ()), key=lambda u: u.position.offset, default=None)
        behind = latest if latest and latest.position.offset > end else None
        found[query] = History(query, known, behind)
    return {query: history for query, history in found.items() if history.records or history.hidden}


def shown_key(key: str) -> str:
    """The query whose record nobody can read, by its key alone."""
    return QueryNames.of_record(key, "").shown
