"""The state of a query, its batches and transactions as JSON: the same keys in every command.

docs/api.md documents the keys; they are stable.
"""

from __future__ import annotations

from typing import Any

from eos_sink.driver.processes import is_alive_here
from eos_sink.metrics.stats import Stats
from eos_sink.ops.status import QueryStatus, QueryTransaction
from eos_sink.protocol.model import BatchId, Decision, RowDigest, Run, SourcePosition
from eos_sink.protocol.outcome import Evidence, Outcome, outcome
from eos_sink.protocol.values import Visibility

WITNESS = {
    Visibility.COMMITTED: "there",
    Visibility.ABORTED: "skipped",
    Visibility.UNREADABLE: "unreadable",
    None: None,
}
MARKER = {True: "commit", False: "abort", None: None}


def query_document(status: QueryStatus, now_ms: int) -> dict[str, Any]:
    """Return the state of a query: its latest decision, and what is open."""
    decision, hidden, source = status.decision, status.history.hidden, status.source
    stats = status.record.stats if status.record else Stats()
    return {
        "query": status.names.query,
        "prefix": status.names.prefix,
        "group": status.names.group,
        "seq": status.seq,
        **batch_document(status.batch),
        "outcome": status.state,
        "rows": status.total.rows,
        "bytes": status.total.bytes,
        **decision_document(decision),
        "dead_letter_rows_total": status.dead_letter_rows,
        "decided_at_ms": status.decided_at_ms,
        "lost": status.partitions_that_are(Outcome.LOST),
        "in_doubt": status.partitions_that_are(Outcome.IN_DOUBT),
        "driver": status.driver.value,
        "members": status.hosts,
        "run": run_document(status.run),
        "open": [transaction_document(each, now_ms) for each in status.open],
        "open_decided": status.open_decided,
        "undecided": len(status.undecided),
        "left_ms": status.left_ms(now_ms),
        "steps": {step.label: time.last for step, time in stats.steps.items()},
        "counts": {count.label: number for count, number in stats.counts.items()},
        "unreadable_at": hidden and str(hidden.position),
        "source": source and source_document(source.group, source, status.source_lag),
    }


def batch_document(batch: BatchId | None) -> dict[str, Any]:
    return {"batch": batch and batch.batch, "stream": batch and batch.stream}


def source_document(group: str, position: SourcePosition | None, lag: int | None) -> dict[str, Any]:
    """Return where a query stands in its source."""
    return {
        "group": group,
        **batch_document(position.batch if position else None),
        "stale": position is None or position.stale,
        "lag": lag,
    }


def decision_document(decision: Decision | None) -> dict[str, Any]:
    """Return where the rows of a decided batch are."""
    return {
        "partitions": decision.partitions if decision else 0,
        "transactions": len(decision.prepared) if decision else 0,
        "inline_partitions": len(decision.inlined) if decision else 0,
        "inline_rows": decision.inlined_total.rows if decision else 0,
        "dead_letter_rows": decision.dead_letter_rows if decision else 0,
        "dead_letter_topic": (decision.dead_letter_topic if decision else "") or None,
    }


def transaction_document(each: QueryTransaction, now_ms: int) -> dict[str, Any]:
    """Return what a coordinator says of an open transaction."""
    return {
        **vars(each.transaction),
        "query": each.names.query if each.names else None,
        "slot": each.task.slot if each.task else None,
        "partition": each.task.partition if each.task else None,
        "decided": each.decided,
        "age_ms": each.age_ms(now_ms),
        "left_ms": each.left_ms(now_ms),
    }


def evidence_document(evidence: Evidence) -> dict[str, Any]:
    """Return all that is known of a transaction of a decision."""
    entry, state = evidence.entry, evidence.state
    return {
        "partition": entry.partition,
        **vars(evidence.transaction),
        **rows_document(entry.digest),
        "outcome": outcome(evidence).value,
        "coordinator": state
        and {
            "state": state.status.value,
            "producer_id": state.transaction.producer_id,
            "epoch": state.transaction.epoch,
        },
        "witness": {**vars(entry.witness), "found": WITNESS[evidence.witness]},
        "marker": MARKER[evidence.marker],
    }


def rows_document(rows: RowDigest) -> dict[str, Any]:
    return {"rows": rows.rows, "bytes": rows.bytes, "fingerprint": f"{rows.fingerprint:016x}"}


def run_document(run: Run | None) -> dict[str, Any] | None:
    """Return the run that wrote a record."""
    if run is None:
        return None
    return {
        "host": run.host,
        "pid": run.pid,
        "started_ms": run.started_ms,
        "known_as": run.tool or str(run.origin),
        "alive_here": is_alive_here(run),
    }
