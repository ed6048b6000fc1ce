"""The rules of the protocol: pure functions, no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import (
    DIGEST,
    BatchId,
    Decision,
    LogRecord,
    Plan,
    RowDigest,
    SourcePosition,
    TaskReport,
)
from eos_sink.protocol.outcome import proves_commit
from eos_sink.protocol.values import (
    Package,
    Transaction,
    TransactionState,
    TransactionStatus,
    this_package,
)
from eos_sink.protocol.written import MOST_RANGES

_SESSION_MARGIN_MS = 60_000
# The default of group.max.session.timeout.ms, and the longest session that librdkafka allows.
_KAFKAS_SESSION_MS = 1_800_000
_CLIENTS_SESSION_MS = 3_600_000
_VOTE_MARGIN_SHARE, _VOTE_MARGIN_MS = 10, 10_000
MAX_STREAMS = 1_000
"""Streams that others have followed under one identity: a record has some 60 bytes for each."""


class Role(Enum):
    """The next step of a task with its rows."""

    WRITE = auto()
    COUNT = auto()
    """The rows are visible already: only count and fingerprint them."""
    COMPLETE = auto()
    """Some of the rows are visible already: write the others."""
    SKIP = auto()
    """A write whose number was written before: only count the rows, for a warning."""
    REFUSE = auto()
    """A second frame of one batch under one identity: an error if it has a row."""


@dataclass(frozen=True)
class Assignment:
    """`first` is the number that the first partition has in the decision."""

    role: Role
    slot: int
    first: int = 0


def assign(plan: Plan, batch: BatchId, partition: int, spark_run: str = "") -> Assignment:
    """Assign a task its role and slot.

    Args:
        spark_run: Spark's run id of the query whose `foreachBatch` writes.

    Raises:
        ConfigurationError: the stream is retired; a query and single writes share an identity; a
            replay would split the batch over two topics; or it is not known whether the number of
            the write was written.
        OperatorNeededError: the batch is older than the decision. Or the decision has lost
            partitions and Spark no longer replays its batch. Or the outcome of partitions is not
            known, and the batch is a replay of theirs or does not prove that they were committed.
    """
    decision = plan.decision
    _check_identity(plan, batch)
    if decision is not None and decision.batch == batch:
        if spark_run and spark_run == decision.spark_run:
            # A run calls foreachBatch once for each batch, so this is no replay.
            return Assignment(Role.REFUSE, decision.slot)
        if plan.doubtful:
            raise in_doubt(decision, plan.doubtful, plan.made_again)
        if decision.digest != DIGEST and not decision.override.accepted:
            raise stop(Reason.OTHER_DIGEST, decision=decision)
        _check_route(decision, plan)
        if plan.visible is not None:
            # The ids of the decided partitions may have later attempts.
            return Assignment(Role.COMPLETE, decision.slot, decision.partitions)
        # If nothing is visible, the replay may have its rows in any partitions.
        writes = partition in plan.lost or decision.is_invisible(plan.lost)
        return Assignment(Role.WRITE if writes else Role.COUNT, decision.slot)
    if batch.numbering.is_of_write:
        if batch.batch in plan.written:
            return Assignment(Role.SKIP, 0)
        if plan.written.forgets(batch.batch):
            raise stop(Reason.FORGOTTEN_NUMBER, batch=batch, written=plan.written, most=MOST_RANGES)
    if decision is None:
        return Assignment(Role.WRITE, 0)
    is_older = decision.batch.stream == batch.stream and decision.batch.batch > batch.batch
    if is_older and not batch.numbering.is_of_write:
        raise stop(Reason.OLD_CHECKPOINT, batch=batch, decision=decision)
    if plan.doubtful and not proves_commit(batch, decision.batch):
        raise in_doubt(decision, plan.doubtful, plan.made_again)
    if plan.lost:
        raise stop(Reason.UNREPAIRED, batch=batch, decision=decision, lost=plan.lost)
    return Assignment(Role.WRITE, 1 - decision.slot)


def in_doubt(
    decision: Decision, doubtful: frozenset[int], made_again: frozenset[str] = frozenset()
) -> EosSinkError:
    """Neither coordinator nor topic knows any more what became of these partitions.

    Args:
        made_again: topics that were deleted and created again since.
    """
    witnesses = [each.witness for each in decision.prepared if each.partition in doubtful]
    letters = {each.partition for each in decision.dead_letters} & doubtful
    in_gone = {each.topic for each in witnesses} <= made_again and decision.route.topic
    again = f"deleted and created again since: {', '.join(sorted(made_again))}"
    return stop(
        Reason.TOPIC_MADE_AGAIN if in_gone and not letters else Reason.IN_DOUBT,
        decision=decision,
        lost=doubtful,
        places=", ".join(map(str, witnesses)),
        why=again if made_again else "deleted or compacted",
    )


def check_same_version(driver: Package | None, task: Package | None) -> None:
    """Check that driver and task run one version: another one may mean something else by the same
    plan or report.

    Args:
        driver: None: a version that does not say which it is.
        task: as well.

    Raises:
        ConfigurationError: they are not.
    """
    if driver and task and driver.version == task.version:
        return
    one, other = (each or "an older eos-sink" for each in (driver, task))
    wanted = (driver or task or this_package()).version
    raise stop(Reason.OTHER_VERSION, driver=f"{one}", task=f"{other}", wanted=wanted)


def _check_route(decision: Decision, plan: Plan) -> None:
    """Check that a replay adds to what is visible in the same topics, by the same rules. If nothing
    is visible, or all is, it may have others; but rows whose topic comes from a column are counted
    with their topics.

    Raises:
        ConfigurationError: it would not.
    """
    before, now = decision.route, plan.route
    same_kind = (before.topic is None) == (now.topic is None)
    writes_rest = plan.lost and not decision.is_invisible(plan.lost)
    if before == now or (same_kind and not writes_rest):
        return
    raise stop(Reason.OTHER_ROUTE, decision=decision, now=now)


def check_former(
    decision: Decision, former: QueryNames, record: LogRecord, group: str
) -> BatchId | None:
    """Check that a query has not decided this batch, or a later one, under an identity that it had
    before: its `eos.id`, prefix, checkpoint location or way of writing was changed before Spark had
    noted its last batch as done. Frames have several identities at once, so of these the rows are
    compared. What goes to another topic is another copy of the rows.

    Args:
        former: the identity.
        record: its latest one.
        group: that the query moves; "": none.

    Returns:
        The stream's last batch there, which has to be retired; None: there is nothing to retire.

    Raises:
        OperatorNeededError: it has; or another stream has followed there with the same group.
    """
    latest, batch = record.decision, decision.batch
    of_query = (each for each in reversed(record.decided) if each.is_of_query(batch))
    last = next(of_query, None)
    if last is None or (latest and latest.batch == last and _is_elsewhere(decision, latest)):
        return None
    moved = last.is_moved_from(batch)
    repeats = moved or (latest is not None and _is_same_frame(decision, latest))
    if last != record.dropped and last.batch >= batch.batch + (not repeats):
        raise moved_checkpoint(batch, former, record, last)
    if not moved or not record.has_retired(last.stream):
        return last if moved else None
    source = record.source
    if source and not record.is_left and _begins_there(source, group):
        decided, group = source.batch, source.group
        raise stop(Reason.MOVED_GROUP, former=former, record=record, decided=decided, group=group)
    return None


def _begins_there(source: SourcePosition, group: str) -> bool:
    """True if what has followed a stream under its former identity begins where that has ended, so
    that both would read the same rows; a run without a group does not tell where it begins."""
    return source.group == group if group else not source.stale


def moved_checkpoint(
    batch: BatchId, former: QueryNames, record: LogRecord, decided: BatchId
) -> EosSinkError:
    """The stream was written under another identity, up to this batch or further.

    Args:
        record: the latest one of the former identity.
        decided: the stream's last batch there.
    """
    latest, reason = record.latest, Reason.MOVED_CHECKPOINT
    if latest and latest.stream != decided.stream:
        reason = Reason.MOVED_AND_FOLLOWED
    elif record.has_retired(decided.stream):
        reason = Reason.MOVED_AND_RETIRED
    return stop(reason, batch=batch, former=former, record=record, decided=decided)


def _is_elsewhere(decision: Decision, other: Decision) -> bool:
    topics = {decision.route.topic, other.route.topic}
    return len(topics) > 1 and None not in topics


def _is_same_frame(decision: Decision, other: Decision) -> bool:
    """True if an earlier run of the query has decided the same rows of the same batch, or as many
    that cannot be compared. One run may write them under several identities."""
    one, another = decision.total, other.total
    if decision.digest != other.digest:
        one, another = replace(one, fingerprint=0), replace(another, fingerprint=0)
    same = (decision.batch, one) == (other.batch, another)
    return same and decision.spark_run != other.spark_run


def _check_identity(plan: Plan, batch: BatchId) -> None:
    """Raises ConfigurationError: another stream, or other kinds of writes, have the identity."""
    decision = plan.decision
    if any(each.stream == batch.stream for each in plan.retired):
        raise _retired(batch, decision.batch if decision else None)
    if decision and decision.batch.numbering.is_by_spark != batch.numbering.is_by_spark:
        raise stop(Reason.SHARED_IDENTITY, batch=batch, decided=decision.batch)


def _retired(batch: BatchId, now: BatchId | None) -> EosSinkError:
    if now is not None and now.stream == batch.stream:
        return stop(Reason.GONE_ON_ELSEWHERE, batch=batch, now=now)
    successor = f"stream {now.source}" if now else "another stream"
    return stop(Reason.FOLLOWED, batch=batch, now=now, successor=successor)


def check_streams(record: LogRecord, batch: BatchId, *, has_group: bool) -> None:
    """Check that a new stream may follow the one before: that none is forgotten, and that it begins
    where the query stands, if the record knows that.

    Args:
        has_group: the batch moves the position, which is compared then.

    Raises:
        ConfigurationError: it may not; nothing is decided.
    """
    known = record.source
    is_known = known is not None and not known.stale and known.batch.stream != batch.stream
    if is_known and not has_group:
        raise stop(Reason.NEW_STREAM_WITHOUT_GROUP, batch=batch, known=known)
    if record.is_new_stream(batch) and len(record.retired) >= MAX_STREAMS:
        raise stop(Reason.TOO_MANY_STREAMS, batch=batch, streams=MAX_STREAMS)


def select_undecided(
    names: QueryNames, states: Iterable[TransactionState], decision: Decision | None
) -> list[Transaction]:
    """The query's open transactions that the decision does not name."""
    decided = decision.transactions(names).keys() if decision else frozenset()
    return [
        state.transaction
        for state in states
        if state.status is TransactionStatus.ONGOING
        and names.parse_task(state.transaction.transactional_id)
        and state.transaction not in decided
    ]


