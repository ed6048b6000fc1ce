"""All guards, in the order of the page."""

from __future__ import annotations

from proof.guards import batch, commit, log, offsets, operate, plan, task
from proof.guards.guard import Guard

CHAPTERS: dict[str, tuple[Guard, ...]] = {
    "The decision log": log.GUARDS,
    "Plan and recovery": plan.GUARDS,
    "Commit and abort": commit.GUARDS,
    "Tasks and repeated batches": task.GUARDS,
    "Batch writes": batch.GUARDS,
    "The source's offsets": offsets.GUARDS,
    "Operators' commands": operate.GUARDS,
}
GUARDS = tuple(guard for chapter in CHAPTERS.values() for guard in chapter)


def named(name: str) -> Guard:
    """Raises KeyError for a name that the table does not have."""
    return {guard.name: guard for guard in GUARDS}[name]
