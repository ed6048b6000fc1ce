"""What follows from what is known: pure functions and tables, no network.

Kafka's error codes and transaction states are judged here and nowhere else. What a table does not
list means stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from eos_sink.errors import CommitFailedError, ConfigurationError
from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import Transaction, TransactionState, TransactionStatus
from eos_sink.protocol import operator_errors
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    Numbering,
    Plan,
    RowDigest,
    TaskReport,
)
from eos_sink.protocol.outcome import proves_commit

_SESSION_MARGIN_MS = 60_000
# The default of group.max.session.timeout.ms, and the most that librdkafka takes.
_KAFKAS_SESSION_MS = 1_800_000
_CLIENTS_SESSION_MS = 3_600_000
_VOTE_MARGIN_SHARE, _VOTE_MARGIN_MS = 10, 10_000
MAX_STREAMS = 1_000
"""Under one identity: a record keeps some 100 bytes of each."""


_COMMITTED = {TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT}


def undecided(
    names: QueryNames, states: Iterable[TransactionState], decision: Decision | None
) -> list[Transaction]:
    """Open transactions of the query that the decision does not name."""
    decided = decision.transactions(names).keys() if decision else frozenset()
    return [
        state.transaction
        for state in states
        if state.status is TransactionStatus.ONGOING
        and names.parse_task(state.transaction.transactional_id)
        and state.transaction not in decided
    ]


def check_unrecorded(names: QueryNames, log: str, states: Iterable[TransactionState]) -> None:
    """The log has no record of the query, so none of its transactions can have been committed.

    Raises:
        OperatorNeededError: one was, hence there was a record.
    """
    known = [s for s in states if s.status in _COMMITTED and _is_of(names, s)]
    if known:
        ids = sorted(state.transaction.transactional_id for state in known)
        tasks = [names.parse_task(name) for name in ids]
        partitions = sorted({task.partition for task in tasks if task})
        raise operator_errors.no_record(names, log, ids, partitions)


def _is_of(names: QueryNames, state: TransactionState) -> bool:
    name = state.transaction.transactional_id
    return name == names.driver or names.parse_task(name) is not None


class Role(Enum):
    """What a task does with its rows."""

    WRITE = auto()
    COUNT = auto()
    """They are visible already: count and fingerprint them only."""
    SKIP = auto()
    """A version before the decided one: count them only, nobody looks at the sum."""
    REFUSE = auto()
    """A second frame of one batch under one identity: an error, if it has a row."""


@dataclass(frozen=True)
class Assignment:
    role: Role
    slot: int


def assignment(plan: Plan, batch: BatchId, partition: int, spark_run: str = "") -> Assignment:
    """Whether a task writes or only counts, and under which slot.

    Args:
        spark_run: the run id of the query whose `foreachBatch` writes.

    Raises:
        OperatorNeededError: the batch is older than the decision, or the decision has lost
            partitions and Spark no longer replays its batch; or nothing tells what became of
            partitions, and the batch is their own or does not prove that they were committed.
    """
    decision = plan.decision
    if decision is None:
        return Assignment(Role.WRITE, 0)
    names, log = plan.token.names, plan.token.position.topic
    if decision.batch == batch:
        if spark_run and spark_run == decision.spark_run:
            # One run calls foreachBatch once for a batch, so this is no replay.
            return Assignment(Role.REFUSE, decision.slot)
        if plan.doubtful:
            raise operator_errors.in_doubt(names, log, decision, plan.doubtful)
        role = Role.WRITE if partition in plan.lost else Role.COUNT
        return Assignment(role, decision.slot)
    if decision.batch.stream == batch.stream and decision.batch.batch > batch.batch:
        if batch.numbering is Numbering.VERSION:
            return Assignment(Role.SKIP, decision.slot)
        raise operator_errors.old_checkpoint(names, log, batch, decision)
    if plan.doubtful and not proves_commit(batch, decision.batch):
        raise operator_errors.in_doubt(names, log, decision, plan.doubtful)
    if plan.lost and not _came_to_nothing(decision, plan.lost):
        raise operator_errors.unrepaired(names, log, batch, decision, plan.lost)
    return Assignment(Role.WRITE, 1 - decision.slot)


def _came_to_nothing(decision: Decision, lost: frozenset[int]) -> bool:
    """A single batch write of which nothing is visible: its job has failed, as its user knows."""
    alone = decision.batch.numbering is Numbering.ONCE
    return alone and lost == {entry.partition for entry in decision.prepared}


def check_unmoved(
    names: QueryNames,
    log: str,
    decision: Decision,
    elsewhere: Iterable[tuple[QueryNames, LogRecord]],
) -> None:
    """The query has not written further under another identity: a checkpoint that was moved, or
    copied, amid a batch, or a query that has changed between writing by itself and `foreachBatch`.
    A copy that writes to other topics is nobody's business.

    Raises:
        OperatorNeededError: it was.
    """
    batch, topics = decision.batch, set(decision.topics)
    for other, record in elsewhere:
        latest = record.decision
        if latest is None:
            continue  # Nothing was decided there, or a person has dropped it.
        # What topics an earlier stream's batch went to is not kept.
        same_topic = topics & {*latest.topics}
        decided = record.decided if same_topic else [each.batch for each in record.other_streams]
        for its in decided:
            if its.stream in batch.namesakes and its.batch >= batch.batch:
                raise operator_errors.moved_checkpoint(names, log, batch, other, its)


def is_already_visible(names: QueryNames, log: str, record: LogRecord, decision: Decision) -> bool:
    """Whether a batch was decided before another stream took the query's names, and so is visible:
    what is written of it now has to be aborted. Otherwise it is new.

    Raises:
        OperatorNeededError: the stream has gone further than this batch, or has decided it with
            other rows, or an older version did not note with which.
        ConfigurationError: the same run of the query has written it.
    """
    batch, total, spark_run = decision.batch, decision.total, decision.spark_run
    known = record.other_stream(batch.stream)
    if known is None or known.batch.batch < batch.batch:
        return False
    if known.dropped and record.decision is None:
        return False  # So that it is written.
    if known.batch.batch > batch.batch:
        raise operator_errors.older_than_earlier(names, log, batch, known)
    if spark_run and spark_run == known.spark_run:
        raise second_frame(names, batch)
    if known.accepted:
        return True
    if known.total is None:
        raise operator_errors.unknown_earlier(names, log, batch)
    if known.total != total:
        raise operator_errors.other_rows_than_earlier(names, log, batch, known.total, total)
    return True


def second_frame(names: QueryNames, batch: BatchId) -> ConfigurationError:
    return ConfigurationError(
        f"Query {names.query}: {batch} is written a second time under this identity in one run: "
        "another frame to the same topic, or the same write tried again. A repetition of the one "
        "could not be told from the other. What was written first is visible, nothing of this "
        "write is.",
        remedy="Leave the first write as it is, give each further one an eos.id of its own "
        "(.option('eos.id', '<query and frame>')), and start the query again. If it is the same "
        "write tried again, let the error end the query instead.",
        data={"batch": batch.batch},
    )


def check_streams(names: QueryNames, record: LogRecord, decision: Decision) -> None:
    """The record has room for one more stream, since none is forgotten.

    Raises:
        ConfigurationError: it has not; nothing is decided.
    """
    is_kept = decision.batch.numbering is not Numbering.ONCE
    if is_kept and len(record.followed_by(decision)) >= MAX_STREAMS:
        raise ConfigurationError(
            f"Query {names.query}: {decision.batch} is of one more stream, and {MAX_STREAMS} have "
            "written under this identity already. The decision log keeps the last batch of each, "
            "so that none is written twice. Nothing of this batch is visible.",
            remedy="Give each job an eos.id of its own (.option('eos.id', '<job>')).",
            data={"streams": MAX_STREAMS},
        )


def group_session_ms(transaction_timeout_ms: int) -> int:
    """The shortest session of the driver's membership in its group. Spark may end an idle planner
    process during a batch, and the metadata of its member must outlive the batch."""
    return min(transaction_timeout_ms + _SESSION_MARGIN_MS, _CLIENTS_SESSION_MS)


def longest_session_ms(transaction_timeout_ms: int, allowed_ms: int | None) -> int:
    """The session that the driver asks for first: before its first row a batch may take long, and
    the plan must outlive that too.

    Args:
        allowed_ms: the brokers' `group.max.session.timeout.ms`; None: they do not tell it.
    """
    allowed_ms = _KAFKAS_SESSION_MS if allowed_ms is None else allowed_ms
    return max(min(allowed_ms, _CLIENTS_SESSION_MS), group_session_ms(transaction_timeout_ms))


def vote_margin_ms(transaction_timeout_ms: int) -> int:
    """The decision is refused when a prepared transaction is this near to its time-out: a tenth of
    it, at most ten seconds."""
    return min(transaction_timeout_ms // _VOTE_MARGIN_SHARE, _VOTE_MARGIN_MS)


def check_vote(
    transactions: Iterable[Transaction],
    states: Mapping[str, TransactionState],
    now_ms: int,
    margin_ms: int,
) -> None:
    """Every prepared transaction is still ongoing under its own epoch and far from its time-out.

    Args:
        now_ms: by the brokers' clocks.

    Raises:
        CommitFailedError: one is not; nothing is decided.
    """
    for transaction in transactions:
        state = states[transaction.transactional_id]
        if state.transaction != transaction or state.status is not TransactionStatus.ONGOING:
            raise CommitFailedError(
                f"The prepared transaction {transaction.transactional_id} (producer id "
                f"{transaction.producer_id}, epoch {transaction.epoch}) is no longer open: its "
                f"coordinator says {state.status.value}, producer id "
                f"{state.transaction.producer_id}, epoch {state.transaction.epoch}. It timed out "
                "or another attempt of the task took its id. Nothing of the batch is visible.",
                remedy="Start the query again: Spark replays the batch. If batches take longer "
                "than the transaction time-out, make them smaller or raise "
                "eos.transaction.timeout.ms.",
            )
        left_ms = state.started_ms + state.timeout_ms - now_ms
        if left_ms < margin_ms:
            raise CommitFailedError(
                f"The batch took {(now_ms - state.started_ms) / 1000:.0f} s, too close to the "
                f"transaction time-out of {state.timeout_ms / 1000:.0f} s to decide it safely. "
                "Nothing of it is visible.",
                remedy="Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger) or raise "
                "eos.transaction.timeout.ms, then start the query again.",
                data={"left_ms": left_ms},
            )


def check_replay(
    names: QueryNames, log: str, decision: Decision, reports: Sequence[TaskReport]
) -> None:
    """A replay of the decided batch has the rows of the decision, whichever partitions they are in.

    Raises:
        OperatorNeededError: it has not.
    """
    total = RowDigest.total([report.digest for report in reports])
    if total != decision.total and not decision.override.accepted:
        raise operator_errors.other_rows(
            names,
            log,
            decision,
            f"the replay has {total.rows} rows and {total.bytes} bytes (fingerprint "
            f"{total.fingerprint:016x}), the decision {decision.total.rows} rows and "
            f"{decision.total.bytes} bytes (fingerprint {decision.total.fingerprint:016x})",
            _moved(decision, reports),
        )


def check_rewrite(
    names: QueryNames,
    log: str,
    decision: Decision,
    lost: frozenset[int],
    reports: Sequence[TaskReport],
) -> None:
    """A replay that writes lost partitions again has the same partitions with the same rows.

    Raises:
        OperatorNeededError: it has not.
    """
    check_replay(names, log, decision, reports)
    if len(reports) != decision.partitions:
        raise operator_errors.other_rows(
            names,
            log,
            decision,
            f"the replay has {len(reports)} partitions, the decision {decision.partitions}",
            sorted(lost),
        )
    moved = _moved(decision, reports)
    written = {r.partition for r in reports if r.prepared}
    if moved or written != lost:
        raise operator_errors.other_rows(
            names,
            log,
            decision,
            f"partitions {sorted(lost)} were lost and {sorted(written)} written again, and "
            f"partitions {moved} hold other rows than before",
            sorted(set(moved) | lost),
        )


def _moved(decision: Decision, reports: Sequence[TaskReport]) -> list[int]:
    """The partitions that do not hold the rows that they held when they were decided."""
    decided = {entry.partition: entry.digest for entry in decision.prepared}
    found = {report.partition: report.digest for report in reports}
    every = sorted(decided.keys() | found.keys())
    return [p for p in every if found.get(p, RowDigest()) != decided.get(p, RowDigest())]
