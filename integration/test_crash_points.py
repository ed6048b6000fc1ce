"""A real process is killed at every named point of the protocol, and no row is lost or doubled.

`SCENARIOS` says how each call of the ports is reached; a fault point without a scenario, or one
that its scenario does not reach, fails.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from eos_sink.errors import OperatorNeededError
from eos_sink_lab.testing.faults import FaultPoint
from integration.crash_scenarios import SCENARIOS, Scenario, call_of, replayed
from integration.query import Process, Query, rows_of
from tests.seeds import drawn

# Batch 0 is visible and batch 1 under way in all of them, unless they say otherwise.


def unreached(query: Query, point: FaultPoint) -> Process:
    pytest.fail(f"no scenario reaches {point.value}: give {call_of(point)!r} one in SCENARIOS")


# A crash for each row of the table in docs/design.md; `make test-long` has every point.
CRASH_TABLE = {
    "while tasks write": FaultPoint.TASK_PREPARED_AFTER,
    "after the vote": FaultPoint.COMMITTER_VOTE_AFTER,
    "while the decision is written": FaultPoint.COMMITTER_WRITE_AFTER,
    "after the decision": FaultPoint.COMMITTER_SETTLE_BEFORE,
    "while settling": FaultPoint.COMMITTER_SETTLE_AMID,
    "while aborting": FaultPoint.PLANNER_ABORT_AMID,
    "while recovering": FaultPoint.PLANNER_SETTLE_AMID,
}
SHORT = set(CRASH_TABLE.values())


def crashes(in_short: Collection[FaultPoint] = SHORT) -> Iterator[Any]:
    for point in FaultPoint:
        for scenario in SCENARIOS.get(call_of(point), (unreached,)):
            short = point in in_short or scenario is unreached
            yield pytest.param(
                point,
                scenario,
                id=f"{point.value}-{scenario.__name__}",
                marks=[] if short else [pytest.mark.long],
            )


@pytest.mark.parametrize(("point", "scenario"), list(crashes()))
def test_every_row_is_visible_once_after_a_crash_at(
    query: Query, point: FaultPoint, scenario: Scenario
) -> None:
    scenario(query, point).killed_at(point)
    query.finish()
    query.check()


@pytest.mark.parametrize(("point", "scenario"), list(crashes([FaultPoint.COMMITTER_WRITE_AFTER])))
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


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(FaultPoint.COMMITTER_VOTE_AFTER, marks=pytest.mark.long),
        FaultPoint.COMMITTER_WRITE_BEFORE,
        pytest.param(FaultPoint.COMMITTER_WRITE_AFTER, marks=pytest.mark.long),
        pytest.param(FaultPoint.COMMITTER_SETTLE_AMID, marks=pytest.mark.long),
    ],
)
def test_spark_aborts_a_batch_whose_commit_was_killed(query: Query, point: FaultPoint) -> None:
    crashed = query.run_killed_at(point)
    query.call("abort", crashed.reports(1)).finished()
    # Readers are free and see all of the batch or nothing, before any restart.
    query.check(batches=2 if point in DECIDED else 1)
    query.finish()
    query.check()


SOME = [
    FaultPoint.COMMITTER_SETTLE_AMID,
    FaultPoint.PLANNER_SETTLE_AMID,
    FaultPoint.PLANNER_ABORT_AMID,
    FaultPoint.TASK_FLUSH_AFTER,
    FaultPoint.COMMITTER_WRITE_AFTER,
    FaultPoint.COMMITTER_ABORT_AMID,
]


@pytest.mark.kafka("3.9.1")
@pytest.mark.parametrize(
    "point", [SOME[0], *(pytest.param(p, marks=pytest.mark.long) for p in SOME[1:])]
)
def test_the_same_holds_on_an_older_kafka(query: Query, point: FaultPoint) -> None:
    SCENARIOS[call_of(point)][0](query, point).killed_at(point)
    query.finish()
    query.check()


KILLS, BATCHES, LONGEST_LIFE_S = 20, 15, 1.0


@pytest.mark.parametrize("seed", [7, *drawn()])
def test_nothing_is_lost_or_doubled_under_kills_at_any_time(query: Query, seed: int) -> None:
    chance = random.Random(seed)
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
