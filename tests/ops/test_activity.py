"""Events and throughput of queries, from one snapshot to the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.ops.activity import (
    WINDOW_MS,
    ActivityTracker,
    EventKind,
)
from eos_sink.ops.resolve import Choice
from eos_sink.protocol.model import BatchId
from tests.ops.operator import Eye, Operator, Watching, bring_into_doubt
from tests.protocol.driver import LOADS, Driver, Job, decide_and_die
from tests.protocol.world import TOPIC, World, batch_options, options


def test_a_batch_is_seen_decided_and_settled_once(world: World) -> None:
    driver, watching = Driver(world), Watching(world)
    driver.run(0, [b"a", b"b"], [b"c"])
    assert watching.kinds() == [EventKind.STARTED, EventKind.DECIDED, EventKind.SETTLED]
    driver.run(1, [b"d"])
    decided, settled = watching.happened()
    assert (decided.kind, decided.rows, decided.query) == (EventKind.DECIDED, 1, settled.query)
    assert decided.batch == settled.batch
    assert settled.batch == BatchId("stream-1", 1)
    assert watching.kinds() == []


def test_each_batch_that_the_driver_wrote_is_seen_settled() -> None:
    world = World([], options=options(**{"eos.inline.bytes": "65536"}))
    driver, watching = Driver(world), Watching(world)
    driver.run(0, [b"a"])
    driver.run(1, [b"b"], [b"c"])
    once = [EventKind.DECIDED, EventKind.SETTLED]
    found = watching.happened()
    assert [each.kind for each in found] == [EventKind.STARTED, *once, *once]
    assert [each.rows for each in found] == [0, 1, 0, 2, 0]
    assert watching.kinds() == []
    assert [*watching.look.ends] == [world.options.log_topic, TOPIC]


def test_a_batch_write_whose_record_says_that_it_is_settled_is_seen_settled_once() -> None:
    world = World([], options=batch_options())
    job, watching = Job(world), Watching(world)
    job.run(LOADS(3), [b"a"])
    job.run(LOADS(4), [b"b"])
    once = [EventKind.DECIDED, EventKind.SETTLED]
    assert watching.kinds() == [EventKind.STARTED, *once, *once]
    assert watching.kinds() == []


def test_a_batch_that_is_not_committed_yet_is_not_seen_settled(world: World) -> None:
    watching = Watching(world)
    decide_and_die(world)
    assert watching.kinds()[-1] is EventKind.DECIDED
    Driver(world).planner.plan()
    assert watching.kinds() == [EventKind.STARTED, EventKind.SETTLED]


def test_a_batch_that_was_given_up_is_seen(world: World) -> None:
    driver, watching = Driver(world), Watching(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    driver.committer.abort(reports)
    assert watching.kinds() == [EventKind.STARTED, EventKind.GIVEN_UP]


def test_an_operators_choice_is_seen(world: World) -> None:
    bring_into_doubt(world)
    watching = Watching(world)
    watching.happened()
    Operator(world).chooses(Choice.VISIBLE)
    chosen, _ = watching.happened()
    assert chosen.kind is EventKind.CHOSEN
    assert "eos-sink resolve" in str(chosen.run)


def test_a_run_that_begins_says_who_it_is(world: World) -> None:
    watching = Watching(world)
    Driver(world).planner.plan()
    (started,) = watching.happened()
    assert started.kind is EventKind.STARTED
    assert "process" in str(started.run)


def test_throughput_is_that_of_the_last_minute(world: World) -> None:
    driver, watching = Driver(world), Watching(world)
    for batch, rows in enumerate(([b"a"], [b"b", b"c"], [b"d"], [b"e", b"f", b"g"])):
        driver.run(batch, rows)
    watching.happened()
    measured = watching.throughput()
    assert measured.rows_per_s == pytest.approx(7 * 1000 / WINDOW_MS)
    assert measured.batches_per_min == 4
    assert measured.recent == (2, 1, 3)
    world.cluster.clock.advance(WINDOW_MS / 1000 + 1)
    watching.happened()
    later = watching.throughput()
    assert (later.rows_per_s, later.batches_per_min, later.recent) == (0, 0, (2, 1, 3))


def test_a_record_after_compaction_counts_as_its_decision(world: World) -> None:
    Driver(world).run(0, [b"a"])
    eye, tracker = Eye(world), ActivityTracker()
    look = eye.snapshot()
    only = replace(look, records=look.records[-1:])
    assert [each.kind for each in tracker.update(only)] == [EventKind.DECIDED, EventKind.SETTLED]