def check_unrecorded(names: QueryNames, states: Iterable[TransactionState]) -> None:
    """Check, for a query without a record, that none of its transactions was committed.

    Raises:
        OperatorNeededError: one was, so there was a record.
    """
    known = (s.transaction.transactional_id for s in states if s.has_committed)
    ids = sorted(name for name in known if name == names.driver or names.parse_task(name))
    if ids:
        tasks = [names.parse_task(name) for name in ids]
        partitions = sorted({task.partition for task in tasks if task})
        raise stop(Reason.NO_RECORD, transactions=ids, partitions=partitions)


def group_session_ms(transaction_timeout_ms: int) -> int:
    """The shortest session that the driver's group member may have. Spark may end an idle planner
    process during a batch, and the metadata of its member must outlive the batch."""
    return min(transaction_timeout_ms + _SESSION_MARGIN_MS, _CLIENTS_SESSION_MS)


def longest_session_ms(transaction_timeout_ms: int, allowed_ms: int | None) -> int:
    """The session that the driver asks for first: a batch may take long before its first row, and
    the plan must outlive that too.

    Args:
        allowed_ms: the brokers' `group.max.session.timeout.ms`; None: it may not be read.
    """
    allowed_ms = _KAFKAS_SESSION_MS if allowed_ms is None else allowed_ms
    return max(min(allowed_ms, _CLIENTS_SESSION_MS), group_session_ms(transaction_timeout_ms))


