"""Splits the time of a recovery between Spark and the sink. Pure.

All times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eos_sink_lab.testing import Pass

Interval = tuple[float, float]


@dataclass(frozen=True)
class Split:
    """From SIGKILL of a driver to the first newly visible row.

    Attributes:
        total_s: all of it.
        plan_s: the planner, from the sink's first line to its last call to Kafka.
        tasks_s: while at least one task of the first batch was in the sink's hands.
        commit_s: vote, decision and settling.
        spark_s: the rest: the JVM, Spark, Python processes, planning, scheduling.
    """

    total_s: float
    plan_s: float
    tasks_s: float
    commit_s: float

    @property
    def ours_s(self) -> float:
        return self.plan_s + self.tasks_s + self.commit_s

    @property
    def spark_s(self) -> float:
        return self.total_s - self.ours_s


def split(killed: float, visible: float, passes: Sequence[Pass]) -> Split | None:
    """Split the time.

    Args:
        killed: when the driver was killed.
        visible: when the next row became visible.
        passes: the fault points that the next driver passed.

    Returns:
        None if that driver had not planned by then.
    """
    before = [each for each in passes if killed < each.t <= visible]
    tasks = [each for each in before if each.role == "task"]
    first_task = min((each.t for each in tasks), default=visible)
    planner = [e.t for e in before if e.role == "planner" and e.t <= first_task]
    if not planner:
        return None
    last_task = max((each.t for each in tasks), default=visible)
    committer = [each.t for each in before if each.role == "committer" and each.t >= last_task]
    return Split(
        total_s=visible - killed,
        # Rows of a batch that was decided before become visible while the planner settles.
        plan_s=(max(planner) if tasks else visible) - min(planner),
        tasks_s=covered(_task_intervals(tasks)),
        # They are visible as soon as the coordinator has them, before it has answered.
        commit_s=visible - min(committer) if committer else 0.0,
    )


def covered(intervals: Iterable[Interval]) -> float:
    """The length of the union of the intervals."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def _task_intervals(passes: Sequence[Pass]) -> list[Interval]:
    """From each task's first point to its last; a worker process runs one task after another."""
    intervals: list[Interval] = []
    for pid in {each.pid for each in passes}:
        start = None
        for each in (one for one in passes if one.pid == pid):
            if each.point == "task.connect.before" or start is None:
                start = each.t
            if each.point == "task.prepared.after":
                intervals.append((start, each.t))
                start = None
    return intervals
