"""The rules of the source's offsets: where a batch may begin, and what it moves. Pure.

The position in the decision log is the truth, since it is a part of the decision. The consumer
group has a copy for other tools. Spark's checkpoint says where each batch begins and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eos_sink.identity import QueryNames
from eos_sink.protocol import source_errors
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Numbering, SourcePosition
from eos_sink.protocol.values import Offsets, Place


@dataclass(frozen=True)
class SourceBatch:
    """The offsets of one batch, as Spark's checkpoint has them.

    Attributes:
        group: the consumer group that the query names.
        batch: the batch.
        start: of each partition in `end`; 0 for one that is new in this batch, as Spark begins.
        end: the offsets after the batch, of all partitions that the query reads.
        location: of the checkpoint, without secrets; for errors.
        topics: the ids of the topics in `end`.
        stateful: the checkpoint has state.
        others: the batch has rows of other sources, too.
    """

    group: str
    batch: BatchId
    start: Offsets
    end: Offsets
    location: str
    topics: Mapping[str, str] = field(default_factory=dict)
    stateful: bool = False
    others: bool = False

    def moves(self, known: SourcePosition | None) -> SourcePosition:
        """Return the position after this batch."""
        reached = known.reached if known is not None and not known.stale else {}
        left = {place: offset for place, offset in reached.items() if place not in self.end}
        ids = {**(known.topics if known is not None else {}), **self.topics}
        return SourcePosition(
            self.group,
            self.batch,
            self.start,
            self.end,
            left,
            {topic: ids[topic] for topic, _ in (*self.end, *left) if topic in ids},
            stateful=self.stateful,
            others=self.others,
        )


def is_new_stream(record: LogRecord, batch: BatchId) -> bool:
    """True if the batch is of another stream than the one that has moved the position last, or, if
    the position is not known, than the latest batch."""
    known = record.source
    if known is None or known.stale:
        return _last_stream(record) != batch.stream
    return known.batch.stream != batch.stream


def check_start(
    names: QueryNames, log: str, record: LogRecord, now: SourceBatch, *, discards_state: bool
) -> None:
    """Check that a batch begins where the query stands.

    Args:
        discards_state: a new checkpoint may go on without what only the one before has.

    Raises:
        OperatorNeededError: it would repeat or skip rows, or nothing tells where the query stands.
    """
    known = record.source
    if known is None or known.stale:
        if _last_stream(record) in (None, now.batch.stream):
            # Spark's checkpoint has gone on from batch to batch; or it is the first one.
            return
        raise source_errors.unknown_position(names, log, now.batch, known, now.location)
    same = known.batch.stream == now.batch.stream
    if not same and not discards_state:
        check_whole(names, now.batch, known, now.location)
    left_out = same and now.batch.batch > known.batch.batch + 1
    # Batches without rows are not decided while the option is off. The function of foreachBatch
    # calls the sink, and may have caught its error: then rows of the batches between are nowhere.
    is_function = now.batch.numbering is Numbering.FOREACH
    skipped = left_out and not is_function
    reached = known.reached
    # Two runs that share a directory may have put one's end behind the other's; a topic that
    # was made again ends before.
    begins = {place: min(start, now.end[place]) for place, start in now.start.items()}
    wrong = {
        place: (reached[place], start)
        for place, start in begins.items()
        if place in reached and (start < reached[place] or (start > reached[place] and not skipped))
    }
    if wrong and left_out and is_function:
        raise source_errors.batches_left_out(names, log, now.batch, known, wrong, now.location)
    if wrong:
        raise source_errors.begins_elsewhere(
            names, log, now.batch, known, wrong, now.location, new=not same
        )


def check_whole(
    names: QueryNames, batch: BatchId | None, known: SourcePosition, location: str | None
) -> None:
    """Check that the position is all that a new checkpoint needs.

    Args:
        batch: of the new checkpoint; None: it has none yet.
        location: of the new checkpoint; None: there is none yet.

    Raises:
        OperatorNeededError: the old checkpoint has more.
    """
    if known.stateful:
        raise source_errors.lost_state(names, batch, known, location)
    if known.others:
        raise source_errors.other_sources(names, batch, known, location)


def has_written_as_query(record: LogRecord) -> bool:
    """True if the identity has a query's batch, or its position."""
    return record.source is not None or _last_stream(record) is not None


def _last_stream(record: LogRecord) -> str | None:
    """The stream of the latest decided batch of a query; None: there is none."""
    streams = [batch.stream for batch in record.decided if batch.numbering.is_by_spark]
    return streams[-1] if streams else None


def new_partitions(known: SourcePosition, now: Offsets) -> list[Place]:
    """The partitions of known topics that the position does not have: they have to be read from
    their first row."""
    reached = known.reached
    topics = {topic for topic, _ in reached}
    return sorted(place for place in now if place not in reached and place[0] in topics)


def returns_to_start(
    record: LogRecord, decision: Decision, lost: frozenset[int]
) -> SourcePosition | None:
    """The position of a new checkpoint if the decision has become invisible as a whole: its rows
    have to be read again. None: it has not, or did not move the position."""
    known = record.source
    if known is None or known.stale or known.batch != decision.batch:
        return None
    if not decision.is_invisible(lost):
        return None
    return replace(known, end=known.start)
