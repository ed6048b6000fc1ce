"""The decision that follows from what tasks report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.identity import QueryNames
from eos_sink.protocol.decide import decide
from eos_sink.protocol.model import (
    BatchId,
    DeadLetters,
    Decision,
    Inlined,
    Override,
    PlanToken,
    Prepared,
    Route,
    RowDigest,
    TaskReport,
)
from eos_sink.protocol.values import Position

TOKEN = PlanToken(QueryNames("p-", "q-0123456789"), 7, Position("log", 0, 3), b"member")
BATCH, ROUTE = BatchId("s", 5), Route("t", "letters")
DIGESTS = [RowDigest(n + 1, 10 * n, 100 * n) for n in range(4)]
LOST = frozenset({1})


def prepared(partition: int, epoch: int = 4) -> Prepared:
    return Prepared(partition, 100, epoch, DIGESTS[partition], Position("t", 0, 9))


def report(partition: int, wrote: Prepared | None = None, letters: int = 0) -> TaskReport:
    return TaskReport(
        TOKEN,
        BATCH,
        partition,
        1,
        wrote is None,
        DIGESTS[partition],
        wrote,
        spark_run="now",
        inline=b"rows" if partition == 3 else b"",
        dead_letters={"TOO_LARGE": letters} if letters else {},
    )


# Task 0 has no rows, 1 and 2 have written, 3 has handed them over.
FIRST = [report(0), report(2, prepared(2), 2), report(1, prepared(1), 1), report(3)]
DECIDED = Decision(
    BATCH,
    1,
    4,
    RowDigest.total(DIGESTS),
    (prepared(1), prepared(2)),
    spark_run="now",
    inlined=(Inlined(3, DIGESTS[3]),),
    dead_letters=(DeadLetters(1, 1), DeadLetters(2, 2)),
    route=ROUTE,
)
# What another run has to write again.
BEFORE = replace(
    DECIDED,
    override=Override(frozenset({1, 2}), frozenset({0, 1})),
    spark_run="before",
    topics={"t": "id"},
    route=Route("t"),
)
AGAIN = [replace(report(1, prepared(1, 6), 3), lost=LOST), report(0), report(2), report(3)]


def test_a_first_decision_has_what_the_tasks_report() -> None:
    assert decide(FIRST, ROUTE) == DECIDED


def test_a_rewrite_keeps_what_is_visible_and_replaces_what_was_lost() -> None:
    mine = [replace(each, inline=b"") for each in AGAIN]
    assert decide(mine, ROUTE, BEFORE) == replace(
        BEFORE,
        prepared=(prepared(1, 6), prepared(2)),
        override=Override(frozenset({2}), frozenset({0})),
        spark_run="now",
        dead_letters=(DeadLetters(1, 3), DeadLetters(2, 2)),
        route=ROUTE,
    )


def test_a_rewritten_partition_has_the_dead_letters_of_now() -> None:
    again = [replace(report(1, prepared(1, 6)), lost=LOST)]
    assert decide(again, ROUTE, BEFORE).dead_letters == (DeadLetters(2, 2),)


def test_what_is_not_lost_is_not_invisible_and_needs_no_completion() -> None:
    none, whole = frozenset[int](), frozenset({1, 2, 3})
    assert not replace(DECIDED, prepared=(), inlined=()).is_invisible(none)
    by_row = replace(DECIDED, by_row=True)
    assert [by_row.needs_completion(each) for each in (none, LOST, whole)] == [False, True, False]
    assert not DECIDED.needs_completion(LOST)
    assert [DECIDED.is_invisible(each) for each in (none, LOST, whole)] == [False, False, True]


def test_what_the_driver_has_written_is_known_beside_what_it_writes_now() -> None:
    assert [each.partition for each in decide(AGAIN, ROUTE, BEFORE).inlined] == [3, 3]


def test_a_completion_has_partitions_behind_the_others() -> None:
    rest = [replace(report(2, replace(prepared(1), partition=4)), lost=LOST, inline=b"")]
    decision = decide(rest, ROUTE, replace(BEFORE, by_row=True))
    assert (decision.partitions, decision.completed) == (5, True)
    assert [each.partition for each in decision.prepared] == [2, 4]


@pytest.mark.parametrize(
    ("lost", "inlined", "topics"),
    [
        ({1}, (), {"t": "id"}),
        ({1, 2}, (), {}),
        ({1, 2}, (Inlined(3, DIGESTS[3]),), {"t": "id"}),
    ],
)
def test_the_ids_of_topics_are_known_as_long_as_a_row_from_then_may_be_there(
    lost: set[int], inlined: tuple[Inlined, ...], topics: dict[str, str]
) -> None:
    again = [replace(report(n, prepared(n)), lost=frozenset(lost)) for n in lost]
    assert decide(again, ROUTE, replace(BEFORE, inlined=inlined)).topics == topics
