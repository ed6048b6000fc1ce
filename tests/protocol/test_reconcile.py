"""What is left to do: the order of the steps, from each state that a query can be in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from eos_sink.identity import QueryNames
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogEntry,
    LogRecord,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.outcome import Evidence, Outcome, outcome
from eos_sink.protocol.reconcile import Role, Step, View, next_step
from eos_sink.protocol.values import (
    EndOutcome,
    Position,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)
from tests.seeds import chance
from tests.snippets import ROOT

NAMES = QueryNames("p-", "q-0123456789")
PREPARED = tuple(
    Prepared(number, 100 + number, 4, RowDigest(2, 20, 111), Position("t", number, 9))
    for number in range(3)
)
TOTAL = RowDigest.total(each.digest for each in PREPARED)
DECISION = Decision(BatchId("stream", 5), 0, 3, TOTAL, PREPARED, topics={"t": "id-1"})
RECORD = LogRecord(7, DECISION, "w")
FENCES = {Step.LIST, Step.FENCE, Step.ABORT}


class Cluster:
    """What it would answer: drawn once for each transaction."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.made_again = dice.random() < 0.2
        self.open = {
            Transaction(NAMES.task(number, 1), 900 + number, 1)
            for number in range(dice.randrange(3))
        }
        self.unstable = dice.randrange(3)

    def do(self, step: Step, view: View) -> View:
        view = view.doing(step)
        tell = {
            Step.ASK_TOPIC_IDS: self.tell_ids,
            Step.ASK_COORDINATORS: self.tell_state,
            Step.COMMIT: lambda each: self.end(view, each),
            Step.ASK_TOPICS: self.tell_witness,
        }
        if step in tell:
            return replace(view, evidence=tuple(map(tell[step], view.evidence)))
        if step is Step.LIST:
            return view.listing(frozenset(self.open | set(DECISION.transactions(NAMES))))
        if step is Step.FENCE:
            record = replace(view.record, seq=view.entry.seq + 1)
            return replace(view, entry=LogEntry(record, view.entry.position), fenced=True)
        if step is Step.ABORT:
            self.open -= view.listed
            return replace(view, aborted=view.aborted + len(view.listed))
        if step is Step.WAIT and self.unstable:
            self.unstable -= 1
            return view.again()
        return view

    def tell_ids(self, each: Evidence) -> Evidence:
        if not self.made_again:
            return each
        return replace(each, made_again=True, witness=Visibility.UNREADABLE)

    def tell_state(self, each: Evidence) -> Evidence:
        status = self.dice.choice(list(TransactionStatus))
        who = self.dice.choice([each.transaction, replace(each.transaction, epoch=9)])
        return replace(each, state=TransactionState(who, status, 0, 60_000))

    def end(self, view: View, each: Evidence) -> Evidence:
        if each.transaction not in view.to_commit:
            return each
        return replace(each, end=self.dice.choice([*EndOutcome, None]))

    def tell_witness(self, each: Evidence) -> Evidence:
        said = each.witness or self.dice.choice([*Visibility, None])
        return replace(each, witness=said, marker=self.dice.choice([True, False, None]))


def walks(role: Role) -> Iterator[tuple[list[Step], View]]:
    """The steps of many queries until they rest, or stop."""
    for number in range(400):
        dice = chance("reconcile", role, number)
        cluster = Cluster(dice)
        decided = dice.choice([None, DECISION])
        record = replace(RECORD, decision=decided, settled=dice.random() < 0.2)
        just = role is Role.SETTLE and dice.random() < 0.5
        view = View.of(NAMES, LogEntry(record, Position("log", 0, 3)), just_decided=just)
        if role is Role.GIVE_UP:
            view = view.listing(frozenset(cluster.open))
        steps: list[Step] = []
        while (step := next_step(view, role)) is not Step.REST:
            steps.append(step)
            assert len(steps) < 50, steps
            if step is Step.STOP:
                break
            if step is Step.ABORT:
                assert not view.listed & DECISION.transactions(NAMES).keys() or decided is None
                assert view.fenced
            view = cluster.do(step, view)
        yield steps, view


