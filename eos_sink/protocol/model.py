"""The values that cross processes and reach the decision log: frozen, no live client inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum

from eos_sink.identity import Origin, QueryNames
from eos_sink.kafka.interfaces import LogPosition, Transaction, Witness
from eos_sink.metrics.names import Step
from eos_sink.metrics.stats import Stats

_WORD = 2**64


class Numbering(Enum):
    """Who numbers the batches of a stream, and so what a number that comes again means. The value
    is how the names of such streams start; Spark's own ids never start like that."""

    STREAM = ""
    """Spark, for a streaming query that writes by itself."""
    FOREACH = "foreach:"
    """Spark, for a streaming query whose `foreachBatch` writes frames."""
    VERSION = "txn:"
    """The user, with the options `txnAppId` and `txnVersion`."""
    ONCE = "once:"
    """Nobody: a batch write of its own, which never comes again."""


@dataclass(frozen=True)
class BatchId:
    """One micro-batch, or one batch write. A deleted checkpoint gives a new stream id, so that its
    batch 0 is another batch than the old one's: batches are compared as the pair, never by number
    alone."""

    stream: str
    batch: int

    @staticmethod
    def numbered_by(numbering: Numbering, source: str, number: int) -> BatchId:
        """`source`: Spark's query id, the `txnAppId`, or something unique for a single write."""
        return BatchId(f"{numbering.value}{source}", number)

    @property
    def numbering(self) -> Numbering:
        named = (n for n in Numbering if n.value and self.stream.startswith(n.value))
        return next(named, Numbering.STREAM)

    @property
    def namesakes(self) -> frozenset[str]:
        """Streams that are the same query if another identity has them: its checkpoint was moved,
        or it has begun, or ceased, to write with `foreachBatch`. Frames of one query have several
        identities, so the same name of theirs says nothing."""
        source = self.stream.removeprefix(self.numbering.value)
        if self.numbering is Numbering.STREAM:
            return frozenset({source, f"{Numbering.FOREACH.value}{source}"})
        return frozenset({source} if self.numbering is Numbering.FOREACH else ())

    def __str__(self) -> str:
        numbering = self.numbering
        source = self.stream.removeprefix(numbering.value)
        if numbering is Numbering.VERSION:
            return f"version {self.batch} of txnAppId {source!r}"
        if numbering is Numbering.ONCE:
            return f"the batch write {source}"
        inside = " (foreachBatch)" if numbering is Numbering.FOREACH else ""
        return f"batch {self.batch} of stream {source}{inside}"


@dataclass(frozen=True)
class RowDigest:
    """What a set of rows amounts to: count, payload bytes, order-independent 64-bit fingerprint."""

    rows: int = 0
    bytes: int = 0
    fingerprint: int = 0

    def __add__(self, other: RowDigest) -> RowDigest:
        return RowDigest(
            self.rows + other.rows,
            self.bytes + other.bytes,
            (self.fingerprint + other.fingerprint) % _WORD,
        )

    @staticmethod
    def total(digests: list[RowDigest]) -> RowDigest:
        return sum(digests, RowDigest())


@dataclass(frozen=True)
class Prepared:
    """A task's transaction with all its records on the brokers, not committed.

    `partition` is Spark's partition of the batch, `witness` a record of the transaction.
    """

    partition: int
    producer_id: int
    epoch: int
    digest: RowDigest
    witness: Witness

    def transaction(self, names: QueryNames, slot: int) -> Transaction:
        return Transaction(names.task(slot, self.partition), self.producer_id, self.epoch)


@dataclass(frozen=True)
class Override:
    """What a person has ruled about a decision (`eos-sink resolve`); evidence goes before it.

    Attributes:
        visible: partitions that count as committed where nobody can tell any more.
        lost: partitions that count as aborted there, so that a replay writes them again.
        accepted: the decision stands as it is: a replay writes nothing, whatever rows it has.
    """

    visible: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    accepted: bool = False


