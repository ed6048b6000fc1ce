"""Finds what in a snapshot needs an operator, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.messages import run_again
from eos_sink.ops.holders import NEAR
from eos_sink.ops.pending import Need, pending
from eos_sink.ops.status import Driver, QueryStatus, QueryTransaction, Snapshot, parse_group
from eos_sink.protocol.values import Transaction
from eos_sink.shell import quote, sink_command

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
        return f"{about}{self.text} {self.action}".rstrip()


_Found = tuple[AlertKind, str, str]
"""Kind, text and action of an alert."""


def find_alerts(snapshot: Snapshot, reach: str = "") -> tuple[Alert, ...]:
    """All alerts, those of one query together with the worst first.

    Args:
        reach: options with which a printed command reaches the same cluster and log.
    """
    found: list[Alert] = []
    for status in snapshot.queries:
        of_query = _check_query(status, snapshot.at_ms, options_for(status.names, reach))
        found += (Alert(kind, status.query, text, action) for kind, text, action in of_query)
    of_all = chain(_check_holders(snapshot), _check_log(snapshot))
    found += (Alert(kind, "", text, action) for kind, text, action in of_all)
    found += (Alert(AlertKind.UNSEEN, "", each.what, "") for each in snapshot.problems)
    return tuple(found)


def options_for(names: QueryNames, reach: str) -> str:
    """The options of a command about one query: `reach`, and the query's prefix if it differs."""
    option = f"--prefix {quote(names.prefix)}"
    named = names.prefix != DEFAULT_PREFIX or "--prefix" in reach
    return f"{reach} {option}".strip() if named and not reach.endswith(option) else reach


def _check_query(status: QueryStatus, now_ms: int, options: str) -> Iterator[_Found]:
    if (hidden := status.history.hidden) is not None:
        yield (
            AlertKind.HIDDEN,
            f"its latest record, at {hidden.position}, cannot be read by this version "
            f"({hidden.why}).",
            "Use the version of eos-sink that wrote it; if another program writes to the log, stop "
            "it and restore the record.",
        )
    for need, partitions in pending(status, now_ms).items():
        yield _describe(need, partitions, status, now_ms, options)
    late = [each for each in status.undecided if each.is_late(now_ms)]
    if late and not status.last_run_ended:
        left = _seconds(min(each.left_ms(now_ms) for each in late))
        yield (
            AlertKind.NEAR_TIMEOUT,
            f"{_count(late)} beyond {NEAR:.0%} of the transaction timeout ({left} left): a batch "
            "that takes longer is not decided, and is repeated.",
            "Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger) or raise "
            "eos.transaction.timeout.ms, up to the brokers' transaction.max.timeout.ms.",
        )
    if status.topics_gone:
        yield (
            AlertKind.TOPIC_GONE,
            f"{status.batch} has written to {', '.join(status.topics_gone)}, and there is no such "
            "topic: its rows are not there.",
            "Find out who has deleted it. A batch with rows for it fails until it is there again.",
        )


def _describe(
    need: Need, partitions: list[int], status: QueryStatus, now_ms: int, options: str
) -> _Found:
    batch, name = status.batch, status.names.query
    resolve = sink_command("resolve", name, options=options)
    end = sink_command("resolve", name, "--end", options=options)
    if need is Need.ABORT or batch is None:
        return _describe_undecided(status, now_ms, end)
    some = f"of {batch}, partitions {partitions}"
    match need:
        case Need.COMMIT:
            named = (each.left_ms(now_ms) for each in status.open or () if each.decided)
            left = min(named, default=None)
            when = "" if left is None else f" Kafka aborts the first of them in {_seconds(left)}."
            return (
                AlertKind.UNSETTLED,
                f"{batch} is decided, and {len(partitions)} of its transactions are not committed: "
                f"readers wait for them.{when}",
                f"Start the query, which commits them first; or end them now: {end}",
            )
        case Need.CHOICE:
            spark = (
                f"If the checkpoint has commits/{batch.batch}, Spark has finished the batch and "
                "continues with the next one. Otherwise a replay of the batch stops. "
            )
            return (
                AlertKind.IN_DOUBT,
                f"{some} may be committed or not: neither the coordinator nor the topic can tell.",
                f"{spark if batch.numbering.is_by_spark else ''}See the evidence and choose: "
                f"{resolve}",
            )
        case Need.REPLAY:
            return (
                AlertKind.LOST,
                f"{some} were aborted after the decision (by their timeout or a late attempt): "
                "their rows are not visible.",
                f"{run_again(batch)} Only these partitions are written.",
            )
    return (
        AlertKind.UNSEEN,
        f"{some} are decided, and Kafka has not answered whether they are committed.",
        "Look again. If it stays so, the brokers of these topics do not answer, or another "
        f"producer's open transaction is before the rows: {resolve}",
    )


