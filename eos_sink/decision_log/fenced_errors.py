"""How a run that may write nothing any more is told who goes on in its place.

Each record names the run that it was written for. Two queries under one identity replace each
other in turns; a restart replaces what it restarts. The names tell which of the two it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from eos_sink.errors import (
    BatchFailedError,
    CommitFailedError,
    FailureKind,
    OperatorNeededError,
    ProduceFailedError,
    SupersededError,
)
from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import LogPosition, MemberRefused
from eos_sink.protocol import operator_errors
from eos_sink.protocol.model import Decision, LogRecord, PlanToken, Run


@dataclass(frozen=True)
class Entry:
    """The query's latest record and where it lies; seq 0 where there is none yet.

    `unmarked`: nothing stops older versions yet. Under their key, the query without its prefix,
    lies this record or none.
    """

    record: LogRecord
    position: LogPosition
    unmarked: bool = False

    @property
    def seq(self) -> int:
        return self.record.seq

    @property
    def decision(self) -> Decision | None:
        return self.record.decision


def check_forward(token: PlanToken, entry: Entry) -> None:
    """A log that is read after a plan is where the plan saw it, or further on.

    Raises:
        OperatorNeededError: it has lost the record that the plan was made from.
    """
    if entry.seq < token.seq or entry.position.offset < token.position.offset:
        raise went_back(token.names, token.seq, token.position, entry)


def superseded(token: PlanToken, entry: Entry) -> SupersededError:
    """The log has moved on since the plan."""
    who, remedy = _rival(token.run, entry)
    return SupersededError(
        f"Query {token.names.query}: the decision log is at seq {entry.seq} while this batch was "
        f"planned from seq {token.seq}. {who} This run makes nothing of the batch visible.",
        remedy=remedy,
        data={"seq": entry.seq, "planned": token.seq, **_by(entry)},
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
    """What a task (`while_writing`) or the driver says whose member the group refuses.

    Args:
        latest: what the log says by now, if it could be read.
        session_ms: of the member that the plan was made with.
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
    who, remedy = _rival(mine, latest)
    return SupersededError(
        f"Query {names.query}: a newer driver has joined group {names.group}, so this run may "
        f"write nothing any more. {who}",
        remedy=remedy,
        data=_by(latest),
    )


def went_back(
    names: QueryNames, seq: int, position: LogPosition, now: Entry
) -> OperatorNeededError:
    """The log does not hold what this run knows that it held."""
    found = f"is at seq {now.seq}, offset {now.position.offset}" if now.seq else "has no record"
    error = operator_errors.went_back(names, seq, position, found, now.decision)
    error.data["seq"] = now.seq
    return error


def _by(latest: Entry | None) -> dict[str, str]:
    theirs = latest.record.run if latest else None
    return {"by": str(theirs)} if theirs else {}


def _rival(mine: Run | None, latest: Entry | None) -> tuple[str, str]:
    """Who goes on, and what to do about it."""
    theirs = latest.record.run if latest else None
    if theirs is None:
        return (
            "Another run of the query has taken over; it has not said which one.",
            "If two applications run this query, stop one; if this is the old one, let it end.",
        )
    if mine and mine.origin.batch and not theirs.tool:
        return (
            f"Another batch write under the same identity goes on: {theirs}. This one is {mine}.",
            "Run this write, or the query that makes it, again when the other one is done. Writes "
            "that run at the same time need an identity each: give each an eos.id, or a txnAppId, "
            "of its own.",
        )
    if theirs == mine:
        return (
            "Another process of this very run has gone on, or a newer run that has not written to "
            "the log yet.",
            "Start the query again, unless a newer run of it goes on: then let that one live.",
        )
    this = f" This one is {mine}." if mine else ""
    if theirs.tool:
        return (
            f"A person has used {theirs.tool}: {theirs}.{this}",
            "Start the query again.",
        )
    if mine and theirs.origin.contradicts(mine.origin):
        return (
            f"Two queries share one identity: {theirs} has taken over.{this}",
            "Give each of the two an eos.id of its own. If one was meant to replace the other (a "
            "checkpoint that was moved), stop the older one.",
        )
    return (
        f"The same query was started again: {theirs} has taken over.{this}",
        "Let the newer run go on. If nobody has started it on purpose, stop one of the two.",
    )
