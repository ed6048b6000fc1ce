"""Counts and logs the batches of a process.

Nothing here may stop a batch: a figure that cannot be computed is left out. No figure is added
twice: where it is unknown whether a record reached the log, the record's figures are dropped.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from eos_sink.errors import CommitFailedError, SupersededError
from eos_sink.identity import QueryNames
from eos_sink.metrics import events
from eos_sink.metrics.names import Count, Event, Step
from eos_sink.metrics.stats import Stats, StepClock
from eos_sink.protocol.model import BatchId, Decision, RowDigest, TaskReport
from eos_sink.protocol.values import TransactionState

_LOGGER = logging.getLogger("eos_sink.driver")
_TASK_STEPS = (Step.OPEN, Step.WRITE)
# These end after the batch's record is written, so they go into the next record.
_LATE_STEPS = (Step.VOTE, Step.DECIDE, Step.SETTLE)


class BatchMetrics:
    """Figures and log lines of the process that commits and aborts a query's batches."""

    def __init__(self, names: QueryNames) -> None:
        self._query = names.query
        self._left_ms: int | None = None
        self._timeout_ms: int | None = None
        self._pending = Stats()

    def voted(self, states: Iterable[TransactionState], now_ms: int) -> None:
        """The vote has passed."""
        with contextlib.suppress(Exception):
            left = [(s.started_ms + s.timeout_ms - now_ms, s.timeout_ms) for s in states]
            self._left_ms, self._timeout_ms = min(left)

    def take_pending(self) -> Stats:
        """The figures that the next record adds."""
        pending, self._pending = self._pending, Stats()
        return pending

    def count_decision(
        self,
        decision: Decision,
        reports: Sequence[TaskReport],
        rewritten: Collection[int],
        clock: StepClock,
        now_ms: int,
    ) -> Stats:
        """The figures that the decision's record adds.

        Args:
            rewritten: partitions that are written again under an earlier decision of the batch.
        """
        pending = self.take_pending()
        with contextlib.suppress(Exception):
            written = sum(1 for report in reports if report.prepared)
            inlined = sum(report.digest.rows for report in reports if report.inline)
            counts = {
                Count.TRANSACTIONS: written,
                Count.REWRITES: len(rewritten),
                Count.INLINE_ROWS: inlined,
                Count.INLINE_BATCHES: bool(inlined and not decision.prepared),
                Count.DEAD_LETTERS: sum(report.dead_letter_rows for report in reports),
            }
            if not rewritten:
                total = decision.total
                counts |= {Count.BATCHES: 1, Count.ROWS: total.rows, Count.BYTES: total.bytes}
            for step in _TASK_STEPS:
                if took := [report.took[step] for report in reports if step in report.took]:
                    clock.took[step] = max(took)
            left_ms = None if self._left_ms is None else max(0, self._left_ms)
            batch = Stats(counts, {}, now_ms, left_ms, self._timeout_ms)
            return pending + batch + Stats.of_steps(clock.took)
        return Stats()

    def committed(
        self, decision: Decision, rewritten: Collection[int], clock: StepClock, seq: int
    ) -> None:
        """The decision is settled and all of it is visible."""
        with contextlib.suppress(Exception):
            took = clock.took
            left_ms = self._left_ms if Step.VOTE in took else None
            self._pending += Stats.of_steps({s: took[s] for s in _LATE_STEPS if s in took})
            events.emit(
                Event.REWRITTEN if rewritten else Event.COMMITTED,
                self._query,
                **_name(decision.batch),
                seq=seq,
                partitions=decision.partitions,
                transactions=len(decision.prepared),
                inline_partitions=len(decision.inlined),
                rows=decision.total.rows,
                bytes=decision.total.bytes,
                dead_letters=decision.dead_letter_rows or None,
                rewritten_partitions=sorted(rewritten) or None,
                **{f"{step.label}_seconds": round(took[step], 6) for step in Step if step in took},
                time_left_seconds=None if left_ms is None else left_ms / 1000,
            )

    def replayed(self, batch: BatchId) -> None:
        """A replay was found to be visible already; in most cases no record follows."""
        with contextlib.suppress(Exception):
            self._pending += Stats({Count.REPLAYS: 1})
            events.emit(Event.REPLAYED, self._query, **_name(batch))

    def skipped(self, reports: Sequence[TaskReport]) -> None:
        """The batch was written before, and tasks have written nothing."""
        _LOGGER.warning(
            "Query %s: %s is skipped, since it was written before; its %s rows are not written "
            "again.",
            self._query,
            reports[0].batch,
            RowDigest.total(report.digest for report in reports).rows,
        )

    def aborted(self, reports: Sequence[TaskReport], transactions: int) -> None:
        batch = _name(reports[0].batch) if reports else {}
        events.emit(Event.ABORTED, self._query, **batch, transactions=transactions)

    def warn_of_new_stream(self, batch: BatchId) -> None:
        _LOGGER.warning(
            "Query %s: a new checkpoint begins with %s, under an identity that has written before, "
            "and the old one is refused from now on. Rows that this query reads again are there "
            "twice.",
            self._query,
            batch,
        )

    def warn_of_dead_letters(self, reports: Sequence[TaskReport], topic: str | None) -> None:
        counts: Counter[str] = Counter()
        for report in reports:
            counts.update(report.dead_letters)
        if counts:
            _LOGGER.warning(
                "Query %s: %s has %s rows that Kafka would have refused (%s). They are in topic "
                "%s, with the reason in their headers.",
                self._query,
                reports[0].batch,
                counts.total(),
                ", ".join(f"{error} {number}" for error, number in sorted(counts.items())),
                topic,
            )

    def warn_of_open(self, refused: CommitFailedError) -> None:
        """The plan has expired, and can be decided no more; what is open may be a newer one's."""
        _LOGGER.warning(
            "Query %s: the batch is given up. What is open of it is aborted at the query's next "
            "start, or when it times out: %s",
            self._query,
            refused.message,
        )


@contextlib.contextmanager
def log_superseded(names: QueryNames) -> Iterator[None]:
    """Log the end of a run that was replaced."""
    try:
        yield
    except SupersededError as error:
        events.emit(Event.SUPERSEDED, names.query, **error.data)
        raise


def _name(batch: BatchId) -> dict[str, object]:
    return {"stream": batch.stream, "batch": batch.batch}
