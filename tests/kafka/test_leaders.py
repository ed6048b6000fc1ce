"""Transactions wait for the leaders of all their partitions before they are ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, cast

import pytest

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka import leaders as leaders_module
from eos_sink.kafka import transaction_control
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.leaders import Leaders
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.kafka.wire import Wire
from eos_sink.protocol.values import EndOutcome, Transaction

ONE, TWO, OTHER = (Transaction(name, number, 0) for number, name in enumerate("abc"))


class Metadata:
    """Stands for the wire: the leader of each partition of each topic; None: no broker answers.
    The next `silent` requests get no answer, nor does one without any time left."""

    def __init__(self, leaders: dict[str, list[int]] | None) -> None:
        self.leaders = leaders
        self.silent = 0
        self.asked: list[set[str]] = []

    def run(self, step: Any, *given: Any) -> Any:
        return step(*given)

    def fetch_leaders(self, topics: Iterable[str], deadline: Deadline) -> Any:
        self.asked.append(set(topics))
        self.silent -= 1
        if self.leaders is None or self.silent >= 0 or deadline.passed:
            return None
        return {
            (topic, number): leader
            for topic in topics
            for number, leader in enumerate(self.leaders.get(topic, []))
        }


def leaders_on(wire: Metadata) -> Leaders:
    leaders = Leaders(cast("Wire", wire))
    leaders.remember(ONE, [("t", 0), ("u", 0)])
    leaders.remember(TWO, [("t", 1)])
    return leaders


def test_only_a_transaction_without_a_leader_waits(caplog: pytest.LogCaptureFixture) -> None:
    wire = Metadata({"t": [1, -1], "u": [2]})
    leaders = leaders_on(wire)
    for _ in range(3):
        assert leaders.find_missing([ONE, TWO, OTHER], Deadline(1)) == {TWO}
    assert wire.asked == [{"t", "u"}] * 3
    named = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [text.split(":")[0] for text in named] == ["t[1]"]
    wire.leaders = {"t": [1, 3], "u": [2]}
    assert leaders.find_missing([ONE, TWO], Deadline(1)) == set()


def test_a_topic_that_was_deleted_needs_no_leader() -> None:
    leaders = leaders_on(Metadata({"t": [1]}))
    assert leaders.find_missing([ONE, TWO], Deadline(1)) == set()


def test_nothing_is_ended_while_no_broker_says_who_leads() -> None:
    leaders = leaders_on(Metadata(None))
    assert leaders.find_missing([ONE, TWO], Deadline(1)) == {ONE, TWO}


def test_a_transaction_that_was_not_described_is_not_asked_about() -> None:
    wire = Metadata({})
    leaders = leaders_on(wire)
    leaders.forget()
    assert not leaders.knows(ONE)
    assert leaders.find_missing([ONE, OTHER], Deadline(1)) == set()
    assert wire.asked == []


def end_both(
    monkeypatch: pytest.MonkeyPatch,
    wire: Metadata,
    seconds: float,
    leaders: dict[str, list[int]] | None,
    silent: int = 0,
) -> dict[Transaction, EndOutcome]:
    """End `ONE` and `TWO` within five seconds, of which the coordinators take some: then brokers
    name these leaders."""
    now = [0.0]
    control = object.__new__(KafkaPythonControl)
    control._leaders = leaders_on(wire)

    def end(by_id: dict[str, Transaction], *_: object) -> dict[str, EndOutcome]:
        now[0] += seconds
        wire.leaders, wire.silent = leaders, silent
        return dict.fromkeys(by_id, EndOutcome.DONE)

    monkeypatch.setattr(control, "_end", end)
    monkeypatch.setattr(f"{transaction_control.__name__}.time.monotonic", lambda: now[0])
    return control.end([ONE, TWO], True, Deadline(5, lambda: now[0]))


@pytest.mark.parametrize(
    ("seconds", "leaders", "said", "certain"),
    [
        (0.5, {"t": [1, -1], "u": [2]}, [], {ONE, TWO}),
        (5.0, {"t": [1, -1], "u": [2]}, ["t[1]"], {ONE}),
        (5.0, None, ["t[0], t[1], u[0]"], set()),
    ],
    ids=["quickly", "slowly", "no broker says who leads"],
)
def test_a_transaction_whose_leader_goes_while_it_is_ended_is_not_taken_for_ended(
    seconds: float,
    leaders: dict[str, list[int]] | None,
    said: list[str],
    certain: set[Transaction],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its marker may be lost. Usually an end takes milliseconds, and nothing more is asked."""
    if leaders is None:
        monkeypatch.setattr(leaders_module, "_LOOK_S", 0.05)
    wire = Metadata({"t": [1, 2], "u": [2]})
    ended = end_both(monkeypatch, wire, seconds, leaders)
    assert ended == dict.fromkeys(certain, EndOutcome.DONE)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == said
    assert (len(wire.asked) > 1) == bool(said)


@pytest.mark.parametrize("silent", [0, 2])
def test_transactions_count_as_ended_after_another_coordinator_has_taken_all_the_time(
    silent: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Their partitions have kept their leaders, which a broker says soon after the deadline."""
    leaders = {"t": [1, 2], "u": [2]}
    ended = end_both(monkeypatch, Metadata(leaders), 5.0, leaders, silent)
    assert ended == dict.fromkeys([ONE, TWO], EndOutcome.DONE)
    assert caplog.records == []


def test_a_transaction_is_not_ended_before_its_coordinator_says_where_it_has_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The coordinator of `TWO` moves while the only broker of one of its partitions is away."""
    wire, sent = Metadata({"t": [1, -1]}), list[list[Transaction]]()
    control = object.__new__(KafkaPythonControl)
    control._leaders = Leaders(cast("Wire", wire))
    answers = [[ONE], [TWO]]

    def describe(ids: Iterable[str], _: Deadline) -> None:
        control._leaders.forget()
        for each in answers.pop(0):
            control._leaders.remember(each, [("t", each.producer_id)])
        if answers:
            raise OutcomeUnknownError("No answer.", remedy="")

    def end(by_id: dict[str, Transaction], *_: object) -> dict[str, EndOutcome]:
        sent.append(list(by_id.values()))
        return dict.fromkeys(by_id, EndOutcome.DONE)

    def start_broker(_: float) -> None:
        assert [TWO] not in sent
        wire.leaders = {"t": [1, 2]}

    monkeypatch.setattr(control, "describe", describe)
    monkeypatch.setattr(control, "_end", end)
    monkeypatch.setattr(f"{transaction_control.__name__}.time.sleep", start_broker)
    assert control.end([ONE, TWO], True, Deadline(60)).keys() == {ONE, TWO}
    assert [each for each in sent if each] == [[ONE], [TWO]]
