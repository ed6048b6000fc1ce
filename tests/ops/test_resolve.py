"""An operator resolves a stopped query, on the in-memory Kafka."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.cli.resolve_command import make_report
from eos_sink.errors import OperatorNeededError, SupersededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops import RefusedChoice
from eos_sink.ops.evidence import TransactionEvidence
from eos_sink.ops.resolve import Choice, apply_choice
from eos_sink.protocol.model import Override, RowDigest
from eos_sink.protocol.outcome import Outcome
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Killed, Moment
from tests.ops.operator import Operator, bring_into_doubt
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import TOPIC, World, late_attempt, log, open_ids, options


@pytest.fixture
def ops(world: World) -> Operator:
    return Operator(world)


def rows_at_end(task: TransactionEvidence) -> int:
    assert task.trace is not None
    return task.trace.rows


# --- looking


def test_the_rows_at_the_end_of_the_topic_are_compared(world: World, ops: Operator) -> None:
    Driver(world).run(0, [b"a", b"b"], [], [b"c"])
    for account in ops.looks().transactions:
        assert account.outcome is Outcome.COMMITTED
        assert account.same_rows
        assert account.marker is True
    whole, part = ops.looks(most=1000), ops.looks(most=1)
    assert sum(rows_at_end(a) for a in whole.transactions) == 3
    assert sum(rows_at_end(a) for a in part.transactions) == 0
    assert not any(a.same_rows for a in part.transactions)


def test_looking_changes_nothing(world: World, ops: Operator) -> None:
    bring_into_doubt(world)
    before, states = log(world), world.cluster.coordinator.describe(world.options.names.driver)
    ops.looks()
    assert log(world) == before
    assert world.cluster.coordinator.describe(world.options.names.driver) == states


def test_looking_at_a_log_that_is_not_there_does_not_make_it(world: World, ops: Operator) -> None:
    seen = ops.looks()
    assert (seen.history.log, seen.history.seq, seen.decision) == (False, 0, None)
    assert world.options.log_topic not in world.cluster.topics


# --- choosing


def test_what_is_visible_by_a_ruling_is_not_written_again(world: World, ops: Operator) -> None:
    bring_into_doubt(world)
    ops.chooses(Choice.VISIBLE)
    assert ops.looks().view.doubtful == set()
    Driver(world).run(0, [b"a"], [b"b"])
    Driver(world).run(1, [b"c"])
    assert world.visible() == [b"c"]


def test_a_ruling_about_visible_rows_does_not_let_other_rows_pass(
    world: World, ops: Operator
) -> None:
    bring_into_doubt(world)
    ops.chooses(Choice.VISIBLE)
    with pytest.raises(OperatorNeededError) as stop:
        Driver(world).run(0, [b"a"], [b"x"])
    assert stop.value.data == {"batch": 0, "partitions": [1], "rows": 2}


def test_what_is_lost_by_a_ruling_is_written_again_once(world: World, ops: Operator) -> None:
    bring_into_doubt(world, committed=False)
    ops.chooses(Choice.LOST)
    for _ in range(2):
        Driver(world).run(0, [b"a"], [b"b"])
        assert world.visible() == [b"a", b"b"]
    last = log(world)[-1].decision
    assert last is not None
    assert last.override == Override()


def test_each_partition_may_have_its_own_ruling(world: World, ops: Operator) -> None:
    bring_into_doubt(world, committed=False)
    ops.chooses(Choice.VISIBLE, 0)
    assert Driver(world).planner.plan().doubtful == {1}
    ops.chooses(Choice.LOST)
    driver = Driver(world)
    assert driver.planner.plan().lost == {1}
    driver.run(0, [b"a"], [b"b"])
    assert world.visible() == [b"b"]
    # Partition 0 is still in doubt, and its override is still there.
    Driver(world).run(0, [b"a"], [b"b"])
    assert world.visible() == [b"b"]


def test_a_choice_after_another_one_is_not_told_that_none_is_needed(
    world: World, ops: Operator
) -> None:
    """The next start acts on the first one."""
    bring_into_doubt(world, committed=False)
    ops.chooses(Choice.LOST)
    with pytest.raises(RefusedChoice, match="--visible --partitions"):
        ops.chooses(Choice.VISIBLE)
    ops.chooses(Choice.VISIBLE, 0, 1)
    assert Driver(world).planner.plan().lost == frozenset()


def test_an_accepted_decision_stands_whatever_is_replayed(world: World, ops: Operator) -> None:
    Driver(world).run(0, [b"a"])
    ops.chooses(Choice.ACCEPT)
    Driver(world).run(0, [b"a", b"x"], [b"y"])
    Driver(world).run(1, [b"b"])
    assert world.visible() == [b"a", b"b"]
    with pytest.raises(OperatorNeededError) as stop:
        Driver(world).run(1, [b"b", b"x"])
    assert stop.value.data == {"batch": 1, "partitions": [0], "rows": 1}


def test_an_accepted_decision_gives_up_what_was_lost(world: World, ops: Operator) -> None:
    bring_into_doubt(world, committed=False)
    ops.chooses(Choice.LOST)
    with pytest.raises(OperatorNeededError) as stop:
        Driver(world, stream="stream-2").run(0, [b"new"])
    assert stop.value.data == {"batch": 0, "partitions": [0, 1], "rows": 2}
    ops.chooses(Choice.ACCEPT)
    Driver(world, stream="stream-2").run(0, [b"new"])
    assert world.visible() == [b"new"]


def test_a_dropped_decision_lets_an_old_checkpoint_write(world: World, ops: Operator) -> None:
    for batch in range(3):
        Driver(world).run(batch, [b"%d" % batch])
    with pytest.raises(OperatorNeededError) as stop:
        Driver(world).run(1, [b"1"])
    assert stop.value.data == {"batch": 1, "partitions": [0], "rows": 1, "decided": 2}
    ops.chooses(Choice.FORGET)
    for batch in (1, 2, 3):
        Driver(world).run(batch, [b"%d" % batch])
    assert world.visible() == [b"0", b"1", b"1", b"2", b"2", b"3"]


@pytest.mark.parametrize("choice", [Choice.ACCEPT, Choice.FORGET])
def test_what_is_decided_is_committed_before_it_is_accepted_or_dropped(
    world: World, ops: Operator, choice: Choice
) -> None:
    decide_and_die(world)
    assert [a.outcome for a in ops.looks().transactions] == [Outcome.OPEN] * 2
    ops.chooses(choice)
    assert world.visible() == [b"a", b"b"]
    assert open_ids(world) == []


@pytest.mark.parametrize("choice", [Choice.ACCEPT, Choice.FORGET])
def test_what_is_decided_and_not_seen_is_neither_accepted_nor_dropped(
    world: World, ops: Operator, choice: Choice
) -> None:
    """The ids are later attempts' now, and an open transaction hides the witnesses."""
    decide_and_die(world)
    seen, before = ops.looks(), log(world)
    for partition in range(2):
        late_attempt(world, 0, partition)
    unknown = tuple(
        replace(each, evidence=replace(each.evidence, state=None)) for each in seen.transactions
    )
    seen = replace(seen, tasks=unknown)
    report = make_report(seen)
    assert not report.ok
    assert "--accept" not in "".join(report.notes)
    with pytest.raises(RefusedChoice):
        ops.chooses(choice, seen=seen)
    assert log(world) == before


