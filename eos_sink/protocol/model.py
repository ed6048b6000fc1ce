"""Values that cross processes and reach the decision log: frozen, without live clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from eos_sink.identity import DEFAULT_PREFIX, Origin, QueryNames
from eos_sink.metrics.names import Step
from eos_sink.metrics.stats import Stats
from eos_sink.protocol.values import (
    MOST_INLINE_BYTES,
    Offsets,
    Package,
    Place,
    Position,
    ProducerIdentity,
    Transaction,
    this_package,
)
from eos_sink.protocol.written import WrittenNumbers

# Only plans have them.
if TYPE_CHECKING:
    from eos_sink.protocol.topic_rules import TopicRules

_WORD = 2**64
_STREAM = "stream "


class Numbering(Enum):
    """Who numbers the batches of a stream, and so what a repeated number means. The value is the
    prefix of such a stream's id; Spark's own ids have none."""

    STREAM = ""
    """Spark, for a streaming query that writes by itself."""
    FOREACH = "foreach:"
    """Spark, for a streaming query whose `foreachBatch` writes frames."""
    VERSION = "txn:"
    """The user, with the options `txnAppId` and `txnVersion`."""
    ONCE = "once:"
    """The sink, for a batch write without `txnVersion`; or the user, with `eos.write.id`."""

    @property
    def is_by_spark(self) -> bool:
        """True if Spark numbers the batches, from a query's checkpoint."""
        return self in (Numbering.STREAM, Numbering.FOREACH)

    @property
    def is_of_write(self) -> bool:
        """True if a batch write has the number. They come in any order."""
        return self in (Numbering.VERSION, Numbering.ONCE)


@dataclass(frozen=True)
class BatchId:
    """One micro-batch or one batch write. Compared as a pair, never by number alone: a deleted
    checkpoint gives a new stream id, and its batch 0 is not the old batch 0."""

    stream: str
    batch: int

    @staticmethod
    def numbered_by(numbering: Numbering, source: str, number: int) -> BatchId:
        """`source`: Spark's query id, the `txnAppId`, or "" for a single write."""
        return BatchId(f"{numbering.value}{source}", number)

    @property
    def numbering(self) -> Numbering:
        prefixed = (n for n in Numbering if n.value and self.stream.startswith(n.value))
        return next(prefixed, Numbering.STREAM)

    @property
    def source(self) -> str:
        """Spark's query id, the `txnAppId`, or something unique for a single write."""
        return self.stream.removeprefix(self.numbering.value)

    def is_of_query(self, other: BatchId) -> bool:
        """True if both are batches of one query of Spark's, whatever its way of writing."""
        by_spark = self.numbering.is_by_spark and other.numbering.is_by_spark
        return by_spark and self.source == other.source

    def is_moved_from(self, other: BatchId) -> bool:
        """True if the query has written both under two identities, one after the other. Frames of
        a query have several at once."""
        is_frame = self.numbering is other.numbering is Numbering.FOREACH
        return self.is_of_query(other) and not is_frame

    def __str__(self) -> str:
        numbering, source = self.numbering, self.source
        if numbering is Numbering.VERSION:
            return f"version {self.batch} of txnAppId {source!r}"
        if numbering is Numbering.ONCE:
            return f"write {self.batch}"
        inside = " (foreachBatch)" if numbering is Numbering.FOREACH else ""
        return f"batch {self.batch} of stream {source}{inside}"


@dataclass(frozen=True)
class RowDigest:
    """Summary of a set of rows: count, payload bytes, order-independent 64-bit fingerprint."""

    rows: int = 0
    bytes: int = 0
    fingerprint: int = 0

    def __add__(self, other: RowDigest) -> RowDigest:
        return RowDigest(
            self.rows + other.rows,
            self.bytes + other.bytes,
            (self.fingerprint + other.fingerprint) % _WORD,
        )

    def __str__(self) -> str:
        return f"{self.rows} rows and {self.bytes} bytes (fingerprint {self.fingerprint:016x})"

    @staticmethod
    def total(digests: Iterable[RowDigest]) -> RowDigest:
        return sum(digests, RowDigest())


DIGEST = 1
"""The way in which this version makes a fingerprint (0: BLAKE2b for long fields, 1: XXH3)."""


