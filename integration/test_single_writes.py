"""Writes without a number on a real Kafka: what each error says is true, and stays true."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from eos_sink.driver import committer
from eos_sink.driver.settle import settle
from eos_sink.errors import (
    Action,
    BatchFailedError,
    EosSinkError,
    OperatorNeededError,
    OutcomeUnknownError,
    UnfinishedError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.waiting import wait_until
from integration.single_write import (
    INLINED,
    PATIENCE_S,
    MakeSessions,
    Session,
    Sessions,
    command_in,
)


class Died(Exception):
    """The commit process is gone."""


@pytest.fixture
def sessions(kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSessions]:
    made: list[Sessions] = []

    def make(**options: str) -> Sessions:
        made.append(Sessions(kafka, monkeypatch, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def after_decision(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Do something once, between the next decision and its EndTxns."""

    def arm(deed: Callable[[], None]) -> None:
        def settled(*args: object, **kwargs: object) -> object:
            monkeypatch.setattr(committer, "settle", settle)
            deed()
            return settle(*args, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(committer, "settle", settled)

    return arm


@pytest.fixture
def lose_answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """The next commit of a driver is carried out, then something happens, and no answer comes."""
    commit = ConfluentProducer.commit

    def arm(deed: Callable[[], None]) -> None:
        def unanswered(self: ConfluentProducer, deadline: Deadline) -> None:
            commit(self, deadline)
            monkeypatch.setattr(ConfluentProducer, "commit", commit)
            deed()
            raise OutcomeUnknownError("No answer.", remedy="")

        monkeypatch.setattr(ConfluentProducer, "commit", unanswered)

    return arm


def dies() -> None:
    raise Died


def write_as_told(session: Session, *parts: Sequence[str]) -> None:
    """A write that is run again as long as its errors say so: a dead driver's transaction may block
    the log for 40 seconds."""
    deadline = Deadline(PATIENCE_S)
    while True:
        try:
            return session.write(*parts)
        except EosSinkError as error:
            if error.action is not Action.RUN_AGAIN or deadline.passed:
                raise


# --- a decided write whose transactions are lost


def test_a_write_that_is_lost_as_a_whole_after_its_decision_says_so_and_is_run_again(
    sessions: MakeSessions, after_decision: Callable[[Callable[[], None]], None]
) -> None:
    single = sessions()
    session = single.start()
    after_decision(lambda: single.lose(0, 1))
    with pytest.raises(BatchFailedError) as lost:
        session.write(["a"], ["b"])
    assert lost.value.action is Action.RUN_AGAIN
    session.write(["a"], ["b"])
    assert single.visible() == ["a", "b"]
    assert single.open() == []


@pytest.mark.long
def test_a_write_whose_transactions_expire_between_decision_and_commit_is_run_again(
    sessions: MakeSessions, after_decision: Callable[[Callable[[], None]], None]
) -> None:
    """A driver that stands still, for example on a suspended machine."""
    single = sessions(eos_transaction_timeout_ms="10000")
    session = single.start()
    after_decision(lambda: wait_until(lambda: not single.open(), Deadline(PATIENCE_S), "all end"))
    with pytest.raises(BatchFailedError) as lost:
        session.write(["a"], ["b"])
    assert lost.value.action is Action.RUN_AGAIN
    assert single.visible() == []
    session.write(["a"], ["b"])
    assert single.visible() == ["a", "b"]


def test_a_decided_write_that_is_lost_stops_the_next_one_until_an_operator_acknowledges_it(
    sessions: MakeSessions, after_decision: Callable[[Callable[[], None]], None]
) -> None:
    single = sessions()
    former = single.start()
    after_decision(dies)
    with pytest.raises(Died):
        former.write(["a"], ["b"])
    single.lose(0, 1)
    later = single.start()
    for rows in (["c"], []):
        with pytest.raises(OperatorNeededError) as stop:
            later.write(rows)
        assert stop.value.action is Action.RESOLVE
        assert former.latest is not None
        assert stop.value.data["former"] == former.latest.stream
        assert (stop.value.data["partitions"], stop.value.data["rows"]) == ([0, 1], 2)
        assert former.latest.stream.removeprefix("once:") in stop.value.message
        assert "process 1 on host-a" in stop.value.message
    assert single.visible() == []
    assert single.open() == []
    single.types(command_in(stop.value, "resolve"), "--yes")
    later.write(["a", "b"])
    later.write(["c"])
    assert single.visible() == ["a", "b", "c"]


def test_a_write_of_which_a_part_is_lost_says_so_and_stops_the_next_one(
    sessions: MakeSessions, after_decision: Callable[[Callable[[], None]], None]
) -> None:
    single = sessions()
    session = single.start()
    after_decision(lambda: single.lose(1))
    with pytest.raises(OperatorNeededError) as part:
        session.write(["a"], ["b"])
    assert part.value.action is Action.LOOK
    assert part.value.data["partitions"] == [1]
    assert single.visible() == ["a"]
    with pytest.raises(OperatorNeededError) as stop:
        session.write(["c"])
    assert stop.value.action is Action.RESOLVE
    assert stop.value.data["partitions"] == [1]
    single.types(command_in(stop.value, "resolve"), "--yes")
    session.write(["b"])
    assert single.visible() == ["a", "b"]


# --- a former write that is still open


def test_an_error_about_a_former_write_does_not_blame_the_next_one(
    sessions: MakeSessions,
    after_decision: Callable[[Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    single = sessions()
    former = single.start()
    after_decision(dies)
    with pytest.raises(Died):
        former.write(["a"], ["b"])
    later = single.start()
    with monkeypatch.context() as broken:
        broken.setattr(KafkaPythonControl, "end", lambda *_, **__: {})
        with pytest.raises(UnfinishedError) as error:
            later.write(["c"])
    assert error.value.action is Action.RUN_AGAIN
    assert former.latest is not None
    assert error.value.data["stream"] == former.latest.stream
    assert "Do not run the earlier write again" in error.value.remedy
    later.write(["c"])
    assert single.visible() == ["a", "b", "c"]


# --- a commit without an answer, which another write overtakes


@pytest.mark.parametrize("inline", ["0", INLINED], ids=["transactions", "inlined"])
@pytest.mark.parametrize("others", [1, 3])
def test_a_write_that_was_committed_without_an_answer_succeeds_though_others_have_followed(
    sessions: MakeSessions,
    lose_answer: Callable[[Callable[[], None]], None],
    inline: str,
    others: int,
) -> None:
    single = sessions(eos_inline_bytes=inline)
    first, second = single.start(), single.start()

    def follow() -> None:
        for number in range(others):
            second.write([f"second {number}"])
        first._enter()

    first.write(["first"], ["first too"], before_commit=lambda: lose_answer(follow))
    assert single.visible() == ["first", "first too", *(f"second {n}" for n in range(others))]
    assert single.open() == []


@pytest.mark.parametrize("inline", ["0", INLINED], ids=["transactions", "inlined"])
def test_a_write_that_another_one_has_replaced_before_its_decision_is_run_again(
    sessions: MakeSessions, monkeypatch: pytest.MonkeyPatch, inline: str
) -> None:
    single = sessions(eos_inline_bytes=inline)
    first, second = single.start(), single.start()
    commit = ConfluentProducer.commit

    def unsent(self: ConfluentProducer, deadline: Deadline) -> None:
        monkeypatch.setattr(ConfluentProducer, "commit", commit)
        second.write(["second"])
        first._enter()
        raise OutcomeUnknownError("No answer.", remedy="")

    with pytest.raises(EosSinkError) as error:
        first.write(
            ["first"],
            before_commit=lambda: monkeypatch.setattr(ConfluentProducer, "commit", unsent),
        )
    assert error.value.action is Action.RUN_AGAIN
    first.write(["first"])
    assert single.visible() == ["first", "second"]


# --- an unknown outcome


@pytest.mark.parametrize("carried_out", [True, False])
def test_an_unknown_outcome_is_known_after_a_write_without_rows(
    sessions: MakeSessions, monkeypatch: pytest.MonkeyPatch, carried_out: bool
) -> None:
    single = sessions(eos_inline_bytes=INLINED, eos_step_timeout_ms="3000")
    session = single.start()
    commit = ConfluentProducer.commit

    def lose(self: ConfluentProducer, deadline: Deadline) -> None:
        if carried_out:
            commit(self, deadline)
        time.sleep(4)  # longer than the step
        raise OutcomeUnknownError("No answer.", remedy="")

    with monkeypatch.context() as broken:
        broken.setattr(committer.Committer, "abort", lambda *_: None)
        with pytest.raises(OutcomeUnknownError) as error:
            session.write(
                ["a"], before_commit=lambda: broken.setattr(ConfluentProducer, "commit", lose)
            )
    assert error.value.action is Action.LOOK
    write_as_told(session, [])
    command = command_in(error.value, "explain")
    found = json.loads(single.types(command, "--json", expect=0 if carried_out else 1))
    assert found["known"] == ("the latest decision" if carried_out else "not decided")
    if not carried_out:
        session.write(["a"])
    assert single.visible() == ["a"]