def test_forget_starts_a_new_log_where_the_old_one_is_gone(world: World, ops: Operator) -> None:
    Driver(world).run(0, [b"a"])
    del world.cluster.topics[world.options.log_topic]
    with pytest.raises(OperatorNeededError):
        Driver(world).planner.plan()
    assert ops.looks().committed == (
        world.options.names.task(0, 0),
        world.options.names.driver,
    )
    ops.chooses(Choice.FORGET)
    Driver(world).run(1, [b"b"])
    assert world.visible() == [b"a", b"b"]


def test_nothing_is_dropped_where_there_is_no_trace_of_the_query(
    world: World, ops: Operator
) -> None:
    """It may be the wrong cluster or log, which gets no record, and no log."""
    with pytest.raises(RefusedChoice, match="--prefix"):
        ops.chooses(Choice.FORGET)
    assert world.options.log_topic not in world.cluster.topics


def test_a_run_that_is_still_alive_is_refused_with_the_reason(world: World, ops: Operator) -> None:
    live = Driver(world)
    reports = live.write(live.planner.plan(), 0, [b"a"])
    ops.chooses(Choice.FORGET)
    with pytest.raises(SupersededError, match="eos-sink resolve"):
        live.committer.commit(reports)
    with pytest.raises(SupersededError, match="eos-sink resolve"):
        live.planner.plan()
    assert world.visible() == []


# --- refused


