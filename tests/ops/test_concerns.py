"""What needs somebody, and which command is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.identity import QueryNames, TaskId
from eos_sink.kafka.interfaces import LogPosition, Transaction
from eos_sink.ops.alerts import Kind, concerns, reach_of
from eos_sink.ops.history import Unreadable
from eos_sink.ops.snapshot import (
    Driver,
    OpenTransaction,
    Problem,
    QueryStatus,
    Snapshot,
)
from eos_sink.protocol.model import BatchId, Decision, LogRecord, RowDigest
from eos_sink.protocol.outcome import Outcome

NOW = 10_000_000
NAMES = QueryNames("eos-sink-", "orders-0123456789")
REACH = "--bootstrap-server kafka:9092"
RECORD = LogRecord(3, Decision(BatchId("s", 7), 1, 2, RowDigest(3, 30, 1), ()), "w")


def status(
    outcome: Outcome = Outcome.COMMITTED,
    driver: Driver = Driver.LIVE,
    open_: tuple[OpenTransaction, ...] = (),
    age_ms: int = 1000,
    hidden: Unreadable | None = None,
) -> QueryStatus:
    lost = (1,) if outcome is Outcome.LOST else ()
    doubtful = (1,) if outcome is Outcome.IN_DOUBT else ()
    return QueryStatus(
        NAMES, RECORD, NOW - age_ms, outcome, lost, doubtful, open_, driver, (), hidden, NAMES.shown
    )


def opened(*, decided: bool, age_ms: int = 1000, query: str = NAMES.query) -> OpenTransaction:
    transaction = Transaction(NAMES.task(0, 1), 5, 0)
    task = TaskId(0, 1)
    return OpenTransaction(transaction, query, task, decided, NOW - age_ms, 60_000)


def kinds(*queries: QueryStatus) -> list[Kind]:
    return [each.kind for each in concerns(snapshot(*queries), REACH)]


def snapshot(*queries: QueryStatus) -> Snapshot:
    return Snapshot(NOW, True, queries, (), (), ())


UNDECIDED, DECIDED = opened(decided=False), opened(decided=True)
OLD, OLD_DECIDED = opened(decided=False, age_ms=50_000), opened(decided=True, age_ms=50_000)
LONG_MS = 200_000
HIDDEN = Unreadable(NAMES.query, LogPosition("log", 3, 9), "format 2")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (status(), []),
        (status(driver=Driver.GONE), []),
        (status(Outcome.OPEN, open_=(DECIDED,)), []),
        (status(Outcome.OPEN, Driver.GONE, (DECIDED,)), [Kind.UNSETTLED]),
        (status(Outcome.OPEN, open_=(DECIDED,), age_ms=LONG_MS), [Kind.UNSETTLED]),
        (status(Outcome.OPEN, open_=(OLD_DECIDED,)), [Kind.UNSETTLED]),
        (status(open_=(UNDECIDED,)), []),
        (status(driver=Driver.UNKNOWN, open_=(UNDECIDED,)), []),
        (status(driver=Driver.GONE, open_=(UNDECIDED,)), [Kind.UNDECIDED]),
        (status(open_=(OLD,)), [Kind.NEAR_TIMEOUT]),
        (status(driver=Driver.GONE, open_=(OLD,)), [Kind.UNDECIDED]),
        (status(Outcome.LOST), []),
        (status(Outcome.LOST, Driver.GONE), [Kind.LOST]),
        (status(Outcome.IN_DOUBT), [Kind.IN_DOUBT]),
        (status(Outcome.UNKNOWN), []),
        (status(Outcome.ACCEPTED), []),
        (status(hidden=HIDDEN), [Kind.HIDDEN]),
        (
            status(Outcome.IN_DOUBT, Driver.GONE, (UNDECIDED,), hidden=HIDDEN),
            [Kind.HIDDEN, Kind.IN_DOUBT, Kind.UNDECIDED],
        ),
    ],
)
def test_what_needs_somebody(query: QueryStatus, expected: list[Kind]) -> None:
    assert kinds(query) == expected


@pytest.mark.parametrize(
    ("query", "command"),
    [
        (status(Outcome.IN_DOUBT), f"eos-sink resolve {NAMES.query} {REACH}"),
        (
            status(Outcome.OPEN, Driver.GONE, (DECIDED,)),
            f"eos-sink transactions commit {NAMES.task(0, 1)} {REACH}",
        ),
        (
            status(driver=Driver.GONE, open_=(UNDECIDED,)),
            f"eos-sink transactions abort {NAMES.task(0, 1)} {REACH}",
        ),
    ],
)
def test_the_command_that_helps_is_whole(query: QueryStatus, command: str) -> None:
    (found,) = concerns(snapshot(query), REACH)
    assert found.action.endswith(command)
    assert str(found).startswith(f"{NAMES.query}: ")


@pytest.mark.parametrize(
    ("prefix", "reach", "expected"),
    [
        ("eos-sink-", "-b k", "-b k"),
        ("team-", "-b k", "-b k --prefix team-"),
        ("team-", "-b k --prefix team-", "-b k --prefix team-"),
        ("team-", "-b k --prefix team-b-", "-b k --prefix team-b- --prefix team-"),
        ("eos-sink-", "-b k --prefix team-", "-b k --prefix team- --prefix eos-sink-"),
    ],
)
def test_a_command_names_the_prefix_of_its_query(prefix: str, reach: str, expected: str) -> None:
    assert reach_of(QueryNames(prefix, "q-0123456789"), reach) == expected


def test_foreign_records_are_counted_and_placed_once() -> None:
    foreign = tuple(Unreadable("x", LogPosition("log", 0, n), "no") for n in range(5))
    found = replace(snapshot(status(hidden=HIDDEN)), unreadable=(*foreign, HIDDEN))
    hidden, strange = concerns(found)
    assert (hidden.kind, strange.kind) == (Kind.HIDDEN, Kind.UNREADABLE)
    assert "5 records" in strange.text
    assert "log[0]@4 (no) ..." in strange.text


def test_transactions_of_no_query_matter_when_they_last() -> None:
    young, old = opened(decided=False, query=""), opened(decided=False, age_ms=50_000, query="")
    assert concerns(replace(snapshot(), strangers=(young,))) == ()
    (found,) = concerns(replace(snapshot(), strangers=(young, old)))
    assert (found.kind, found.query) == (Kind.NEAR_TIMEOUT, "")


def test_what_could_not_be_seen_needs_somebody() -> None:
    (found,) = concerns(replace(snapshot(), problems=(Problem("no Read", ("Read",)),)))
    assert (found.kind, str(found)) == (Kind.UNSEEN, "no Read ")


def test_a_doubt_of_a_batch_that_spark_numbers_names_its_commit_log() -> None:
    (of_stream,) = concerns(snapshot(status(Outcome.IN_DOUBT)), REACH)
    assert "commits/7" in of_stream.action
    record = replace(RECORD, decision=replace(RECORD.decision, batch=BatchId("txn:a", 7)))  # type: ignore[type-var]
    (of_version,) = concerns(snapshot(replace(status(Outcome.IN_DOUBT), record=record)), REACH)
    assert "commits/" not in of_version.action
