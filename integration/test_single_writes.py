"""Batch writes on a real Kafka: one that is run again under its number is written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from eos_sink.driver import committer
from eos_sink.driver.reconcile import settle
from eos_sink.errors import (
    Action,
    EosSinkError,
    OperatorNeededError,
    OutcomeUnknownError,
    UnfinishedError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.waiting import wait_until
from integration.single_write import INLINED, PATIENCE_S, MakeSessions, Session, Sessions

AfterDecision = Callable[[Callable[[], None]], None]


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
def after_decision(monkeypatch: pytest.MonkeyPatch) -> AfterDecision:
    """Do something once, between the next decision and its EndTxns."""

    def arm(deed: Callable[[], None]) -> None:
        def settled(*args: object, **kwargs: object) -> object:
            monkeypatch.setattr(committer, "settle", settle)
            deed()
            return settle(*args, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(committer, "settle", settled)

    return arm


def dies() -> None:
    raise Died


def version(number: int) -> dict[str, str]:
    return {"txnAppId": "job", "txnVersion": str(number)}


def run_again(session: Session, error: EosSinkError, *parts: list[str]) -> None:
    """As the error says. A dead driver's transaction may block the log for 40 seconds."""
    number = error.data["write_id"]
    assert f'.option("eos.write.id", "{number}")' in error.remedy
    deadline = Deadline(PATIENCE_S)
    while True:
        try:
            return session.write(*parts, options={"eos.write.id": str(number)})
        except EosSinkError as again:
            if again.action is not Action.RUN_AGAIN or deadline.passed:
                raise


# --- versions in any order


def test_a_version_that_failed_is_written_after_a_higher_one(sessions: MakeSessions) -> None:
    job = sessions()
    first, second = job.start(), job.start()

    def overtaken() -> None:
        second.write(["25"], options=version(25))
        first.enter()

    with pytest.raises(EosSinkError) as error:
        first.write(["24"], before_commit=overtaken, options=version(24))
    assert error.value.action is Action.RUN_AGAIN
    assert "under txnVersion 24" in error.value.remedy
    for number in (24, 25, 24):
        first.write([str(number)], options=version(number))
    assert job.visible() == ["24", "25"]
    assert job.open() == []


# --- a decided write whose transactions are lost


@pytest.mark.parametrize("lost", [(1,), (0, 1)], ids=["part", "all"])
def test_lost_rows_of_a_write_come_back_when_it_is_run_again_under_its_number(
    sessions: MakeSessions, after_decision: AfterDecision, lost: tuple[int, ...]
) -> None:
    single = sessions()
    session = single.start()
    after_decision(lambda: single.lose(*lost))
    with pytest.raises(UnfinishedError) as error:
        session.write(["a"], ["b"])
    with pytest.raises(OperatorNeededError) as stop:
        session.write(["c"])
    assert f'.option("eos.write.id", "{error.value.data["write_id"]}")' in stop.value.remedy
    run_again(session, error.value, ["a"], ["b"])
    run_again(session, stop.value, ["c"])
    assert single.visible() == ["a", "b", "c"]
    assert single.open() == []


@pytest.mark.long
def test_a_write_whose_transactions_expire_between_decision_and_commit_is_run_again(
    sessions: MakeSessions, after_decision: AfterDecision
) -> None:
    """A driver that stands still, for example on a suspended machine."""
    single = sessions(eos_transaction_timeout_ms="10000")
    session = single.start()
    after_decision(lambda: wait_until(lambda: not single.open(), Deadline(PATIENCE_S), "all end"))
    with pytest.raises(UnfinishedError) as error:
        session.write(["a"], ["b"])
    assert single.visible() == []
    run_again(session, error.value, ["a"], ["b"])
    assert single.visible() == ["a", "b"]


def test_a_write_that_was_killed_after_its_decision_is_finished_by_the_next_and_named_by_status(
    sessions: MakeSessions, after_decision: AfterDecision
) -> None:
    single = sessions()
    killed = single.start()
    after_decision(dies)
    with pytest.raises(Died):
        killed.write(["a"], ["b"])
    number = killed.number
    # Other queries of this cluster may need attention.
    listed = single.types("eos-sink status --bootstrap-server HOST:PORT", expect=None)
    assert f"write {number}" in listed
    single.start().write(["c"])
    killed.write(["a"], ["b"], options={"eos.write.id": str(number)})
    assert single.visible() == ["a", "b", "c"]


# --- an unknown outcome, also if another write has followed


@pytest.mark.parametrize("inline", ["0", INLINED], ids=["transactions", "inlined"])
@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("followed", [True, False])
def test_whatever_became_of_a_write_it_is_run_again_under_its_number(
    sessions: MakeSessions,
    monkeypatch: pytest.MonkeyPatch,
    inline: str,
    carried_out: bool,
    followed: bool,
) -> None:
    single = sessions(eos_inline_bytes=inline)
    first, second = single.start(), single.start()
    commit = ConfluentProducer.commit

    def unanswered(self: ConfluentProducer, deadline: Deadline) -> None:
        if carried_out:
            commit(self, deadline)
        monkeypatch.setattr(ConfluentProducer, "commit", commit)
        if followed:
            second.write(["second"])
            first.enter()
        raise OutcomeUnknownError("No answer.", remedy="")

    def arm() -> None:
        monkeypatch.setattr(ConfluentProducer, "commit", unanswered)

    try:
        first.write(["first"], before_commit=arm)
    except EosSinkError as error:
        run_again(first, error, ["first"])
    first.write(["first"], options={"eos.write.id": str(first.number)})
    assert single.visible() == ["first", *(["second"] if followed else [])]
    assert single.open() == []
