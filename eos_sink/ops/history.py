"""The records of the decision log, by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eos_sink.decision_log.codec import decode, is_claim, newer_format
from eos_sink.errors import OperatorNeededError
from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.kafka.admin_interface import LogLine
from eos_sink.protocol.model import BatchId, Decision, LogEntry, LogRecord, Run
from eos_sink.protocol.values import Position

_NO_RECORD = LogEntry(LogRecord(seq=0, decision=None, writer=""), Position("", 0, 0))


@dataclass(frozen=True)
class Written:
    """A record and where it is in the log.

    Attributes:
        query: `QueryNames.shown` of its query.
        at_ms: when it was written, milliseconds since the epoch, by its driver's clock.
    """

    query: str
    record: LogRecord
    position: Position
    at_ms: int

    @property
    def decision(self) -> Decision | None:
        return self.record.decision


@dataclass(frozen=True)
class Unreadable:
    """A record that this version cannot read: a newer version or another program wrote it.

    Attributes:
        why: the decoder's reason.
        newer: its format, if a newer version wrote it.
    """

    key: str
    position: Position
    why: str
    newer: int | None = None


@dataclass(frozen=True)
class History:
    """The records of one query that compaction has left.

    Attributes:
        query: `QueryNames.shown`.
        records: oldest first.
        hidden: the latest record, if it is unreadable; the sink stops there.
        unread: why records may be missing; "": all was read.
        log: whether the log's topic exists.
        held: the log goes on behind an open transaction, which may be one of the query's driver.
    """

    query: str
    records: tuple[Written, ...]
    hidden: Unreadable | None = None
    unread: str = ""
    log: bool = True
    held: bool = False

    @property
    def is_seen(self) -> bool:
        """True if there is a record."""
        return bool(self.records or self.hidden)

    @property
    def latest(self) -> Written | None:
        return self.records[-1] if self.records else None

    @property
    def entry(self) -> LogEntry:
        """The latest record as a driver has it."""
        return LogEntry(self.latest.record, self.latest.position) if self.latest else _NO_RECORD

    @property
    def seq(self) -> int:
        """The number of the latest record; 0: there is none."""
        return self.entry.seq

    @property
    def decision(self) -> Decision | None:
        """The decision of the latest record."""
        return self.entry.decision

    @property
    def run(self) -> Run | None:
        """The run that wrote the latest record."""
        return self.entry.record.run

    def decided(self) -> Written | None:
        """The first kept record of the latest decision; later records repeat it."""
        decision = self.decision
        first = self.latest if decision else None
        for earlier in reversed(self.records[:-1]):
            if decision is None or not decision.repeats(earlier.decision):
                break
            first = earlier
        return first

    @property
    def streams(self) -> list[str]:
        """All known streams, the latest first."""
        batches: list[BatchId] = []
        for written in reversed(self.records):
            batches += reversed(written.record.decided)
        return list(dict.fromkeys(batch.stream for batch in batches))


def read_records(lines: Iterable[LogLine]) -> tuple[list[Written], list[Unreadable]]:
    """Decode lines of the log, in their order, without claims."""
    records: list[Written] = []
    unreadable: list[Unreadable] = []
    for line in lines:
        if is_claim(line.value):
            continue
        try:
            record = decode(line.value, str(line.position))
        except OperatorNeededError as error:
            cause = error.__cause__ or error
            why = "a tombstone" if not line.value else f"{cause}" or type(cause).__name__
            newer = newer_format(line.value)
            unreadable.append(Unreadable(line.key, line.position, why, newer))
        else:
            query = QueryNames.of_record(line.key, record.prefix).shown
            records.append(Written(query, record, line.position, line.at_ms))
    return records, unreadable


def histories(records: Iterable[Written], unreadable: Iterable[Unreadable]) -> dict[str, History]:
    """Group records by query. An unreadable record counts if a driver reads its key; it hides the
    query if it is the latest one."""
    kept: dict[str, list[Written]] = {}
    hidden: dict[str, Unreadable] = {}
    for written in records:
        kept.setdefault(written.query, []).append(written)
    keys = keys_of(own[-1] for own in kept.values())
    for record in sorted(unreadable, key=lambda record: record.position.offset):
        if query := reader_of(record.key, keys):
            hidden[query] = record
    by_query: dict[str, History] = {}
    for query in sorted(kept.keys() | hidden.keys()):
        own = tuple(sorted(kept.get(query, ()), key=lambda written: written.position.offset))
        latest = hidden.get(query)
        if latest and own and latest.position.offset < own[-1].position.offset:
            latest = None
        by_query[query] = History(query, own, latest)
    return by_query


def keys_of(latest: Iterable[Written]) -> dict[str, str]:
    """Return queries by the keys that their drivers read, from the latest record of each."""
    return {
        QueryNames.of_record(each.query, each.record.prefix).log_key: each.query for each in latest
    }


def reader_of(key: str, keys: Mapping[str, str]) -> str | None:
    """Return the query whose driver reads a key, or None if no driver does.

    Args:
        keys: those of the queries with readable records.
    """
    names = QueryNames.of_shown(QueryNames.of_record(key, DEFAULT_PREFIX).shown)
    made = names.shown if names is not None and names.log_key == key else None
    return keys.get(key, made)


def find_names(history: History, prefix: str) -> QueryNames:
    """The names of a query in Kafka.

    Args:
        prefix: tried first if no record can be read.
    """
    if history.latest:
        return QueryNames.of_record(history.query, history.latest.record.prefix)
    if history.query.startswith(prefix):
        return QueryNames.of_record(history.query, prefix)
    return QueryNames.of_shown(history.query) or QueryNames(prefix, history.query)
