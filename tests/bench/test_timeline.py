"""The steps of a batch, from Spark's progress and from what its Python processes have passed."""

from __future__ import annotations

from datetime import datetime, timezone

from bench.timeline import Span, spans
from eos_sink_lab.testing.faults import Pass

BEGIN_S = datetime(2026, 11, 28, 12, 0, tzinfo=timezone.utc).timestamp()
PROGRESS = {
    "timestamp": "2026-11-28T12:00:00.000Z",
    "durationMs": {"triggerExecution": 100, "latestOffset": 0, "walCommit": 30, "addBatch": 60},
}


def passed(at_ms: float, point: str, pid: int = 1) -> Pass:
    return Pass(BEGIN_S + at_ms / 1000, point.partition(".")[0], pid, point)


def test_sparks_steps_follow_each_other_and_calls_span_all_tasks() -> None:
    passes = [
        passed(-5, "committer.open.after"),
        passed(50, "task.init.before", 2),
        passed(52, "task.init.before", 3),
        passed(55, "task.init.after", 2),
        passed(58, "task.init.after", 3),
        passed(101, "planner.read.before"),
    ]
    found = [
        Span(who, step, round(start), round(end))
        for who, step, start, end in spans(PROGRESS, passes)
    ]
    assert found == [
        ("Spark", "walCommit", 0, 30),
        ("Spark", "addBatch", 30, 90),
        ("task", "init", 50, 58),
    ]
