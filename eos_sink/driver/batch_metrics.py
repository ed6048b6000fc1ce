"""What a driver's process notes of its batches: figures for the log's next record, and log lines.

It reads what the protocol has done and changes nothing of it. Whatever goes wrong here costs
figures, never a batch. No figure is added twice: what cannot be told whether it reached the log,
because the write of its record failed, is left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eos_sink.decision_log import Entry
from eos_sink.errors import SupersededError
from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import TransactionState
from eos_sink.metrics import events
from eos_sink.metrics.names import Count, Event, Step
from eos_sink.metrics.stats import Stats, StepClock
from eos_sink.protocol.model import BatchId, Decision, Run, TaskReport

_TASK_STEPS = (Step.OPEN, Step.WRITE)
# They end when the batch's record is written.
_LATE_STEPS = (Step.VOTE, Step.DECIDE, Step.SETTLE)


class CommitJournal:
    """Of the process that commits and aborts."""

    def __init__(self, names: QueryNames) -> None:
        self._query = names.query
        self._left_ms: int | None = None
        self._timeout_ms: int | None = None
        self._later = Stats()

    def voted(self, states: Iterable[TransactionState], now_ms: int) -> None:
        """The vote has passed."""
        with contextlib.suppress(Exception):
            left = [(s.started_ms + s.timeout_ms - now_ms, s.timeout_ms) for s in states]
            self._left_ms, self._timeout_ms = min(left)

    def deciding(
        self,
        decision: Decision,
        reports: Sequence[TaskReport],
        rewritten: Collection[int],
        clock: StepClock,
        now_ms: int,
    ) -> Stats:
        """What the decision's record adds.

        Args:
            rewritten: partitions that are written again under an earlier decision of the batch.
        """
        later, self._later = self._later, Stats()
        with contextlib.suppress(Exception):
            written = sum(1 for report in reports if report.prepared)
            counts = {Count.TRANSACTIONS: written, Count.REWRITES: len(rewritten)}
            if not rewritten:
                counts |= {
                    Count.BATCHES: 1,
                    Count.ROWS: decision.total.rows,
                    Count.BYTES: decision.total.bytes,
                }
            _slowest(reports, clock)
            left_ms = None if self._left_ms is None else max(0, self._left_ms)
            batch = Stats(counts, {}, now_ms, left_ms, self._timeout_ms)
            return later + batch + Stats.of_steps(clock.took)
        return Stats()

    def committed(
        self, decision: Decision, rewritten: Collection[int], clock: StepClock, seq: int
    ) -> None:
        """All of the decision is visible, but for what was lost."""
        with contextlib.suppress(Exception):
            took = clock.took
            known: dict[Step, float] = {s: took[s] for s in _LATE_STEPS if s in took}
            self._later += Stats.of_steps(known)
            events.emit(
                Event.REWRITTEN if rewritten else Event.COMMITTED,
                self._query,
                **_named(decision.batch),
                seq=seq,
                partitions=decision.partitions,
                transactions=len(decision.prepared),
                rows=decision.total.rows,
                bytes=decision.total.bytes,
                rewritten_partitions=sorted(rewritten) or None,
                **{f"{step.label}_seconds": round(took[step], 6) for step in Step if step in took},
                time_left_seconds=None if self._left_ms is None else self._left_ms / 1000,
            )

    def replayed(self, batch: BatchId) -> None:
        """A repeated batch was found to be written already; most often there is no record of it."""
        with contextlib.suppress(Exception):
            self._later += Stats({Count.REPLAYS: 1})
            events.emit(Event.REPLAYED, self._query, **_named(batch))

    def next(self) -> Stats:
        """What a record adds that decides no new batch."""
        later, self._later = self._later, Stats()
        return later

    def aborting(self) -> Stats:
        """What the void of a batch that is given up adds."""
        return self.next() + Stats({Count.ABORTS: 1})

    def aborted(self, reports: Sequence[TaskReport], transactions: int) -> None:
        batch = _named(reports[0].batch) if reports else {}
        events.emit(Event.ABORTED, self._query, **batch, transactions=transactions)


class PlanJournal:
    """Of a process that plans."""

    def __init__(self, names: QueryNames, run: Run) -> None:
        self._query = names.query
        self._run = run
        self._void = _Void()

    def voiding(self, entry: Entry, open_: int, *, recovers: bool) -> Stats:
        """What a plan's void adds.

        Args:
            entry: the latest record before it.
            open_: how many transactions are given up with it.
            recovers: it is a recovery's first one.
        """
        before = entry.record.run
        same = before is not None and (before == self._run or self._run.is_sibling_of(before))
        self._void = _Void(open_, recovers, recovers and not same)
        return self._void.figures

    def voided(self) -> None:
        """The same in log lines, when it is in the log and what was open is aborted."""
        void = self._void
        if void.recovers:
            run = str(self._run) if void.new_run else None
            events.emit(Event.RECOVERED, self._query, run=run, transactions=void.open_)
        if void.open_:
            events.emit(Event.ABORTED, self._query, transactions=void.open_)


@dataclass(frozen=True)
class _Void:
    """A planner that the same run goes on in is no new run."""

    open_: int = 0
    recovers: bool = False
    new_run: bool = False

    @property
    def figures(self) -> Stats:
        counted = {
            Count.ABORTS: self.open_ > 0,
            Count.RUNS: self.new_run,
            Count.RECOVERIES: self.recovers,
        }
        return Stats({count: 1 for count, is_one in counted.items() if is_one})


@contextlib.contextmanager
def superseded_run(names: QueryNames) -> Iterator[None]:
    """Tell of the end of a run that was replaced."""
    try:
        yield
    except SupersededError as error:
        events.emit(Event.SUPERSEDED, names.query, **error.data)
        raise


def _slowest(reports: Sequence[TaskReport], clock: StepClock) -> None:
    """The steps of tasks, which the batch has waited for, beside those of the driver."""
    for step in _TASK_STEPS:
        took = [report.took[step] for report in reports if step in report.took]
        if took:
            clock.took[step] = max(took)


def _named(batch: BatchId) -> Mapping[str, object]:
    return {"stream": batch.stream, "batch": batch.batch}
