"""What the errors of a batch write say to do next.

The classes speak of queries, which Spark starts again. A write is run by its user. With a number it
may always be run again, without one never after its decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto

from eos_sink.errors import (
    Action,
    BatchFailedError,
    ClusterError,
    ConfigurationError,
    EosSinkError,
    OperatorNeededError,
    OutcomeUnknownError,
    UnfinishedError,
)
from eos_sink.protocol.model import BatchId, Numbering, PlanToken
from eos_sink.protocol.operator_errors import explain_command


class Stage(Enum):
    """The progress of a write."""

    PLAN = auto()
    """Its driver settles what earlier writes have left; nothing of it is written."""
    TASK = auto()
    """A task writes; nothing of it is decided."""
    COMMIT = auto()


_OUTSIDE = "Outside of a query: "
_AGAIN = f"{_OUTSIDE}run the write again."
_SAME_VERSION = f"{_OUTSIDE}run the write again under the same txnVersion."
_UNWRITTEN = (
    "This happened before anything of this write was written: run it, or the query that makes it, "
    "again when the cause is gone."
)
_FORMER = "Do not run the earlier write again: it is decided, and the next write finishes it."
_FINISHED_BY_NEXT = (
    f"{_OUTSIDE}do not run the write again, its rows would be there twice. Run one without rows "
    "under the same identity soon (frame.limit(0)): it finishes this one. If transactions of this "
    "one have timed out by then (eos.transaction.timeout.ms), it stops with an OperatorNeededError "
    "that says which rows of this one to write again."
)
_PARTLY = (
    f"{_OUTSIDE}do not run the write again as a whole: look which of its rows are visible after "
    "that, and write only the others."
)


@contextmanager
def add_batch_remedy(
    stage: Stage, batch: BatchId | None = None, token: PlanToken | None = None
) -> Iterator[None]:
    """Make the errors inside say what to do with a batch write.

    Args:
        stage: how far the write has come.
        batch: None while that is not known (in a plan).
        token: of the plan.
    """
    try:
        yield
    except EosSinkError as error:
        text, action = _next_step(error, stage, batch, token)
        if not text:
            raise
        remedy = f"{error.remedy} {text}"
        raise type(error)(error.message, remedy=remedy, data=error.data, action=action) from error


def _next_step(
    error: EosSinkError, stage: Stage, batch: BatchId | None, token: PlanToken | None
) -> tuple[str, Action]:
    """Return what to add to the remedy, "" for nothing; and the next action."""
    if stage is Stage.PLAN:
        return _after_plan(error)
    numbering = batch.numbering if batch else Numbering.STREAM
    repeatable = isinstance(error, (BatchFailedError, UnfinishedError, OutcomeUnknownError))
    if numbering is Numbering.VERSION and repeatable:
        return _SAME_VERSION, error.action
    if numbering is not Numbering.ONCE:
        return "", error.action
    undecided = stage is Stage.TASK or error.data.get("decided") is False
    if isinstance(error, BatchFailedError) or (repeatable and undecided):
        return _AGAIN, error.action
    if stage is Stage.COMMIT:
        return _after_commit(error, batch, token)
    return "", error.action


def _after_plan(error: EosSinkError) -> tuple[str, Action]:
    if isinstance(error, ConfigurationError):
        return "", error.action
    is_former = isinstance(error, UnfinishedError) and _is_single(error.data.get("stream"))
    text = f"{_FORMER} {_UNWRITTEN}" if is_former else _UNWRITTEN
    keeps = isinstance(error, (ClusterError, OperatorNeededError))
    return text, error.action if keeps else Action.RUN_AGAIN


def _after_commit(
    error: EosSinkError, batch: BatchId | None, token: PlanToken | None
) -> tuple[str, Action]:
    """For a write without a version."""
    if isinstance(error, UnfinishedError):
        return _FINISHED_BY_NEXT, Action.LEAVE
    if isinstance(error, OperatorNeededError):
        return _PARTLY, Action.LOOK
    if isinstance(error, OutcomeUnknownError) and batch is not None and token is not None:
        return _find_out(batch, token), Action.LOOK
    return "", error.action


def _find_out(batch: BatchId, token: PlanToken) -> str:
    """Opening the log, as each plan does, ends what is open: after that the log is certain."""
    command = explain_command(token.names, token.position.topic, batch)
    return (
        f"{_OUTSIDE}do not run the write again before it is known whether it was decided. When the "
        "brokers answer, run one without rows under the same identity (frame.limit(0)): it ends "
        "what this one may have left open, and finishes it if it was decided. After that has "
        f"succeeded, this command knows:\n{command}\n"
        "If its tasks are committed, all rows are visible: leave it. If it says 'not decided', "
        "nothing of it is or becomes visible: run the write again."
    )


def _is_single(stream: object) -> bool:
    return isinstance(stream, str) and BatchId(stream, 0).numbering is Numbering.ONCE
