"""The error of a replaced run names its successor: a second query, or a restart."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

from eos_sink.decision_log import DecisionRegister
from eos_sink.driver.processes import current_run
from eos_sink.errors import (
    Action,
    BatchFailedError,
    ClusterError,
    FailureKind,
    OutcomeUnknownError,
    ProduceFailedError,
    SupersededError,
)
from eos_sink.identity import Origin
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, Change, LogEntry, LogRecord, Plan, Run
from eos_sink.protocol.refused import replaced
from eos_sink.protocol.values import MemberState, Position
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka, FakeMember
from tests.fakes.process import At, Moment
from tests.protocol.driver import STREAM, Driver
from tests.protocol.world import World, hold_up_the_log, late_attempt

NOON_MS = 1_700_000_000_000


def named(world: World, pid: int, checkpoint: str, session: str = "") -> Driver:
    """A run that has its own name, and perhaps its own checkpoint."""
    run = Run("host-a", pid, NOON_MS, Origin("story", checkpoint), session=session)
    return Driver(world, run=run)


def told(error: SupersededError) -> str:
    assert "process 123 on host-a since 2023-11-14 22:13:20 UTC" in str(error)
    assert "This one is process 99 on host-a" in str(error)
    return str(error)


def test_two_queries_under_one_identity_are_both_named(world: World) -> None:
    one, two = named(world, 99, "/x"), named(world, 123, "/y")
    reports = one.write(one.planner.plan(), 0, [b"one"])
    two.run(0, [b"two"])
    with pytest.raises(SupersededError) as stop:
        one.committer.commit(reports)
    text = told(stop.value)
    assert "Two queries share one identity" in text
    assert "checkpoint '/x'" in text
    assert "checkpoint '/y'" in text
    assert "an eos.id of its own" in stop.value.remedy
    with pytest.raises(SupersededError) as stop:
        one.planner.plan()
    assert "Two queries share one identity" in told(stop.value)


def test_a_record_of_a_newer_run_replaces_a_planner_before_its_heartbeat_does(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the tasks are refused, and a restart in this process is refused once more."""
    old, new = named(world, 99, "/x"), named(world, 123, "/x")
    old.run(0, [b"a"])
    new.planner.plan()
    with monkeypatch.context() as patch:
        patch.setattr(FakeMember, "state", lambda _: MemberState.CURRENT)
        with pytest.raises(SupersededError) as stop:
            old.planner.plan()
    assert "The same query was started again" in told(stop.value)
    old.run(1, [b"b"])


def test_a_fenced_task_of_a_stale_driver_blames_no_other_attempt(world: World) -> None:
    old, new = named(world, 99, "/x"), named(world, 123, "/x")
    plan = old.planner.plan()
    new.run(0, [b"a"])
    with pytest.raises(SupersededError) as stop:
        fenced(world, plan)
    told(stop.value)


def test_a_fenced_task_of_the_current_driver_blames_another_attempt(world: World) -> None:
    run = named(world, 99, "/x")
    with pytest.raises(ProduceFailedError) as failed:
        fenced(world, run.planner.plan())
    assert failed.value.kind is FailureKind.TRANSACTION_FAILED


def fenced(world: World, plan: Plan) -> None:
    """A task whose id another one takes before it has sent its first offset."""
    tasks = FakeKafka(world.cluster)
    At(tasks.process, "producer.begin", Moment.AFTER, lambda: late_attempt(world, 0, 0))
    data = [pa.RecordBatch.from_pydict({"value": [b"late"]})]
    TaskWriter(tasks, world.options, plan).write(BatchId(STREAM, 0), 0, data)


def test_a_batch_that_its_own_run_has_aborted_names_no_other_run(world: World) -> None:
    run = named(world, 99, "/x")
    reports = run.write(run.planner.plan(), 0, [b"a"])
    Driver(world).committer.abort(reports)
    with pytest.raises((SupersededError, BatchFailedError)) as stop:
        run.committer.commit(reports)
    assert "of the same run" in str(stop.value)
    assert "identity" not in str(stop.value)


def test_a_record_without_a_run_names_none(world: World) -> None:
    run = named(world, 99, "/x")
    reports = run.write(run.planner.plan(), 0, [b"a"])
    older = DecisionRegister(FakeKafka(world.cluster), world.options.names)
    older.append(replace(reports[0].token, run=None), Change(None), Deadline(5))
    with pytest.raises(SupersededError) as stop:
        run.committer.commit(reports)
    assert stop.value.data == {"seq": 2, "planned": 1}


def test_a_query_that_takes_anothers_place_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    named(world, 99, "/x").planner.plan()
    with caplog.at_level(logging.WARNING):
        named(world, 123, "/x").planner.plan()
        assert caplog.messages == []
        named(world, 124, "/y").planner.plan()
    (said,) = caplog.messages
    assert "process 123 on host-a" in said
    assert "process 124 on host-a" in said


