"""Judges whether a query may begin, or go on, where it is about to. Pure.

The position in the decision log is the truth, since it is a part of the decision. The consumer
group has a copy for other tools. Spark's checkpoint says where each batch begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from eos_sink.errors import EosSinkError
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import (
    BatchId,
    LogRecord,
    Numbering,
    SourcePosition,
    StartNote,
)
from eos_sink.protocol.source_rules import (
    ABSENT,
    MADE_AGAIN,
    SourceBatch,
    SourceLogs,
    has_written_as_query,
    is_new_stream,
    last_stream,
    returns_to_start,
)
from eos_sink.protocol.values import Offsets, Place


@dataclass(frozen=True)
class Handover:
    """The facts at the place where a query is about to begin or to go on.

    Attributes:
        record: the latest one.
        now: the batch that Spark has begun; None: a new checkpoint has not begun yet.
        group: the consumer group that the query names.
        lost: the partitions of the decision that are lost; given if there is no batch.
        reads: whether the query reads a topic.
        committed: the group's offsets.
        logs: the topics of the position and of the batch.
    """

    record: LogRecord
    now: SourceBatch | None
    group: str
    lost: frozenset[int] = frozenset()
    reads: Callable[[str], bool] = lambda _: True
    committed: Offsets = field(default_factory=dict)
    logs: SourceLogs = field(default_factory=lambda: SourceLogs({}, {}))

    @property
    def known(self) -> SourcePosition | None:
        """Return the position, or None if the log does not know it."""
        known = returns_to_start(self.record, self.lost) or self.record.source
        return None if known is None or known.stale else known

    @property
    def batch(self) -> BatchId | None:
        return self.now.batch if self.now else None

    @property
    def is_new(self) -> bool:
        """True if a checkpoint begins that the record does not know."""
        return self.batch is None or is_new_stream(self.record, self.batch)

    @property
    def unseen(self) -> frozenset[Place]:
        """The partitions of the batch whose topics were there and do not show their ids."""
        known, now = self.record.source, self.now
        if known is None or now is None:
            return frozenset()
        unseen = known.topics.keys() - now.topics.keys()
        return frozenset(place for place in now.end if place[0] in unseen)

    @property
    def needs_logs(self) -> bool:
        return self.is_new or self.known is None or bool(self.unseen)

    @property
    def needs_group(self) -> bool:
        known = self.record.source
        return self.is_new or known is None or known.group != self.group

    @property
    def is_group_elsewhere(self) -> bool:
        """True if the group is not where the log has left it, so that another identity of the query
        may have moved it. With another group than before, the log's position counts."""
        known = self.record.source
        if known is None:
            return bool(self.committed)
        is_copy = known.group == self.group and not known.stale
        return is_copy and bool(known.differs(self.committed))


def judge(handover: Handover) -> SourcePosition:
    """Return the position after the batch, or where a new checkpoint begins.

    Raises:
        OperatorNeededError, ConfigurationError: rows would be repeated or skipped, or this cannot
            be excluded.
    """
    for check in CHECKS:
        check(handover)
    now, known = handover.now, handover.known
    moved = now.moves(handover.record.source) if now else known
    assert moved is not None
    return moved


def first_position(
    record: LogRecord, now: SourceBatch, moved: SourcePosition, *, follows: bool
) -> SourcePosition | None:
    """Return what the log notes before anything is written, or None if it knows where the query
    stands: a checkpoint that is lost before its first decision is followed by one that begins at
    the same offsets.

    Args:
        moved: the position after the batch.
        follows: the record is that of a former identity.
    """
    known, number = record.source, now.batch.batch
    if known is None or known.stale or follows:
        # Before a stream's first batch no row of any source is read, and none waits in its state.
        first, has_read = BatchId(now.batch.stream, number - 1), number > 0
        others, stateful = moved.others and has_read, moved.stateful and has_read
        return replace(moved, batch=first, end=now.start, others=others, stateful=stateful)
    new = {place: at for place, at in now.start.items() if place not in known.reached}
    if not new or not is_new_stream(record, now.batch):
        return None
    # "latest" would be another offset at the next start. The decision still is the one that has
    # moved the position, and of all else nothing changes.
    left, topics = {**known.left, **new}, {**now.topics, **known.topics}
    return replace(known, group=now.group, left=left, topics=topics)


