"""The decision that follows from what the tasks of a batch report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eos_sink.protocol.model import DeadLetters, Decision, Inlined, Route, RowDigest, TaskReport


def decide(
    reports: Sequence[TaskReport],
    route: Route,
    decided: Decision | None = None,
) -> Decision:
    """Return the decision of a batch, which is not checked here.

    Args:
        reports: of all tasks.
        route: of the query.
        decided: the batch is decided already, and these tasks have written what was lost of it.
    """
    first = reports[0]
    lost = first.lost
    before = decided or Decision(
        first.batch, first.slot, 0, RowDigest.total(each.digest for each in reports), ()
    )
    chosen, completes = before.override, before.needs_completion(lost)
    written = [report.prepared for report in reports if report.prepared]
    inlined = [Inlined(report.partition, report.digest) for report in reports if report.inline]
    kept = [entry for entry in before.prepared if entry.partition not in lost]
    letters = {e.partition: e.rows for e in before.dead_letters if e.partition not in lost}
    letters |= {r.partition: r.dead_letter_rows for r in reports if r.dead_letters}
    return replace(
        before,
        # Another number than before only if all of them were lost, or by a completion.
        partitions=len(reports) + (before.partitions if completes else 0),
        prepared=tuple(sorted([*kept, *written], key=lambda entry: entry.partition)),
        override=replace(chosen, visible=chosen.visible - lost, lost=chosen.lost - lost),
        spark_run=first.spark_run,
        inlined=(*before.inlined, *inlined),
        dead_letters=tuple(DeadLetters(*each) for each in sorted(letters.items())),
        completed=completes,
        topics=before.topics if kept or before.inlined else {},
        route=route,
    )
