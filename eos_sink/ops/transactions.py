"""A cluster's transactional ids beside what the decision log says of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eos_sink.identity import QueryNames, TaskId
from eos_sink.kafka.interfaces import TransactionState, TransactionStatus
from eos_sink.ops.history import History, Written
from eos_sink.ops.snapshot import names_of, placed
from eos_sink.protocol.model import Prepared


@dataclass(frozen=True)
class Line:
    """One transactional id.

    Attributes:
        names: of its query; None: the log knows none that it could be of.
        query: as it is shown, `QueryNames.shown`; empty: of none.
        task: None: the driver's own, or of no query.
        written: the latest kept record that decides this very transaction.
        latest: that is the query's latest decision.
        entry: what the decision says of it.
    """

    state: TransactionState
    names: QueryNames | None
    task: TaskId | None
    written: Written | None
    latest: bool
    entry: Prepared | None
    query: str = ""

    @property
    def open(self) -> bool:
        return self.state.status is TransactionStatus.ONGOING

    @property
    def decided(self) -> bool:
        """It must be committed."""
        return self.latest

    @property
    def said(self) -> str:
        """What the log says, for a table."""
        if self.written is not None and self.written.record.decision is not None:
            return f"decided ({self.written.record.decision.batch.batch})"
        if self.open:
            return "undecided" if self.task else "-"
        return "-"


def lines_of(
    states: Iterable[TransactionState], histories: Mapping[str, History], prefix: str
) -> list[Line]:
    """Each id with what the log says; in the order of the ids.

    Args:
        prefix: of queries whose ids do not tell theirs.
    """
    found: list[Line] = []
    for query, mine in placed(states, histories).items():
        if query is None:
            found += (Line(state, None, None, None, False, None) for state in mine)
            continue
        history = histories[query]
        names = names_of(history, mine, prefix)
        found += (_line(state, names, history) for state in mine)
    return sorted(found, key=lambda line: line.state.transaction.transactional_id)


def _line(state: TransactionState, names: QueryNames, history: History) -> Line:
    task = names.parse_task(state.transaction.transactional_id)
    latest = history.latest.record.decision if history.latest else None
    for written in reversed(history.records):
        decision = written.record.decision
        entry = decision.transactions(names).get(state.transaction) if decision else None
        if entry is not None:
            return Line(state, names, task, written, decision == latest, entry, history.query)
    return Line(state, names, task, None, False, None, history.query)