@dataclass(frozen=True)
class Decision:
    """A batch that must become visible: the latest one is the only one that can be open.

    `spark_run` is Spark's run id of the query whose `foreachBatch` wrote it last, or found
    it written; empty for all others.
    """

    batch: BatchId
    slot: int
    partitions: int
    total: RowDigest
    prepared: tuple[Prepared, ...]
    override: Override = field(default_factory=Override)
    spark_run: str = ""

    @property
    def topics(self) -> list[str]:
        """Where its witnesses lie, sorted."""
        return sorted({entry.witness.topic for entry in self.prepared})

    def transactions(self, names: QueryNames) -> dict[Transaction, Prepared]:
        return {entry.transaction(names, self.slot): entry for entry in self.prepared}

    def repeats(self, other: Decision | None) -> bool:
        """A void, an override or a new `spark_run` repeats a decision; no rewrite does."""
        return other is not None and (self.batch, self.prepared) == (other.batch, other.prepared)


@dataclass(frozen=True)
class OtherStream:
    """The last decided batch of a stream that another one has followed.

    All of it is visible, or a person has accepted it as it is: a batch of another stream is not
    decided over lost partitions (`verdicts.assignment`), but for a single batch write of which
    nothing is visible, and single writes are not kept.

    Attributes:
        total: None: not known, since an older version wrote the record, or a person has dropped
            the decision.
        spark_run: as in a decision.
        accepted: any rows count as a replay of it.
        dropped: a person has dropped the decision; without a later one the batch is written.
    """

    batch: BatchId
    total: RowDigest | None = None
    spark_run: str = ""
    accepted: bool = False
    dropped: bool = False

    @staticmethod
    def of(decision: Decision) -> OtherStream:
        return OtherStream(
            decision.batch, decision.total, decision.spark_run, decision.override.accepted
        )


@dataclass(frozen=True)
class Run:
    """The run that a record was written for: its planner's process, and what it was started with.

    It is told to whoever was replaced by that run. `tool` is set if it was no run of a query.
    `session` is the same for all planner processes of one Spark session, "" where unknown.
    """

    host: str
    pid: int
    started_ms: int
    origin: Origin = field(default_factory=Origin)
    tool: str = ""
    session: str = ""

    def is_sibling_of(self, other: Run) -> bool:
        """Another process of the same run: Spark hands a query's plans to any of its planners."""
        return (
            self != other
            and bool(self.session)
            and (self.host, self.session) == (other.host, other.session)
            and not (self.tool or other.tool or self.origin.contradicts(other.origin))
        )

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started_ms / 1000, timezone.utc)
        what = self.tool or str(self.origin)
        return f"process {self.pid} on {self.host} since {since:%Y-%m-%d %H:%M:%S} UTC ({what})"


