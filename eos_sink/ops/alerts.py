"""Finds what in a snapshot needs an operator, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.kafka.admin_interface import BlockingTransaction
from eos_sink.messages import run_again
from eos_sink.ops.holders import NEAR
from eos_sink.ops.status import (
    Driver,
    QueryStatus,
    QueryTransaction,
    Snapshot,
    parse_group,
)
from eos_sink.protocol.outcome import Outcome
from eos_sink.shell import quote, sink_command

# A driver settles a batch within seconds, and tries again until its step's timeout (2 minutes).
_LONG_MS = 120_000
_SHOWN = 3


class AlertKind(Enum):
    """The kind of an alert."""

    HIDDEN = "latest record unreadable"
    IN_DOUBT = "in doubt"
    UNSETTLED = "decided and not settled"
    LOST = "lost"
    UNDECIDED = "open without a driver"
    NEAR_TIMEOUT = "near its timeout"
    UNREADABLE = "unreadable records"
    NO_LOG = "decision log gone"
    TOPIC_GONE = "topic gone"
    HELD = "readers held up"
    UNSEEN = "not seen"


@dataclass(frozen=True)
class Alert:
    """One thing that needs an operator.

    Attributes:
        query: empty if it concerns no single query.
        text: the fact, and its consequence for the data.
        action: what to do, with the command.
    """

    kind: AlertKind
    query: str
    text: str
    action: str

    def __str__(self) -> str:
        about = f"{self.query}: " if self.query else ""
        return f"{about}{self.text} {self.action}"


def find_alerts(snapshot: Snapshot, reach: str = "") -> tuple[Alert, ...]:
    """All alerts, those of one query together with the worst first.

    Args:
        reach: options with which a printed command reaches the same cluster and log.
    """
    found: list[Alert] = []
    for status in snapshot.queries:
        options = options_for(status.names, reach)
        if (hidden := status.history.hidden) is not None:
            found.append(
                Alert(
                    AlertKind.HIDDEN,
                    status.query,
                    f"its latest record, at {hidden.position}, cannot be read by this version "
                    f"({hidden.why}).",
                    "Use the version of eos-sink that wrote it; if another program writes to the "
                    "log, stop it and restore the record.",
                )
            )
        found += _check_decision(status, snapshot.at_ms, options)
        found += _check_undecided(status, snapshot.at_ms, options)
        found += _check_topics(status, snapshot)
    found += _check_holders(snapshot)
    found += _check_log(snapshot)
    found += (Alert(AlertKind.UNSEEN, "", each.what, "") for each in snapshot.problems)
    return tuple(found)


def options_for(names: QueryNames, reach: str) -> str:
    """The options of a command about one query: `reach`, and the query's prefix if it differs."""
    option = f"--prefix {quote(names.prefix)}"
    named = names.prefix != DEFAULT_PREFIX or "--prefix" in reach
    return f"{reach} {option}".strip() if named and not reach.endswith(option) else reach


def _check_undecided(status: QueryStatus, now_ms: int, options: str) -> Iterator[Alert]:
    undecided = status.undecided
    if undecided and status.last_run_ended:
        gone = status.driver is Driver.GONE
        # Never against a member that is listed: it may be a run that has just begun.
        who, start, abort = (
            (
                "no driver runs the query",
                "Start",
                "; or end them now: " + _end(status, options),
            )
            if gone
            else ("the process that wrote last has ended", "Unless that was done, start", ".")
        )
        yield Alert(
            AlertKind.UNDECIDED,
            status.query,
            f"{_count(undecided)} open and undecided, and {who}: they hold up read_committed "
            f"readers for {_seconds(max(t.left_ms(now_ms) for t in undecided))} more.",
            f"{start} the query, which aborts them and writes the batch again{abort}",
        )
    elif near := [each for each in undecided if each.is_near(now_ms)]:
        left = _seconds(min(each.left_ms(now_ms) for each in near))
        yield Alert(
            AlertKind.NEAR_TIMEOUT,
            status.query,
            f"{_count(near)} beyond {NEAR:.0%} of the transaction timeout ({left} left): a batch "
            "that takes longer is not decided, and is repeated.",
            "Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger) or raise "
            "eos.transaction.timeout.ms, up to the brokers' transaction.max.timeout.ms.",
        )


def _check_decision(status: QueryStatus, now_ms: int, options: str) -> Iterator[Alert]:
    query, outcome = status.query, status.outcome
    open_ = [each for each in status.open if each.decided]
    stalled = (
        status.last_run_ended
        or now_ms - (status.decided_at_ms or now_ms) > _LONG_MS
        or any(each.is_near(now_ms) for each in open_)
    )
    if outcome is Outcome.IN_DOUBT:
        partitions = status.partitions_that_are(Outcome.IN_DOUBT)
        yield Alert(
            AlertKind.IN_DOUBT,
            query,
            f"of {status.batch}, partitions {partitions} may be committed or not: neither the "
            "coordinator nor the topic can tell.",
            f"{_spark_commit_log(status)}See the evidence and choose: "
            + sink_command("resolve", status.names.query, options=options),
        )
    elif outcome is Outcome.OPEN and stalled:
        left = ""
        if open_:
            left = (
                " Kafka aborts the first of them in "
                f"{_seconds(min(each.left_ms(now_ms) for each in open_))}."
            )
        yield Alert(
            AlertKind.UNSETTLED,
            query,
            f"{status.batch} is decided, and {len(open_) or 'some'} of its transactions are not "
            f"committed: readers wait for them.{left}",
            "Start the query, which commits them first; or end them now: " + _end(status, options),
        )
    elif outcome is Outcome.LOST and stalled and status.batch is not None:
        partitions = status.partitions_that_are(Outcome.LOST)
        yield Alert(
            AlertKind.LOST,
            query,
            f"of {status.batch}, partitions {partitions} were aborted after the decision (by their "
            "timeout or a late attempt): their rows are not visible.",
            f"{run_again(status.batch)} Only these partitions are written.",
        )
    elif outcome is Outcome.UNKNOWN and stalled:
        partitions = status.partitions_that_are(Outcome.UNKNOWN)
        yield Alert(
            AlertKind.UNSEEN,
            query,
            f"of {status.batch}, partitions {partitions} are decided, and Kafka has not answered "
            "whether they are committed.",
            "Look again. If it stays so, the brokers of these topics do not answer, or another "
            "producer's open transaction is before the rows: "
            + sink_command("resolve", status.names.query, options=options),
        )


