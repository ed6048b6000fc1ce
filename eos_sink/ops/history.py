"""The records of the decision log, by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eos_sink.decision_log.codec import decode, is_claim, newer_format
from eos_sink.errors import OperatorNeededError
from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.kafka.admin_interface import Admin, LogLine
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, Decision, LogRecord
from eos_sink.protocol.values import Position


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
    """

    query: str
    records: tuple[Written, ...]
    hidden: Unreadable | None = None

    @property
    def latest(self) -> Written | None:
        return self.records[-1] if self.records else None

    @property
    def decision(self) -> Decision | None:
        """The decision of the latest record."""
        return self.latest.decision if self.latest else None

    def decided(self) -> Written | None:
        """The first kept record of the latest decision; later records repeat it."""
        decision = self.decision
        found = self.latest if decision else None
        for earlier in reversed(self.records[:-1]):
            if decision is None or not decision.repeats(earlier.decision):
                break
            found = earlier
        return found

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
    keys = keys_of(each[-1] for each in kept.values())
    for each in sorted(unreadable, key=lambda each: each.position.offset):
        if query := reader_of(each.key, keys):
            hidden[query] = each
    found: dict[str, History] = {}
    for query in sorted(kept.keys() | hidden.keys()):
        known = tuple(sorted(kept.get(query, ()), key=lambda each: each.position.offset))
        latest = hidden.get(query)
        if latest and known and latest.position.offset < known[-1].position.offset:
            latest = None
        found[query] = History(query, known, latest)
    return found


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


def read_histories(
    admin: Admin, prefix: str, deadline: Deadline
) -> dict[QueryNames, History] | None:
    """Read all records of every query; None if there is no log.

    Args:
        prefix: as in `find_names`.
    """
    page = admin.read_log({}, deadline)
    if page is None:
        return None
    return {
        find_names(each, prefix): each for each in histories(*read_records(page.lines)).values()
    }


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
