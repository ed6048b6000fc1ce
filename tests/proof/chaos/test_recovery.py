"""Whose time a recovery was."""

from __future__ import annotations

from eos_sink_lab.testing import Pass
from proof.chaos.recovery import covered, split


def passes(*given: tuple[float, str, int]) -> list[Pass]:
    return [Pass(t, point.split(".")[0], pid, point) for t, point, pid in given]


# Killed at 100; Spark is up at 106; one worker runs two tasks, another one runs one.
USUAL = passes(
    (106.0, "planner.connect.before", 1),
    (106.4, "planner.stable.after", 1),
    (106.9, "task.connect.before", 2),
    (107.1, "task.prepared.after", 2),
    (107.0, "task.connect.before", 3),
    (107.2, "task.prepared.after", 3),
    (107.5, "task.connect.before", 2),
    (107.6, "task.prepared.after", 2),
    (107.8, "committer.connect.before", 4),
    (107.9, "committer.write.after", 4),
    (108.1, "committer.settle.after", 4),
)


def test_ours_is_the_plan_the_tasks_and_the_commit() -> None:
    found = split(100.0, 108.0, USUAL)
    assert found is not None
    assert round(found.plan_s, 3) == 0.4
    assert round(found.tasks_s, 3) == 0.4, "overlapping tasks count once, waiting for one does not"
    assert round(found.commit_s, 3) == 0.2, "up to the moment that the row is visible"
    assert round(found.spark_s, 3) == 7.0
    assert found.total_s == 8.0


def test_rows_that_the_planner_makes_visible_are_its_time() -> None:
    found = split(100.0, 106.3, USUAL)
    assert found is not None
    assert (round(found.plan_s, 3), found.tasks_s, found.commit_s) == (0.3, 0.0, 0.0)


def test_a_life_that_has_not_planned_yet_has_no_part_in_it() -> None:
    assert split(100.0, 105.0, USUAL) is None


def test_intervals_that_overlap_are_covered_once() -> None:
    assert covered([(1, 3), (2, 4), (6, 7)]) == 4
    assert covered([]) == 0
