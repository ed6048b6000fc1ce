"""Whatever becomes of a checkpoint, whoever does as the errors say has each row once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import pytest

from eos_sink.driver.source_reader import SourceReader
from eos_sink.kafka.deadline import Deadline
from eos_sink.messages import Reason
from eos_sink.options import parse_options
from eos_sink.protocol import handover
from eos_sink.protocol.model import BatchId, LogRecord, SourcePosition
from eos_sink.protocol.source_rules import SourceBatch
from eos_sink.protocol.values import Transaction, Visibility
from eos_sink.sink_options import SinkOptions
from tests import seeds
from tests.fakes.log import PartitionLog
from tests.fakes.process import Moment
from tests.protocol import explore_source
from tests.protocol.explore_source import SourcePlot, SourceStory
from tests.protocol.scene import Fault, Gate, Strike

STORIES = 12
PLOTS = 30
"""Of which one at least shows a defect."""
PLAIN = SourcePlot()
_STEP = 60


def play(plot: SourcePlot) -> SourceStory:
    return SourceStory(plot).play()


def at_gates(
    *faults: Fault, step: int, first: int = 0, plain: SourcePlot = PLAIN
) -> Iterator[SourcePlot]:
    """The faults at neighbouring gates, at every `step`th one."""
    for at in range(first, len(play(plain).scene.gates), step):
        yield with_faults(plain, at, faults)


def after_a_record(*faults: Fault, plain: SourcePlot = PLAIN) -> Iterator[SourcePlot]:
    """The faults right after each record of the log."""
    written = Gate("log_producer.commit", Moment.AFTER)
    for at, gate in enumerate(play(plain).scene.gates):
        if gate == written:
            yield with_faults(plain, at, faults)


def with_faults(plain: SourcePlot, at: int, faults: Sequence[Fault]) -> SourcePlot:
    return replace(plain, strikes=tuple(Strike(each, at + n) for n, each in enumerate(faults)))


def test_without_a_fault_half_of_the_batches_have_transactions_and_nothing_stops() -> None:
    story = play(SourcePlot())
    assert (story.violations, story.met) == ([], Counter())
    prepared = [bool(each.prepared) for each in story.world.judge.decisions()]
    assert {True, False} == set(prepared)


@pytest.mark.parametrize("step", [_STEP, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "faults",
    [
        (Fault.DELETE,),
        (Fault.DELETE, Fault.KILL_RUN),
        (Fault.DELETE, Fault.TIME_OUT, Fault.KILL_RUN),
    ],
    ids=["runs on", "dies", "dies with its transactions"],
)
def test_the_checkpoint_is_deleted_at_each_gate(faults: tuple[Fault, ...], step: int) -> None:
    stories = map(play, at_gates(*faults, step=step))
    assert [(each.plot, each.violations) for each in stories if each.violations] == []


def test_a_user_who_obeys_has_each_row_once() -> None:
    first = seeds.chance("sources").randrange(10**9)
    for seed in range(first, first + STORIES):
        story = play(SourcePlot.of(seed))
        assert story.violations == [], (seed, story.plot)


@pytest.mark.long
def test_a_copy_that_is_too_old_is_put_back_once_and_the_lost_rows_given_up() -> None:
    stories = []
    for at in range(150, 360, 3):
        faults = (
            (Fault.COPY, 99),
            (Fault.KILL_RUN, at),
            (Fault.DELETE, at),
            (Fault.TIME_OUT, at + 1),
        )
        strikes = tuple(Strike(*each) for each in faults)
        stories.append(play(SourcePlot(strikes, keeps=True, resets=True, retries=True)))
    assert [each.violations for each in stories if each.violations] == []
    assert any(each.world.accepted for each in stories)


def test_a_source_that_is_made_again_before_a_change_of_identity_is_told_of_there() -> None:
    """The new identity knows no position that a command could drop."""
    strikes = Strike(Fault.SOURCE_AGAIN, 283, 20), Strike(Fault.OTHER_ID, 287)
    assert play(SourcePlot(strikes)).violations == []


def test_a_source_that_is_made_again_is_noticed_after_its_batch_was_dropped() -> None:
    """The application that hung writes the commit of that batch to the checkpoint."""
    strikes = (
        Strike(Fault.LOSE_ANSWER, 93, 200),
        Strike(Fault.LEAVE_RUN, 187, 200),
        Strike(Fault.EXPIRE_GROUP, 188, 200),
        Strike(Fault.OTHER_ID, 193, 200),
        Strike(Fault.SOURCE_AGAIN, 194, 200),
    )
    assert play(SourcePlot(strikes, resets=True, retries=True, chosen=2)).violations == []


def test_a_source_that_is_made_again_in_the_very_first_batch_is_noticed() -> None:
    """A driver stands still in its first plan, and the next start has not noted anything yet. A
    new start under another identity notes it again."""
    strikes = Strike(Fault.LEAVE_RUN, 51, 20), Strike(Fault.SOURCE_AGAIN, 63)
    assert play(SourcePlot(strikes)).violations == []
    changes = (Fault.OTHER_TOPIC, 235), (Fault.OTHER_WAY, 246), (Fault.SOURCE_AGAIN, 246)
    plot = SourcePlot(tuple(Strike(fault, at, 20) for fault, at in changes))
    assert play(plot).violations == []


def test_a_run_that_is_left_of_a_checkpoint_that_is_gone_does_not_go_on_in_a_new_topic() -> None:
    """It stands still in its first plan, and has the offsets of the topic that was there."""
    hangs = Strike(Fault.LEAVE_RUN, 42, 200), Strike(Fault.SOURCE_AGAIN, 51, 20)
    moves = Strike(Fault.LEAVE_RUN, 53, 20), Strike(Fault.MOVE, 61)
    late = (0.0, 1.0, 0.1)
    plot = SourcePlot((*hangs, *moves), default="committed", retries=True, late=late, chosen=1)
    assert play(plot).violations == []
    # Its directory may have lost no more than its offsets.
    begun = Strike(Fault.OTHER_SINK, 52), Strike(Fault.LOSE_ANSWER, 60, 20)
    lost = Strike(Fault.LOSE_ANSWER, 122), Strike(Fault.SOURCE_AGAIN, 146)
    plot = SourcePlot(
        (*begun, *lost, Strike(Fault.LOSE_OFFSETS, 146)),
        default="committed",
        retries=True,
        keeps=True,
    )
    assert play(plot).violations == []


def test_a_checkpoint_that_was_gone_and_is_put_back_can_be_deleted_again() -> None:
    lost = Strike(Fault.SOURCE_AGAIN, 31), Strike(Fault.LOSE_ANSWER, 55, 200)
    back = Strike(Fault.LOSE_ANSWER, 130, 200), Strike(Fault.PUT_BACK, 142)
    strikes = (*lost, *back, Strike(Fault.OTHER_TOPIC, 161))
    plot = SourcePlot(strikes, True, True, True, nameless=True, chosen=2)
    assert play(replace(plot, late=(0.0, 0.0, 0.0))).violations == []


def test_of_two_identities_that_take_a_group_at_once_one_is_stopped() -> None:
    """A driver stands still between its look at the group's claims and its own; meanwhile the
    directory is moved, and so the query without an eos.id has another identity."""
    strikes = Strike(Fault.LEAVE_RUN, 81, 200), Strike(Fault.MOVE, 90, 20)
    assert play(SourcePlot(strikes, retries=True, nameless=True)).violations == []


def test_a_source_that_is_made_again_is_noticed_without_a_position() -> None:
    """The identity is new, and its only batch was written without the option."""
    changes = Strike(Fault.OTHER_WAY, 219), Strike(Fault.SWITCH, 220)
    again = Strike(Fault.KILL_PROCESS, 221, 200), Strike(Fault.SOURCE_AGAIN, 409)
    story = play(SourcePlot(changes + again))
    assert (story.violations, story.met["OperatorNeededError"]) == ([], 1)
    # The same, if that batch is repeated then.
    renamed = Strike(Fault.OTHER_ID, 269, 20), Strike(Fault.OTHER_TOPIC, 270, 20)
    switched = Strike(Fault.SWITCH, 271), Strike(Fault.SOURCE_AGAIN, 467)
    assert play(SourcePlot(renamed + switched, retries=True, chosen=2)).violations == []


def test_a_run_without_the_group_does_not_follow_one_that_has_it() -> None:
    """It hangs in its first plan. Meanwhile a run with the option replaces the checkpoint and comes
    to the end of the input."""
    changes = Strike(Fault.SWITCH, 42), Strike(Fault.KILL_RUN, 47, 20)
    hangs = Strike(Fault.LOSE_METADATA, 55, 200), Strike(Fault.LEAVE_RUN, 56)
    assert play(SourcePlot(changes + hangs)).violations == []
    # Nor one that has only noted where it begins.
    changes = Strike(Fault.SWITCH, 83), Strike(Fault.OTHER_TOPIC, 86, 200)
    hangs = Strike(Fault.SWITCH, 87), Strike(Fault.LEAVE_RUN, 88, 200)
    again = (Strike(Fault.SOURCE_AGAIN, 145),)
    plot = SourcePlot(changes + hangs + again, keeps=True, retries=True, chosen=2)
    assert play(plot).violations == []


def test_an_identity_that_has_written_last_without_the_group_is_where_its_own_checkpoint_is() -> (
    None
):
    """Another one has the position, and has not decided a batch of this checkpoint. With the group
    again it must not be taken for the one that has written last."""
    changes = Strike(Fault.SWITCH, 267), Strike(Fault.OTHER_WAY, 267)
    story = play(SourcePlot((Strike(Fault.LOSE_METADATA, 172), *changes)))
    assert (story.violations, story.met) == ([], {"ConfigurationError": 2})
    # The checkpoint is deleted, and only the operator knows where the query stands.
    for change in Fault.OTHER_ID, Fault.OTHER_WAY:
        deleted = Strike(Fault.SWITCH, 154), Strike(change, 154), Strike(Fault.DELETE, 157)
        story = play(SourcePlot(deleted))
        assert (story.violations, story.met) == ([], {"OperatorNeededError": 1})


def test_nobody_is_asked_which_rows_are_there_before_all_can_be_seen() -> None:
    """A killed run has left a transaction open, and what another identity has decided since is
    behind it."""
    changes = Strike(Fault.SWITCH, 120, 200), Strike(Fault.OTHER_WAY, 120, 200)
    deleted = Strike(Fault.DELETE, 264), Strike(Fault.OTHER_WAY, 264, 200)
    assert play(SourcePlot((*changes, *deleted), keeps=True)).violations == []


def test_what_an_operator_lets_stand_is_past_whatever_is_read_for_it_by_now() -> None:
    """The source is made again before the replay: its rows are read behind the batch."""
    again = Strike(Fault.SOURCE_AGAIN, 221), Strike(Fault.SOURCE_AGAIN, 319)
    story = SourceStory(SourcePlot((Strike(Fault.KILL_RUN, 187), *again), resets=True))
    assert story.play().violations == []
    assert any(decision.override.accepted for decision in story.world.judge.decisions())
    assert story.world.visible() == story.world.rows()


def test_a_former_identity_is_named_with_the_topic_of_its_frames() -> None:
    foreach = Strike(Fault.OTHER_WAY, 285), Strike(Fault.OTHER_TOPIC, 286)
    switch = Strike(Fault.SWITCH, 290, 200), Strike(Fault.SWITCH, 294), Strike(Fault.KILL_RUN, 295)
    again = Strike(Fault.SOURCE_AGAIN, 470), Strike(Fault.OTHER_TOPIC, 532)
    strikes = (*foreach, *switch, *again, Strike(Fault.LEAVE_RUN, 534))
    assert play(SourcePlot(strikes, resets=True, chosen=2)).violations == []


def test_a_change_of_identity_that_hung_is_refused_once_the_query_has_a_new_checkpoint() -> None:
    """The new identity had compared itself with the former one before."""
    switch = Strike(Fault.SWITCH, 279, 200), Strike(Fault.OTHER_WAY, 281, 20)
    move = Strike(Fault.MOVE, 283, 20), Strike(Fault.SWITCH, 285), Strike(Fault.LEAVE_RUN, 286)
    strikes = (*switch, *move, Strike(Fault.SOURCE_AGAIN, 331))
    assert play(SourcePlot(strikes, True, True, True, chosen=2)).violations == []


def test_a_group_that_the_query_has_moved_under_another_identity_is_not_foreign() -> None:
    """Its directory was moved; the run there hung in its first decision while a new checkpoint
    began at the old path. With another group, as for a foreign one, it would read all rows again.
    """
    moved = Strike(Fault.MOVE, 98), Strike(Fault.KILL_RUN, 99), Strike(Fault.LEAVE_RUN, 177, 60)
    strikes = (*moved, Strike(Fault.MOVE, 178), Strike(Fault.KILL_RUN, 179))
    assert play(SourcePlot(strikes, nameless=True)).violations == []


def test_an_identity_that_the_query_has_left_is_not_where_a_new_checkpoint_begins() -> None:
    """The new identity has retired the stream under the former one and not decided a batch: both
    are at the same offsets."""
    moved = Strike(Fault.MOVE, 300), Strike(Fault.KILL_RUN, 301), Strike(Fault.LEAVE_RUN, 480, 220)
    strikes = (*moved, Strike(Fault.MOVE, 481), Strike(Fault.KILL_RUN, 482))
    assert play(SourcePlot(strikes, nameless=True)).violations == []


def test_who_gives_up_state_as_told_is_not_refused() -> None:
    ends = Strike(Fault.OTHER_DEFAULTS, 311), Strike(Fault.DELETE, 311)
    story = play(SourcePlot((Strike(Fault.RESET_GROUP, 259), *ends), stateful=True))
    assert (story.violations, story.met) == ([], {"OperatorNeededError": 2})


def test_state_is_given_up_with_the_topic_that_was_made_again() -> None:
    """An old checkpoint would not be taken any more."""
    story = play(
        SourcePlot((Strike(Fault.SOURCE_AGAIN, 246),), keeps=True, stateful=True, chosen=2)
    )
    assert (story.violations, story.met["OperatorNeededError"]) == ([], 1)


def test_a_first_batch_that_sparks_own_sink_has_begun_is_for_that_to_finish() -> None:
    """Without its checkpoint its rows would be there twice."""
    story = play(SourcePlot((Strike(Fault.OTHER_SINK, 16),), own_sink=True))
    assert (story.violations, story.met) == ([], {"OperatorNeededError": 1})


# --- Defects that the explorer has to find: each is brought back, with plots that may show it.


def take_any_start_of_a_new_stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    others = tuple(check for check in handover.CHECKS if check.__name__ != "_check_begin")
    monkeypatch.setattr(handover, "CHECKS", others)
    return after_a_record(Fault.LOSE_METADATA, Fault.KILL_RUN)


def take_the_start_from_the_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    read = SourceReader.read

    def trust(
        reader: SourceReader, record: LogRecord, batch: BatchId, deadline: Deadline
    ) -> SourceBatch:
        found, known = read(reader, record, batch, deadline), record.source
        if known is None or known.batch.stream != batch.stream:
            return found
        return replace(found, start={**found.start, **known.end})

    monkeypatch.setattr(SourceReader, "read", trust)
    return at_gates(Fault.LOSE_OFFSETS, Fault.KILL_RUN, plain=SourcePlot(retries=True), step=10)


def keep_the_end_of_a_lost_decision(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    for module in ("protocol.handover", "driver.source_reader"):
        name = f"eos_sink.{module}.returns_to_start"
        monkeypatch.setattr(name, lambda record, *_: record.source)
    return after_a_record(Fault.TIME_OUT, Fault.DELETE, Fault.KILL_RUN)


def do_not_write_the_first_position(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    monkeypatch.setattr(SourceReader, "check_first", lambda *_: None)
    return iter([SourcePlot()])


def forget_that_the_option_was_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    monkeypatch.setattr(SourcePosition, "after", lambda self, *_: self)
    for at in range(150, 600, 10):
        yield SourcePlot(
            (
                Strike(Fault.SWITCH, at),
                Strike(Fault.KILL_RUN, at + 1),
                Strike(Fault.DELETE, at + 150),
                Strike(Fault.KILL_RUN, at + 151),
            )
        )


def leave_the_group(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    monkeypatch.setattr("tests.fakes.producer.FakeProducer.send_group_offsets", lambda *_: None)
    return iter([SourcePlot()])


def write_a_replay_to_the_topic_of_now(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    monkeypatch.setattr("eos_sink.protocol.rules._check_route", lambda *_: None)
    return at_gates(Fault.TIME_OUT, Fault.OTHER_TOPIC, step=1, first=170)


def read_another_topic_on_at_the_old_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SourcePlot]:
    read = SourceReader.read
    monkeypatch.setattr(SourceReader, "read", lambda *args: replace(read(*args), topics={}))
    return at_gates(Fault.SOURCE_AGAIN, step=20, first=200)


def know_a_witness_by_its_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    monkeypatch.setattr(
        "eos_sink.driver.reconcile.ask_topic_ids", lambda _, known, __: tuple(known)
    )

    def look(log: PartitionLog, offset: int, _: Transaction) -> Visibility | None:
        entry = next(iter(log.all_from(offset)[:1]), None)
        return visibility(log, offset, entry.txn.identity) if entry else Visibility.UNREADABLE

    visibility = PartitionLog.visibility
    monkeypatch.setattr(PartitionLog, "visibility", look)
    return at_gates(Fault.TOPIC_AGAIN, step=1, first=170)


def write_under_two_identities_in_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    monkeypatch.setattr("eos_sink.driver.former_identities._retire", lambda *_: None)
    for at in range(362, 500, 3):
        ways = (Strike(Fault.OTHER_WAY, each) for each in (200, at))
        yield SourcePlot(tuple(ways), ungrouped=True)


def take_the_position_of_any_query_on_the_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SourcePlot]:
    """And let frames without an id of their own be written."""
    monkeypatch.delitem(explore_source.ANOTHER_QUERY, "eos.id")

    def parse(given: Mapping[str, str]) -> SinkOptions:
        query = parse_options(given)
        return replace(query, origin=replace(query.origin, eos_id=query.origin.eos_id or ""))

    monkeypatch.setattr("eos_sink.ops.starting_offsets.parse_options", parse)
    twice = Strike(Fault.RIVAL, 0), Strike(Fault.RIVAL, 1)
    return iter([SourcePlot(twice, nameless=True)])


def take_a_decided_batch_for_another_sinks(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourcePlot]:
    monkeypatch.setattr(SourceReader, "check_former", lambda *_: None)
    delete = Reason.BEGUN_ELSEWHERE._replace(remedy="{restart}")
    monkeypatch.setattr(Reason, "BEGUN_ELSEWHERE", delete)
    return at_gates(Fault.OTHER_ID, step=20)


def begin_behind_a_batch_that_is_not_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SourcePlot]:
    monkeypatch.setattr(SourceReader, "_check_movers", lambda *_, **__: None)
    return after_a_record(Fault.OTHER_ID, Fault.DELETE, plain=SourcePlot(default="committed"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "without",
    [
        write_under_two_identities_in_turns,
        take_the_position_of_any_query_on_the_topic,
        take_a_decided_batch_for_another_sinks,
        begin_behind_a_batch_that_is_not_settled,
        write_a_replay_to_the_topic_of_now,
        know_a_witness_by_its_place,
        read_another_topic_on_at_the_old_offset,
        take_any_start_of_a_new_stream,
        take_the_start_from_the_log,
        keep_the_end_of_a_lost_decision,
        do_not_write_the_first_position,
        forget_that_the_option_was_off,
        leave_the_group,
    ],
)
def test_a_defect_is_found(
    without: Callable[[pytest.MonkeyPatch], Iterator[SourcePlot]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plots = islice(without(monkeypatch), PLOTS)
    found = next((s for s in map(play, plots) if s.violations), None)
    assert found is not None
    monkeypatch.undo()
    assert play(found.plot).violations == []
