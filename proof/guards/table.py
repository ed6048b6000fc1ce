"""The guards that are removed by hand: those of the order of requests, in the order of the page."""

from __future__ import annotations

from proof.guards import commit, log, plan, task
from proof.guards.guard import Guard

CHAPTERS: dict[str, tuple[Guard, ...]] = {
    "The decision log": log.GUARDS,
    "Plan": plan.GUARDS,
    "Vote, decide, commit, abort": commit.GUARDS,
    "Tasks, source and operators": task.GUARDS,
}
GUARDS = tuple(guard for chapter in CHAPTERS.values() for guard in chapter)
