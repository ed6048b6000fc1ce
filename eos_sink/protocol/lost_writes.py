"""Errors of writes without a number that have lost decided rows: nothing repeats them.

So that the rows are not lost unnoticed, such a write stops the next one under its identity until an
operator acknowledges it.
"""

from __future__ import annotations

from datetime import datetime, timezone

from eos_sink.errors import CommitFailedError, OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.protocol.model import BatchId, Decision, LogRecord
from eos_sink.protocol.operator_errors import ACCEPT, resolve_command

# A session that lives says nothing about its writes, so the run that wrote last may be alive.
ACKNOWLEDGE = f"{ACCEPT} --take-over"
_WHY = "by their timeout or a late attempt of their tasks"


def former_write(
    names: QueryNames,
    log: str,
    decision: Decision,
    lost: frozenset[int],
    decided: LogRecord | None,
) -> OperatorNeededError:
    """An earlier write has lost rows. Its data names it as `former`.

    Args:
        decided: the first record of its decision, if the log still has it.
    """
    rows, others = _count_rows(decision, lost)
    seen = f"Its {others} other rows are visible" if others else "None of its rows is visible"
    return OperatorNeededError(
        f"Query {names.query}: {decision.batch}{_by(decided)} was decided, but its partitions "
        f"{sorted(lost)} ({rows} rows) were aborted after that, {_WHY}, and nothing writes them "
        f"again. {seen}. It stops every later write under its identity before that writes, so that "
        "its rows are not lost unnoticed.",
        remedy=f"Acknowledge it:\n{_command(names, log, decision.batch)}\nThen write its "
        "lost rows again, unless that was done meanwhile: look whether they are visible.",
        data={**_data(decision, lost), "former": decision.batch.stream},
    )


def this_write(
    names: QueryNames, log: str, decision: Decision, lost: frozenset[int], unnoted: str = ""
) -> OperatorNeededError:
    """This write has lost rows, and the log says that it is decided.

    Args:
        unnoted: why the log still says so, if all rows are lost.
    """
    rows, others = _count_rows(decision, lost)
    why = f" The decision log could not note that: {unnoted}" if unnoted else ""
    return OperatorNeededError(
        f"Query {names.query}: {decision.batch} is decided, but its partitions {sorted(lost)} "
        f"({rows} rows) were aborted after that, {_WHY}, and nothing writes them again. Its "
        f"{others} other rows are visible.{why}",
        remedy="It stops the next write under its identity until it is acknowledged (the log has "
        f"no such batch any more if that was done):\n{_command(names, log, decision.batch)}\n",
        data=_data(decision, lost),
    )


def dropped(names: QueryNames, decision: Decision) -> CommitFailedError:
    """This write has lost all of its rows, and the log no longer says that it is decided."""
    return CommitFailedError(
        f"Query {names.query}: all transactions of {decision.batch} were aborted right after its "
        f"decision, {_WHY}. Nothing of it is or becomes visible.",
        remedy="If that happens again, raise eos.transaction.timeout.ms.",
        data=_data(decision, frozenset(decision.digests)),
    )


def _by(decided: LogRecord | None) -> str:
    if decided is None or not decided.stats.decided_ms:
        return ""
    at = datetime.fromtimestamp(decided.stats.decided_ms / 1000, timezone.utc)
    return f" (of {at:%Y-%m-%d %H:%M:%S} UTC, by {decided.run})"


def _command(names: QueryNames, log: str, batch: BatchId) -> str:
    return resolve_command(names, log, ACKNOWLEDGE, batch.stream)


def _data(decision: Decision, lost: frozenset[int]) -> dict[str, object]:
    rows, others = _count_rows(decision, lost)
    return {
        "batch": decision.batch.batch,
        "stream": decision.batch.stream,
        "partitions": sorted(lost),
        "rows": rows,
        "visible_rows": others,
    }


def _count_rows(decision: Decision, lost: frozenset[int]) -> tuple[int, int]:
    """The rows that are lost, and all others."""
    rows = decision.count_rows(lost)
    return rows, decision.total.rows - rows