@pytest.mark.parametrize("choice", [Choice.VISIBLE, Choice.LOST])
def test_what_needs_no_ruling_gets_none(world: World, ops: Operator, choice: Choice) -> None:
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    process = driver.commits.process
    At(process, "control.end", Moment.AFTER, process.kill)
    with pytest.raises(Killed):
        driver.committer.commit(reports)
    seen = ops.looks()
    with pytest.raises(RefusedChoice):
        apply_choice(seen, choice)
    for partition in (0, 1, 7):
        with pytest.raises(RefusedChoice, match=str(partition)):
            apply_choice(seen, choice, (partition,))
    late_attempt(world, 0, 1)
    with pytest.raises(RefusedChoice, match="Partition 1"):
        apply_choice(ops.looks(), choice, (1,))


@pytest.mark.parametrize("choice", [Choice.VISIBLE, Choice.LOST])
def test_rows_in_the_decision_s_transaction_need_no_ruling(choice: Choice) -> None:
    world = World([], options=options(**{"eos.inline.bytes": "65536"}))
    ops = Operator(world)
    Driver(world).run(0, [b"a", b"b"], [b"c"])
    late_attempt(world, 0, 0)
    for log_ in world.cluster.topics[TOPIC].partitions:
        log_.delete_before(log_.end)
    seen = ops.looks()
    assert seen.view.doubtful == {0}
    for partitions in ((1,), (0, 1)):
        with pytest.raises(RefusedChoice, match="partition 1"):
            apply_choice(seen, choice, partitions)
    decision = apply_choice(seen, choice)
    assert decision is not None
    assert decision.override.visible | decision.override.lost == {0}
    assert [each.partition for each in decision.inlined] == [1]


@pytest.mark.parametrize("choice", [Choice.VISIBLE, Choice.LOST, Choice.ACCEPT])
def test_without_a_decision_there_is_nothing_to_rule_about(
    world: World, ops: Operator, choice: Choice
) -> None:
    with pytest.raises(RefusedChoice):
        apply_choice(ops.looks(), choice, ())


@pytest.mark.parametrize("choice", [Choice.ACCEPT, Choice.FORGET])
def test_a_choice_about_the_batch_takes_no_partitions(
    world: World, ops: Operator, choice: Choice
) -> None:
    Driver(world).run(0, [b"a"])
    with pytest.raises(RefusedChoice, match=f"--{choice.value}"):
        apply_choice(ops.looks(), choice, (0,))


def test_a_choice_from_old_evidence_is_refused_and_fences_no_run(
    world: World, ops: Operator
) -> None:
    live = Driver(world)
    live.run(0, [b"a"])
    seen = ops.looks()
    live.run(1, [b"b"])
    with pytest.raises(RefusedChoice, match="seq 2 to 3"):
        ops.chooses(Choice.FORGET, seen=seen)
    live.run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_of_two_operators_the_second_is_told_what_the_first_has_done(
    world: World, ops: Operator
) -> None:
    Driver(world).run(0, [b"a"])
    seen = ops.looks()
    ops.chooses(Choice.ACCEPT)
    with pytest.raises(RefusedChoice, match="eos-sink resolve") as told:
        ops.chooses(Choice.FORGET, seen=seen)
    assert "a run of the query is alive" not in str(told.value)


def test_an_operator_is_told_of_another_ones_choice_that_comes_between(
    world: World, ops: Operator
) -> None:
    Driver(world).run(0, [b"a"])
    other = Operator(world)
    ops.after_join(lambda: other.chooses(Choice.ACCEPT))
    with pytest.raises(RefusedChoice, match="eos-sink resolve") as told:
        ops.chooses(Choice.FORGET)
    assert "run of the query" not in str(told.value)


def test_the_member_of_another_operators_command_is_not_taken_for_a_run(
    world: World, ops: Operator
) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    assert "needs --take-over" in "".join(make_report(ops.looks()).notes)
    ops.chooses(Choice.ACCEPT)
    said = "".join(make_report(ops.looks()).notes)
    assert "lists a member" in said
    assert "--take-over" not in said


def test_a_member_that_comes_between_and_has_written_nothing_is_not_taken_for_the_last_run(
    world: World, ops: Operator
) -> None:
    """The latest record's run has ended long ago."""
    Driver(world).run(0, [b"a"])
    names = world.options.names
    newer = FakeKafka(world.cluster).member(names.group, names.driver, 60_000)
    ops.after_join(lambda: newer.join(Deadline(5)))
    with pytest.raises(RefusedChoice, match="operator's"):
        ops.chooses(Choice.ACCEPT)
    assert [record.seq for record in log(world)] == [1, 2]


def test_the_fingerprint_of_other_rows_is_not_the_decided_one(world: World, ops: Operator) -> None:
    Driver(world).run(0, [b"a"])
    (account,) = ops.looks().transactions
    assert account.same_rows
    assert not replace(account, readable=account.readable + RowDigest(0, 0, 1)).same_rows
