"""Errors of a fenced run, naming the run that replaced it.

Each record of the decision log names the run that wrote it. A restart replaces the run before it;
two queries under one identity replace each other in turns. The names tell which of the two it is.
"""

from __future__ import annotations

from eos_sink.errors import (
    Action,
    BatchFailedError,
    CommitFailedError,
    FailureKind,
    ProduceFailedError,
    SupersededError,
)
from eos_sink.identity import QueryNames
from eos_sink.protocol.model import Entry, PlanToken, Run
from eos_sink.protocol.values import MemberRefused


def superseded(token: PlanToken, entry: Entry) -> SupersededError:
    """The decision log has moved on since the plan, which has decided nothing."""
    who, remedy, action = _rival(token.run, entry)
    return SupersededError(
        f"Query {token.names.query}: the decision log is at seq {entry.seq} while this batch was "
        f"planned from seq {token.seq}. {who} None of this run's rows of the batch is visible.",
        remedy=remedy,
        data={"seq": entry.seq, "planned": token.seq, **_by(entry)},
        action=action,
    )


def refused_member(  # noqa: PLR0913
    names: QueryNames,
    refused: MemberRefused,
    mine: Run | None,
    latest: Entry | None,
    session_ms: int,
    *,
    while_writing: bool = False,
) -> SupersededError | BatchFailedError:
    """The group refuses the member of a task (`while_writing`) or of the driver.

    Args:
        latest: the log's latest record, if it could be read.
        session_ms: the session of the plan's member.
    """
    if refused.replaced:
        return replaced(names, mine, latest)
    failed = ProduceFailedError if while_writing else CommitFailedError
    kind = {"kind": FailureKind.TRANSACTION_FAILED.value} if while_writing else {}
    return failed(
        f"Query {names.query}: the driver's membership in group {names.group} has ended, "
        f"{session_ms / 60_000:g} min after its process ended or stood still: {refused} Nothing "
        "of the batch is visible.",
        remedy="Start the query again: Spark replays the batch. If that fails the same way, the "
        f"batch is planned more than {session_ms / 60_000:g} min before its last row is written: "
        "make batches smaller, or raise group.max.session.timeout.ms on the brokers (at most an "
        "hour of it is used).",
        data={"session_ms": session_ms, **kind},
    )


def replaced(names: QueryNames, mine: Run | None, latest: Entry | None) -> SupersededError:
    who, remedy, action = _rival(mine, latest)
    return SupersededError(
        f"Query {names.query}: a newer driver has joined group {names.group}, so this run may "
        f"write nothing any more. {who}",
        remedy=remedy,
        data=_by(latest),
        action=action,
    )


def _by(latest: Entry | None) -> dict[str, str]:
    theirs = latest.record.run if latest else None
    return {"by": str(theirs)} if theirs else {}


def _rival(mine: Run | None, latest: Entry | None) -> tuple[str, str, Action]:
    """Which run has taken over, the remedy, and the next action."""
    theirs = latest.record.run if latest else None
    if mine and mine.origin.batch:
        return _rival_of_write(mine, theirs)
    if theirs is None:
        return (
            "Another run of the query has taken over; it has not said which one.",
            "If two applications run this query, stop one; if this is the old one, let it end. If "
            "no other one runs, start this query again.",
            Action.LEAVE,
        )
    if theirs == mine:
        return (
            "Another process of the same run has taken over, or a newer run that has not written "
            "to the log yet.",
            "Start the query again, unless a newer run of it goes on: then keep the newer run.",
            Action.RUN_AGAIN,
        )
    this = f" This one is {mine}." if mine else ""
    if theirs.tool:
        return (
            f"An operator has used {theirs.tool}: {theirs}.{this}",
            "Start the query again.",
            Action.RUN_AGAIN,
        )
    if mine and theirs.origin.contradicts(mine.origin):
        return (
            f"Two queries share one identity: {theirs} has taken over.{this}",
            "Give each of the two an eos.id of its own. If one was meant to replace the other (a "
            "checkpoint that was moved), stop the older one.",
            Action.FIX,
        )
    return (
        f"The same query was started again: {theirs} has taken over.{this}",
        "Let the newer run go on; if it has ended, start this query again. If it was not started "
        "on purpose, stop one of the two.",
        Action.LEAVE,
    )


def _rival_of_write(mine: Run, theirs: Run | None) -> tuple[str, str, Action]:
    """The same for a write outside of a query's own batches: a later write never contains it."""
    if theirs and theirs.tool:
        return (
            f"An operator has used {theirs.tool}: {theirs}. This one is {mine}.",
            "Run this write, or the query that makes it, again.",
            Action.RUN_AGAIN,
        )
    other = f": {theirs}" if theirs else ""
    return (
        f"Another batch write under the same identity goes on{other}. This one is {mine}.",
        "Run this write, or the query that makes it, again when the other one is done. Writes "
        "that run at the same time need an identity each: give each an eos.id, or a txnAppId, "
        "of its own; but finish a batch or a version that has been tried under its old identity "
        "first, since under a new one it is written again.",
        Action.RUN_AGAIN,
    )
