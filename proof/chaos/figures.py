"""The figures of a run, as plain JSON values. Pure: a result comes in, numbers come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from bench.result import machine, spread
from eos_sink_lab.testing import FaultPoint
from proof.chaos.kinds import DRIVER_DIES, Kind
from proof.chaos.result import Outcome, Result
from proof.chaos.schedule import Fault

_PACKAGES = ("eos-sink", "pyspark", "confluent-kafka", "kafka-python")

Figures = dict[str, Any]


def figures(result: Result) -> Figures:
    """Everything that the report shows."""
    splits = [outcome.split for outcome in result.outcomes if outcome.split is not None]
    return {
        "good": result.good,
        "seed": result.settings.seed,
        "rate": result.settings.rate,
        "input": result.settings.source.value,
        "way": result.settings.way.value,
        "standbys": result.settings.standbys,
        "masters": [master.value for master in result.settings.masters],
        "began": round(result.began, 3),
        "minutes": round((result.ended - result.began) / 60, 1),
        "machine": machine(),
        "versions": {name: version(name) for name in _PACKAGES} | {"kafka": result.kafka},
        "verdict": _verdict(result),
        "drivers": result.lives,
        "steps": len(result.outcomes),
        "faults": sum(len(outcome.struck) for outcome in result.outcomes),
        "not_reached": sum(
            len(outcome.step.faults) - len(outcome.struck) for outcome in result.outcomes
        ),
        "by_kind": by_kind(result.outcomes),
        "by_point": by_point(result.outcomes),
        "stops": _stops(result.events),
        "replaced": dict(Counter(_why(e) for e in result.events if e["what"] == "replaced")),
        "recovery_s": {
            "kills": len(splits),
            "total": summarize(split.total_s for split in splits),
            "spark": summarize(split.spark_s for split in splits),
            "ours": summarize(split.ours_s for split in splits),
            "ours_plan": summarize(split.plan_s for split in splits),
            "ours_tasks": summarize(split.tasks_s for split in splits),
            "ours_commit": summarize(split.commit_s for split in splits),
        },
        "outcomes": [_outcome(outcome, result.began) for outcome in result.outcomes],
        "seconds": [asdict(second) for second in result.seconds],
        "events": result.events,
    }


def summarize(values: Iterable[float]) -> dict[str, float] | None:
    """Median, 95th percentile and maximum; None if there are no values."""
    samples = list(values)
    if not samples:
        return None
    found = spread(samples)
    return {
        "median": round(found.median, 2),
        "p95": round(found.p95, 2),
        "max": round(max(samples), 2),
    }


def by_kind(outcomes: Sequence[Outcome]) -> list[Figures]:
    """For each kind that struck: how often, how often survived, and how long rows stood still."""
    rows = []
    for kind in Kind:
        hits = [outcome for outcome in outcomes if _has(outcome, kind)]
        if hits:
            alone = [outcome for outcome in hits if len(outcome.struck) == 1]
            rows.append(
                {
                    "kind": kind.value,
                    "struck": sum(_times(outcome, kind) for outcome in hits),
                    "survived": sum(_times(o, kind) for o in hits if o.survived),
                    "silence_s": summarize(
                        each.silence_s for each in alone if each.silence_s is not None
                    ),
                    "ends_driver": kind in DRIVER_DIES,
                }
            )
    return rows


def by_point(outcomes: Sequence[Outcome]) -> list[Figures]:
    """For each point that something struck at: what, how often, and how often survived."""
    struck = [(fault, o) for o in outcomes for fault in o.struck if fault.point is not None]
    return [
        {
            "point": point.value,
            "struck": sum(fault.point is point for fault, _ in struck),
            "survived": sum(fault.point is point and o.survived for fault, o in struck),
            "kinds": dict(Counter(f.kind.value for f, _ in struck if f.point is point)),
        }
        for point in FaultPoint
        if any(fault.point is point for fault, _ in struck)
    ]


def _verdict(result: Result) -> Figures:
    found = result.audit
    held_up = [o.held_up for o in result.outcomes if o.held_up]
    verdict: Figures = {"fed": result.rows, "flaws": result.flaws, "held_up": held_up}
    if found is None:
        return verdict
    count = asdict(found.count)
    return verdict | {
        **{name: count[name] for name in ("records", "lost", "doubled", "foreign", "out_of_order")},
        "examples": dict(found.count.examples),
        "withdrawn": found.withdrawn,
        "overlooked": found.overlooked,
        "on_disk": asdict(result.on_disk) if result.on_disk else None,
        "aborted": found.aborted,
        "readers_waiting": {str(p): ends for p, ends in found.held_up.items()},
    }


def _stops(events: Sequence[Figures]) -> dict[str, int]:
    """Why drivers ended by themselves."""
    return dict(
        Counter(_why(event) for event in events if event["what"] == "end" and event["text"])
    )


def _why(event: Figures) -> str:
    return str(event["error"]) or "an error of Spark or Python"


def _outcome(outcome: Outcome, began: float) -> Figures:
    def since(moment: float | None) -> float | None:
        return None if moment is None else round(moment - began, 2)

    return {
        "number": outcome.step.number,
        "master": outcome.step.master.value,
        "life": outcome.life,
        "faults": [_fault(fault, struck=fault in outcome.struck) for fault in outcome.step.faults],
        "at_s": since(outcome.at),
        "healed_s": since(outcome.healed),
        "visible_s": since(outcome.visible),
        "caught_up_s": since(outcome.caught_up),
        "silence_s": None if outcome.silence_s is None else round(outcome.silence_s, 2),
        "held_up": outcome.held_up,
        "split": None if outcome.split is None else _rounded(asdict(outcome.split)),
        "facts": outcome.facts,
    }


def _fault(fault: Fault, *, struck: bool) -> Figures:
    return {
        "kind": fault.kind.value,
        "point": fault.point.value if fault.point else None,
        "target": fault.target,
        "duration_s": fault.duration_s,
        "struck": struck,
    }


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in values.items()}


def _has(outcome: Outcome, kind: Kind) -> bool:
    return _times(outcome, kind) > 0


def _times(outcome: Outcome, kind: Kind) -> int:
    return sum(fault.kind is kind for fault in outcome.struck)
