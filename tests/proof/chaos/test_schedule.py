"""What happens when follows from the seed alone, and every kind and point gets its turn."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest

from eos_sink_lab.testing import FaultPoint
from proof.chaos.inject import INJECT
from proof.chaos.kinds import (
    DURATIONS,
    IN_THE_CLUSTER,
    NOT_AIMED_AT,
    OF_PROCESSES_BELOW_THE_JVM,
    OF_THE_CHECKPOINT,
    PRELUDES,
    Family,
    Input,
    Kind,
    Master,
    Way,
    family_of,
    points_for,
)
from proof.chaos.schedule import Step, schedule


def steps(seed: int, many: int = 400) -> list[Step]:
    return list(islice(schedule(seed), many))


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert steps(11) == steps(11)
    assert steps(11) != steps(12)


def test_what_is_drawn_first_does_not_depend_on_how_much_is_drawn() -> None:
    assert steps(3, 10) == steps(3, 100)[:10]


def test_every_kind_has_its_turn_within_an_hour_or_so() -> None:
    struck = {fault.kind for step in steps(1, 100) for fault in step.faults}
    assert struck == set(Kind) - OF_THE_CHECKPOINT


def test_only_a_query_that_reads_a_topic_loses_its_checkpoint() -> None:
    run = islice(schedule(1, [Master.LOCAL], Input.TOPIC), 40)
    struck = {fault.kind for step in run for fault in step.faults}
    assert struck == OF_THE_CHECKPOINT


def test_drivers_are_killed_at_every_point_before_any_point_has_its_second_turn() -> None:
    points = [
        fault.point for step in steps(2) for fault in step.faults if fault.kind is Kind.KILL_DRIVER
    ]
    every = set(FaultPoint) - NOT_AIMED_AT
    assert set(points[: len(every)]) == every


def test_through_foreachbatch_no_process_of_planner_or_committer_is_struck() -> None:
    run = islice(schedule(2, way=Way.FUNCTION), 400)
    faults = [fault for step in run for fault in step.faults]
    assert {f.kind for f in faults} == set(Kind) - OF_THE_CHECKPOINT - OF_PROCESSES_BELOW_THE_JVM
    killed = {f.point for f in faults if f.kind is Kind.KILL_DRIVER}
    aborts = {p for p in FaultPoint if p.value.startswith(("committer.list", "committer.abort"))}
    assert killed == set(FaultPoint) - NOT_AIMED_AT - aborts


def test_executors_are_killed_only_where_there_are_some() -> None:
    local = list(islice(schedule(1, [Master.LOCAL]), 200))
    assert not any(f.kind is Kind.KILL_EXECUTOR for step in local for f in step.faults)


def test_a_change_of_master_begins_with_the_end_of_a_driver() -> None:
    run = steps(4)
    for before, step in pairwise(run):
        if before.master is not step.master:
            assert step.faults[0].kind is Kind.KILL_DRIVER


def test_pairs_are_a_fault_in_the_cluster_and_a_driver_killed_at_once() -> None:
    pairs = [step.faults for step in steps(5) if len(step.faults) > 1]
    assert pairs
    for first, second in pairs:
        assert first.kind in IN_THE_CLUSTER
        assert second.kind in (Kind.KILL_DRIVER, Kind.KILL_DRIVER_ANYTIME)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_can_be_brought_about_and_drawn(kind: Kind) -> None:
    assert kind in INJECT
    assert family_of(kind.value) in Family
    low, high = DURATIONS.get(kind, (0.0, 0.0))
    assert 0 <= low <= high


def test_every_prelude_leads_to_a_point_that_is_aimed_at() -> None:
    calls = {point.value.rsplit(".", 1)[0] for point in points_for(Kind.KILL_DRIVER)}
    assert set(PRELUDES) <= calls