def _check_topics(status: QueryStatus, snapshot: Snapshot) -> Iterator[Alert]:
    topics = status.decision.topics if status.decision else {}
    if gone := [topic for topic in topics if snapshot.ends.get(topic) == ()]:
        yield Alert(
            AlertKind.TOPIC_GONE,
            status.query,
            f"{status.batch} has written to {', '.join(sorted(gone))}, and there is no such topic: "
            "its rows are not there.",
            "Find out who has deleted it. A batch with rows for it fails until it is there again.",
        )


def _check_holders(snapshot: Snapshot) -> Iterator[Alert]:
    """Tell who holds up readers, by transaction. The alerts about queries tell what these have
    decided or left open."""
    told = {each.transactional_id for status in snapshot.queries for each in status.open}
    places: dict[BlockingTransaction, list[str]] = {}
    for each in snapshot.holders:
        if each.transaction.transactional_id not in told:
            places.setdefault(each.transaction, []).append(f"{each.topic}[{each.partition}]")
    for holder, held in places.items():
        where = f"{', '.join(held[:_SHOWN])}{' ...' if len(held) > _SHOWN else ''}"
        if holder.transactional_id is None:
            what = "which no coordinator names: none answers, or this principal may not see it"
            do = "Look again when all brokers answer; then see docs/runbook.md#readers-stuck."
            yield Alert(AlertKind.UNSEEN, "", f"Readers of {where} wait for {holder}, {what}.", do)
            continue
        is_own = parse_group(holder.transactional_id) is not None
        what = "which has ended, or is near its timeout"
        do = "Start its query, which ends it." if is_own else "See docs/runbook.md#readers-stuck."
        yield Alert(AlertKind.HELD, "", f"Readers of {where} wait for {holder}, {what}.", do)


def _spark_commit_log(status: QueryStatus) -> str:
    batch = status.batch
    if batch is None or not batch.numbering.is_by_spark:
        return ""
    return (
        f"If the checkpoint has commits/{batch.batch}, Spark has finished the batch and continues "
        "with the next one. Otherwise a replay of the batch stops. "
    )


def _check_log(snapshot: Snapshot) -> Iterator[Alert]:
    hidden = {status.history.hidden for status in snapshot.queries}
    foreign = [each for each in snapshot.unreadable if each not in hidden]
    if foreign:
        places = ", ".join(f"{each.position} ({each.why})" for each in foreign[-_SHOWN:])
        more = " ..." if len(foreign) > _SHOWN else ""
        yield Alert(
            AlertKind.UNREADABLE,
            "",
            f"The decision log has {len(foreign)} records that this version cannot read: "
            f"{places}{more}.",
            "The sink skips them, but no other program should write to this topic: find the "
            "writer, or use a newer version of eos-sink."
            if snapshot.queries
            else "It has no query either: check that --log-topic is the queries' eos.log.topic.",
        )
    if snapshot.unrecorded:
        more = " ..." if len(snapshot.unrecorded) > _SHOWN else ""
        yield Alert(
            AlertKind.NO_LOG,
            "",
            "Transactions under the prefix were committed, so there was a decision log with their "
            f"queries, and this one has none: {', '.join(snapshot.unrecorded[:_SHOWN])}{more}.",
            "If the queries have another eos.log.topic, give --log-topic. Otherwise the log was "
            "deleted or emptied, and the next start of each query stops: see 'A decision log that "
            "is gone' in docs/resolve.md, and do not create the topic by hand.",
        )
    near = [each for each in snapshot.unknown if each.is_near(snapshot.at_ms)]
    if near:
        ids = ", ".join(each.transactional_id for each in near[:_SHOWN])
        yield Alert(
            AlertKind.NEAR_TIMEOUT,
            "",
            f"{_count(near)} open for long under the prefix, of no query of this log: {ids}.",
            "Their queries may use another eos.log.topic: see --log-topic. Otherwise their "
            "timeout ends them.",
        )


def _end(status: QueryStatus, options: str) -> str:
    return sink_command("resolve", status.names.query, "--end", options=options)


def _count(transactions: Sequence[QueryTransaction]) -> str:
    return f"{len(transactions)} transaction{'s are' if len(transactions) > 1 else ' is'}"


def _seconds(ms: int) -> str:
    return f"{max(0, ms) / 1000:.0f} s"