@dataclass(frozen=True)
class Prepared:
    """A task's open transaction with all its records on the brokers.

    `partition` is Spark's partition of the batch, `witness` one record of the transaction.
    """

    partition: int
    producer_id: int
    epoch: int
    digest: RowDigest
    witness: Position

    def transaction(self, names: QueryNames, slot: int) -> Transaction:
        return Transaction(names.task(slot, self.partition), self.producer_id, self.epoch)


@dataclass(frozen=True)
class Inlined:
    """A partition whose rows are in the decision's own transaction.

    They are visible if and only if the decision is, so they need no evidence.

    Attributes:
        producer: that has written them; None: they are still to be written.
    """

    partition: int
    digest: RowDigest
    producer: ProducerIdentity | None = None


@dataclass(frozen=True)
class DeadLetters:
    """The number of rows of a partition that are in the dead letter topic instead of their own.

    They are a part of the partition's digest, which does not depend on the topic that they are in.
    """

    partition: int
    rows: int


@dataclass(frozen=True)
class Override:
    """An operator's choice about a decision (`eos-sink resolve`). Evidence from Kafka wins over it.

    Attributes:
        visible: partitions that count as committed if Kafka has no evidence.
        lost: partitions that count as aborted then, so that a replay writes them again.
        accepted: the decision stands as it is: a replay writes nothing, even if it has other rows.
    """

    visible: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    accepted: bool = False


@dataclass(frozen=True)
class Route:
    """The options that decide where a batch's rows go.

    Attributes:
        topic: of all rows; None: the column `topic` names it.
        dead_letters: the topic of rows that Kafka would refuse; None: there is none.
        partitioner: librdkafka's, if it is not the default.
    """

    topic: str | None = None
    dead_letters: str | None = None
    partitioner: str = ""

    def __str__(self) -> str:
        topic = "the column topic" if self.topic is None else f"topic={self.topic}"
        letters = "none" if self.dead_letters is None else self.dead_letters
        partitioner = self.partitioner or "default"
        return f"{topic}, eos.dead.letter.topic: {letters}, partitioner: {partitioner}"


@dataclass(frozen=True)
class Decision:
    """A batch that must become visible. Only the latest decision can have open transactions.

    Attributes:
        prepared: the partitions that tasks have written.
        spark_run: Spark's run id of the query whose `foreachBatch` wrote the batch last, or found
            it written; empty for all other batches.
        inlined: the partitions that the driver has written together with the decision.
        dead_letters: of the partitions that have some; all are in the route's topic for them.
        by_row: if a part is lost, a replay writes the rows that are not visible, in any partitions;
            else the lost partitions.
        completed: one has done so. Its partitions are numbered behind the others, so no replay has
            the same ones.
        by_partition: why it cannot be told which rows are visible; only partitions tell then.
        topics: those of its rows, and the id (KIP-516) of each from before they were written: a
            topic that is deleted and made again has another one. "": not known.
        route: how the tasks found a row's place.
        digest: how its fingerprints were made; those that were made otherwise are not comparable.
    """

    batch: BatchId
    slot: int
    partitions: int
    total: RowDigest
    prepared: tuple[Prepared, ...]
    override: Override = field(default_factory=Override)
    spark_run: str = ""
    inlined: tuple[Inlined, ...] = ()
    dead_letters: tuple[DeadLetters, ...] = ()
    by_row: bool = False
    completed: bool = False
    by_partition: str = ""
    topics: Mapping[str, str] = field(default_factory=dict, hash=False)
    route: Route = field(default_factory=Route)
    digest: int = DIGEST

    @property
    def dead_letter_topic(self) -> str:
        """Empty if the batch has no dead letters."""
        return (self.route.dead_letters or "") if self.dead_letters else ""

    @property
    def dead_letter_rows(self) -> int:
        return sum(each.rows for each in self.dead_letters)

    def written_by(self, producer: ProducerIdentity) -> Decision:
        """The same decision; this producer writes its record, and its rows that are not written."""
        inlined = (
            each if each.producer else replace(each, producer=producer) for each in self.inlined
        )
        return replace(self, inlined=tuple(inlined))

    @property
    def inlined_total(self) -> RowDigest:
        """The rows that the driver has written together with the decision."""
        return RowDigest.total(each.digest for each in self.inlined)

    @property
    def digests(self) -> dict[int, RowDigest]:
        """Of each partition that has rows."""
        entries: tuple[Prepared | Inlined, ...] = (*self.prepared, *self.inlined)
        return {entry.partition: entry.digest for entry in entries}

    def count_rows(self, partitions: Iterable[int]) -> int:
        """The rows of some of the partitions that have rows."""
        digests = self.digests
        return sum(digests[partition].rows for partition in partitions)

    def is_invisible(self, lost: frozenset[int]) -> bool:
        """True if nothing of it is visible, if these partitions are lost."""
        return bool(lost) and lost == self.digests.keys()

    def needs_completion(self, lost: frozenset[int]) -> bool:
        """True if a replay writes exactly the rows that are not visible, in any partitions,
        if these partitions are lost."""
        return self.by_row and bool(lost) and not self.is_invisible(lost)

    def transactions(self, names: QueryNames) -> dict[Transaction, Prepared]:
        return {entry.transaction(names, self.slot): entry for entry in self.prepared}

    def repeats(self, other: Decision | None) -> bool:
        """True if it names the same transactions: only a rewrite of lost partitions does not."""
        return other is not None and (self.batch, self.prepared) == (other.batch, other.prepared)


