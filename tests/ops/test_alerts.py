"""What needs an operator, and which command is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.identity import QueryNames
from eos_sink.ops.alerts import AlertKind, find_alerts, options_for
from eos_sink.ops.history import History, Unreadable, Written
from eos_sink.ops.status import (
    Driver,
    Problem,
    QueryStatus,
    QueryTransaction,
    Snapshot,
)
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Prepared, RowDigest
from eos_sink.protocol.outcome import Evidence, Outcome
from eos_sink.protocol.outcome import outcome as outcome_of
from eos_sink.protocol.values import (
    EndOutcome,
    Position,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)

NOW = 10_000_000
NAMES = QueryNames("eos-sink-", "orders-0123456789")
REACH = "--bootstrap-server kafka:9092"
RECORD = LogRecord(3, Decision(BatchId("s", 7), 1, 2, RowDigest(3, 30, 1), ()), "w")


def status(
    outcome: Outcome = Outcome.COMMITTED,
    driver: Driver = Driver.LIVE,
    open_: tuple[QueryTransaction, ...] = (),
    age_ms: int = 1000,
    hidden: Unreadable | None = None,
    record: LogRecord = RECORD,
) -> QueryStatus:
    hosts = {Driver.LIVE: ("host",), Driver.GONE: (), Driver.UNKNOWN: None}[driver]
    written = Written(NAMES.shown, record, Position("log", 3, 8), NOW - age_ms)
    history = History(NAMES.shown, (written,), hidden)
    both = evidence(0, Outcome.COMMITTED), evidence(1, outcome)
    return QueryStatus(history, NAMES, both, open_, hosts)


def evidence(partition: int, wanted: Outcome) -> Evidence:
    """Of a transaction that has this outcome."""
    transaction = Transaction(NAMES.task(0, partition), 5, 0)
    witness = Position("t", partition, 0)
    entry = Prepared(partition, 5, 0, RowDigest(1, 1, 1), witness)
    unasked = Evidence(transaction, entry)
    ongoing = TransactionState(transaction, TransactionStatus.ONGOING, NOW, 60_000)
    aborted = replace(unasked, end=EndOutcome.REFUSED, witness=Visibility.ABORTED)
    found = {
        Outcome.COMMITTED: replace(unasked, settled=True),
        Outcome.OPEN: replace(unasked, state=ongoing),
        Outcome.LOST: aborted,
        Outcome.ACCEPTED: replace(aborted, accepted=True),
        Outcome.IN_DOUBT: replace(aborted, witness=Visibility.UNREADABLE),
        Outcome.UNKNOWN: unasked,
    }[wanted]
    assert outcome_of(found) is wanted
    return found


def opened(*, decided: bool, age_ms: int = 1000) -> QueryTransaction:
    transaction = Transaction(NAMES.task(0, 1), 5, 0)
    state = TransactionState(transaction, TransactionStatus.ONGOING, NOW - age_ms, 60_000)
    return QueryTransaction(state, NAMES, decided)


def kinds(*queries: QueryStatus) -> list[AlertKind]:
    return [each.kind for each in find_alerts(snapshot(*queries), REACH)]


def snapshot(*queries: QueryStatus) -> Snapshot:
    return Snapshot(NOW, True, queries, (), (), ())


UNDECIDED, DECIDED = opened(decided=False), opened(decided=True)
OLD, OLD_DECIDED = opened(decided=False, age_ms=50_000), opened(decided=True, age_ms=50_000)
LONG_MS = 200_000
HIDDEN = Unreadable(NAMES.query, Position("log", 3, 9), "format 2")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (status(), []),
        (status(driver=Driver.GONE), []),
        (status(Outcome.OPEN, open_=(DECIDED,)), []),
        (status(Outcome.OPEN, Driver.GONE, (DECIDED,)), [AlertKind.UNSETTLED]),
        (status(Outcome.OPEN, open_=(DECIDED,), age_ms=LONG_MS), [AlertKind.UNSETTLED]),
        (status(Outcome.OPEN, open_=(OLD_DECIDED,)), [AlertKind.UNSETTLED]),
        (status(open_=(UNDECIDED,)), []),
        (status(driver=Driver.UNKNOWN, open_=(UNDECIDED,)), []),
        (status(driver=Driver.GONE, open_=(UNDECIDED,)), [AlertKind.UNDECIDED]),
        (status(open_=(OLD,)), [AlertKind.NEAR_TIMEOUT]),
        (status(driver=Driver.GONE, open_=(OLD,)), [AlertKind.UNDECIDED]),
        (status(Outcome.LOST), []),
        (status(Outcome.LOST, Driver.GONE), [AlertKind.LOST]),
        (status(Outcome.IN_DOUBT), [AlertKind.IN_DOUBT]),
        (status(Outcome.UNKNOWN), []),
        (status(Outcome.UNKNOWN, Driver.GONE), [AlertKind.UNSEEN]),
        (status(Outcome.UNKNOWN, age_ms=LONG_MS), [AlertKind.UNSEEN]),
        (status(Outcome.ACCEPTED), []),
        (status(hidden=HIDDEN), [AlertKind.HIDDEN]),
        (
            status(Outcome.IN_DOUBT, Driver.GONE, (UNDECIDED,), hidden=HIDDEN),
            [AlertKind.HIDDEN, AlertKind.IN_DOUBT, AlertKind.UNDECIDED],
        ),
    ],
)
def test_what_needs_an_operator(query: QueryStatus, expected: list[AlertKind]) -> None:
    assert kinds(query) == expected


def test_nothing_is_aborted_against_a_member_that_is_listed() -> None:
    """The run that wrote last is dead, but a new one may have begun."""
    dead = replace(status(open_=(UNDECIDED,)), dead=True)
    (alert,) = find_alerts(snapshot(dead), REACH)
    assert alert.kind is AlertKind.UNDECIDED
    assert "the process that wrote last has ended" in alert.text
    assert alert.action.startswith("Unless that was done, start the query")
    assert "eos-sink" not in alert.action
    assert kinds(replace(status(Outcome.OPEN, open_=(DECIDED,)), dead=True)) == [
        AlertKind.UNSETTLED
    ]


@pytest.mark.parametrize(
    ("query", "command"),
    [
        (status(Outcome.IN_DOUBT), f"eos-sink resolve {NAMES.query} {REACH}"),
        (
            status(Outcome.OPEN, Driver.GONE, (DECIDED,)),
            f"eos-sink resolve {NAMES.query} --end {REACH}",
        ),
        (
            status(driver=Driver.GONE, open_=(UNDECIDED,)),
            f"eos-sink resolve {NAMES.query} --end {REACH}",
        ),
    ],
)
def test_the_command_that_helps_is_whole(query: QueryStatus, command: str) -> None:
    (found,) = find_alerts(snapshot(query), REACH)
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
    assert options_for(QueryNames(prefix, "q-0123456789"), reach) == expected


def test_foreign_records_are_counted_and_placed_once() -> None:
    foreign = tuple(Unreadable("x", Position("log", 0, n), "no") for n in range(5))
    found = replace(snapshot(status(hidden=HIDDEN)), unreadable=(*foreign, HIDDEN))
    hidden, strange = find_alerts(found)
    assert (hidden.kind, strange.kind) == (AlertKind.HIDDEN, AlertKind.UNREADABLE)
    assert "5 records" in strange.text
    assert ": log[0]@4 (no), log[0]@3 (no), log[0]@2 (no) ..." in strange.text


def test_transactions_of_no_query_matter_when_they_last() -> None:
    young, old = opened(decided=False), opened(decided=False, age_ms=50_000)
    assert find_alerts(replace(snapshot(), unknown=(young,))) == ()
    (found,) = find_alerts(replace(snapshot(), unknown=(young, old)))
    assert (found.kind, found.query) == (AlertKind.NEAR_TIMEOUT, "")


def test_what_could_not_be_read_needs_an_operator() -> None:
    (found,) = find_alerts(replace(snapshot(), problems=(Problem("no Read", ("Read",)),)))
    assert (found.kind, str(found)) == (AlertKind.UNSEEN, "no Read")


def test_a_doubt_of_a_batch_that_spark_numbers_names_its_commit_log() -> None:
    (of_stream,) = find_alerts(snapshot(status(Outcome.IN_DOUBT)), REACH)
    assert "commits/7" in of_stream.action
    record = replace(RECORD, decision=replace(RECORD.decision, batch=BatchId("txn:a", 7)))  # type: ignore[type-var]
    (of_version,) = find_alerts(snapshot(status(Outcome.IN_DOUBT, record=record)), REACH)
    assert "commits/" not in of_version.action


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ("once:", '.option("eos.write.id", "7")'),
        ("txn:a", "under txnVersion 7"),
        ("foreach:q", "Start the query"),
        ("s", "Start the query"),
    ],
)
def test_the_way_to_repair_lost_rows_depends_on_who_repeats_them(stream: str, told: str) -> None:
    record = replace(RECORD, decision=replace(RECORD.decision, batch=BatchId(stream, 7)))  # type: ignore[type-var]
    (alert,) = find_alerts(snapshot(status(Outcome.LOST, Driver.GONE, record=record)), REACH)
    assert told in alert.action
