"""The rules of the source's offsets: where a batch may begin, and what it moves. Pure.

The position in the decision log is the truth, since it is a part of the decision. The consumer
group has a copy for other tools. Spark's checkpoint says where each batch begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Numbering, SourcePosition
from eos_sink.protocol.values import Offsets, Place

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

    def drop_gone(self, known: SourcePosition, topics: frozenset[str]) -> SourcePosition:
        """The position without what is gone of these topics: the query goes on at the first row
        that is there."""
        gone = {p for p in self.find_gone(known, lambda _: True) if p[0] in topics}

        def move(offsets: Offsets) -> Offsets:
            return {
                place: offset if place not in gone else self.bounds[place][0]
                for place, offset in offsets.items()
                if place not in gone or place in self.bounds
            }

        start, end, left = map(move, (known.start, known.end, known.left))
        ids = {topic: self.ids.get(topic, known_id) for topic, known_id in known.topics.items()}
        there = {topic for topic, _ in (*end, *left)}
        ids = {topic: each for topic, each in ids.items() if topic in there}
        return replace(known, start=start, end=end, left=left, topics=ids)

    def _lacks(self, place: Place, offset: int, known_id: str | None) -> str:
        if known_id is not None and self.ids.get(place[0], known_id) != known_id:
            return MADE_AGAIN
        if place not in self.bounds:
            return "does not exist any more"
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
        return _last_stream(record) != batch.stream
    return known.batch.stream != batch.stream


def check_start(record: LogRecord, now: SourceBatch, *, discards_state: bool) -> None:
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
        raise stop(Reason.POSITION_UNKNOWN, batch=now.batch, known=known)
    same = known.batch.stream == now.batch.stream
    made_again = {
        topic
        for topic, known_id in known.topics.items()
        if now.topics.get(topic, known_id) != known_id
    }
    if made_again:
        places = (place for place in known.reached if place[0] in made_again)
        under_state = same and known.needs_checkpoint
        reason = Reason.ROWS_GONE_UNDER_STATE if under_state else Reason.ROWS_GONE
        raise stop(reason, places_gone=dict.fromkeys(places, MADE_AGAIN))
    if not same and not discards_state:
        check_whole(now.batch, known)
    left_out = same and now.batch.batch > known.batch.batch + 1
    # Batches without rows are not decided while the option is off. The function of foreachBatch
    # calls the sink, and may have caught its error: then rows of the batches between are nowhere.
    is_function = now.batch.numbering is Numbering.FOREACH
    skipped = left_out and not is_function
    reached = known.reached
    # Nothing of this identity is visible that could be repeated: the position is only where its
    # first start began. The function may have named another query's checkpoint then.
    unwritten = is_function and known.batch.batch < 0 and not record.decided
    # Two runs that share a directory may have put one's end behind the other's; a topic that
    # was made again ends before.
    begins = {place: min(start, now.end[place]) for place, start in now.start.items()}
    wrong = {
        place: (reached[place], start)
        for place, start in begins.items()
        if place in reached
        and ((start < reached[place] and not unwritten) or (start > reached[place] and not skipped))
    }
    if wrong:
        reason = Reason.BEGINS_ELSEWHERE
        if left_out and is_function:
            # Only the checkpoint of then has the state.
            of_state = known.needs_checkpoint
            reason = Reason.BATCHES_LEFT_OUT_OF_STATE if of_state else Reason.BATCHES_LEFT_OUT
        raise stop(reason, batch=now.batch, known=known, wrong=wrong)


def check_whole(batch: BatchId | None, known: SourcePosition) -> None:
    """Check that the position is all that a new checkpoint needs.

    Args:
        batch: of the new checkpoint; None: it has none yet.

    Raises:
        OperatorNeededError: the old checkpoint has more.
    """
    if known.stateful:
        raise stop(Reason.LOST_STATE, batch=batch, known=known)
    if known.others:
        raise stop(Reason.OTHER_SOURCES, batch=batch, known=known)


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