def _describe_undecided(status: QueryStatus, now_ms: int, end: str) -> _Found:
    who, action = (
        "the process that wrote last has ended",
        "Unless that was done, start the query, which aborts them and writes the batch again.",
    )
    if status.driver is Driver.GONE:  # Else a member is listed, maybe a run's that has begun.
        who, action = (
            "no driver runs the query",
            "Start the query, which aborts them and writes the batch again; or end them now: "
            + end,
        )
    return (
        AlertKind.UNDECIDED,
        f"{_count(status.undecided)} open and undecided, and {who}: they hold up read_committed "
        f"readers for {_seconds(max(t.left_ms(now_ms) for t in status.undecided))} more.",
        action,
    )


def _check_holders(snapshot: Snapshot) -> Iterator[_Found]:
    """Tell who holds up readers, by transaction. The alerts about queries tell what these have
    decided or left open."""
    told = {each.transactional_id for q in snapshot.queries for each in q.open or ()}
    places: dict[Transaction, list[str]] = {}
    for each in snapshot.holders:
        if each.transaction.transactional_id not in told:
            places.setdefault(each.transaction, []).append(f"{each.topic}[{each.partition}]")
    for holder, held in places.items():
        kind, what = AlertKind.HELD, "which has ended, or is near its timeout"
        action = "See docs/runbook.md#readers-stuck."
        if not holder.transactional_id:
            kind = AlertKind.UNSEEN
            what = "which no coordinator names: none answers, or this principal may not see it"
            action = "Look again when all brokers answer; then see docs/runbook.md#readers-stuck."
        elif parse_group(holder.transactional_id) is not None:
            action = "Start its query, which ends it."
        yield kind, f"Readers of {_some(held)} wait for {holder}, {what}.", action


def _check_log(snapshot: Snapshot) -> Iterator[_Found]:
    hidden = {status.history.hidden for status in snapshot.queries}
    foreign = [each for each in snapshot.unreadable if each not in hidden]
    if foreign:
        latest = [f"{each.position} ({each.why})" for each in reversed(foreign)]
        yield (
            AlertKind.UNREADABLE,
            f"The decision log has {len(foreign)} records that this version cannot read: "
            f"{_some(latest)}.",
            "The sink skips them, but no other program should write to this topic: find the "
            "writer, or use a newer version of eos-sink."
            if snapshot.queries
            else "It has no query either: check that --log-topic is the queries' eos.log.topic.",
        )
    if snapshot.unrecorded:
        yield (
            AlertKind.NO_LOG,
            "Transactions under the prefix were committed, so there was a decision log with their "
            f"queries, and this one has none: {_some(snapshot.unrecorded)}.",
            "If the queries have another eos.log.topic, give --log-topic. Otherwise the log was "
            "deleted or emptied, and the next start of each query stops: see 'A decision log that "
            "is gone' in docs/resolve.md, and do not create the topic by hand.",
        )
    if late := [each for each in snapshot.unknown or () if each.is_late(snapshot.at_ms)]:
        yield (
            AlertKind.NEAR_TIMEOUT,
            f"{_count(late)} open for long under the prefix, of no query of this log: "
            f"{_some([each.transactional_id for each in late])}.",
            "Their queries may use another eos.log.topic: see --log-topic. Otherwise their "
            "timeout ends them.",
        )


def _some(things: Sequence[str]) -> str:
    return ", ".join(things[:_SHOWN]) + (" ..." if len(things) > _SHOWN else "")


def _count(transactions: Sequence[QueryTransaction]) -> str:
    return f"{len(transactions)} transaction{'s are' if len(transactions) > 1 else ' is'}"


def _seconds(ms: int) -> str:
    return f"{max(0, ms) / 1000:.0f} s"
