"""Figures in a record of the decision log, an optional part of it.

A batch is never stopped for their sake: figures of another form are no figures, and the counters
begin anew, as Prometheus expects of counters now and then.
"""

from __future__ import annotations

from typing import Any

from eos_sink.metrics.names import Count, Step
from eos_sink.metrics.stats import Stats, StepTime


def of_stats(stats: Stats) -> dict[str, Any]:
    known = {
        "counts": {count.label: number for count, number in stats.counts.items()},
        "steps": {
            step.label: [took.total_us, took.count, took.last_us]
            for step, took in stats.steps.items()
        },
        "decided": stats.decided_ms or None,
        "left": stats.left_ms,
        "timeout": stats.timeout_ms,
    }
    return {name: value for name, value in known.items() if value not in (None, {})}


def read_stats(document: Any) -> Stats:
    """What is not known here, of a later version, is passed over."""
    try:
        counts, steps = document.get("counts", {}), document.get("steps", {})
        return Stats(
            counts={c: _whole(counts[c.label]) for c in Count if c.label in counts},
            steps={s: _time(*steps[s.label]) for s in Step if s.label in steps},
            decided_ms=_whole(document.get("decided", 0)),
            left_ms=_optional(document.get("left")),
            timeout_ms=_optional(document.get("timeout")),
        )
    except (ValueError, TypeError, AttributeError):
        return Stats()


def _time(total: Any, count: Any, last: Any) -> StepTime:
    return StepTime(_whole(total), _whole(count), _whole(last))


def _optional(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number")
    return value