@dataclass(frozen=True)
class SourcePosition:
    """The offsets up to which a query has read its source, as of the batch that moved them last.

    Attributes:
        group: the consumer group that has a copy, committed in the decision's transaction.
        batch: that batch; its number is -1 before the stream's first one.
        start: the offsets before it, of all partitions that it has read.
        end: the offsets after it.
        left: of partitions that are not read any more, the offsets after an earlier batch; of
            those of a topic that a new checkpoint reads first, the offsets where it has begun.
        topics: the id (KIP-516) of each topic in `start`, `end` and `left`, when the query read it.
        stale: a later batch of a query was decided without its offsets.
        stateful: the query keeps state in its checkpoint, and rows may wait there.
        others: the batch had rows of other sources, too; only the checkpoint knows their offsets.
        given_up: an operator has given up what only the checkpoint has, until the next batch.
    """

    group: str
    batch: BatchId
    start: Offsets
    end: Offsets
    left: Offsets = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    stale: bool = False
    stateful: bool = False
    others: bool = False
    given_up: bool = False

    @property
    def reached(self) -> Offsets:
        """The offsets of all partitions that the query has ever read."""
        return {**self.left, **self.end}

    @property
    def progress(self) -> int:
        """Of two identities of a query the larger one is of that which has written last."""
        return sum(self.reached.values())

    def is_beyond(self, begins: Offsets) -> bool:
        """True if rows were read that a batch would read again which begins there."""
        return any(begins.get(place, at) < at for place, at in self.reached.items())

    @property
    def needs_checkpoint(self) -> bool:
        """True if only the checkpoint has all that the query goes on with."""
        return self.stateful or self.others

    def lacks(self, begins: Offsets) -> list[Place]:
        """Return the partitions of known topics at which the query has never been."""
        reached = self.reached
        topics = {topic for topic, _ in reached}
        return sorted(place for place in begins if place not in reached and place[0] in topics)

    def differs(self, committed: Offsets) -> frozenset[Place]:
        """Return the partitions at which the group has another offset, or none."""
        places = self.end.items()
        return frozenset(place for place, offset in places if committed.get(place) != offset)

    def lag(self, ends: Offsets) -> int | None:
        """Count the offsets between it and the ends of the partitions' logs, markers of
        transactions included. None: not known."""
        if self.stale or not self.end.keys() <= ends.keys():
            return None
        # A topic that was deleted and created again may end before.
        return sum(max(0, ends[place] - offset) for place, offset in self.end.items())

    def after(self, decision: Decision | None, before: Decision | None) -> SourcePosition:
        """The position after a decision that does not move it. None: an operator has dropped the
        one before, so what is visible does not end here any more."""
        if decision is None:
            ends = before is not None
        else:
            ends = decision.batch.numbering.is_by_spark and not decision.repeats(before)
            ends = ends and decision.batch != self.batch
        return replace(self, stale=True) if ends else self


