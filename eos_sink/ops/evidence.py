"""The evidence about one batch, task by task: what the decision log, coordinators and topics say.

Looking changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from eos_sink.driver.evidence import ask_all
from eos_sink.errors import EosSinkError
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, PartitionTail, Trace
from eos_sink.ops.batch_record import BatchRecord, RecordState
from eos_sink.ops.operator_run import list_hosts
from eos_sink.ops.pending import Need, find_needs
from eos_sink.ops.status import Problem
from eos_sink.protocol.model import Prepared, RowDigest
from eos_sink.protocol.outcome import Evidence, Outcome, outcome
from eos_sink.protocol.reconcile import View
from eos_sink.protocol.rules import select_undecided
from eos_sink.protocol.values import (
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionStatus,
)

if TYPE_CHECKING:
    from eos_sink.rows.rows import Row


class TaskState(Enum):
    """The outcome of a task whose transaction the latest decision of its batch does not name."""

    REWRITTEN = "lost, written again"
    UNDECIDED = "open, undecided"
    ABORTED = "aborted"
    NO_ROWS = "no rows"


@dataclass(frozen=True)
class TransactionEvidence:
    """The evidence about a task whose transaction the decision names.

    Attributes:
        trace: what the ends of its topic's partitions still have of it, added up; None: they were
            not read.
        readable: the readable rows among them.
    """

    evidence: Evidence
    trace: Trace | None = None
    readable: RowDigest = field(default_factory=RowDigest)

    @property
    def entry(self) -> Prepared:
        return self.evidence.entry

    @property
    def partition(self) -> int:
        return self.entry.partition

    @property
    def rows(self) -> int:
        return self.entry.digest.rows

    @property
    def outcome(self) -> Outcome:
        return outcome(self.evidence)

    @property
    def same_rows(self) -> bool:
        """True if the end of the topic holds exactly the rows that were decided."""
        return bool(self.trace and self.trace.rows) and self.readable == self.entry.digest

    @property
    def marker(self) -> bool | None:
        """True if its marker commits, behind the witness or at the end of the topic."""
        if self.evidence.marker is None and self.trace:
            return self.trace.committed
        return self.evidence.marker


@dataclass(frozen=True)
class OtherTask:
    """A task of the batch whose transaction its decision does not name.

    Attributes:
        outcome: COMMITTED: its rows are in the decision's transaction.
        replaced: its entry in an earlier decision of the batch, which the latest one has not.
        state: of its transaction, which no decision names.
    """

    partition: int
    outcome: Outcome | TaskState
    rows: int | None = None
    replaced: Prepared | None = None
    state: TransactionState | None = None


@dataclass(frozen=True)
class BatchEvidence(BatchRecord):
    """The evidence of a batch: in the log, and in Kafka, there of its query too.

    Attributes:
        log: the topic of the decision log.
        tasks: by partition.
        tails: the ends of the topics that its transactions have written to.
        undecided: the query's open transactions that its latest decision does not name; None: they
            could not be listed.
        committed: ids that were committed although the log has no record; None: it is not seen.
        hosts: those of the members of the query's group; None: the group could not be read.
        unseen: what could not be read.
    """

    log: str = ""
    tasks: tuple[TransactionEvidence | OtherTask, ...] = ()
    tails: tuple[PartitionTail, ...] = ()
    undecided: tuple[Transaction, ...] | None = ()
    committed: tuple[str, ...] | None = ()
    hosts: tuple[str, ...] | None = ()
    unseen: tuple[str, ...] = ()

    @property
    def untraced(self) -> bool:
        """True if neither the log nor Kafka has a trace of the query."""
        return not (self.history.seq or self.committed or self.unseen)

    @property
    def transactions(self) -> list[TransactionEvidence]:
        """Those that the decision names."""
        return [task for task in self.tasks if isinstance(task, TransactionEvidence)]

    @property
    def view(self) -> View:
        """Return what a driver would know of the query, if the batch is its latest one."""
        found = tuple(each.evidence for each in self.transactions)
        return View(self.names, self.history.entry, found, listed=frozenset(self.undecided or ()))

    @property
    def needs(self) -> dict[Need, list[int]]:
        return find_needs(self.view)


def gather_evidence(
    admin: Admin, batch: BatchRecord, tail: int, deadline: Deadline
) -> BatchEvidence:
    """Gather the evidence about a batch.

    Args:
        tail: the offsets to read at the end of each partition of its topics.
    """
    names, history = batch.names, batch.history
    unseen = [history.unread] if history.unread else []
    if hidden := history.hidden:
        what = f"The query's latest record, at {hidden.position}, cannot be read: {hidden.why}."
        unseen.append(f"{what} Use the version of eos-sink that wrote it.")
    evidence = batch.evidence
    with _noting(unseen):
        evidence = ask_all(admin, evidence, deadline)
    transactions = list(map(TransactionEvidence, evidence))
    tails: list[PartitionTail] = []
    if tail:
        with _noting(unseen):
            transactions, tails = _read_ends(admin, evidence, tail, deadline)
        for each in tails:
            if each.unread:
                place = f"{each.topic}[{each.partition}]"
                unseen.append(f"The end of {place} was not read as a whole: {each.unread}")
    states: list[TransactionState] | None = None
    with _noting(unseen):
        states = admin.control().list_transactions(f"{names.group}-", deadline)
    hosts: tuple[str, ...] | None = None
    with _noting(unseen):
        hosts = list_hosts(admin.describe_groups([names.group], deadline)[names.group])
    others = list_others(batch, states or ())
    tasks: list[TransactionEvidence | OtherTask] = [*transactions, *others]
    left: tuple[Transaction, ...] | None = None
    committed: tuple[str, ...] | None = () if history.is_seen else None
    if states is not None:
        left = tuple(select_undecided(names, states, history.decision))
        if not (history.is_seen or history.unread):
            ids = [each.transaction.transactional_id for each in states if each.has_committed]
            committed = tuple(sorted(ids))
    return BatchEvidence(
        **vars(batch),
        log=admin.log_topic,
        tasks=tuple(sorted(tasks, key=lambda task: task.partition)),
        tails=tuple(tails),
        undecided=left,
        committed=committed,
        hosts=hosts,
        unseen=tuple(unseen),
    )


@contextmanager
def _noting(unseen: list[str]) -> Iterator[None]:
    """Note what could not be read, and go on with the rest."""
    try:
        yield
    except EosSinkError as error:
        if (what := Problem.of(error).what) not in unseen:
            unseen.append(what)


def _read_ends(
    kafka: Kafka, asked: Sequence[Evidence], tail: int, deadline: Deadline
) -> tuple[list[TransactionEvidence], list[PartitionTail]]:
    """Read the ends of topics, and digest the rows of the decision's producers."""
    # Imported here: `eos-sink status` needs nothing for rows.
    from eos_sink.rows.fingerprint import RowDigester

    producers = [
        ProducerIdentity(evidence.transaction.producer_id, evidence.transaction.epoch)
        for evidence in asked
    ]
    # The log does not say whether the query gives each row its topic: one of the two fits.
    digesters = {
        producer: (RowDigester(topic_varies=False), RowDigester(topic_varies=True))
        for producer in producers
    }

    def add_row(producer: ProducerIdentity, row: Row) -> None:
        for digester in digesters[producer]:
            digester.add_row(row)

    tails: list[PartitionTail] = []
    for topic in sorted({evidence.entry.witness.topic for evidence in asked}):
        tails += kafka.read_back().scan_topic(topic, frozenset(digesters), tail, add_row, deadline)

    def add_up(evidence: Evidence, producer: ProducerIdentity) -> TransactionEvidence:
        traces = [tail.traces[producer] for tail in tails if producer in tail.traces]
        markers = [trace.committed for trace in traces if trace.committed is not None]
        fixed, varying = (digester.digest for digester in digesters[producer])
        digest = varying if varying == evidence.entry.digest else fixed
        rows = sum(trace.rows for trace in traces)
        trace = Trace(rows, markers[0] if markers else None)
        return TransactionEvidence(evidence, trace, digest)

    return list(map(add_up, asked, producers)), tails


