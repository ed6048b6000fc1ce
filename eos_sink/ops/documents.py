"""The state of a query, its batches and transactions as JSON: the same keys in every command.

docs/api.md documents the keys; they are stable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eos_sink.driver.processes import is_alive_here
from eos_sink.messages import as_json
from eos_sink.metrics.stats import Stats
from eos_sink.ops.batch_record import BatchRecord
from eos_sink.ops.evidence import BatchEvidence, OtherTask, TransactionEvidence
from eos_sink.ops.status import QueryStatus, QueryTransaction
from eos_sink.protocol.model import BatchId, Decision, RowDigest, Run, SourcePosition
from eos_sink.protocol.outcome import Outcome
from eos_sink.protocol.values import TransactionState, Visibility

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
    open_decided, undecided = status.counts
    return {
        "query": status.names.query,
        "prefix": status.names.prefix,
        "group": status.names.group,
        "seq": status.history.seq,
        **batch_document(status.batch),
        "outcome": status.state,
        "rows": status.total.rows,
        "bytes": status.total.bytes,
        **decision_document(decision),
        "dead_letter_rows_total": status.dead_letter_rows,
        "decided_at_ms": status.decided_at_ms,
        "lost": sorted(status.view.lost),
        "in_doubt": sorted(status.view.doubtful),
        "driver": status.driver.value,
        "members": status.hosts,
        "run": run_document(status.run),
        "open": open_document(status.open, now_ms),
        "open_decided": open_decided,
        "undecided": undecided,
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


def open_document(
    found: Iterable[QueryTransaction] | None, now_ms: int
) -> list[dict[str, Any]] | None:
    """Return what coordinators say of open transactions; None: they could not be listed."""
    if found is None:
        return None
    return [
        {
            **vars(each.transaction),
            "query": each.names.query if each.names else None,
            "slot": each.task.slot if each.task else None,
            "partition": each.task.partition if each.task else None,
            "decided": each.decided,
            "age_ms": each.age_ms(now_ms),
            "left_ms": each.left_ms(now_ms),
        }
        for each in found
    ]


def evidence_document(evidence: BatchEvidence) -> dict[str, Any]:
    """Return the evidence about a batch, and what else is known of its query."""
    history, latest = evidence.history, evidence.history.latest
    return {
        "query": evidence.names.query,
        "group": evidence.names.group,
        **batch_document(evidence.batch),
        "record": evidence.state,
        "latest": evidence.latest.batch if evidence.latest else None,
        "dropped": evidence.dropped,
        "other_streams": evidence.other_streams,
        "log": {
            "topic": evidence.log,
            "partition": latest.position.partition if latest else None,
            "offset": latest.position.offset if latest else None,
            "seq": history.seq,
        },
        "run": run_document(history.run),
        "members": evidence.hosts,
        "decision": _decided_document(evidence),
        "tasks": [_task_document(task) for task in evidence.tasks],
        "topics": [
            {key: value for key, value in vars(tail).items() if key != "traces"}
            | {"unread": tail.unread or None}
            for tail in evidence.tails
        ],
        "in_doubt": sorted(evidence.view.doubtful),
        "undecided_ids": None
        if evidence.undecided is None
        else [transaction.transactional_id for transaction in evidence.undecided],
        "committed_without_record": evidence.committed,
        "not_seen": evidence.unseen,
    }


def _decided_document(batch: BatchRecord) -> dict[str, Any] | None:
    written, decision, source = batch.written, batch.decision, batch.source
    if written is None or decision is None:
        return None
    return {
        **batch_document(decision.batch),
        "seq": written.record.seq,
        "later_seq": batch.later.record.seq if batch.later else None,
        "decided_at_ms": written.at_ms,
        "slot": decision.slot,
        **rows_document(decision.total),
        **decision_document(decision),
        "override": decision.override,
        "source": source
        and {"group": source.group, "start": as_json(source.start), "end": as_json(source.end)},
    }


def _task_document(task: TransactionEvidence | OtherTask) -> dict[str, Any]:
    shown = {"partition": task.partition, "rows": task.rows, "outcome": task.outcome}
    if isinstance(task, OtherTask):
        asked = _state_document(task.state)
        own = {**vars(task.state.transaction), "coordinator": asked} if task.state else {}
        return {**shown, "inline": task.outcome is Outcome.COMMITTED, **own}
    evidence, trace = task.evidence, task.trace
    return {
        **shown,
        "inline": False,
        **vars(evidence.transaction),
        **rows_document(task.entry.digest),
        "coordinator": _state_document(evidence.state),
        "witness": {**vars(task.entry.witness), "found": WITNESS[evidence.witness]},
        "marker": MARKER[evidence.marker],
        "at_the_end": trace
        and {
            **rows_document(task.readable),
            "rows": trace.rows,
            "marker": MARKER[task.marker],
            "same_rows": task.same_rows,
        },
    }


def _state_document(state: TransactionState | None) -> dict[str, Any] | None:
    """Return a coordinator's answer."""
    if state is None:
        return None
    transaction = state.transaction
    return {
        "state": state.status,
        "producer_id": transaction.producer_id,
        "epoch": transaction.epoch,
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
