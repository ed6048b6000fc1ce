"""The next step in single states: the rows that a walk to rest does not tell apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos_sink.identity import QueryNames
from eos_sink.protocol.model import BatchId, Decision, LogEntry, LogRecord, Prepared, RowDigest
from eos_sink.protocol.outcome import Evidence
from eos_sink.protocol.reconcile import Role, Step, View, next_step
from eos_sink.protocol.values import (
    Position,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)

NAMES = QueryNames("p-", "q-0123456789")
PREPARED = tuple(Prepared(p, 1, p, RowDigest(1), Position("t", p, 0)) for p in (0, 1))
DECISION = Decision(BatchId("s", 5), 0, 2, RowDigest(2), PREPARED, topics={"t": "id"})
VIEW = View.of(NAMES, LogEntry(LogRecord(7, DECISION, "w"), Position("log", 0, 3)))
ONE, OTHER = VIEW.evidence
OPEN, COMMITTED = TransactionStatus.ONGOING, TransactionStatus.COMPLETE_COMMIT
ABORTED = TransactionStatus.COMPLETE_ABORT
ASKED = {Step.ASK_TOPIC_IDS, Step.ASK_COORDINATORS}
SETTLED = {*ASKED, Step.COMMIT, Step.ASK_TOPICS}
LISTED = frozenset({Transaction(NAMES.task(0, 1), 9, 9)})


def told(evidence: Evidence, status: TransactionStatus, **more: Any) -> Evidence:
    return replace(
        evidence, state=TransactionState(evidence.transaction, status, 0, 60_000), **more
    )


def both(status: TransactionStatus, **more: Any) -> tuple[Evidence, Evidence]:
    return told(ONE, status, **more), told(OTHER, status, **more)


@pytest.mark.parametrize(
    ("known", "done", "role", "step"),
    [
        ({}, set(), Role.SETTLE, Step.ASK_TOPIC_IDS),
        ({"evidence": both(COMMITTED)}, set(), Role.SETTLE, Step.REST),
        (
            {"evidence": (replace(ONE, topic_id=""), replace(OTHER, topic_id=""))},
            set(),
            Role.SETTLE,
            Step.ASK_COORDINATORS,
        ),
        (
            {"evidence": (told(ONE, OPEN), OTHER)},
            {Step.ASK_TOPIC_IDS},
            Role.SETTLE,
            Step.ASK_COORDINATORS,
        ),
        ({"evidence": both(OPEN)}, ASKED, Role.SETTLE, Step.COMMIT),
        ({"evidence": both(OPEN, made_again=True)}, ASKED, Role.SETTLE, Step.COMMIT),
        ({"evidence": both(ABORTED)}, ASKED, Role.SETTLE, Step.ASK_TOPICS),
        ({"evidence": both(ABORTED)}, ASKED, Role.START, Step.LOOK),
        ({"evidence": both(ABORTED)}, SETTLED, Role.SETTLE, Step.STOP),
        (
            {"evidence": both(ABORTED, witness=Visibility.ABORTED)},
            SETTLED,
            Role.GIVE_UP,
            Step.LIST,
        ),
        ({"evidence": (), "listed": LISTED}, SETTLED, Role.SETTLE, Step.REST),
        ({"evidence": (), "listed": LISTED}, {*SETTLED, Step.FENCE}, Role.SETTLE, Step.REST),
        (
            {"evidence": (), "listed": LISTED, "fenced": True},
            {Step.LIST},
            Role.GIVE_UP,
            Step.FENCE,
        ),
        ({"evidence": (), "fenced": True}, {Step.LOOK, Step.LIST}, Role.START, Step.WAIT),
        ({"evidence": ()}, {Step.LOOK, Step.LIST}, Role.START, Step.FENCE),
        ({"evidence": ()}, {Step.LOOK, Step.LIST}, Role.REPAIR, Step.REST),
        ({"evidence": ()}, {Step.LIST}, Role.GIVE_UP, Step.FENCE),
    ],
)
def test_the_first_row_that_holds_is_the_step(
    known: dict[str, Any], done: set[Step], role: Role, step: Step
) -> None:
    assert next_step(replace(VIEW, done=frozenset(done), **known), role) is step


def test_after_another_record_only_what_settles_is_done() -> None:
    later = LogEntry(replace(VIEW.record, seq=8), Position("log", 0, 5))
    view = replace(VIEW, done=frozenset({Step.COMMIT, Step.LIST}), listed=LISTED, fenced=True)
    assert view.at(later) == replace(VIEW, entry=later, done=frozenset({Step.COMMIT}))
