"""Finds what is left to do for a query that nobody is doing. Pure.

By the steps of the driver (`eos_sink.protocol.reconcile`), so that operators are told what its next
start would do.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from eos_sink.protocol.outcome import Outcome
from eos_sink.protocol.reconcile import Role, Step, View, next_step

if TYPE_CHECKING:
    from eos_sink.ops.status import QueryStatus

# A driver settles a batch within seconds, and tries again until its step's timeout (2 minutes).
_LONG_MS = 120_000
_LOOKED = frozenset({Step.ASK_TOPIC_IDS, Step.LOOK, Step.LIST, Step.STOP})


class Need(Enum):
    """A thing that is left to do; the values say who can."""

    COMMIT = "the driver, the next start or eos-sink resolve --end"
    CHOICE = "an operator: eos-sink resolve"
    REPLAY = "the next start"
    ANSWER = "Kafka"
    """Whether a decided transaction has been committed."""
    ABORT = "the next start or eos-sink resolve --end"
    """End what is undecided, which a driver that is alive decides."""


_NEEDS = {
    Step.ASK_COORDINATORS: Need.ANSWER,
    Step.COMMIT: Need.COMMIT,
    Step.ASK_TOPICS: Need.ANSWER,
    Step.ABORT: Need.ABORT,
}


def find_needs(view: View) -> dict[Need, list[int]]:
    """The partitions of each need, the worst first.

    Args:
        view: with all evidence and all open transactions that could be seen.
    """
    needs = {Need.REPLAY, Need.CHOICE}
    ahead = replace(view, done=_LOOKED)
    while (step := next_step(ahead, Role.REPAIR)) is not Step.REST:
        needs |= {_NEEDS[step]} if step in _NEEDS else set()
        ahead = ahead.doing(step)
    listed = (view.names.parse_task(each.transactional_id) for each in view.listed)
    partitions = {
        Need.COMMIT: view.partitions_that_are(Outcome.OPEN),
        Need.CHOICE: view.doubtful,
        Need.REPLAY: view.lost,
        Need.ANSWER: view.partitions_that_are(Outcome.UNKNOWN),
        Need.ABORT: {task.partition for task in listed if task},
    }
    return {need: sorted(partitions[need]) for need in Need if need in needs and partitions[need]}


def pending(status: QueryStatus, now_ms: int) -> dict[Need, list[int]]:
    """Return what is left to do, but for what a live driver does within its time."""
    is_stalled = (
        status.last_run_ended
        or now_ms - (status.decided_at_ms or now_ms) > _LONG_MS
        or any(each.decided and each.is_late(now_ms) for each in status.open or ())
    )
    is_left = {Need.CHOICE: True, Need.ABORT: status.last_run_ended}
    needs = find_needs(status.view)
    return {need: needs[need] for need in needs if is_left.get(need, is_stalled)}
