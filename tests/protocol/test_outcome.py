"""What became of a decided transaction: one table, and every caller agrees with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from eos_sink.decision_log.codec import encode
from eos_sink.driver.reconcile import bring_to_rest
from eos_sink.errors import UnfinishedError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import LogLine, LogPage
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import MemberDescription, Unseen
from eos_sink.ops.batch_record import find_batch
from eos_sink.ops.evidence import gather_evidence
from eos_sink.ops.observer import Observer
from eos_sink.protocol import outcome as judging
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogEntry,
    LogRecord,
    Numbering,
    Override,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.outcome import (
    Evidence,
    Outcome,
    Source,
    batch_outcome,
    is_in_vain,
    missing,
    outcome,
)
from eos_sink.protocol.reconcile import View
from eos_sink.protocol.values import (
    EndOutcome,
    FirstOpen,
    Place,
    Position,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)
from tests.protocol.world import options
from tests.snippets import ROOT

OPTIONS = options()
NAMES = OPTIONS.names
ENTRY = Prepared(0, 7, 3, RowDigest(1, 2, 3), Position("out", 0, 5))
DECISION = Decision(BatchId("s", 1), 0, 1, ENTRY.digest, (ENTRY,), topics={"out": ""})
(T,) = DECISION.transactions(NAMES)
LATER = replace(T, epoch=T.epoch + 1)

STATES = [
    *(TransactionState(T, status, 0, 60_000) for status in TransactionStatus),
    *(
        TransactionState(other, status, 0, 60_000)
        for other in (LATER, replace(T, epoch=2), replace(T, producer_id=8))
        for status in (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.ONGOING)
    ),
]
WITNESSES = [*Visibility, None]
TOLD = [True, False, None]
ENDS = [*EndOutcome, None]
NONE = frozenset[int]()
RULINGS = [
    Override(visible, lost, accepted)
    for visible, lost in ((NONE, NONE), (NONE | {0}, NONE), (NONE, NONE | {0}))
    for accepted in (False, True)
]
IS_OPEN = {TransactionStatus.ONGOING, TransactionStatus.PREPARE_COMMIT}


@dataclass
class Canned:
    """A cluster with one decided transaction, that answers what it is made to."""

    record: LogRecord
    state: TransactionState
    witness: Visibility | None
    marker: bool | None
    end_: EndOutcome | None = None
    log_topic: ClassVar[str] = "log"

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: []

    def control(self) -> Canned:
        return self

    def read_back(self) -> Canned:
        return self

    def describe(
        self, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        return dict.fromkeys(ids, self.state)

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        assert commit
        return {} if self.end_ is None else dict.fromkeys(transactions, self.end_)

    def visibility(
        self, witnesses: Mapping[Position, Any], deadline: Deadline
    ) -> dict[Position, Visibility]:
        return {} if self.witness is None else dict.fromkeys(witnesses, self.witness)

    def markers(self, asked: Mapping[Position, Any], deadline: Deadline) -> dict[Position, bool]:
        return {} if self.marker is None else dict.fromkeys(asked, self.marker)

    def find_holders(self, *_: object) -> dict[Place, FirstOpen | None]:
        return {}

    def list_offsets(self, *_: object) -> dict[Place, Unseen]:
        return {}

    def read_log(self, since: Mapping[int, int], deadline: Deadline) -> LogPage:
        line = LogLine(NAMES.query, Position("log", 0, 9), 0, encode(self.record))
        return LogPage((line,), {0: 10})

    def log_reader(self, names: QueryNames, deadline: Deadline) -> Any:
        return SimpleNamespace(
            latest=lambda *_, **__: (Position("log", 0, 9), encode(self.record)),
            home=Position("log", 0, 0),
            close=lambda: None,
        )

    def describe_topics(
        self, names: Iterable[str], deadline: Deadline, *, settings: bool = True
    ) -> dict[str, Unseen]:
        return dict.fromkeys(names, Unseen("no answer"))

    def describe_groups(
        self, groups: Iterable[str], deadline: Deadline
    ) -> dict[str, tuple[MemberDescription, ...] | Unseen]:
        return dict.fromkeys(groups, ())


def settled_to(kafka: Canned) -> Outcome:
    """What the sink makes of it, where it has not to send EndTxn."""
    try:
        entry = LogEntry(kafka.record, Position("log", 0, 9))
        found = bring_to_rest(kafka, View.of(NAMES, entry), Deadline(1))
    except UnfinishedError:
        return Outcome.UNKNOWN
    if found.lost or found.doubtful:
        return Outcome.LOST if found.lost else Outcome.IN_DOUBT
    return Outcome.COMMITTED


def status_of(kafka: Canned) -> Outcome | None:
    status = Observer(kafka, NAMES.prefix).look(Deadline(9)).queries[0]
    assert bool(status.view.lost) == (status.outcome is Outcome.LOST)
    assert bool(status.view.doubtful) == (status.outcome is Outcome.IN_DOUBT)
    return status.outcome


def explained(kafka: Canned) -> Outcome:
    status = Observer(kafka, NAMES.prefix).look(Deadline(9)).queries[0]
    for number in (DECISION.batch.batch, None):
        batch = find_batch(NAMES, status.history, number)
        evidence = gather_evidence(kafka, batch, 10, Deadline(9))
        (transaction,) = evidence.transactions
        assert bool(evidence.view.doubtful) == (transaction.outcome is Outcome.IN_DOUBT)
    return transaction.outcome


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("override", RULINGS, ids=str)
def test_every_caller_says_the_same_of_every_evidence(override: Override, settled: bool) -> None:
    record = LogRecord(3, replace(DECISION, override=override), "w", settled=settled)
    for state, witness, marker in itertools.product(STATES, WITNESSES, TOLD):
        kafka = Canned(record, state, witness, marker)
        said = {status_of(kafka), explained(kafka)}
        assert len(said) == 1, (state, witness, marker, said)
        (one,) = said
        if one is not Outcome.OPEN:
            expected = Outcome.COMMITTED if one is Outcome.ACCEPTED else one
            assert settled_to(kafka) is expected, (state, witness, marker)
            continue
        # The sink goes on: it ends what is open.
        kafka.end_ = EndOutcome.DONE
        assert settled_to(kafka) is Outcome.COMMITTED
        kafka.end_ = None
        assert settled_to(kafka) is Outcome.UNKNOWN
        kafka.end_ = EndOutcome.REFUSED
        elsewhere = replace(kafka, state=replace(state, transaction=LATER))
        assert settled_to(kafka) is settled_to(elsewhere)


def all_evidence() -> Iterable[Evidence]:
    flags = list(itertools.product((True, False), repeat=4))
    for (
        settled,
        later,
        accepted,
        made_again,
    ), state, end, witness, marker, override in itertools.product(
        flags, [*STATES, None], ENDS, WITNESSES, TOLD, TOLD
    ):
        yield Evidence(
            T,
            ENTRY,
            "",
            settled,
            later,
            state,
            end,
            witness,
            marker,
            override,
            accepted,
            made_again,
        )


def table() -> list[list[str]]:
    """The rows of the page: what is known, and what follows."""
    text = (ROOT / "docs" / "design.md").read_text()
    lines = text[text.index("| The log says settled |") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def fits(row: list[str], known: Evidence) -> bool:
    own = known.state is not None and known.state.transaction == known.transaction
    status = known.state.status if known.state and own else None
    coordinator = "silent"
    if status is TransactionStatus.COMPLETE_COMMIT:
        coordinator = "committed"
    elif status in IS_OPEN and known.end is None:
        ongoing = status is TransactionStatus.ONGOING
        coordinator = "open in a topic made again" if ongoing and known.made_again else "open"
    elif status is TransactionStatus.COMPLETE_ABORT and known.made_again and known.end is None:
        coordinator = "aborted in a topic made again"
    words = {True: "yes", False: "no"}
    marks = {True: "commit", False: "abort", None: "none"}
    witness = {
        Visibility.COMMITTED: "there",
        Visibility.ABORTED: "aborted",
        Visibility.UNREADABLE: "unreadable",
        None: "no answer",
    }[known.witness]
    overrides = {True: "visible", False: "lost", None: "none"}
    said = [
        words[known.settled],
        words[known.end is EndOutcome.DONE],
        coordinator,
        witness,
        marks[known.marker],
        overrides[known.override],
        words[known.accepted],
        words[known.later],
    ]
    return all(
        cell in ("", word) or word in cell.split(", ")
        for cell, word in zip(row, said, strict=False)
    )


def test_the_page_shows_the_function() -> None:
    """The first row that fits tells the outcome."""
    rows = table()
    used = set()
    for known in all_evidence():
        number, row = next((n, row) for n, row in enumerate(rows) if fits(row, known))
        assert row[-1] == outcome(known).value, known
        used.add(number)
    assert used == set(range(len(rows)))


def test_what_is_missing_is_asked_for_in_the_order_of_its_weight() -> None:
    for known in all_evidence():
        needs = missing(known)
        if outcome(known) is Outcome.UNKNOWN:
            assert needs in (Source.COORDINATOR, Source.WITNESS), known
        if needs is Source.MARKER:
            assert known.witness is Visibility.UNREADABLE
            assert known.marker is None
        if known.settled or known.end is EndOutcome.DONE:
            assert needs is None


def evidence_of(
    status: TransactionStatus | None = None, of: Transaction = T, **what: Any
) -> Evidence:
    state = status and TransactionState(of, status, 0, 60_000)
    return Evidence(T, ENTRY, state=state, **what)


COMMITTED, ABORTED = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT
ONGOING = TransactionStatus.ONGOING


@pytest.mark.parametrize(
    ("evidence", "source"),
    [
        (evidence_of(), Source.COORDINATOR),
        (evidence_of(witness=Visibility.COMMITTED), Source.COORDINATOR),
        (evidence_of(end=EndOutcome.REFUSED), Source.WITNESS),
        (evidence_of(ABORTED), Source.WITNESS),
        (evidence_of(ABORTED, witness=Visibility.UNREADABLE), Source.MARKER),
        (evidence_of(ABORTED, witness=Visibility.UNREADABLE, marker=False), None),
        (evidence_of(ABORTED, witness=Visibility.ABORTED), None),
        (evidence_of(COMMITTED), None),
        (evidence_of(ONGOING), None),
        (evidence_of(settled=True), None),
    ],
)
def test_a_source_is_asked_after_those_before_it(evidence: Evidence, source: Source | None) -> None:
    assert missing(evidence) is source


@pytest.mark.parametrize(
    ("evidence", "in_vain"),
    [
        (evidence_of(ONGOING, made_again=True), True),
        (evidence_of(ABORTED, made_again=True), True),
        (evidence_of(COMMITTED, made_again=True), False),
        (evidence_of(ONGOING), False),
        (evidence_of(ONGOING, made_again=True, accepted=True), False),
        (evidence_of(ONGOING, LATER, made_again=True), False),
        (evidence_of(made_again=True), False),
    ],
)
def test_a_commit_is_in_vain_in_a_topic_that_was_made_again(
    evidence: Evidence, in_vain: bool
) -> None:
    assert is_in_vain(evidence) is in_vain


def test_a_batch_is_as_its_worst_transaction() -> None:
    order = [
        Outcome.OPEN,
        Outcome.IN_DOUBT,
        Outcome.LOST,
        Outcome.UNKNOWN,
        Outcome.ACCEPTED,
        Outcome.COMMITTED,
    ]
    assert set(order) == set(Outcome)
    for worse, better in itertools.combinations(order, 2):
        assert batch_outcome([better, worse, better]) is worse
    assert batch_outcome([]) is Outcome.COMMITTED


@pytest.mark.parametrize("numbering", list(Numbering))
def test_spark_goes_on_after_commit_only_where_it_numbers_the_batches(
    numbering: Numbering,
) -> None:
    by_spark = numbering in (Numbering.STREAM, Numbering.FOREACH)
    decided, later = (BatchId.numbered_by(numbering, "a", number) for number in (4, 5))
    other = BatchId.numbered_by(numbering, "b", 5)
    assert judging.proves_commit(later, decided) is by_spark
    for now in (decided, other, BatchId.numbered_by(numbering, "a", 3)):
        assert not judging.proves_commit(now, decided)
