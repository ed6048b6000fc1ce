"""What of a snapshot needs somebody, and what that somebody does about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.ops.snapshot import Driver, OpenTransaction, QueryStatus, Snapshot
from eos_sink.protocol.outcome import Outcome, proves_commit

# A driver settles a batch within seconds, and tries again until its step's time-out (2 minutes).
_LONG_MS = 120_000
_NEAR = 0.8
_SHOWN = 3


class Kind(Enum):
    """What is wrong."""

    HIDDEN = "latest record unreadable"
    IN_DOUBT = "in doubt"
    UNSETTLED = "decided and not settled"
    LOST = "lost"
    UNDECIDED = "open without a driver"
    NEAR_TIMEOUT = "near its time-out"
    UNREADABLE = "unreadable records"
    UNSEEN = "not seen"


@dataclass(frozen=True)
class Concern:
    """One thing that needs somebody.

    Attributes:
        query: empty if it is of no query.
        text: what is the matter and what it means for the data.
        action: what to do, with the command.
    """

    kind: Kind
    query: str
    text: str
    action: str

    def __str__(self) -> str:
        about = f"{self.query}: " if self.query else ""
        return f"{about}{self.text} {self.action}"


def concerns(snapshot: Snapshot, reach: str = "") -> tuple[Concern, ...]:
    """The worst of a query first.

    Args:
        reach: the options that lead a printed command to this cluster and log.
    """
    found: list[Concern] = []
    for query in snapshot.queries:
        found += _of_query(query, snapshot.at_ms, reach_of(query.names, reach))
    found += _of_log(snapshot)
    found += (Concern(Kind.UNSEEN, "", each.what, "") for each in snapshot.problems)
    return tuple(found)


def reach_of(names: QueryNames, reach: str) -> str:
    """The options for a command about one query, which may have a prefix of its own."""
    option = f"--prefix {shlex.quote(names.prefix)}"
    named = names.prefix != DEFAULT_PREFIX or "--prefix" in reach
    return f"{reach} {option}".strip() if named and not reach.endswith(option) else reach


def _of_query(status: QueryStatus, now_ms: int, reach: str) -> Iterator[Concern]:
    query = status.query
    if status.hidden is not None:
        yield Concern(
            Kind.HIDDEN,
            query,
            f"its latest record, at {status.hidden.where}, is not one that this version reads "
            f"({status.hidden.why}).",
            "Look with the version of eos-sink that wrote it; if something else writes to the log, "
            "stop that and restore the record.",
        )
    yield from _of_decision(status, now_ms, reach)
    undecided = status.undecided
    if undecided and status.driver is Driver.GONE:
        yield Concern(
            Kind.UNDECIDED,
            query,
            f"{_count(undecided)} open, undecided, and nobody drives the query: they hold up "
            f"read_committed readers for {_seconds(max(t.left_ms(now_ms) for t in undecided))} "
            "more.",
            "Start the query, which aborts them and writes the batch again; or end each at once: "
            f"eos-sink transactions abort {_id(undecided[0])} {reach}".rstrip(),
        )
    elif near := [each for each in undecided if _is_near(each, now_ms)]:
        left = _seconds(min(each.left_ms(now_ms) for each in near))
        yield Concern(
            Kind.NEAR_TIMEOUT,
            query,
            f"{_count(near)} beyond {_NEAR:.0%} of the transaction time-out ({left} left): a batch "
            "that takes longer is not decided, and is repeated.",
            "Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger) or raise "
            "eos.transaction.timeout.ms, up to the brokers' transaction.max.timeout.ms.",
        )


def _of_decision(status: QueryStatus, now_ms: int, reach: str) -> Iterator[Concern]:
    query, outcome = status.query, status.outcome
    age_ms = now_ms - (status.decided_at_ms or now_ms)
    open_ = [each for each in status.open if each.decided]
    near = any(_is_near(each, now_ms) for each in open_)
    stalled = status.driver is Driver.GONE or age_ms > _LONG_MS or near
    if outcome is Outcome.IN_DOUBT:
        yield Concern(
            Kind.IN_DOUBT,
            query,
            f"of {status.batch}, partitions {list(status.doubtful)} may be committed or not: "
            "neither coordinator nor topic can tell.",
            f"{_noted_by_spark(status)}See the evidence and choose: "
            f"eos-sink resolve {status.names.query} {reach}".rstrip(),
        )
    elif outcome is Outcome.OPEN and stalled:
        first = f" {_id(open_[0])}" if open_ else " ID"
        left = (
            f" Kafka aborts the first of them in {_seconds(min(t.left_ms(now_ms) for t in open_))}."
            if open_
            else ""
        )
        yield Concern(
            Kind.UNSETTLED,
            query,
            f"{status.batch} is decided, and {len(open_) or 'some'} of its transactions are not "
            f"committed: readers wait for them.{left}",
            "Start the query, which commits them first; or commit each at once: "
            f"eos-sink transactions commit{first} {reach}".rstrip(),
        )
    elif outcome is Outcome.LOST and stalled:
        yield Concern(
            Kind.LOST,
            query,
            f"of {status.batch}, partitions {list(status.lost)} were aborted after the decision "
            "(by their time-out or a late attempt): their rows are not visible.",
            "Start the query with its checkpoint: Spark replays the batch and exactly these are "
            "written again.",
        )


def _noted_by_spark(status: QueryStatus) -> str:
    batch = status.batch
    if batch is None or not proves_commit(replace(batch, batch=batch.batch + 1), batch):
        return ""
    return (
        f"If the checkpoint has commits/{batch.batch}, Spark has noted the batch as done, and its "
        "next one goes on by itself. Else only a replay stops. "
    )


def _of_log(snapshot: Snapshot) -> Iterator[Concern]:
    hidden = {query.hidden for query in snapshot.queries}
    strange = [each for each in snapshot.unreadable if each not in hidden]
    if strange:
        places = ", ".join(f"{each.where} ({each.why})" for each in strange[-_SHOWN:])
        more = " ..." if len(strange) > _SHOWN else ""
        yield Concern(
            Kind.UNREADABLE,
            "",
            f"The decision log has {len(strange)} records that this version does not read: "
            f"{places}{more}.",
            "The sink passes them by, but nothing else should write to this topic: find out who "
            "does, or look with a newer version of eos-sink.",
        )
    near = [each for each in snapshot.strangers if _is_near(each, snapshot.at_ms)]
    if near:
        ids = ", ".join(_id(each) for each in near[:_SHOWN])
        yield Concern(
            Kind.NEAR_TIMEOUT,
            "",
            f"{_count(near)} open for long under the prefix, of no query of this log: {ids}.",
            "They may be of queries with another eos.log.topic: look there with --log-topic. Else "
            "their time-out ends them.",
        )


def _is_near(each: OpenTransaction, now_ms: int) -> bool:
    return each.age_ms(now_ms) > _NEAR * each.timeout_ms


def _count(transactions: tuple[OpenTransaction, ...] | list[OpenTransaction]) -> str:
    return f"{len(transactions)} transaction{'s are' if len(transactions) > 1 else ' is'}"


def _id(each: OpenTransaction) -> str:
    return each.transaction.transactional_id


def _seconds(ms: int) -> str:
    return f"{max(0, ms) / 1000:.0f} s"