def check_replay(record: LogRecord, batch: BatchId, end: Offsets | None) -> None:
    """Check that a decided batch is repeated with the offsets that it had.

    Args:
        end: of the batch, if the checkpoint has it.

    Raises:
        OperatorNeededError: it is not.
    """
    known = record.source
    if known and known.batch == batch and end is not None and end != known.end:
        places = (place for place in end if known.end.get(place) != end[place])
        wrong = {place: (known.end.get(place, 0), end[place]) for place in places}
        raise stop(Reason.REPLAYED_ELSEWHERE, batch=batch, known=known, wrong=wrong)


def of_old_topics(record: LogRecord, now: SourceBatch, note: StartNote) -> EosSinkError | None:
    """Return why a batch cannot be written whose offsets may be of topics that were made again,
    where only the note of a start tells it.

    Args:
        note: of the start, with what is kept from earlier ones of its checkpoint.
    """
    changed = sorted(name for name, at in now.topics.items() if note.topics.get(name, at) != at)
    if record.source is not None or not changed:
        return None
    if not has_written_as_query(record):
        return stop(Reason.FIRST_OF_OLD_TOPIC, batch=now.batch, topics=changed)
    gone = {place: MADE_AGAIN for place in now.start if place[0] in changed}
    return stop(Reason.POSITION_OF_OLD_TOPIC, batch=now.batch, known=None, places_gone=gone)


def check_foreign_group(begins: Offsets, committed: Offsets) -> None:
    """Check that a group of which the log knows nothing is where the query begins.

    Raises:
        ConfigurationError: another program uses it.
    """
    wrong = {p: (at, committed[p]) for p, at in begins.items() if committed.get(p, at) != at}
    if wrong:
        raise stop(Reason.FOREIGN_GROUP, wrong=wrong)


def _check_known(handover: Handover) -> None:
    if handover.known is not None:
        return
    now, record = handover.now, handover.record
    # Spark's checkpoint has gone on from batch to batch; or it is the first one.
    if now is None or last_stream(record) not in (None, now.batch.stream):
        raise stop(Reason.POSITION_UNKNOWN, batch=handover.batch, known=record.source)


def _check_topics(handover: Handover) -> None:
    """The offsets of a checkpoint are of the topics that were there when it was made, also if the
    position is not the query's any more."""
    known, now = handover.record.source, handover.now
    if known is None or now is None:
        return
    # Kafka would take no offset of a topic that is gone.
    gone = dict.fromkeys(handover.unseen - handover.logs.bounds.keys(), ABSENT)
    ids = {**known.topics, **now.topics}
    made_again = {topic for topic, known_id in known.topics.items() if ids[topic] != known_id}
    gone |= {place: MADE_AGAIN for place in known.reached if place[0] in made_again}
    if gone:
        if known.stale:
            reason = Reason.POSITION_OF_OLD_TOPIC
            raise stop(reason, batch=handover.batch, known=known, places_gone=gone)
        raise _rows_gone(handover, known, gone)


def _check_visible(handover: Handover) -> None:
    """Only the checkpoint that a decided batch was made with can write its lost rows."""
    record, lost = handover.record, handover.lost
    if lost and returns_to_start(record, lost) is None:
        raise stop(Reason.HALF_VISIBLE, decision=record.decision, lost=lost)


