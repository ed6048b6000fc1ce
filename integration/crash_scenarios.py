"""How a query comes to each named point of the protocol."""

from __future__ import annotations

from collections.abc import Callable

from eos_sink_lab.testing.faults import FaultPoint
from integration.query import Process, Query, kill_at

Scenario = Callable[[Query, FaultPoint], Process]


def first_batch(query: Query, point: FaultPoint) -> Process:
    """Nothing of the query is in Kafka yet."""
    return query.run(kill_at(point))


def task(query: Query, point: FaultPoint) -> Process:
    """Partition 0 is prepared, partition 1 is the one that dies."""
    return query.run(kill_at(point, batch=1, partition=1))


def commit(query: Query, point: FaultPoint) -> Process:
    """All tasks have reported."""
    return query.run(kill_at(point, batch=1, partition=2))


def inlined(query: Query, point: FaultPoint) -> Process:
    """The driver writes all rows."""
    query.inline()
    return commit(query, point)


def broken_task(query: Query, point: FaultPoint) -> Process:
    """Two partitions are prepared, the third one fails, and Spark aborts."""
    return query.run(kill_at(point, batch=1, partition=2), fail=(1, 2))


def left_open(query: Query, point: FaultPoint) -> Process:
    """An earlier crash has left prepared transactions open."""
    query.run_killed_at(FaultPoint.COMMITTER_VOTE_BEFORE)
    return query.run(kill_at(point, batch=1))


def unsettled(query: Query, point: FaultPoint) -> Process:
    """An earlier crash has left a decision of which nothing is visible."""
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    return query.run(kill_at(point, batch=1))


def replayed(query: Query, point: FaultPoint) -> Process:
    """Spark has not logged a batch that is visible; one of its partitions was lost meanwhile."""
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    return query.run(kill_at(point, batch=1))


SCENARIOS: dict[str, tuple[Scenario, ...]] = {
    "planner.check": (left_open,),
    "planner.join": (left_open,),
    "planner.open": (first_batch,),
    "planner.read": (unsettled,),
    "planner.list": (left_open,),
    "planner.write": (unsettled,),
    "planner.settle": (unsettled,),
    "planner.witness": (replayed,),
    "planner.abort": (left_open,),
    "planner.stable": (left_open,),
    "task.init": (task,),
    "task.produce": (task,),
    "task.offset": (task,),
    "task.flush": (task,),
    "task.prepared": (task,),
    "task.abort": (broken_task,),
    "committer.open": (first_batch, broken_task),
    "committer.read": (replayed,),
    "committer.describe": (commit,),
    "committer.produce": (inlined,),
    "committer.write": (commit, replayed),
    "committer.settle": (commit,),
    "committer.list": (broken_task,),
    "committer.abort": (broken_task,),
}


def call_of(point: FaultPoint) -> str:
    return point.value.rsplit(".", 1)[0]
