"""Looks one after the other: what happened between them, and how fast the queries are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.activity import Happening, Kind
from eos_sink.ops.pace import WINDOW_MS, Ends, Pace, Pacer, topics_of
from eos_sink.ops.resolve import Choice
from tests.ops.test_snapshot import Eye, decide_and_die
from tests.protocol.test_batch import LOADS, Job, world_of
from tests.protocol.test_resolve import Person, bring_into_doubt
from tests.protocol.test_stories import Driver
from tests.protocol.world import TOPIC, World


@pytest.fixture
def world() -> World:
    return World([])


class Watching:
    """Looks at a world as `eos-sink watch` does."""

    def __init__(self, world: World) -> None:
        self._eye = Eye(world)
        self._pacer = Pacer(recent=3)

    def happened(self) -> list[Happening]:
        self.look = self._eye.snapshot()
        return self._pacer.take(self.look)

    def kinds(self) -> list[Kind]:
        return [each.kind for each in self.happened()]

    def pace(self, ends: Ends | None = None) -> Pace:
        if ends is None:
            ends = self._eye.admin.list_offsets(topics_of(self.look), Deadline(5))
        (found,) = self._pacer.paces(self.look, ends)
        return found


def test_a_batch_is_seen_decided_and_settled_once(world: World) -> None:
    driver, watching = Driver(world), Watching(world)
    driver.run(0, [b"a", b"b"], [b"c"])
    assert watching.kinds() == [Kind.STARTED, Kind.DECIDED, Kind.SETTLED]
    driver.run(1, [b"d"])
    decided, settled = watching.happened()
    assert (decided.kind, decided.rows, decided.query) == (Kind.DECIDED, 1, settled.query)
    assert decided.batch == settled.batch
    assert "batch 1" in settled.batch
    assert watching.kinds() == []


def test_a_batch_write_whose_record_says_that_it_is_settled_is_seen_settled_once() -> None:
    world = world_of()
    job, watching = Job(world), Watching(world)
    job.write(LOADS(3), [b"a"])
    job.write(LOADS(4), [b"b"])
    once = [Kind.DECIDED, Kind.SETTLED]
    assert watching.kinds() == [Kind.STARTED, *once, *once]
    assert watching.kinds() == []


def test_a_batch_that_is_not_committed_yet_is_not_seen_settled(world: World) -> None:
    watching = Watching(world)
    decide_and_die(world)
    assert watching.kinds()[-1] is Kind.DECIDED
    Driver(world).planner.plan()
    assert watching.kinds() == [Kind.STARTED, Kind.SETTLED]


def test_a_batch_that_was_given_up_is_seen(world: World) -> None:
    driver, watching = Driver(world), Watching(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    driver.committer.abort(reports)
    assert watching.kinds() == [Kind.STARTED, Kind.GIVEN_UP]


def test_a_person_s_choice_is_seen(world: World) -> None:
    bring_into_doubt(world)
    watching = Watching(world)
    watching.happened()
    Person(world).chooses(Choice.VISIBLE)
    ruled, _ = watching.happened()
    assert ruled.kind is Kind.RULED
    assert "eos-sink resolve" in ruled.who


def test_a_run_that_begins_says_who_it_is(world: World) -> None:
    watching = Watching(world)
    Driver(world).planner.plan()
    (started,) = watching.happened()
    assert started.kind is Kind.STARTED
    assert "process" in started.who


def test_the_pace_is_that_of_the_last_minute(world: World) -> None:
    driver, watching = Driver(world), Watching(world)
    for batch, rows in enumerate(([b"a"], [b"b", b"c"], [b"d"], [b"e", b"f", b"g"])):
        driver.run(batch, rows)
    watching.happened()
    pace = watching.pace()
    assert pace.rows_per_s == pytest.approx(7 * 1000 / WINDOW_MS)
    assert pace.batches_per_min == 4
    assert pace.recent == (2, 1, 3)
    world.cluster.clock.advance(WINDOW_MS / 1000 + 1)
    watching.happened()
    later = watching.pace()
    assert (later.rows_per_s, later.batches_per_min, later.recent) == (0, 0, (2, 1, 3))


def test_readers_are_behind_by_what_lies_after_the_last_stable_offset(world: World) -> None:
    driver, watching = Driver(world), Watching(world)
    driver.run(0, [b"a"])
    watching.happened()
    assert topics_of(watching.look) == [TOPIC]
    assert watching.pace().behind == 0
    driver.write(driver.planner.plan(), 1, [b"b", b"c"])
    watching.happened()
    assert watching.pace().behind == 2


def test_a_topic_that_cannot_be_seen_has_no_delay(world: World) -> None:
    Driver(world).run(0, [b"a"])
    watching = Watching(world)
    watching.happened()
    assert watching.pace({TOPIC: Unseen("no answer")}).behind is None


def test_a_record_after_compaction_counts_as_its_decision(world: World) -> None:
    Driver(world).run(0, [b"a"])
    eye, pacer = Eye(world), Pacer()
    look = eye.snapshot()
    only = replace(look, records=look.records[-1:])
    assert [each.kind for each in pacer.take(only)] == [Kind.DECIDED, Kind.SETTLED]