_UNDECIDED = {
    TransactionStatus.ONGOING: TaskState.UNDECIDED,
    TransactionStatus.PREPARE_ABORT: TaskState.ABORTED,
    TransactionStatus.COMPLETE_ABORT: TaskState.ABORTED,
    TransactionStatus.PREPARE_EPOCH_FENCE: TaskState.ABORTED,
}


def list_others(batch: BatchRecord, states: Iterable[TransactionState]) -> Iterator[OtherTask]:
    """The tasks of a batch whose transactions its decision does not name. Those of a batch that is
    not decided use the slot that the latest decision does not.

    Args:
        states: of the query's transactions.
    """
    if batch.state is RecordState.NOT_DECIDED:
        latest = batch.history.decision
        for state in states:
            task = batch.names.parse_task(state.transaction.transactional_id)
            if task and state.status in _UNDECIDED and not (latest and task.slot == latest.slot):
                yield OtherTask(task.partition, _UNDECIDED[state.status], state=state)
    for entry in batch.replaced:
        yield OtherTask(entry.partition, TaskState.REWRITTEN, entry.digest.rows, replaced=entry)
    if batch.decision is not None:
        for inlined in batch.decision.inlined:
            yield OtherTask(inlined.partition, Outcome.COMMITTED, inlined.digest.rows)
        for partition in set(range(batch.decision.partitions)) - batch.decision.digests.keys():
            yield OtherTask(partition, TaskState.NO_ROWS, 0)