@dataclass(frozen=True)
class Run:
    """A run of a query: its planner's process, and what the query was started with. A run that was
    replaced names this one in its error.

    `tool` is set for an operator's command. `session` is the same for all planner processes of one
    Spark session, "" if unknown. Within `pid_namespace`, since the machine's start `boot_id`, the
    numbers of processes mean something; "" if unknown.
    """

    host: str
    pid: int
    started_ms: int
    origin: Origin = field(default_factory=Origin)
    tool: str = ""
    session: str = ""
    boot_id: str = ""
    pid_namespace: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """The scope in which `pid` and `session` name processes."""
        return self.host, self.boot_id, self.pid_namespace

    def is_sibling_of(self, other: Run) -> bool:
        """Another planner process of the same run: Spark uses any of a session's processes."""
        return (
            self != other
            and bool(self.session)
            and (self.place, self.session) == (other.place, other.session)
            and not (self.tool or other.tool or self.origin.contradicts(other.origin))
        )

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started_ms / 1000, timezone.utc)
        what = self.tool or str(self.origin)
        return f"process {self.pid} on {self.host} since {since:%Y-%m-%d %H:%M:%S} UTC ({what})"


@dataclass(frozen=True)
class Change:
    """The difference of a record from the one before.

    Attributes:
        decision: None: an operator drops the latest one.
        figures: added to the query's figures.
        settled: the decision was seen visible as a whole. A record that repeats it keeps that.
        gives_up: it gives up a plan, and repeats the decision.
        source: how far the source was read; None: as before, if that is still true.
        retires: the last batch here of a stream that goes on under another identity.
        group: that the stream moves there; "": none.
        room: of the driver, for rows of the next batches; None: as before.
    """

    decision: Decision | None
    figures: Stats = field(default_factory=Stats)
    settled: bool = False
    gives_up: bool = False
    source: SourcePosition | None = None
    retires: BatchId | None = None
    group: str = ""
    room: int | None = None


@dataclass(frozen=True)
class LogRecord:
    """The decision log's latest record of a query.

    Attributes:
        seq: one higher with each write, also of a record that repeats `decision`.
        writer: unique to each write, so that a write of unknown outcome is recognised.
        retired: the last decided batch of every stream of Spark's that another one has followed
            under this identity, or that has gone on under another identity. None of them is written
            here again.
        dropped: the batch whose decision an operator has dropped, until the next decision.
        run: the run that wrote it; None in records of older versions.
        producer: that wrote it, in its only transaction; None only of a record that was not.
        prefix: what the query's names begin with.
        stats: figures; nothing of the protocol depends on them.
        settled: the decision was seen visible as a whole. Kafka forgets that, the log does not.
        given_up: how many plans were given up since the decision, as far as the log knows.
        source: how far the query has read its source, if it has ever had `eos.source.group.id`.
        written: the numbers of the batch writes before the decision.
        room: how many bytes of rows the driver takes in a batch, as fast as the brokers were.
    """

    seq: int
    decision: Decision | None
    writer: str
    retired: tuple[BatchId, ...] = ()
    run: Run | None = None
    prefix: str = field(default=DEFAULT_PREFIX, compare=False)
    stats: Stats = field(default_factory=Stats, compare=False)
    settled: bool = False
    given_up: int = 0
    source: SourcePosition | None = field(default=None, hash=False)
    producer: ProducerIdentity | None = None
    written: WrittenNumbers = field(default_factory=WrittenNumbers)
    dropped: BatchId | None = None
    room: int = MOST_INLINE_BYTES

    def written_by(self, producer: ProducerIdentity) -> LogRecord:
        decision = self.decision and self.decision.written_by(producer)
        return replace(self, decision=decision, producer=producer)

    @property
    def latest(self) -> BatchId | None:
        """The batch that was decided last; an operator may have dropped its decision."""
        return self.decision.batch if self.decision else self.dropped

    @property
    def decided(self) -> tuple[BatchId, ...]:
        """The last decided batch of each stream, the latest last."""
        return (*self.retired, *filter(None, [self.latest]))

    def last_of(self, stream: str) -> BatchId | None:
        """The last batch of a stream that was decided under this identity."""
        return next((each for each in reversed(self.decided) if each.stream == stream), None)

    def has_retired(self, stream: str) -> bool:
        return any(each.stream == stream for each in self.retired)

    @property
    def is_left(self) -> bool:
        """True if the stream that has written last has gone on under another identity."""
        return self.latest is not None and self.has_retired(self.latest.stream)

    @property
    def needs_settled_note(self) -> bool:
        """True if another record has to say that the decision is settled. A stream's next batch
        proves it; nothing does for a batch write."""
        return self.decision is not None and self.decision.batch.numbering.is_of_write

    def is_new_stream(self, batch: BatchId) -> bool:
        """True if a query writes with another checkpoint than before."""
        latest = self.latest
        if latest is None or latest.stream == batch.stream:
            return False
        return batch.numbering.is_by_spark and latest.numbering.is_by_spark

    def written_before(self, decision: Decision | None) -> WrittenNumbers:
        """`written` before this decision. None: an operator drops the latest one, whose write may
        come again."""
        latest = self.decision
        if decision is None or latest is None or decision.batch == latest.batch:
            return self.written
        is_of_write = latest.batch.numbering.is_of_write
        return self.written.add(latest.batch.batch) if is_of_write else self.written

    def next(
        self,
        change: Change,
        writer: str,
        run: Run | None = None,
        prefix: str = DEFAULT_PREFIX,
    ) -> LogRecord:
        """The record that follows this one."""
        decision, source = change.decision, change.source
        if source is None and self.source is not None:
            source = self.source.after(decision, self.decision)
        retired = self.retired
        if decision and self.latest and self.is_new_stream(decision.batch) and not self.is_left:
            # A batch whose decision was dropped may be written elsewhere.
            is_dropped = self.decision is None
            retired = (*retired, replace(self.latest, batch=self.latest.batch - is_dropped))
        if change.retires:
            retired = (*retired, change.retires)
            if source is not None and source.group != change.group:
                # From now on only the checkpoint tells what was read.
                source = replace(source, stale=True)
        repeats = decision is not None and decision.repeats(self.decision)
        # Before the first decision there is none to repeat.
        undecided = decision is None and self.decision is None
        return LogRecord(
            seq=self.seq + 1,
            decision=decision,
            writer=writer,
            retired=retired,
            run=run,
            prefix=prefix,
            stats=self.stats + change.figures,
            settled=change.settled or (self.settled and repeats),
            given_up=self.given_up + change.gives_up if repeats or undecided else 0,
            source=source,
            dropped=None if decision else self.latest,
            written=self.written_before(decision),
            room=self.room if change.room is None else change.room,
        )


