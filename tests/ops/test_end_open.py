"""An operator ends what a dead driver has left open, on the in-memory Kafka."""

from __future__ import annotations

import pytest

from eos_sink.errors import SupersededError
from eos_sink.ops import RefusedChoice
from eos_sink.ops.pending import Need
from tests.fakes.process import At, Killed, Moment
from tests.ops.operator import Operator
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import World, log, open_ids


@pytest.fixture
def ops(world: World) -> Operator:
    return Operator(world)


def test_what_is_undecided_is_aborted_after_a_fence(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    decision = log(world)[-1].decision
    reports = driver.write(driver.planner.plan(), 1, [b"b"], [b"c"])
    ended = ops.ends()
    assert (ended.fenced, ended.aborted) == (True, 2)
    assert open_ids(world) == []
    record = log(world)[-1]
    assert (record.seq, record.decision) == (ended.entry.seq, decision)
    assert record.run is not None
    assert record.run.tool == "eos-sink resolve"
    # The run that had it open can no longer decide; its error says why.
    with pytest.raises(SupersededError, match="eos-sink resolve"):
        driver.committer.commit(reports)
    Driver(world).run(1, [b"b"], [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]
    assert world.judge.violations == []


def test_what_is_decided_is_committed_and_no_run_is_fenced(world: World, ops: Operator) -> None:
    decide_and_die(world)
    before = log(world)
    for _ in range(2):
        assert not ops.ends().fenced
    assert (world.visible(), log(world)) == ([b"a", b"b"], before)
    assert world.judge.violations == []


def test_each_ends_as_the_log_says(world: World, ops: Operator) -> None:
    decide_and_die(world)
    zombie, coordinator = world.options.names.task(1, 0), world.cluster.coordinator
    coordinator.open(zombie, coordinator.init(zombie, 60_000))
    assert ops.looks().needs == {Need.COMMIT: [0, 1], Need.ABORT: [0]}
    assert ops.ends().aborted == 1
    assert ops.looks().needs == {}
    assert (world.visible(), open_ids(world)) == ([b"a", b"b"], [])
    assert world.judge.violations == []


def test_a_log_that_has_moved_since_the_look_stops_it(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.write(driver.planner.plan(), 0, [b"a"])
    seen = ops.looks()
    newer = Driver(world)
    reports = newer.write(newer.planner.plan(), 0, [b"b"])
    with pytest.raises(RefusedChoice, match="seq 1 to 2"):
        ops.ends(seen)
    newer.committer.commit(reports)  # No run was fenced.
    assert world.visible() == [b"b"]


def test_a_log_that_moves_before_the_fence_stops_it(world: World, ops: Operator) -> None:
    """A new run that wrote meanwhile keeps what it has open."""
    driver = Driver(world)
    driver.write(driver.planner.plan(), 0, [b"a"])
    newer = Driver(world)

    def begin() -> None:
        newer.write(newer.planner.plan(), 0, [b"b"])

    At(ops.process, "member.join", Moment.BEFORE, begin)
    with pytest.raises(RefusedChoice, match="seq 1 to 2"):
        ops.ends()
    assert open_ids(world) == [world.options.names.task(0, 0)]


def test_a_log_that_has_lost_its_records_gets_no_new_one(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    driver.write(driver.planner.plan(), 1, [b"b"])
    log_topic, seen = world.options.log_topic, ops.looks()
    del world.cluster.topics[log_topic]
    with pytest.raises(RefusedChoice, match="gone"):
        ops.ends(seen)
    with pytest.raises(RefusedChoice, match="--log-topic"):
        ops.ends()
    assert log_topic not in world.cluster.topics
    world.cluster.create_topic(log_topic)
    with pytest.raises(RefusedChoice, match="--log-topic"):
        ops.ends()
    assert log(world) == []
    assert len(open_ids(world)) == 1


@pytest.mark.parametrize("call", ["member.join", "log_producer.commit", "control.end"])
@pytest.mark.parametrize("moment", Moment)
def test_a_tool_that_dies_anywhere_leaves_what_the_next_start_mends(
    world: World, ops: Operator, call: str, moment: Moment
) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    driver.write(driver.planner.plan(), 1, [b"b"], [b"c"])
    At(ops.process, call, moment, ops.process.kill)
    with pytest.raises(Killed):
        ops.ends()
    Driver(world).run(1, [b"b"], [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]
    assert world.judge.violations == []