@pytest.fixture(params=[True, False], ids=["told by the group", "not told yet"])
def heartbeat(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member hears of its successor from a heartbeat, which may come seconds later."""
    if not request.param:
        monkeypatch.setattr(FakeMember, "state", lambda _: MemberState.CURRENT)


def in_turns(world: World) -> tuple[Driver, Driver]:
    """Two planner processes of one session, each of which has written a batch."""
    one, two = named(world, 99, "/x", "7@1"), named(world, 123, "/x", "7@1")
    one.run(0, [b"a"])
    two.run(1, [b"b"])
    return one, two


@pytest.mark.usefixtures("heartbeat")
def test_planner_processes_of_one_session_take_turns(world: World) -> None:
    one, two = named(world, 99, "/x", "7@1"), named(world, 123, "/x", "7@1")
    for batch, planner in enumerate((one, two, one, one, two)):
        planner.run(batch, [f"row {batch}".encode()])
    assert world.visible() == [f"row {batch}".encode() for batch in range(5)]


@pytest.mark.usefixtures("heartbeat")
def test_a_planner_process_that_takes_its_turn_again_checks_nothing_again(world: World) -> None:
    one, _ = in_turns(world)
    calls = list[str]()
    one.plans.process.hook = lambda name, _: calls.append(name)
    one.run(2, [b"c"])
    assert "member.join" in calls
    assert not [name for name in calls if "check" in name]


def test_a_planner_whose_turn_has_failed_checks_again(world: World) -> None:
    one, _ = in_turns(world)

    def fail() -> None:
        raise ClusterError("The brokers are away.", remedy="")

    At(one.plans.process, "member.join", Moment.BEFORE, fail)
    with pytest.raises(ClusterError):
        one.planner.plan()
    calls = list[str]()
    one.plans.process.hook = lambda name, _: calls.append(name)
    one.run(2, [b"c"])
    assert [name for name in calls if "check" in name]


@pytest.mark.usefixtures("heartbeat")
def test_a_log_that_is_held_up_does_not_make_a_rival_of_a_planner_of_the_same_session(
    world: World,
) -> None:
    one, _ = in_turns(world)
    hold_up_the_log(world, 30_000)
    one.run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_planner_that_cannot_read_who_has_replaced_it_says_that_and_may_try_again(
    world: World,
) -> None:
    one, _ = in_turns(world)
    hold_up_the_log(world, 600_000)
    with pytest.raises(OutcomeUnknownError) as error:
        one.planner.plan()
    assert error.value.action is Action.RUN_AGAIN
    world.cluster.coordinator.time_out("stranger")
    one.run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


@pytest.mark.usefixtures("heartbeat")
@pytest.mark.parametrize("checkpoint", ["/x", "/y"])
def test_a_planner_that_was_kept_while_another_run_came_and_went_recovers(
    checkpoint: str, world: World
) -> None:
    """Spark keeps planner processes between the queries of a session."""
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], check=True, capture_output=True
    )
    gone = int(child.stdout)
    kept, other = here(world, os.getpid(), "/x"), here(world, gone, checkpoint)
    kept.run(0, [b"a"])
    other.run(1, [b"b"])
    kept.run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_a_planner_that_was_kept_leaves_a_run_alone_that_goes_on(world: World) -> None:
    kept, other = here(world, os.getpid(), "/x"), here(world, os.getppid(), "/x")
    kept.run(0, [b"a"])
    other.run(1, [b"b"])
    with pytest.raises(SupersededError) as stop:
        kept.planner.plan()
    assert stop.value.action is Action.LEAVE
    other.run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def here(world: World, pid: int, checkpoint: str) -> Driver:
    """A run of a process of this machine."""
    run = current_run(Origin("story", checkpoint))
    return Driver(world, run=replace(run, pid=pid, started_ms=NOON_MS))


@pytest.mark.parametrize("session", ["", "8@1"])
def test_planner_processes_of_two_sessions_do_not(session: str, world: World) -> None:
    old, new = named(world, 99, "/x", "7@1"), named(world, 123, "/x", session)
    old.run(0, [b"a"])
    new.planner.plan()
    with pytest.raises(SupersededError):
        old.run(1, [b"b"])


def test_two_queries_under_one_identity_in_one_session_are_stopped(world: World) -> None:
    one, two = named(world, 99, "/x", "7@1"), named(world, 123, "/y", "7@1")
    one.run(0, [b"a"])
    two.planner.plan()
    with pytest.raises(SupersededError) as stop:
        one.run(1, [b"b"])
    assert stop.value.action is Action.FIX


def test_a_member_that_has_not_written_yet_is_not_taken_for_the_run_before(world: World) -> None:
    """The record that the plan was made from names the run before."""
    old, new = named(world, 123, "/x"), named(world, 99, "/x")
    old.run(0, [b"a"])
    names = world.options.names
    other = FakeKafka(world.cluster).member(names.group, names.driver, 60_000)

    def join() -> None:
        other.join(Deadline(5))

    At(new.plans.process, "member.join", Moment.AFTER, join)
    with pytest.raises(SupersededError) as stop:
        new.planner.plan()
    assert stop.value.data == {}


QUERY, OTHER = Origin("story", "/x"), Origin("story", "/y")
WRITE = Origin("story", batch=True)
MINE = Run("host-a", 1, NOON_MS, QUERY)


@pytest.mark.parametrize(
    ("mine", "theirs", "action"),
    [
        (MINE, Run("host-a", 2, NOON_MS, QUERY), Action.LEAVE),
        (MINE, Run("host-a", 2, NOON_MS, OTHER), Action.FIX),
        (MINE, Run("host-a", 2, NOON_MS, Origin(), "eos-sink resolve"), Action.RUN_AGAIN),
        (MINE, MINE, Action.RUN_AGAIN),
        (MINE, None, Action.LEAVE),
        (replace(MINE, origin=WRITE), Run("host-a", 2, NOON_MS, WRITE), Action.RUN_AGAIN),
        (replace(MINE, origin=WRITE), replace(MINE, origin=WRITE), Action.RUN_AGAIN),
        (replace(MINE, origin=WRITE), replace(MINE, tool="eos-sink resolve"), Action.RUN_AGAIN),
        (replace(MINE, origin=WRITE), None, Action.RUN_AGAIN),
    ],
)
def test_the_action_of_a_replaced_run_depends_on_its_rival(
    mine: Run, theirs: Run | None, action: Action, world: World
) -> None:
    latest = LogEntry(LogRecord(1, None, "w", run=theirs), Position("log", 0, 0))
    assert replaced(mine, latest).action is action
