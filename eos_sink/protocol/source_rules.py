"""The source's offsets of a batch, and the topics that they are of. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from eos_sink.protocol.model import BatchId, LogRecord, SourcePosition
from eos_sink.protocol.values import Offsets, Place

ABSENT = "does not exist any more"
MADE_AGAIN = "is of a topic that was deleted and created again"


@dataclass(frozen=True)
class SourceBatch:
    """The offsets of one batch, as Spark's checkpoint has them.

    Attributes:
        group: the consumer group that the query names.
        batch: the batch.
        start: of each partition in `end`; 0 for one that is new in this batch, as Spark begins.
        end: the offsets after the batch, of all partitions that the query reads.
        topics: the ids of the topics in `end`.
        stateful: the checkpoint has state.
        others: the batch has rows of other sources, too.
    """

    group: str
    batch: BatchId
    start: Offsets
    end: Offsets
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


@dataclass(frozen=True)
class SourceLogs:
    """The topics of a position as the brokers have them.

    Attributes:
        ids: of those that exist.
        bounds: the first offset and the end of each partition that exists.
    """

    ids: Mapping[str, str]
    bounds: Mapping[Place, tuple[int, int]]

    def find_gone(self, known: SourcePosition, reads: Callable[[str], bool]) -> dict[Place, str]:
        """Find the partitions in which the query cannot go on, and why.

        Args:
            reads: whether the query reads a topic.
        """
        gone = {}
        for place, offset in known.reached.items():
            topic = place[0]
            if not reads(topic) if topic in self.ids else place not in known.end:
                continue
            if why := self._lacks(place, offset, known.topics.get(topic)):
                gone[place] = why
        return gone

    def find_cut(self, known: SourcePosition, topics: frozenset[str]) -> dict[Place, int]:
        """Find the partitions of these topics whose log was cut off before the position, and where
        each ends. Topics that were made again end anywhere."""
        same = {topic for topic in topics if self.ids.get(topic) == known.topics.get(topic)}
        places = (place for place in known.reached if place[0] in same and place in self.bounds)
        ends = {place: self.bounds[place][1] for place in places}
        return {place: end for place, end in ends.items() if end < known.reached[place]}

    def drop_gone(self, known: SourcePosition, topics: frozenset[str]) -> SourcePosition:
        """The position without what is gone of these topics: the query goes on at the first row
        that is there, also where it has to read its last batch again."""

        def move(offsets: Offsets) -> Offsets:
            at = replace(known, end=offsets, left={})
            gone = {p for p in self.find_gone(at, lambda _: True) if p[0] in topics}
            return {
                place: offset if place not in gone else self.bounds[place][0]
                for place, offset in offsets.items()
                if place not in gone or place in self.bounds
            }

        start, end, left = map(move, (known.start, known.end, known.left))
        there = {topic for topic, _ in (*end, *left)}
        ids = {
            # Of a topic that was made again the offset stays one of the old topic, until it is
            # dropped.
            topic: self.ids.get(topic, known_id) if topic in topics else known_id
            for topic, known_id in known.topics.items()
            if topic in there
        }
        return replace(known, start=start, end=end, left=left, topics=ids)

    def _lacks(self, place: Place, offset: int, known_id: str | None) -> str:
        if known_id is not None and self.ids.get(place[0], known_id) != known_id:
            return MADE_AGAIN
        if place not in self.bounds:
            return ABSENT
        first, end = self.bounds[place]
        if first <= offset <= end:
            return ""
        what = f"begins at {first}" if offset < first else f"ends at {end}"
        return f"is at {offset}, and its log {what}"


def is_new_stream(record: LogRecord, batch: BatchId) -> bool:
    """True if the batch is of another stream than the one that has moved the position last, or, if
    the position is not known, than the latest batch."""
    known = record.source
    if known is None or known.stale:
        return last_stream(record) != batch.stream
    return known.batch.stream != batch.stream


def has_gone_on(record: LogRecord, batch: BatchId) -> bool:
    """True if the stream has gone on from the position without a decision under this identity. The
    position is only where it began, or where a former identity was left, which may have decided."""
    known = record.source
    if known is None or record.last_of(batch.stream):
        return False
    return batch.batch > known.batch.batch + 1


def has_written_as_query(record: LogRecord) -> bool:
    """True if the identity has a query's batch, or its position."""
    return record.source is not None or last_stream(record) is not None


def last_stream(record: LogRecord) -> str | None:
    """The stream of the latest decided batch of a query; None: there is none."""
    streams = [batch.stream for batch in record.decided if batch.numbering.is_by_spark]
    return streams[-1] if streams else None


def is_untracked(record: LogRecord) -> bool:
    """True if the last batch of a query under this identity was written without the option. Only
    its checkpoint tells where the query stands; nothing tells which of two identities was last."""
    is_known = record.source is not None and not record.source.stale
    return last_stream(record) is not None and not record.is_left and not is_known


def returns_to_start(record: LogRecord, lost: frozenset[int]) -> SourcePosition | None:
    """Return the position of a new checkpoint if the decision has become invisible as a whole, so
    that its rows have to be read again; None if it has not, or did not move the position."""
    known, decision = record.source, record.decision
    if known is None or known.stale or decision is None or known.batch != decision.batch:
        return None
    if not decision.is_invisible(lost):
        return None
    return replace(known, end=known.start)
