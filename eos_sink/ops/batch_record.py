"""Finds what the decision log has of one batch of a query.

The latest record of the log has the latest decision only; older records exist until compaction
drops them. A later decision proves that an earlier one was settled: a plan settles what is decided
before it hands out the next batch, and refuses to while a partition is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.identity import QueryNames
from eos_sink.ops.history import History, Written
from eos_sink.protocol.model import BatchId, Decision, Prepared, SourcePosition
from eos_sink.protocol.outcome import Evidence, evidence_in_log


class RecordState(Enum):
    """The record of a batch in the log, or the reason why there is none."""

    LATEST = "the latest decision"
    EARLIER = "decided, and a later batch too"
    DROPPED = "its decision was dropped by an operator"
    GONE = "no record of it is left, and a later batch is decided"
    NOT_DECIDED = "not decided"
    UNSEEN = "not seen: the log goes on behind an open transaction"
    FORGOTTEN = "not known: its record, if it had one, is gone"
    """A write whose number is below all those that the log keeps."""
    NO_STREAM = "no batch of the stream is known"
    NO_DECISION = "no decision is seen in the log"
    """The latest one was asked for, and the latest record has none, or there is no record."""


@dataclass(frozen=True)
class BatchRecord:
    """The records of a batch of a query in the log.

    Attributes:
        history: the query's records.
        batch: None: the latest one was asked for, and there is none.
        written: the latest record that decides it.
        later: the first kept record of a later decision that proves it settled.
        replaced: entries of its earlier decisions that the latest one has written again.
        latest: the stream's latest decided batch.
        dropped: an operator has dropped a decision of it.
    """

    names: QueryNames
    history: History
    state: RecordState
    batch: BatchId | None = None
    written: Written | None = None
    later: Written | None = None
    replaced: tuple[Prepared, ...] = ()
    latest: BatchId | None = None
    dropped: bool = False

    @property
    def decision(self) -> Decision | None:
        return self.written.decision if self.written else None

    @property
    def other_streams(self) -> list[str]:
        """Those with batches of their own, which `find_batch` can be asked for."""
        return [s for s in self.history.streams if self.batch and s != self.batch.stream]

    @property
    def source(self) -> SourcePosition | None:
        """The offsets that it has read, if its decision has moved them."""
        source = self.written.record.source if self.written else None
        return source if source and source.batch == self.batch else None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The log's evidence about the transactions of its decision."""
        if self.written is None or self.decision is None:
            return ()
        settled, later = self.written.record.settled, self.later is not None
        return evidence_in_log(self.names, self.decision, settled=settled, later=later)


def find_batch(
    names: QueryNames, history: History, number: int | None = None, stream: str | None = None
) -> BatchRecord:
    """Look a batch up in the log.

    Args:
        number: None for the latest decision, whatever its stream.
        stream: None for the latest stream that has such a batch in the log, else the latest one.
    """
    if number is None and history.decision:
        number, stream = history.decision.batch.batch, history.decision.batch.stream
    if number is None:
        return BatchRecord(names, history, RecordState.NO_DECISION)
    deciding = [w for w in history.records if w.decision and w.decision.batch.batch == number]
    if stream is None:
        streams = [w.decision.batch.stream for w in deciding if w.decision][-1:] or history.streams
        stream = streams[0] if streams else ""
    mine = [w for w in deciding if w.decision and w.decision.batch.stream == stream]
    decided = [b for w in history.records for b in w.record.decided if b.stream == stream]
    latest = decided[-1] if decided else None
    batch = BatchId(stream, number)
    if mine:
        return replace(_describe_decided(names, history, mine), latest=latest)
    state = _find_state(history, batch, latest)
    if history.unread and state in (RecordState.NOT_DECIDED, RecordState.NO_STREAM):
        state = RecordState.UNSEEN
    is_dropped = state is RecordState.DROPPED
    return BatchRecord(names, history, state, batch, latest=latest, dropped=is_dropped)


def _find_state(history: History, batch: BatchId, latest: BatchId | None) -> RecordState:
    """Say why the log has no record of a batch.

    Args:
        latest: the stream's latest decided batch.
    """
    record = history.latest.record if history.latest else None
    if record is not None and batch.numbering.is_of_write:
        if batch.batch in record.written:
            return RecordState.GONE
        is_forgotten = record.written.forgets(batch.batch)
        return RecordState.FORGOTTEN if is_forgotten else RecordState.NOT_DECIDED
    if latest is None:
        return RecordState.NO_STREAM
    if latest.batch < batch.batch:
        return RecordState.NOT_DECIDED
    if record is not None and batch == record.dropped:
        return RecordState.DROPPED
    return RecordState.GONE


def _describe_decided(names: QueryNames, history: History, mine: list[Written]) -> BatchRecord:
    """Return what the log has of a decided batch.

    Args:
        mine: the records that decide it.
    """
    written, decision = mine[-1], mine[-1].decision
    assert decision is not None
    drop = _find_drop(history, decision.batch)
    current = {(entry.producer_id, entry.epoch) for entry in decision.prepared}
    former = {
        (entry.producer_id, entry.epoch): entry
        for earlier in mine[:-1]
        if earlier.decision and earlier.position.offset > drop
        for entry in earlier.decision.prepared
    }
    behind = [w for w in history.records if w.position.offset > written.position.offset]
    later = [w for w in behind if w.decision is not None and w.decision.batch != decision.batch]
    # After `eos-sink resolve --forget` a later batch proves nothing.
    dropped = any(w.decision is None for w in behind)
    state = RecordState.EARLIER if later else RecordState.LATEST
    return BatchRecord(
        names,
        history,
        RecordState.DROPPED if drop > written.position.offset else state,
        decision.batch,
        written=written,
        later=later[0] if later and not dropped else None,
        replaced=tuple(entry for key, entry in former.items() if key not in current),
        dropped=drop >= 0,
    )


def _find_drop(history: History, batch: BatchId) -> int:
    """The offset of the last record by which an operator has dropped a decision of the batch; -1:
    there is none."""
    drop, decided = -1, None
    for written in history.records:
        if written.decision is None and decided == batch:
            drop = written.position.offset
        decided = written.decision.batch if written.decision else None
    return drop
