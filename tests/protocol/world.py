"""What outlives a run of the query: Kafka, the input, the checkpoint; and what must hold in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from eos_sink.decision_log.codec import decode, is_claim
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import Decision, LogRecord
from eos_sink.protocol.values import Transaction, TransactionStatus
from eos_sink.sink_options import SinkOptions
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeKafka
from tests.fakes.log import Entry, Outcome, Topic, Txn
from tests.protocol.checkpoint import Checkpoint, Ends

Batch = list[list[bytes]]
"""Rows by Spark partition."""

TOPIC = "out"
FOREIGN = b"of another program"
PROGRAM = "program-"
"""What its transactional ids begin with."""
OWN_SINK = "spark"
"""What ids of the producers of Spark's own sink begin with, which has none in reality."""
MANY = 40
"""More records than a query of the tests has in a partition."""
ONGOING = TransactionStatus.ONGOING
_GIVEN = {
    "kafka.bootstrap.servers": "nowhere:1",
    "topic": TOPIC,
    "eos.transaction.timeout.ms": "60000",
    "eos.inline.bytes": "0",
}


def given_options(**extra: str) -> dict[str, str]:
    """As users give them; unless `extra` says otherwise, each task opens a transaction."""
    return {**_GIVEN, **extra}


def options(**extra: str) -> SinkOptions:
    """Of a query."""
    return parse_options(given_options(**{"eos.id": "story", **extra}))


def batch_options(**extra: str) -> SinkOptions:
    """Of batch writes, by default like those of a query."""
    return parse_batch_options(given_options(**extra)).sink


