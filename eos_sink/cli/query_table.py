"""The rows of queries, and of open transactions, in the tables of `status` and `watch`."""

from __future__ import annotations

from collections.abc import Sequence

from eos_sink.cli.output import Cell, Mood, TableRow, span
from eos_sink.identity import DEFAULT_PREFIX
from eos_sink.ops.evidence import TaskState
from eos_sink.ops.status import QueryStatus, QueryTransaction
from eos_sink.protocol.model import BatchId, Numbering
from eos_sink.protocol.outcome import Outcome

_MOODS = {
    Outcome.COMMITTED.value: Mood.GOOD,
    Outcome.OPEN.value: Mood.WARN,
    Outcome.UNKNOWN.value: Mood.WARN,
    TaskState.ABORTED.value: Mood.WARN,
    Outcome.LOST.value: Mood.BAD,
    Outcome.IN_DOUBT.value: Mood.BAD,
    "unreadable": Mood.BAD,
}


def make_rows(queries: Sequence[QueryStatus], now_ms: int) -> list[dict[str, Cell | str]]:
    """A row for each query, without the column of the lag or of the prefix if it says nothing."""
    shown = {
        "source lag": any(each.source for each in queries),
        "prefix": any(each.names.prefix != DEFAULT_PREFIX for each in queries),
    }
    rows = (_make_row(each, now_ms) for each in queries)
    return [{name: row[name] for name in row if shown.get(name, True)} for row in rows]


def figure(number: int | None) -> str:
    """Return a number, or that it is not seen."""
    return "?" if number is None else f"{number:,}"


def outcome_cell(outcome: str) -> Cell:
    """Return the outcome of a transaction or a batch."""
    return Cell(outcome, _MOODS.get(outcome, Mood.PLAIN))


def _make_row(status: QueryStatus, now_ms: int) -> dict[str, Cell | str]:
    oldest = max((each.age_ms(now_ms) for each in status.open or ()), default=None)
    left, decided_ms = status.left_ms(now_ms), status.decided_at_ms
    none = "?" if status.open is None else "-"
    decided, undecided = map(figure, status.counts)
    return {
        "query": status.names.query,
        "batch": _name_batch(status.batch),
        "state": outcome_cell(status.state or "-"),
        "rows": f"{status.total.rows:,}" if status.decision else "-",
        "decided": "-" if decided_ms is None else f"{span(max(0, now_ms - decided_ms))} ago",
        "driver": status.driver.value,
        "open decided": decided,
        "undecided": undecided,
        "oldest": none if oldest is None else span(oldest),
        "time left": none if left is None else span(left),
        "source lag": figure(status.source_lag) if status.source else "-",
        "prefix": status.names.prefix,
    }


def make_transaction_row(each: QueryTransaction, now_ms: int) -> TableRow:
    task = each.task
    return {
        "transactional id": each.transactional_id,
        "task": str(task.partition) if task else "driver" if each.names else "-",
        "decision": "decided" if each.decided else "undecided" if task else "-",
        "age": span(each.age_ms(now_ms)),
        "time left": span(each.left_ms(now_ms)),
    }


def _name_batch(batch: BatchId | None) -> str:
    """The name of a batch in a table that does not show its stream."""
    if batch is None:
        return "-"
    if batch.numbering is Numbering.ONCE:
        return str(batch)
    return f"version {batch.batch}" if batch.numbering is Numbering.VERSION else str(batch.batch)