def _check_begin(handover: Handover) -> None:
    """The batch has to begin where the one before has ended."""
    known, now = handover.known, handover.now
    if known is None or now is None:
        return
    left_out = not handover.is_new and now.batch.batch > known.batch.batch + 1
    # Batches without rows are not decided while the option is off. The function of foreachBatch
    # calls the sink, and may have caught its error: then rows of the batches between are nowhere.
    is_function = now.batch.numbering is Numbering.FOREACH
    skipped = left_out and not is_function
    # Nothing of this identity is visible that could be repeated: the position is only where its
    # first start began. The function may have named another query's checkpoint then.
    unwritten = is_function and known.batch.batch < 0 and not handover.record.decided
    # Two runs that share a directory may have put one's end behind the other's; a topic that
    # was made again ends before.
    begins = {place: min(start, now.end[place]) for place, start in now.start.items()}
    # What Spark has not read before it reads from the first row on. Otherwise the place was given
    # up since, and the checkpoint was to be, too. Of other sources nothing is known.
    reached = known.reached
    if not (handover.is_new or known.others):
        reached = {**dict.fromkeys(begins, 0), **reached}
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


def _check_kept(handover: Handover) -> None:
    """The source has to have the rows at which a new checkpoint begins."""
    known = handover.known
    if known is None or not handover.is_new:
        return
    gone = handover.logs.find_gone(known, handover.reads)
    if gone:
        if MADE_AGAIN not in gone.values():
            # The old checkpoint may go on.
            _check_whole(handover)
        raise _rows_gone(handover, known, gone)


def _rows_gone(
    handover: Handover, known: SourcePosition, gone: Mapping[Place, str]
) -> EosSinkError:
    """No checkpoint goes on in a topic that was made again, nor with a begun batch of one that is
    gone, so its state is gone, too."""
    reason = Reason.ROWS_GONE_UNDER_STATE if known.needs_checkpoint else Reason.ROWS_GONE
    if handover.logs.find_cut(known, frozenset(topic for topic, _ in gone)):
        reason = Reason.ROWS_CUT
    return stop(reason, batch=handover.batch, known=known, places_gone=gone)


def _check_group(handover: Handover) -> None:
    """The group has to be where a new checkpoint begins, or the query goes on."""
    known, committed = handover.record.source, handover.committed
    if not handover.needs_group:
        return
    if known is not None and known.group == handover.group:
        places = known.differs(committed)
        if places:
            wrong = {place: (known.end[place], committed.get(place)) for place in places}
            raise stop(Reason.GROUP_DIFFERS, wrong=wrong)
        return
    # Another group has no copy yet, and nothing else either.
    begins = handover.now.start if handover.now else {}
    check_foreign_group(begins or (known.end if known else {}), committed)


def _check_whole(handover: Handover) -> None:
    """The position has to be all that a new checkpoint needs."""
    known = handover.known
    if known is None or not handover.is_new or known.given_up:
        return
    if known.stateful:
        raise stop(Reason.LOST_STATE, batch=handover.batch, known=known)
    if known.others:
        raise stop(Reason.OTHER_SOURCES, batch=handover.batch, known=known)


def _check_logs(handover: Handover) -> None:
    """The source has to be on the cluster that the sink writes to; and what is new in a known topic
    has to be read from its first row."""
    known, now, bounds = handover.known, handover.now, handover.logs.bounds
    if now is None or not handover.needs_logs:
        return
    begins = now.start
    foreign = {
        place: f"is at {offset}, and the partition "
        + (f"ends at {bounds[place][1]}" if place in bounds else "does not exist")
        for place, offset in begins.items()
        if place not in bounds or bounds[place][1] < offset
    }
    if foreign:
        raise stop(Reason.OTHER_CLUSTER, places_gone=foreign)
    new = known.lacks(begins) if known else ()
    skipped = {p: (bounds[p][0], begins[p]) for p in new if begins[p] > bounds[p][0]}
    if skipped:
        raise stop(Reason.BEGINS_ELSEWHERE, batch=now.batch, known=known, wrong=skipped)


CHECKS: tuple[Callable[[Handover], None], ...] = (
    _check_known,
    _check_topics,
    _check_visible,
    _check_begin,
    _check_kept,
    _check_group,
    # State is given up where log and group agree.
    _check_whole,
    _check_logs,
)