@dataclass
class World:
    """Kafka, the query's input and its checkpoint.

    Attributes:
        batches: the input, whose only partition has one batch at each offset.
        end: where the input ends for the query that begins now; None: after all batches.
    """

    batches: list[Batch]
    partitions: int = 2
    cluster: FakeCluster = field(default_factory=FakeCluster)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    options: SinkOptions = field(default_factory=options)
    consumed: list[bytes] = field(default_factory=list)
    """What readers have read of records that the topic has no longer."""
    read_before: list[Counter[bytes]] = field(default_factory=list)
    """What they have read of each topic that was deleted."""
    again: set[bytes] = field(default_factory=set)
    """Rows that an operator lets be written to the topic that was made again, too."""
    ignored: set[bytes] = field(default_factory=lambda: {FOREIGN})
    """Rows of other programs, which are visible or not."""
    outputs: tuple[str, ...] = (TOPIC,)
    """The topics that the query writes."""
    arrow_rows: int = 1
    """Rows of an Arrow batch, of which a task gets several."""
    end: int | None = None

    def __post_init__(self) -> None:
        self.cluster.create_topic(TOPIC, self.partitions)
        self.judge = Judge(self)

    @property
    def done(self) -> bool:
        """Whether the query has come to the end of its input."""
        number = self.checkpoint.number
        before = self.checkpoint.start(number)
        known = self.checkpoint.ends.get(number)
        return known is None and self.next_ends(before, self.end) == before

    def next_ends(self, before: Ends, end: int | None) -> Ends:
        """Where the batch ends that begins there."""
        number = before.get(0, 0)
        return {0: number + 1} if number < self._last(end) else before

    def check_input(self, before: Ends, ends: Ends) -> None:
        """Raises DataLoss: Spark does not find what the checkpoint says."""

    def read(self, before: Ends, ends: Ends) -> Batch:
        """The rows of the batch, as the query writes them."""
        return self.batches[before.get(0, 0)]

    def _last(self, end: int | None) -> int:
        return len(self.batches) if end is None else end

    def visible(self) -> list[bytes]:
        """What a read_committed reader has got, sorted."""
        read = [*self.consumed, *self._read(Topic.committed)]
        return sorted(value for value in read if value not in self.ignored)

    def settled(self) -> list[bytes]:
        """What is visible, or will be as soon as open transactions before it have ended."""
        return self._read(Topic.settled)

    def _read(self, read: Callable[[Topic], list[Entry]]) -> list[bytes]:
        """What readers have got of all topics, those that were deleted included."""
        topics = [*self.read_before, *(_count(read(topic)) for topic in self._written())]
        found = sum(topics, Counter[bytes]())
        for row in self.again:
            found[row] = max(each[row] for each in topics)
        return list(found.elements())

    def rows_of(self, transaction: Transaction) -> set[bytes]:
        """What a transaction has written, also to topics that were deleted."""
        history = self.cluster.coordinator.history
        entries = (
            e for txn in history for log in txn.logs for e in log.all_from(0) if e.txn is txn
        )
        return {e.value or b"" for e in entries if e.txn.identity == transaction and not e.marker}

    def make_again(self, name: str) -> None:
        """Readers have read all that is committed in a topic; it is deleted and made again, and
        another program writes to it."""
        former = self.cluster.topics.pop(name)
        self.read_before.append(_count(former.settled()))
        self.cluster.create_topic(name, len(former.partitions))
        self.cluster.coordinator.end(self.write_foreign(name, MANY), commit=True)

    def write_foreign(self, name: str, rows: int = 1) -> Transaction:
        """Another program writes to each partition, in a transaction that is still open."""
        coordinator = self.cluster.coordinator
        program = f"{PROGRAM}{len(coordinator.history)}"
        txn = coordinator.open(program, coordinator.init(program, 30_000))
        for log_ in self.cluster.topics[name].partitions * rows:
            log_.append(txn, None, FOREIGN, (), self.cluster.clock.ms)
        return txn.identity

    def _written(self) -> list[Topic]:
        return [self.cluster.topics[each] for each in self.outputs if each in self.cluster.topics]

    def a_week_passes(self) -> None:
        """Readers have read all; coordinators forget the ids, and the topic its records."""
        coordinator = self.cluster.coordinator
        coordinator.time_out()
        self.consumed = self.visible()
        for name in coordinator.list_all(self.options.names.group):
            coordinator.forget(name)
        for partition in self.cluster.topics[TOPIC].partitions:
            partition.delete_before(partition.end)

    def rows(self, ends: Ends | None = None) -> list[bytes]:
        """What the query writes of the input before these offsets, or of all of it; sorted."""
        read = self.batches if ends is None else self.batches[: ends[0]]
        return sorted(row for batch in read for part in batch for row in part)

    def judged(self, expected: list[bytes]) -> list[bytes]:
        """Those of a batch's rows that have to be visible once when Spark goes on."""
        return expected