@dataclass(frozen=True)
class Claim:
    """An identity has written a stream, or moved a consumer group. A decision is found by the
    identity that has made it, a claim by what it is about: so an identity that writes a stream for
    the first time finds the others that have written it.

    Attributes:
        names: of the identity.
        subject: `stream_subject` or `group_subject`. One partition of the log has all its claims.
        numbering: of the batch that was the first one.
    """

    names: QueryNames
    subject: str
    numbering: Numbering

    @property
    def is_of_stream(self) -> bool:
        return self.subject.startswith(_STREAM)

    @property
    def key(self) -> str:
        """Of its record: compaction keeps one for each identity and subject."""
        return f"{self.names.log_key}{claim_suffix(self.subject)}"


def claim_suffix(subject: str) -> str:
    """The end of the keys of a subject's claims. A query's name has no dot at its end."""
    return f" claims {subject}."


def stream_subject(batch: BatchId) -> str:
    """The same for all ways of writing: frames and rows of one query have one checkpoint."""
    return f"{_STREAM}{batch.source}"


def group_subject(group: str) -> str:
    return f"group {group}"


class KnownClaims(NamedTuple):
    """The claims of a subject that were read: other identities, and where the log goes on."""

    subject: str = ""
    names: tuple[QueryNames, ...] = ()
    reached: int = 0


NO_CLAIMS = KnownClaims()


def claims_of(names: QueryNames, before: LogRecord, record: LogRecord) -> Iterator[Claim]:
    """The claims that a record makes which follows another one."""
    batch = record.decision.batch if record.decision else None
    if batch and batch.numbering.is_by_spark and not before.last_of(batch.stream):
        yield Claim(names, stream_subject(batch), batch.numbering)
    source, known = record.source, before.source
    if source and (known is None or known.group != source.group):
        yield Claim(names, group_subject(source.group), source.batch.numbering)


@dataclass(frozen=True)
class LogEntry:
    """A query's latest record and its position in the decision log; seq 0 if there is none yet."""

    record: LogRecord
    position: Position

    @property
    def seq(self) -> int:
        return self.record.seq

    @property
    def decision(self) -> Decision | None:
        return self.record.decision