@dataclass(frozen=True)
class LogRecord:
    """The latest word of the decision log about a query.

    `seq` grows by one with each write, a void included, which repeats `decision`.
    `writer` is unique to each write, so that a write of unknown outcome is recognised.
    `other_streams` has the last decided batch of every other stream of the names (a deleted
    checkpoint, frames of several queries to one topic, or a second application by mistake), the
    latest last.
    `run` is the run that it was written for, None in records of older versions. `settled` says
    that the decision, which this record repeats, was seen visible as a whole: Kafka forgets that,
    the log does not.

    `prefix` is what the query's names begin with, "" in the oldest records; it tells whose a record
    of an older version is. `stats` are figures, on which nothing of the protocol depends.
    """

    seq: int
    decision: Decision | None
    writer: str
    other_streams: tuple[OtherStream, ...] = ()
    run: Run | None = None
    prefix: str = field(default="", compare=False)
    stats: Stats = field(default_factory=Stats, compare=False)
    settled: bool = False

    @property
    def decided(self) -> tuple[BatchId, ...]:
        """The last decided batch of each stream, the latest last."""
        earlier = tuple(each.batch for each in self.other_streams)
        return (*earlier, self.decision.batch) if self.decision else earlier

    def knows(self, stream: str) -> bool:
        """Whether a batch of the stream was decided here."""
        return any(batch.stream == stream for batch in self.decided)

    @property
    def needs_settled_note(self) -> bool:
        """Whether another record has to say that the decision was settled. The next batch of a
        stream proves it; nothing does for a single write or a version, nor for a frame where the
        next one may be another query's."""
        numbering = self.decision and self.decision.batch.numbering
        if numbering is Numbering.FOREACH:
            return bool(self.other_streams)
        return numbering in (Numbering.VERSION, Numbering.ONCE)

    def other_stream(self, stream: str) -> OtherStream | None:
        return next((each for each in self.other_streams if each.batch.stream == stream), None)

    def with_other_stream(
        self, stream: str, changed: OtherStream | None
    ) -> tuple[OtherStream, ...]:
        """The other streams' batches with this stream's one changed, or forgotten."""
        every = (changed if e.batch.stream == stream else e for e in self.other_streams)
        return tuple(each for each in every if each is not None)

    def followed_by(self, decision: Decision | None) -> tuple[OtherStream, ...]:
        """The other streams' batches once this is decided. Without one, a person drops the latest
        decision: its batch is no replay when it comes again, so its rows are not kept."""
        every = self.other_streams
        if self.decision:
            latest = OtherStream.of(self.decision)
            every = (*every, latest if decision else OtherStream(latest.batch, dropped=True))
        now = decision.batch.stream if decision else None
        return tuple(
            each
            for each in every
            # A single batch write never comes again.
            if each.batch.stream != now and each.batch.numbering is not Numbering.ONCE
        )

    def next(  # noqa: PLR0913
        self,
        decision: Decision | None,
        writer: str,
        run: Run | None = None,
        prefix: str = "",
        figures: Stats | None = None,
        *,
        settled: bool = False,
    ) -> LogRecord:
        """The record that follows this one; without a decision where a person has dropped it.

        Args:
            figures: what comes to those that there are.
            settled: the decision was seen visible as a whole. A record that repeats the decision
                keeps that.
        """
        earlier = self.followed_by(decision)
        stats = self.stats if figures is None else self.stats + figures
        settled = settled or (
            self.settled and decision is not None and decision.repeats(self.decision)
        )
        return LogRecord(self.seq + 1, decision, writer, earlier, run, prefix, stats, settled)


@dataclass(frozen=True)
class PlanToken:
    """What makes a plan current: the driver's group metadata and the log as the plan saw it.

    `member` is opaque consumer group metadata (KIP-447), which the group accepts for `session_ms`
    after the planner's process has ended; `run` is the run that plans.
    """

    names: QueryNames
    seq: int
    position: LogPosition
    member: bytes = field(repr=False)
    run: Run | None = None
    session_ms: int = 0


@dataclass(frozen=True)
class Plan:
    """All that a task needs to know of the query before it writes a batch.

    `decision` is the latest one; `lost` are those of its partitions that were aborted after it, and
    `doubtful` those of which Kafka can no longer tell.
    """

    token: PlanToken
    decision: Decision | None
    lost: frozenset[int] = frozenset()
    doubtful: frozenset[int] = frozenset()

    def wrote(self, partition: int) -> bool:
        """Whether the partition had rows in the decided batch."""
        prepared = self.decision.prepared if self.decision else ()
        return any(entry.partition == partition for entry in prepared)


@dataclass(frozen=True)
class TaskReport:
    """What a task hands to the driver.

    `prepared` is None where nothing was written: no rows, or rows that are visible already
    (`replayed`), or that are left out (`skipped`). `digest` counts the rows of the partition either
    way. `lost` is the plan's, `spark_run` as in a decision. `took` has the seconds of the task's
    steps, for figures only.
    """

    token: PlanToken
    batch: BatchId
    partition: int
    slot: int
    replayed: bool
    digest: RowDigest
    prepared: Prepared | None
    lost: frozenset[int] = frozenset()
    skipped: bool = False
    spark_run: str = ""
    took: Mapping[Step, float] = field(default_factory=dict, compare=False)
