"""What became of one batch, task by task, and from what that is known. Pure.

The log's latest record has the latest decision only; older ones are there until compaction drops
them. What a later decision proves about an earlier one stands here and nowhere else: a plan settles
what is decided before it hands out the next batch, and refuses that while a partition is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import TransactionState, TransactionStatus, Visibility
from eos_sink.ops.history import History, Written
from eos_sink.protocol.model import BatchId, Decision, Numbering, Prepared
from eos_sink.protocol.outcome import Evidence, Outcome, evidence_in_log, outcome


class Fate(Enum):
    """What became of a task's rows, where it is not a decided transaction."""

    REWRITTEN = "lost, written again"
    UNDECIDED = "open, undecided"
    ABORTED = "aborted"
    NO_ROWS = "no rows"


class Known(Enum):
    """What the log says of a batch."""

    LATEST = "the latest decision"
    EARLIER = "decided, and a later batch too"
    GONE = "its record is gone, and a later batch is decided"
    NOTHING = "nothing was decided between its neighbours"
    NOT_DECIDED = "not decided"
    NO_STREAM = "no batch of the stream is known"


@dataclass(frozen=True)
class Case:
    """What the log says of a batch.

    Attributes:
        stream: whose batch it is.
        written: the latest record that decides it.
        later: the first kept record with a later decision that proves it settled.
        replaced: entries of earlier decisions of it that later ones have written again.
        latest: the stream's latest decided batch.
    """

    known: Known
    batch: int
    stream: str
    written: Written | None = None
    later: Written | None = None
    replaced: tuple[Prepared, ...] = ()
    latest: BatchId | None = None

    @property
    def decision(self) -> Decision | None:
        return self.written.record.decision if self.written else None


@dataclass(frozen=True)
class TaskFate:
    """One task of the batch.

    Attributes:
        evidence: each thing that it is known from.
    """

    partition: int
    fate: Outcome | Fate
    rows: int | None
    evidence: tuple[str, ...]


def case_of(history: History, batch: int, stream: str | None = None) -> Case:
    """What the log says of a batch.

    Args:
        stream: where several streams ran under the query; None: the latest one that has such a
            batch in the log, else the latest one.
    """
    of_batch = [
        (written, written.record.decision.batch.stream)
        for written in history.of_batch(batch)
        if written.record.decision
    ]
    if stream is None:
        streams = history.streams
        stream = of_batch[-1][1] if of_batch else streams[0] if streams else ""
    mine = [written for written, its in of_batch if its == stream]
    latest = _latest_of(history, stream)
    if latest is None:
        return Case(Known.NO_STREAM, batch, stream)
    if mine:
        return _decided_case(history, batch, stream, mine, latest)
    if latest.batch < batch:
        return Case(Known.NOT_DECIDED, batch, stream, latest=latest)
    if _is_certainly_between(history, batch, stream):
        return Case(Known.NOTHING, batch, stream, latest=latest)
    return Case(Known.GONE, batch, stream, latest=latest)


def evidence_of(case: Case, names: QueryNames) -> tuple[Evidence, ...]:
    """What the log says of a decided batch's transactions."""
    if case.written is None or case.decision is None:
        return ()
    settled, later = case.written.record.settled, case.later is not None
    return evidence_in_log(names, case.decision, settled=settled, later=later)


def fates_of(case: Case, known: Iterable[Evidence]) -> list[TaskFate]:
    """Each task of a decided batch.

    Args:
        known: what is known of its transactions, as far as it was asked for.
    """
    decision = case.decision
    if decision is None:
        return []
    found = [
        TaskFate(each.entry.partition, outcome(each), each.entry.digest.rows, _told(case, each))
        for each in known
    ]
    found += [
        TaskFate(
            entry.partition,
            Fate.REWRITTEN,
            entry.digest.rows,
            (
                f"an earlier decision of the batch names it with epoch {entry.epoch}, the latest "
                "one another: only what was lost is written again",
            ),
        )
        for entry in case.replaced
    ]
    written = {entry.partition for entry in decision.prepared}
    found += [
        TaskFate(number, Fate.NO_ROWS, 0, ("the decision names no transaction of it",))
        for number in range(decision.partitions)
        if number not in written
    ]
    return sorted(found, key=lambda each: each.partition)


