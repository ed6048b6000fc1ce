"""Explains what became of one batch, task by task, with the evidence.

The latest record of the log has the latest decision only; older records exist until compaction
drops them. A later decision proves that an earlier one was settled: a plan settles what is decided
before it hands out the next batch, and refuses to while a partition is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.driver.evidence import ask_all
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.history import History, Written
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Prepared, SourcePosition
from eos_sink.protocol.outcome import Evidence, Outcome, evidence_in_log, outcome
from eos_sink.protocol.values import TransactionState, TransactionStatus


class Fate(Enum):
    """The outcome of a task that the latest decision of its batch does not name."""

    REWRITTEN = "lost, written again"
    UNDECIDED = "open, undecided"
    ABORTED = "aborted"
    NO_ROWS = "no rows"


class Known(Enum):
    """The record of a batch in the log, or the reason why there is none."""

    LATEST = "the latest decision"
    EARLIER = "decided, and a later batch too"
    DROPPED = "its decision was dropped by an operator"
    GONE = "its record is gone, and a later batch is decided"
    NOTHING = "nothing was decided between its neighbours"
    NOT_DECIDED = "not decided"
    FORGOTTEN = "not known: its record, if it had one, is gone"
    """A write whose number is below all those that the log keeps."""
    NO_STREAM = "no batch of the stream is known"


@dataclass(frozen=True)
class TaskFate:
    """The outcome of one task of the batch, and the evidence for it.

    Attributes:
        evidence: about its transaction, if the batch's decision names one.
        state: of a transaction that no decision names.
        replaced: its entry in an earlier decision of the batch, which the latest one has not.
        inline: its rows are in the decision's transaction.
    """

    partition: int
    fate: Outcome | Fate
    rows: int | None
    evidence: Evidence | None = None
    state: TransactionState | None = None
    replaced: Prepared | None = None
    inline: bool = False


@dataclass(frozen=True)
class Explanation:
    """A batch as the log has it, and the outcome of its tasks.

    Attributes:
        written: the latest record that decides it.
        later: the first kept record of a later decision that proves it settled.
        replaced: entries of its earlier decisions that the latest one has written again.
        latest: the stream's latest decided batch.
        dropped: an operator has dropped a decision of it.
        unseen: what could not be read.
    """

    known: Known
    batch: BatchId
    written: Written | None = None
    later: Written | None = None
    replaced: tuple[Prepared, ...] = ()
    latest: BatchId | None = None
    dropped: bool = False
    fates: tuple[TaskFate, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision | None:
        return self.written.decision if self.written else None

    @property
    def source(self) -> SourcePosition | None:
        """The offsets that it has read, if its decision has moved them."""
        if self.written is None or self.decision is None:
            return None
        source = self.written.record.source
        return source if source and source.batch == self.decision.batch else None

    def evidence(self, names: QueryNames) -> tuple[Evidence, ...]:
        """Return the log's evidence about the transactions of the batch's decision."""
        if self.written is None or self.decision is None:
            return ()
        settled, later = self.written.record.settled, self.later is not None
        return evidence_in_log(names, self.decision, settled=settled, later=later)


def explain_batch(
    admin: Admin, names: QueryNames, history: History, batch: Explanation, deadline: Deadline
) -> Explanation:
    """Gather the evidence about a batch of a query that `find_batch` has looked up."""
    fates: list[TaskFate] = []
    unseen: list[str] = []
    if batch.decision is not None:
        known = batch.evidence(names)
        try:
            known = ask_all(admin.kafka, known, deadline)
        except EosSinkError as error:
            unseen.append(str(error))
        fates = decided_fates(batch, known)
    elif batch.known is Known.NOT_DECIDED:
        try:
            states = admin.list_transactions(f"{names.group}-", deadline, ended=True)
            fates = undecided_fates(names, history.decision, states)
        except EosSinkError as error:
            unseen.append(str(error))
    return replace(batch, fates=tuple(fates), unseen=tuple(unseen))


def find_batch(history: History, number: int, stream: str | None = None) -> Explanation:
    """Look a batch up in the log.

    Args:
        stream: None for the latest stream that has such a batch in the log, else the latest one.
    """
    deciding = [w for w in history.records if w.decision and w.decision.batch.batch == number]
    if stream is None:
        streams = [w.decision.batch.stream for w in deciding if w.decision][-1:] or history.streams
        stream = streams[0] if streams else ""
    mine = [w for w in deciding if w.decision and w.decision.batch.stream == stream]
    every = [b for w in history.records for b in w.record.decided if b.stream == stream]
    batch, latest = BatchId(stream, number), every[-1] if every else None
    if mine and latest is not None:
        return _describe_decided(history, mine, latest)
    if batch.numbering.is_of_write and history.latest is not None:
        return Explanation(_find_number(history.latest.record, number), batch, latest=latest)
    if latest is None:
        return Explanation(Known.NO_STREAM, batch)
    if latest.batch < number:
        return Explanation(Known.NOT_DECIDED, batch, latest=latest)
    record = history.latest.record if history.latest else None
    if record is not None and batch == record.dropped:
        return Explanation(Known.DROPPED, batch, latest=latest, dropped=True)
    is_retired = record is not None and batch in record.retired
    is_empty = not is_retired and _is_certainly_empty(history, batch)
    return Explanation(Known.NOTHING if is_empty else Known.GONE, batch, latest=latest)


def _describe_decided(history: History, mine: list[Written], latest: BatchId) -> Explanation:
    written, decision = mine[-1], mine[-1].decision
    assert decision is not None
    drop = _find_drop(history, decision.batch)
    is_dropped = drop > written.position.offset
    current = {(entry.producer_id, entry.epoch) for entry in decision.prepared}
    former = {
        (entry.producer_id, entry.epoch): entry
        for each in mine[:-1]
        if each.decision and each.position.offset > drop
        for entry in each.decision.prepared
    }
    behind = [w for w in history.records if w.position.offset > written.position.offset]
    later = [w for w in behind if w.decision is not None and w.decision.batch != decision.batch]
    # After `eos-sink resolve --forget` a later batch proves nothing.
    dropped = any(w.decision is None for w in behind)
    return Explanation(
        Known.DROPPED if is_dropped else Known.EARLIER if later else Known.LATEST,
        decision.batch,
        written=written,
        later=later[0] if later and not dropped else None,
        replaced=tuple(entry for key, entry in former.items() if key not in current),
        latest=latest,
        dropped=drop >= 0,
    )


def _find_drop(history: History, batch: BatchId) -> int:
    """The offset of the last record by which an operator has dropped a decision of the batch; -1:
    there is none."""
    found, decided = -1, None
    for each in history.records:
        if each.decision is None and decided == batch:
            found = each.position.offset
        decided = each.decision.batch if each.decision else None
    return found


def _find_number(latest: LogRecord, number: int) -> Known:
    if number in latest.written:
        return Known.GONE
    return Known.FORGOTTEN if latest.written.forgets(number) else Known.NOT_DECIDED


def _is_certainly_empty(history: History, batch: BatchId) -> bool:
    """True if the log still has every record between the decisions around a batch."""
    inside = False
    seq = 0
    for written in history.records:
        complete, seq = written.record.seq == seq + 1, written.record.seq
        decision = written.decision
        if not complete or decision is None or decision.batch.stream != batch.stream:
            inside = False
        if decision is not None and decision.batch.stream == batch.stream:
            if decision.batch.batch < batch.batch:
                inside = True
            elif inside:
                return True
    return False


def decided_fates(batch: Explanation, known: Iterable[Evidence]) -> list[TaskFate]:
    """The tasks of a decided batch.

    Args:
        known: the evidence about its transactions.
    """
    decision = batch.decision
    assert decision is not None
    found = [
        TaskFate(each.entry.partition, outcome(each), each.entry.digest.rows, each)
        for each in known
    ]
    found += [
        TaskFate(each.partition, Outcome.COMMITTED, each.digest.rows, inline=True)
        for each in decision.inlined
    ]
    found += [
        TaskFate(each.partition, Fate.REWRITTEN, each.digest.rows, replaced=each)
        for each in batch.replaced
    ]
    found += [
        TaskFate(number, Fate.NO_ROWS, 0)
        for number in range(decision.partitions)
        if number not in decision.digests
    ]
    return sorted(found, key=lambda each: each.partition)


_UNDECIDED = {
    TransactionStatus.ONGOING: Fate.UNDECIDED,
    TransactionStatus.PREPARE_ABORT: Fate.ABORTED,
    TransactionStatus.COMPLETE_ABORT: Fate.ABORTED,
    TransactionStatus.PREPARE_EPOCH_FENCE: Fate.ABORTED,
}


def undecided_fates(
    names: QueryNames, decision: Decision | None, states: Iterable[TransactionState]
) -> list[TaskFate]:
    """The tasks of the batch after the latest decision, which use the other slot."""
    found = []
    for state in states:
        task = names.parse_task(state.transaction.transactional_id)
        fate = _UNDECIDED.get(state.status)
        if task and fate and not (decision and task.slot == decision.slot):
            found.append(TaskFate(task.partition, fate, None, state=state))
    return sorted(found, key=lambda each: each.partition)
