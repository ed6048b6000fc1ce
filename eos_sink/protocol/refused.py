"""Says what it means that Kafka refuses a member, a producer or rows, and who has taken over.

Each record of the decision log names the run that wrote it. A restart replaces the run before it;
two queries under one identity replace each other in turns. The names tell which of the two it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eos_sink.errors import EosSinkError, FailureKind
from eos_sink.messages import Reason, Text, stop
from eos_sink.protocol.model import LogEntry, PlanToken, Run
from eos_sink.protocol.values import MemberRefused, ProduceFailed

if TYPE_CHECKING:
    from eos_sink.protocol.topic_rules import TopicRules


def superseded(token: PlanToken, entry: LogEntry) -> EosSinkError:
    """The decision log has moved on since the plan, which has decided nothing."""
    return replaced(token.run, entry, seq=entry.seq, planned=token.seq)


def replaced(mine: Run | None, latest: LogEntry | None, **numbers: int) -> EosSinkError:
    theirs = latest.record.run if latest else None
    by = str(theirs) if theirs else None
    return stop(_rival(mine, theirs), mine=mine, theirs=theirs, by=by, **numbers)


def refused_member(
    refused: MemberRefused,
    mine: Run | None,
    latest: LogEntry | None,
    session_ms: int,
    *,
    while_writing: bool = False,
) -> EosSinkError:
    """The group refuses the member of a task (`while_writing`) or of the driver.

    Args:
        latest: the log's latest record, if it could be read.
        session_ms: the session of the plan's member.
    """
    if refused.replaced:
        return replaced(mine, latest)
    return stop(
        Reason.PLAN_TOO_OLD_TO_WRITE if while_writing else Reason.PLAN_TOO_OLD,
        refused=refused,
        session_ms=session_ms,
        minutes=session_ms / 60_000,
        kind=FailureKind.TRANSACTION_FAILED.value,
    )


def rows_not_taken(
    transactional_id: str, failed: ProduceFailed, rules: TopicRules | None = None
) -> EosSinkError:
    """Args:
    rules: of the topic of `failed`, if they are known.
    """
    if failed.of_time:
        return stop(Reason.ROW_TIME, transactional_id=transactional_id, failed=failed)
    rejected = failed.kind is FailureKind.MESSAGE_REJECTED
    if rejected and rules and rules.sure_bytes < rules.max_bytes:
        return stop(Reason.ROW_GROWS, transactional_id=transactional_id, failed=failed, rules=rules)
    return stop(
        Reason.ROW_REJECTED
        if rejected
        else Reason.ROWS_NOT_DELIVERED
        if failed.kind is FailureKind.DELIVERY_FAILED
        else Reason.TRANSACTION_FAILED,
        transactional_id=transactional_id,
        failed=failed,
    )


def _rival(mine: Run | None, theirs: Run | None) -> Text:
    """Which run has taken over."""
    if theirs and theirs != mine and theirs.tool:
        return Reason.RIVAL_OPERATOR
    if mine and mine.origin.batch:
        # A later write never contains this one.
        return Reason.RIVAL_WRITE
    if theirs is None:
        return Reason.RIVAL_UNKNOWN
    if theirs == mine:
        return Reason.RIVAL_PROCESS
    if mine and theirs.origin.contradicts(mine.origin):
        return Reason.RIVAL_QUERY
    return Reason.RIVAL_RESTART
