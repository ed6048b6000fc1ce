"""Users of jobs and queries do as errors say, whatever happens: each row is visible once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.driver_transaction import send_rows
from eos_sink.driver import completion
from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TransactionalProducer
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Change, Decision, LogEntry, LogRecord, Numbering
from eos_sink.protocol.written import WrittenNumbers
from tests import seeds
from tests.fakes.producer import FakeProducer
from tests.protocol import spark, users
from tests.protocol.explorer import smallest
from tests.protocol.plot import FAULTS, Plot
from tests.protocol.scene import Fault, Strike, is_felt
from tests.protocol.users import PROCESS_DIED, JobStory, Pair

STORIES = 120
ALL_KINDS = (
    (Numbering.ONCE, Numbering.ONCE),
    (Numbering.VERSION, Numbering.VERSION),
    (Numbering.STREAM,),
    (Numbering.FOREACH,),
)
# Each pair of an error and a kind of write that stories have reached; a user's last write, without
# rows, comes after all faults.
REACHED = {
    (error, kind, action)
    for error, action, kinds in (
        ("ClusterError", "fix", "ONCE STREAM FOREACH"),
        ("ConfigurationError", "fix", "FOREACH"),
        ("CommitFailedError", "run again", "ONCE VERSION STREAM FOREACH"),
        ("OperatorNeededError", "resolve", "ONCE STREAM FOREACH"),
        ("OutcomeUnknownError", "run again", "ONCE VERSION STREAM FOREACH"),
        ("ProduceFailedError", "fix", "ONCE VERSION STREAM FOREACH"),
        ("ProduceFailedError", "run again", "ONCE VERSION STREAM FOREACH"),
        ("SupersededError", "leave", "STREAM"),
        ("SupersededError", "run again", "ONCE VERSION STREAM FOREACH"),
        ("UnfinishedError", "run again", "ONCE VERSION STREAM FOREACH"),
        (PROCESS_DIED, "-", "ONCE VERSION STREAM FOREACH"),
    )
    for kind in kinds.split()
}


def failures(plots: Iterator[Plot]) -> Iterator[JobStory]:
    return (story for story in map(play, plots) if story.violations)


def play(plot: Plot) -> JobStory:
    return JobStory(plot).play()


def at_each_gate(plain: Plot, *faults: Fault) -> Iterator[Plot]:
    """The faults at neighbouring gates, from each gate at which the first one is felt."""
    for at, gate in enumerate(play(plain).scene.gates):
        if not is_felt(faults[0], gate):
            continue
        yield with_faults(plain, *((each, at + n) for n, each in enumerate(faults)))


def with_faults(plain: Plot, *strikes: tuple[Fault, int]) -> Plot:
    return replace(plain, strikes=tuple(Strike(fault, at) for fault, at in strikes))


JOBS = Plot(writes=1)
VERSION = Plot(kinds=(Numbering.VERSION,), writes=1)
QUERY = Plot(kinds=(Numbering.STREAM,), writes=2)


@pytest.mark.parametrize("kinds", ALL_KINDS)
def test_without_a_fault_no_user_meets_an_error(kinds: tuple[Numbering, ...]) -> None:
    story = play(Plot(kinds=kinds))
    assert (story.violations, story.pairs) == ([], Counter())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("plain", [JOBS, QUERY], ids=["jobs", "query"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_each_gate_loses_and_doubles_no_row(fault: Fault, plain: Plot) -> None:
    assert [(s.plot, s.violations) for s in failures(at_each_gate(plain, fault))] == []


def test_users_who_obey_lose_and_double_no_row_and_meet_many_errors() -> None:
    first = seeds.chance("jobs").randrange(10**9)
    stories = [play(Plot.of(seed)) for seed in range(first, first + STORIES)]
    assert [(story.plot, story.violations) for story in stories if story.violations] == []
    assert len(sum((story.pairs for story in stories), Counter[Pair]())) > len(REACHED) // 2


@pytest.mark.long
def test_users_who_obey_meet_every_error() -> None:
    first, pairs = 10**6, Counter[Pair]()
    # A version is seldom decided just before its coordinator stands still, or written with too few
    # replicas.
    for fault in (Fault.NO_COORDINATOR, Fault.TOO_FEW_REPLICAS):
        for plot in at_each_gate(VERSION, fault):
            story = play(plot)
            pairs += story.pairs
            assert story.violations == [], story.plot
    for seed in range(first, first + 20 * STORIES):
        story = play(Plot.of(seed))
        pairs += story.pairs
        assert story.violations == [], (seed, story.plot)
        if pairs.keys() >= REACHED:
            break
    assert REACHED - pairs.keys() == set()


def test_a_run_that_two_others_have_overtaken_goes_on_behind_them() -> None:
    strikes = Strike(Fault.KILL_PROCESS, 95), Strike(Fault.RIVAL, 104), Strike(Fault.RIVAL, 213)
    plot = Plot(strikes, (Numbering.FOREACH,), inline=60, result_bytes=100)
    assert play(plot).violations == []


# --- Defects that the explorer has to find: each is brought back, with plots that may show it.


def write_no_lower_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    monkeypatch.setattr(
        WrittenNumbers, "__contains__", lambda self, number: number <= self.highest + 1
    )
    plain = Plot(kinds=(Numbering.VERSION, Numbering.VERSION))
    return at_each_gate(plain, Fault.RIVAL)


def forget_the_number_of_a_decided_write(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    monkeypatch.setattr(spark.Session, "_named", lambda *_: contextlib.nullcontext())
    return at_each_gate(JOBS, Fault.NO_COORDINATOR)


def send_the_record_before_the_rows_are_there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    """Also a vote before the rows: other queries wait for the log meanwhile."""

    def unflushed(producer: TransactionalProducer, *args: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(producer, "flush", lambda _: None)
            send_rows(producer, *args)

    monkeypatch.setattr("eos_sink.decision_log.register.send_rows", unflushed)
    return at_each_gate(Plot(kinds=(Numbering.STREAM,), inline=65_536), Fault.NO_LEADER)


def vote_before_the_rows_are_there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    """And give the commit, which waits for them, as long as a step."""
    send = DecisionRegister._send

    def poll(producer: FakeProducer, _: Deadline) -> None:
        producer._deliver()
        while producer._reports:
            producer._reports.pop(0)()

    def hasty(register: DecisionRegister, write: Any, opened: Any) -> LogEntry:
        vote = write.vote

        def early(begun: float) -> float:
            vote(begun)
            return inf

        with monkeypatch.context() as patch:
            patch.setattr(FakeProducer, "flush", poll)
            write.vote = vote and early
            return send(register, write, opened)

    monkeypatch.setattr(DecisionRegister, "_send", hasty)
    # The record waits for the rows too, which is another defect.
    monkeypatch.setattr(users, "LOG_HELD_S", inf)
    plain = Plot(kinds=(Numbering.STREAM,), inline=60, timeout_ms=15_000)
    return at_each_gate(plain, Fault.NO_LEADER)


def read_a_successor_for_five_seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    monkeypatch.setattr(Planner, "_read_successor", lambda self, _: self._register.try_read())
    for at in range(400):
        turns = ((Fault.OTHER_PROCESSES, 1), (Fault.OTHER_PROCESSES, at))
        yield with_faults(QUERY, *turns, (Fault.OTHER_LOG_WRITER, at + 1))


def take_as_much_inline_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    following = LogRecord.next

    def forget(record: LogRecord, change: Change, *named: Any) -> LogRecord:
        return following(record, replace(change, gives_up=False), *named)

    monkeypatch.setattr(LogRecord, "next", forget)
    return iter([Plot(kinds=(Numbering.STREAM,), inline=65_536, result_bytes=100)])


def forget_failures_before_the_first_decision(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    following = LogRecord.next

    def forget(record: LogRecord, change: Change, *named: Any) -> LogRecord:
        found = following(record, change, *named)
        return found if found.decision or change.gives_up else replace(found, given_up=0)

    monkeypatch.setattr(LogRecord, "next", forget)
    return iter([Plot(inline=65_536, result_bytes=100)])


def keep_the_decided_partitions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    def other_rows(decision: Decision, *_: object) -> EosSinkError:
        return stop(Reason.OTHER_ROWS, decision=decision, difference="other partitions")

    monkeypatch.setattr(Decision, "is_invisible", lambda *_: False)
    monkeypatch.setattr(completion, "check_completion", refuse)
    monkeypatch.setattr(completion, "not_told", other_rows)
    return at_each_gate(QUERY, Fault.NO_COORDINATOR, Fault.OTHER_PARTITIONS)


def refuse(*_: object) -> None:
    raise completion.RefusedCompletion("it is refused")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "without",
    [
        write_no_lower_version,
        forget_the_number_of_a_decided_write,
        send_the_record_before_the_rows_are_there,
        vote_before_the_rows_are_there,
        read_a_successor_for_five_seconds,
        take_as_much_inline_after_a_failure,
        forget_failures_before_the_first_decision,
        keep_the_decided_partitions,
    ],
)
def test_a_defect_is_found(
    without: Callable[[pytest.MonkeyPatch], Iterator[Plot]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plots = without(monkeypatch)
    found = next(failures(plots), None)
    assert found is not None
    assert smallest(found).violations
    monkeypatch.undo()
    assert play(found.plot).violations == []