class Judge:
    """Watches what must hold, whatever crashes; what did not hold is in `violations`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.violations: list[str] = []
        self.late: list[str] = []
        """Transactions that had ended when a batch with them was decided."""
        world.cluster.coordinator.on_end = self._at_end_txn

    def batch_is_past(self, ends: Ends, expected: list[bytes]) -> None:
        """Spark has written its commit log: each row up to here is visible once, or will be as
        soon as a zombie's open transaction before it has ended."""
        seen = Counter(self._world.settled())
        wrong = {row: seen[row] for row in expected if seen[row] != 1}
        if wrong:
            self.violations.append(f"the query went past {ends} with {wrong}")

    def at_the_end(self) -> None:
        """No row twice; and all of them if the query has come to the end of its input."""
        doubled = {row: n for row, n in Counter(self._world.visible()).items() if n > 1}
        if doubled:
            self.violations.append(f"rows are visible twice: {doubled}")
        if self._world.done and self._world.visible() != self._world.rows():
            self.violations.append(f"visible at the end: {self._world.visible()}")
        for former, latter in pairwise(self.decisions()):
            if former.batch == latter.batch and former != latter:
                self._check_replacement(former, latter)

    def _check_replacement(self, former: Decision, latter: Decision) -> None:
        names = self._world.options.names
        gone = former.transactions(names).keys() - latter.transactions(names).keys()
        for txn in self._world.cluster.coordinator.history:
            if txn.identity in gone and txn.outcome is not Outcome.ABORTED:
                self.violations.append(f"{txn} was decided, then replaced")

    def _at_end_txn(self, transaction: Transaction, commit: bool) -> None:
        names = self._world.options.names
        txn = self._world.cluster.coordinator.find_open(transaction)
        if txn is None or not txn.logs:
            # A late AddPartitionsToTxn has opened it, and nothing is in it.
            return
        if commit and transaction.transactional_id == names.driver:
            self._at_decision(txn)
        if names.parse_task(transaction.transactional_id) is None:
            return
        naming = [d for d in self.decisions() if transaction in d.transactions(names)]
        if not commit and naming and self._is_gone(transaction, naming[-1]):
            return
        if commit != bool(naming):
            when = "committed before its decision" if commit else "aborted after its decision"
            self.violations.append(f"{transaction} was {when}")

    def _is_gone(self, transaction: Transaction, decision: Decision) -> bool:
        """Whether the topic of its rows was made again since."""
        entry = decision.transactions(self._world.options.names)[transaction]
        topic = self._world.cluster.topics.get(entry.witness.topic)
        return topic is not None and topic.id != decision.topics[entry.witness.topic]

    def _at_decision(self, txn: Txn) -> None:
        names, coordinator = self._world.options.names, self._world.cluster.coordinator
        log = self._world.cluster.topics[self._world.options.log_topic]
        entries = [entry for part in log.partitions for entry in part.all_from(0)]
        own = [e for e in entries if e.txn is txn and not e.marker]
        if not own:
            self.violations.append(f"rows of {txn} were committed before their decision")
        known = {each for former in self.decisions() for each in former.transactions(names)}
        for each in {t for new in _decisions_in(own) for t in new.transactions(names)} - known:
            if coordinator.describe(each.transactional_id).status is not ONGOING:
                self.late.append(f"{each} had ended when it was decided")

    def decisions(self) -> list[Decision]:
        """Every decision that the log ever held, in order."""
        log = self._world.cluster.topics.get(self._world.options.log_topic)
        # Also while its partition, or another transaction in it, keeps readers waiting.
        return _decisions_in(log.settled() if log else ())


def _count(entries: Sequence[Entry]) -> Counter[bytes]:
    """Spark's own sink may have written a row twice."""
    values = [(e.value or b"", e.txn.transactional_id.startswith(OWN_SINK)) for e in entries]
    return Counter([*{row for row, own in values if own}, *(row for row, own in values if not own)])


def log(world: World) -> list[LogRecord]:
    """The records of the decision log that a read_committed reader gets."""
    return _records_in(world.cluster.read_committed(world.options.log_topic))


def latest(world: World) -> Decision:
    decision = log(world)[-1].decision
    assert decision is not None
    return decision


def open_ids(world: World) -> list[str]:
    return world.cluster.coordinator.list_open(world.options.names.group)


def late_attempt(world: World, slot: int, partition: int) -> None:
    """A zombie task inits the id of a newer one, and aborts what that left open."""
    world.cluster.coordinator.init(world.options.names.task(slot, partition), 60_000)


def hold_up_the_log(world: World, timeout_ms: int) -> None:
    """The driver of another query leaves its transaction open there."""
    stranger = FakeKafka(world.cluster).log_producer("stranger", timeout_ms)
    stranger.init(Deadline(5))
    stranger.begin()
    stranger.produce(world.options.log_topic, b"", key=b"stranger", partition=0)


def _decisions_in(entries: Iterable[Entry]) -> list[Decision]:
    return [record.decision for record in _records_in(entries) if record.decision is not None]


def _records_in(entries: Iterable[Entry]) -> list[LogRecord]:
    records = (_record_in(entry.value or b"") for entry in entries)
    return [record for record in records if record is not None]


@lru_cache(4096)
def _record_in(value: bytes) -> LogRecord | None:
    """The same records are read at each step of a story."""
    return decode(value, "") if value and not is_claim(value) else None