def open_fates(
    names: QueryNames, decision: Decision | None, states: Iterable[TransactionState]
) -> list[TaskFate]:
    """The tasks of what is not decided: the ids of the slot that the next batch has."""
    found = []
    for state in states:
        task = names.parse_task(state.transaction.transactional_id)
        if task is None or (decision is not None and task.slot == decision.slot):
            continue
        fate = _UNDECIDED.get(state.status)
        if fate is not None:
            said = f"coordinator: {state.status.value}, epoch {state.transaction.epoch}"
            found.append(TaskFate(task.partition, fate, None, (said,)))
    return sorted(found, key=lambda each: each.partition)


_UNDECIDED: Mapping[TransactionStatus, Fate] = {
    TransactionStatus.ONGOING: Fate.UNDECIDED,
    TransactionStatus.PREPARE_ABORT: Fate.ABORTED,
    TransactionStatus.COMPLETE_ABORT: Fate.ABORTED,
    TransactionStatus.PREPARE_EPOCH_FENCE: Fate.ABORTED,
}
_WITNESS = {
    Visibility.COMMITTED: "there",
    Visibility.ABORTED: "skipped by read_committed",
    Visibility.UNREADABLE: "unreadable (deleted or compacted)",
}


def _told(case: Case, known: Evidence) -> tuple[str, ...]:
    """Each thing that the outcome is known from."""
    found, state = [], known.state
    if known.settled and case.written is not None:
        found.append(f"the log: all of it was seen visible (seq {case.written.record.seq})")
    if state is not None:
        other = state.is_not(known.transaction)
        whose = f", but of a later attempt (epoch {state.transaction.epoch})" if other else ""
        found.append(f"coordinator: {state.status.value}{whose}")
    if known.witness is not None:
        witness = known.entry.witness
        place = f"{witness.topic}[{witness.partition}]@{witness.offset}"
        found.append(f"witness {place}: {_WITNESS[known.witness]}")
    if known.marker is not None:
        found.append(f"marker: {'commit' if known.marker else 'abort'}")
    if known.override is not None:
        found.append(f"a person's override: {'visible' if known.override else 'lost'}")
    if known.accepted:
        found.append("a person has accepted the batch as it is")
    if case.later is not None:
        found.append(f"a later batch was decided (seq {case.later.record.seq})")
    return tuple(found)


def _decided_case(
    history: History, batch: int, stream: str, mine: list[Written], latest: BatchId
) -> Case:
    written = mine[-1]
    decision = written.record.decision
    assert decision is not None
    current = {(e.producer_id, e.epoch) for e in decision.prepared}
    former = {
        (entry.producer_id, entry.epoch): entry
        for each in mine[:-1]
        if each.record.decision
        for entry in each.record.decision.prepared
    }
    replaced = tuple(entry for key, entry in former.items() if key not in current)
    after = [
        each
        for each in history.records
        if each.position.offset > written.position.offset
        and each.record.decision is not None
        and each.record.decision.batch != decision.batch
    ]
    # A single batch write that came to nothing does not stop the next one.
    proves = decision.batch.numbering is not Numbering.ONCE
    return Case(
        Known.EARLIER if after else Known.LATEST,
        batch,
        stream,
        written=written,
        later=after[0] if after and proves and not _was_dropped(history, written) else None,
        replaced=replaced,
        latest=latest,
    )


def _was_dropped(history: History, written: Written) -> bool:
    """By a person, `eos-sink resolve --forget`: what follows proves nothing."""
    return any(
        each.record.decision is None and each.position.offset > written.position.offset
        for each in history.records
    )


def _latest_of(history: History, stream: str) -> BatchId | None:
    for written in reversed(history.records):
        found = [batch for batch in written.record.decided if batch.stream == stream]
        if found:
            return found[-1]
    return None


def _is_certainly_between(history: History, batch: int, stream: str) -> bool:
    """Whether the log still has all that was written between the decisions around a batch."""
    before: Written | None = None
    seq = 0
    for written in history.records:
        whole, seq = written.record.seq == seq + 1, written.record.seq
        decision = written.record.decision
        if not whole or decision is None or decision.batch.stream != stream:
            before = None
        if decision is not None and decision.batch.stream == stream:
            if decision.batch.batch < batch:
                before = written
            elif before is not None:
                return True
    return False