def vote_margin_ms(transaction_timeout_ms: int) -> int:
    """A decision needs this much left of each transaction's timeout: a tenth of it, at most ten
    seconds."""
    return min(transaction_timeout_ms // _VOTE_MARGIN_SHARE, _VOTE_MARGIN_MS)


def check_same_topics(known: Iterable[tuple[str, str]], now: Mapping[str, str]) -> None:
    """Check that the rows of a batch are in the topics that have their names now.

    Args:
        known: each topic with an id from before its rows were written; "": there was none.
        now: the ids of these topics.

    Raises:
        CommitFailedError: they are not; nothing is decided.
    """
    gone = sorted({topic for topic, topic_id in known if now.get(topic, "") != topic_id})
    if gone:
        raise stop(Reason.TOPICS_GONE, topics=gone)


def check_vote(
    transactions: Sequence[Transaction],
    states: Mapping[str, TransactionState],
    now_ms: int,
    margin_ms: int,
) -> int:
    """Check that each prepared transaction is open, under its own producer id and epoch, and not
    near its timeout.

    Args:
        transactions: at least one.
        now_ms: by the brokers' clocks.

    Returns:
        The least time in ms that one of them has left, at least the margin.

    Raises:
        CommitFailedError: one is not; nothing is decided.
    """
    for transaction in transactions:
        state = states[transaction.transactional_id]
        if state.transaction != transaction or state.status is not TransactionStatus.ONGOING:
            raise stop(Reason.NOT_OPEN, wanted=transaction, state=state)
        left_ms = _left_ms(state, now_ms)
        if left_ms < margin_ms:
            raise stop(
                Reason.TOO_LATE,
                took_s=(now_ms - state.started_ms) / 1000,
                timeout_s=state.timeout_ms / 1000,
                left_ms=left_ms,
            )
    return min(_left_ms(states[each.transactional_id], now_ms) for each in transactions)


def _left_ms(state: TransactionState, now_ms: int) -> int:
    return state.started_ms + state.timeout_ms - now_ms


class Replay(Enum):
    """The effect of a replay of the decided batch."""

    SAME = auto()
    """It has found the decided rows, and nothing of them is lost."""
    REPAIRS = auto()
    """It has written exactly what is lost."""
    MOVED = auto()
    """It has other partitions while a part is visible, so it has not written the lost rows."""
    TWINS = auto()
    """It has not written exactly the lost rows: one has the same content as a visible one."""


def compare(decision: Decision, lost: frozenset[int], reports: Sequence[TaskReport]) -> Replay:
    """Compare a replay with the decided batch. It may have the rows in any partitions.

    Args:
        lost: partitions of the decision that are not visible.

    Raises:
        OperatorNeededError: it has other rows.
    """
    total = RowDigest.total(report.digest for report in reports)
    moved = _moved(decision, reports)
    if total != decision.total and not decision.override.accepted:
        difference = f"the replay has {total}, the decision {decision.total}"
        raise _other_rows(decision, difference, moved)
    if not lost:
        return Replay.SAME
    if decision.needs_completion(lost):
        written = RowDigest.total(report.prepared.digest for report in reports if report.prepared)
        missing = RowDigest.total(decision.digests[partition] for partition in lost)
        return Replay.REPAIRS if written == missing else Replay.TWINS
    wanted = lost
    if decision.is_invisible(lost):
        wanted = frozenset(report.partition for report in reports if report.digest.rows)
    elif moved or len(reports) != decision.partitions:
        return Replay.MOVED
    wrote = {report.partition for report in reports if report.has_written}
    if wrote != wanted:
        difference = (
            f"partitions {sorted(wanted)} had to be written again, and {sorted(wrote)} were"
        )
        raise _other_rows(decision, difference, sorted(wanted | wrote))
    return Replay.REPAIRS


def _other_rows(decision: Decision, difference: str, partitions: Sequence[int]) -> EosSinkError:
    return stop(Reason.OTHER_ROWS, decision=decision, difference=difference, partitions=partitions)


def _moved(decision: Decision, reports: Sequence[TaskReport]) -> list[int]:
    """The partitions whose rows are not the decided ones."""
    decided = decision.digests
    found = {report.partition: report.digest for report in reports}
    every = sorted(decided.keys() | found.keys())
    return [p for p in every if found.get(p, RowDigest()) != decided.get(p, RowDigest())]
