"""A decision log that was deleted, emptied or replaced: an operator decides."""

from __future__ import annotations

import pytest

from eos_sink.driver.planner import Planner
from eos_sink.errors import ClusterError, OperatorNeededError, SupersededError
from eos_sink.kafka.deadline import Deadline
from tests.fakes.kafka import FakeLogReader
from tests.fakes.process import At, Killed, Moment
from tests.protocol.driver import Driver
from tests.protocol.world import World, late_attempt


def delete_log(world: World) -> None:
    del world.cluster.topics[world.options.log_topic]


def stopped(world: World, at: Driver | None = None) -> OperatorNeededError:
    with pytest.raises(OperatorNeededError) as stop:
        (at or Driver(world)).planner.plan()
    return stop.value


def test_a_query_whose_log_was_deleted_stops_before_it_writes_a_decided_batch_again(
    world: World,
) -> None:
    Driver(world).run(0, [b"a"], [], [b"c"])
    delete_log(world)
    error = stopped(world)
    names = world.options.names
    assert error.data == {
        "batch": None,
        "partitions": [0, 2],
        "rows": None,
        "log": world.options.log_topic,
        "transactions": [names.task(0, 0), names.task(0, 2), names.driver],
    }
    for part in (world.options.log_topic, names.task(0, 0), "eos.log.topic"):
        assert part in str(error)
    assert f"eos-sink resolve {names.query} " in error.remedy
    assert world.visible() == [b"a", b"c"]


def test_the_drivers_own_id_is_trace_enough(world: World) -> None:
    """A late attempt has taken the task's id, which hides that it was committed."""
    Driver(world).run(0, [b"a"])
    late_attempt(world, 0, 0)
    delete_log(world)
    assert stopped(world).data["transactions"] == [world.options.names.driver]
    assert stopped(world).data["partitions"] == []


@pytest.mark.parametrize("moment", ["control.check_timeout", "log_producer.init"])
def test_a_start_that_ends_before_its_record_leaves_the_trace(world: World, moment: str) -> None:
    """The rows came from the driver, so no task's id tells that there was a record."""
    Driver(world).run(0, [b"a"])
    late_attempt(world, 0, 0)
    killed = Driver(world)
    At(killed.plans.process, moment, Moment.AFTER, killed.plans.process.kill)
    with pytest.raises(Killed):
        killed.planner.plan()
    delete_log(world)
    assert stopped(world).data["transactions"] == [world.options.names.driver]


def test_an_abort_in_a_new_process_leaves_the_trace(world: World) -> None:
    """It has neither a report nor a plan, so it writes no record."""
    Driver(world).run(0, [b"a"])
    late_attempt(world, 0, 0)
    Driver(world).committer.abort([])
    delete_log(world)
    assert stopped(world).data["transactions"] == [world.options.names.driver]


def test_without_any_trace_the_query_starts_again(world: World) -> None:
    """The ids have expired, after seven days without a batch: there is no evidence."""
    Driver(world).run(0, [b"a"])
    delete_log(world)
    for name in (world.options.names.task(0, 0), world.options.names.driver):
        world.cluster.coordinator.forget(name)
    Driver(world).run(0, [b"a"])
    assert world.visible() == [b"a", b"a"]


def test_a_record_that_is_committed_while_one_looks_is_found(world: World) -> None:
    """Two runs start at once, and the list of the one falls behind the first record of the
    other."""
    early, late = Driver(world), Driver(world)

    def run_early() -> None:
        early.run(0, [b"a"])

    At(late.plans.process, "log.known", Moment.AFTER, run_early)
    late.run(0, [b"a"])
    assert world.visible() == [b"a"]


# --- while the query runs


def test_a_log_that_is_deleted_under_a_running_query_stops_it_at_its_next_plan(
    world: World,
) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    delete_log(world)
    with pytest.raises(ClusterError, match="no topic"):
        driver.planner.plan()
    world.cluster.create_topic(world.options.log_topic)
    assert stopped(world, driver).data["known"] == 1
    stopped(world)


def test_a_log_that_is_deleted_before_the_decision_takes_no_decision(world: World) -> None:
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    delete_log(world)
    world.cluster.create_topic(world.options.log_topic)
    for step in (driver.committer.commit, driver.committer.abort):
        with pytest.raises(OperatorNeededError) as lost:
            step(reports)
        assert (lost.value.data["known"], lost.value.data["seq"]) == (1, 0)
    assert world.visible() == []


def test_an_abort_does_not_create_a_lost_log_again(world: World) -> None:
    """Its fence would be the first record of the new log, and hide that there was another."""
    driver = Driver(world)
    driver.run(0, [b"a"])
    reports = driver.write(driver.planner.plan(), 1, [b"b"])
    delete_log(world)
    world.cluster.create_topic(world.options.log_topic)
    with pytest.raises(OperatorNeededError):
        Driver(world).committer.abort(reports)
    stopped(world)


def test_a_log_that_was_created_again_is_not_taken_for_the_old_one(world: World) -> None:
    """It may have come as far as the old one by then."""
    old = Driver(world)
    assert old.planner.plan().token.seq == 1
    delete_log(world)
    world.cluster.coordinator.forget(world.options.names.driver)
    assert Driver(world).planner.plan().token.seq == 1
    with pytest.raises(SupersededError):
        old.planner.plan()
    with pytest.raises(OperatorNeededError) as lost:
        old.planner.plan()
    assert (lost.value.data["known"], lost.value.data["seq"]) == (1, 1)


# --- a deposed leader tells an older end, and nothing is lost


def deposed(planner: Planner, world: World, end: int) -> None:
    reader = planner._register.connect(Deadline(30))
    assert isinstance(reader, FakeLogReader)
    reader.stale_end = end


def test_a_start_that_reads_an_older_end_goes_on_from_the_latest_record(world: World) -> None:
    """No run has replaced it: the record that it has not read was there before."""
    Driver(world).run(0, [b"a"])
    driver = Driver(world)
    before = world.cluster.topics[world.options.log_topic].partitions[0].end
    Driver(world).run(1, [b"b"])
    deposed(driver.planner, world, before)
    plan = driver.planner.plan()
    assert plan.decision is not None
    assert plan.decision.batch.batch == 1
    driver.committer.commit(driver.write(plan, 2, [b"c"]))
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_plan_from_which_a_deposed_leader_hides_the_decision_asks_the_newest(
    world: World,
) -> None:
    """The planner goes on with the connection that it has, and its committer finds the new one."""
    driver = Driver(world)
    plan = driver.planner.plan()
    before = world.cluster.topics[world.options.log_topic].partitions[0].end
    driver.committer.commit(driver.write(plan, 0, [b"a"]))
    deposed(driver.planner, world, before)
    driver.run(1, [b"b"])
    assert world.visible() == [b"a", b"b"]
