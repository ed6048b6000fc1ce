"""A real process is killed at every named point of the protocol, and no row is lost or doubled.

`SCENARIOS` says how each call of the ports is reached; a fault point without a scenario, or one
that its scenario does not reach, fails.
"""

from __future__ import annotations

import pytest

from eos_sink.errors import OperatorNeededError
from eos_sink_lab.testing.faults import FaultPoint
from integration.crash_scenarios import SCENARIOS, Scenario, call_of, replayed
from integration.query import Query, rows_of
from tests import seeds

# Batch 0 is visible and batch 1 under way in all of them, unless they say otherwise.


SAMPLED = pytest.mark.sampled(5, of="crash points")
CRASHES = pytest.mark.parametrize(
    ("point", "scenario"),
    [
        pytest.param(point, scenario, id=f"{point.value}-{scenario.__name__}")
        for point in FaultPoint
        for scenario in SCENARIOS.get(call_of(point), ())
    ],
)


def test_every_point_has_a_scenario() -> None:
    assert SCENARIOS.keys() == {call_of(point) for point in FaultPoint}


@SAMPLED
@CRASHES
def test_every_row_is_visible_once_after_a_crash_at(
    query: Query, point: FaultPoint, scenario: Scenario
) -> None:
    scenario(query, point).killed_at(point)
    query.finish()
    query.check()


@SAMPLED
@CRASHES
def test_a_checkpoint_that_is_lost_after_a_crash_costs_and_repeats_no_row(
    query: Query, point: FaultPoint, scenario: Scenario
) -> None:
    query.read_topic()
    scenario(query, point).killed_at(point)
    lost = query.lose_checkpoint()
    if scenario is replayed and point is not FaultPoint.COMMITTER_WRITE_AFTER:
        # A part of the batch is visible: only its own checkpoint has the other rows.
        error = query.run().stopped(OperatorNeededError)
        assert error["data"]["partitions"] == [1]
        lost.rename(query.checkpoint)
    query.finish()
    query.check()


DECIDED = [FaultPoint.COMMITTER_WRITE_AFTER, FaultPoint.COMMITTER_SETTLE_AMID]


@SAMPLED
@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.COMMITTER_VOTE_AFTER,
        FaultPoint.COMMITTER_WRITE_BEFORE,
        FaultPoint.COMMITTER_WRITE_AFTER,
        FaultPoint.COMMITTER_SETTLE_AMID,
    ],
)
def test_spark_aborts_a_batch_whose_commit_was_killed(query: Query, point: FaultPoint) -> None:
    crashed = query.run_killed_at(point)
    query.call("abort", crashed.reports(1)).finished()
    # Readers are free and see all of the batch or nothing, before any restart.
    query.check(batches=2 if point in DECIDED else 1)
    query.finish()
    query.check()


@pytest.mark.kafka("3.9.1")
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.COMMITTER_SETTLE_AMID,
        FaultPoint.PLANNER_SETTLE_AMID,
        FaultPoint.PLANNER_ABORT_AMID,
        FaultPoint.TASK_FLUSH_AFTER,
        FaultPoint.COMMITTER_WRITE_AFTER,
        FaultPoint.COMMITTER_ABORT_AMID,
    ],
)
def test_the_same_holds_on_an_older_kafka(query: Query, point: FaultPoint) -> None:
    SCENARIOS[call_of(point)][0](query, point).killed_at(point)
    query.finish()
    query.check()


KILLS, BATCHES, LONGEST_LIFE_S = 20, 15, 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", range(2))
def test_nothing_is_lost_or_doubled_under_kills_at_any_time(query: Query, number: int) -> None:
    chance = seeds.chance("kills", number)
    query.batches = [
        rows_of(batch, [chance.choice((0, 3, 40)) for _ in range(chance.randint(1, 4))])
        for batch in range(BATCHES)
    ]
    for _ in range(KILLS):
        process = query.run()
        process.wait_ready()
        # How long it lives is drawn; nothing waits for it to come to anything.
        if not process.ends_within(chance.uniform(0, LONGEST_LIFE_S)):
            process.kill()
    query.finish()
    query.check()