@pytest.mark.parametrize("role", Role, ids=lambda role: role.value)
def test_the_order_is_kept_in_every_state(role: Role) -> None:
    for steps, view in walks(role):
        first = [step for step in steps if step in FENCES]
        rounds = 1 + steps.count(Step.WAIT)
        stopped = steps[-1:] == [Step.STOP]
        assert stopped == bool(view.unfinished)
        if stopped or not role.fences:
            assert not first
            continue
        assert all(steps.count(step) <= rounds for step in Step if step is not Step.LOOK)
        assert first[0] is Step.LIST
        for before, step in pairwise(first):
            assert (before, step) in {
                (Step.LIST, Step.FENCE),
                (Step.FENCE, Step.ABORT),
                (Step.LIST, Step.LIST),
                (Step.FENCE, Step.LIST),
                (Step.ABORT, Step.LIST),
            }
        assert (Step.FENCE in steps) == (role.fences_always or bool(view.aborted))
        settled = [steps.index(step) for step in (Step.COMMIT, Step.ASK_TOPICS) if step in steps]
        assert all(place < steps.index(Step.LIST) for place in settled)
        assert (Step.LOOK in steps) == role.plans
        if role.plans:
            # What is decided is committed before a look may wait, and read after it.
            looks = steps.index(Step.LOOK)
            assert Step.COMMIT not in steps[looks:]
            assert Step.ASK_TOPICS not in steps[:looks]
            # What has timed out since is found by the list, or by the look behind it.
            again = Step.LIST, Step.ABORT
            assert all(after is Step.LOOK for s, after in pairwise(steps) if s in again)
        assert (steps[-1:] == [Step.WAIT]) == (role is Role.START)


def test_what_is_asked_follows_from_what_is_known() -> None:
    for steps, view in walks(Role.SETTLE):
        assert len(steps) == len(set(steps))
        assert steps == [step for step in Step if step in steps]
        if view.decision is None or view.record.settled:
            assert not steps
            continue
        assert steps[0] is Step.ASK_TOPIC_IDS
        asked = not view.just_decided or bool(view.made_again)
        assert (Step.ASK_COORDINATORS in steps) == asked
        if not asked:
            assert steps[1] is Step.COMMIT
        outcomes = {outcome(each) for each in view.evidence}
        assert view.seen == (outcomes <= {Outcome.COMMITTED})
        told = {Outcome.LOST: view.lost, Outcome.IN_DOUBT: view.doubtful}
        assert all(bool(partitions) == (which in outcomes) for which, partitions in told.items())


def test_a_decision_is_settled_once_unless_it_is_in_doubt() -> None:
    later = LogEntry(replace(RECORD, seq=8), Position("log", 0, 5))
    doubts = set()
    for _, view in walks(Role.SETTLE):
        if view.decision == DECISION and not view.record.settled:
            doubts.add(bool(view.doubtful))
            if view.doubtful:
                assert view.at(later) == View.of(NAMES, later)
            else:
                assert view.at(later).evidence == view.evidence
                assert next_step(view.at(later), Role.REPAIR) is Step.LOOK
    assert doubts == {True, False}
    again = replace(DECISION, by_partition="why")
    other = LogEntry(replace(RECORD, seq=8, decision=again), Position("log", 0, 5))
    assert view.at(other) == View.of(NAMES, other)


def test_the_page_shows_the_steps_in_their_order() -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    table = page.split("## What is left to do")[1].split("## Abort")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| .+ \| ([a-z, ]+) \|$", table, re.MULTILINE)
    assert [name for name, _ in rows] == [step.value for step in Step if step is not Step.REST]
    does = {role: {step for steps, _ in walks(role) for step in steps} for role in Role}
    for name, who in rows:
        roles = [role.value for role in Role if Step(name) in does[role]]
        assert who == ("all" if len(roles) == len(Role) else ", ".join(roles))