@dataclass(frozen=True)
class StartNote:
    """The checkpoint of a query before its start.

    Attributes:
        stream: Spark's id of the query; "": there was no checkpoint.
        next: the batch that a start begins then; None: it would finish one that was there.
        begins: the offsets before the first batch of a checkpoint that was there unfinished, as
            long as the query has no position: the next checkpoint begins there, too.
        topics: the ids (KIP-516) of the source's topics as that checkpoint, or the one that the
            start makes, has first seen them.
        gone: the stream of the last checkpoint that is not there any more. A run that is left of it
            has begun its batch before the note.
    """

    stream: str
    next: int | None
    begins: Offsets = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    gone: str | None = None

    def is_before(self, stream: str, number: int) -> bool:
        """True if the start that has followed the note has begun this batch."""
        return number == (self.next if stream == self.stream else 0)


@dataclass(frozen=True)
class PlanToken:
    """The state that makes a plan current: the driver's group metadata and the log as the plan read
    it.

    `member` is opaque consumer group metadata (KIP-447), which the group accepts until `session_ms`
    after the planner's process has ended; `run` is the run that plans, with `package`. `planned_s`
    is when, in seconds of the monotonic clock that all processes of the driver's machine share, and
    `planned_ms` by its time of day, in milliseconds since 1970.
    """

    names: QueryNames
    seq: int
    position: Position
    member: bytes = field(repr=False)
    run: Run | None = None
    session_ms: int = 0
    package: Package = field(default_factory=this_package)
    planned_s: float = 0.0
    planned_ms: int = 0


@dataclass(frozen=True)
class Plan:
    """The state of the query that a task needs before it writes a batch.

    `decision` is the latest one; `lost` are its partitions that were aborted after it, and
    `doubtful` those whose outcome Kafka no longer knows, also since their topics were `made_again`.
    The batch goes by `route`. `rules` has topics whose rules the driver knows, if the query has a
    dead letter topic, `topics` those whose ids it knows. `given_up` is the latest record's.
    `visible` has the sorted hashes of the visible rows, eight bytes each, if a replay writes the
    others in any partitions. `written`, `retired` and `room` are those of the latest record.
    """

    token: PlanToken
    decision: Decision | None
    lost: frozenset[int] = frozenset()
    doubtful: frozenset[int] = frozenset()
    made_again: frozenset[str] = frozenset()
    route: Route = field(default_factory=Route)
    rules: Mapping[str, TopicRules] = field(default_factory=dict)
    given_up: int = 0
    visible: bytes | None = field(default=None, repr=False)
    written: WrittenNumbers = field(default_factory=WrittenNumbers, repr=False)
    retired: tuple[BatchId, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict, repr=False)
    room: int = MOST_INLINE_BYTES

    @property
    def highest_number(self) -> int:
        """The highest number of a batch write that is known; -1: none is."""
        latest = self.decision and self.decision.batch
        mine = latest.batch if latest and latest.numbering.is_of_write else -1
        return max(self.written.highest, mine)

    def wrote(self, partition: int) -> bool:
        """True if the partition had a transaction in the decided batch."""
        prepared = self.decision.prepared if self.decision else ()
        return any(entry.partition == partition for entry in prepared)


@dataclass(frozen=True)
class TaskReport:
    """The report of a task to the driver.

    `prepared` is None if nothing was written: no rows, rows that are visible already (`replayed`),
    rows that are left out (`skipped`), or rows that the driver has to write: `inline` has them as
    `eos_sink.rows.rows.pack` makes it. `digest` is of all rows of the partition, written or not.
    `lost` is the plan's, `spark_run` as in a decision. `took` has the seconds of the task's steps,
    for figures only. `dead_letters` counts the rows for the dead letter topic by their error;
    `inline_dead_letters` has them, if the driver has to write them too. `topics` has the topics of
    its rows with their ids, as they were before a row was written; "": there was no such topic. Of
    rows that the driver has to write only those that the plan knows. `package` is the task's.
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
    inline: bytes = field(default=b"", repr=False)
    inline_dead_letters: bytes = field(default=b"", repr=False)
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    package: Package = field(default_factory=this_package)

    @property
    def dead_letter_rows(self) -> int:
        return sum(self.dead_letters.values())

    @property
    def has_written(self) -> bool:
        """True if its rows become visible with the decision."""
        return self.prepared is not None or bool(self.inline)
