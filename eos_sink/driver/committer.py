"""What follows the tasks: vote, decide and settle, or void and abort.

Spark calls `commit()` and `abort()` in another process than `streamWriter()`'s, and `abort()` also
when the process of `commit()` died after the decision, or lives on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from eos_sink import events
from eos_sink.deadline import Deadline
from eos_sink.driver.journal import CommitJournal, superseded_run
from eos_sink.driver.settle import settle
from eos_sink.driver.sweep import abort_all, list_undecided, void
from eos_sink.errors import SupersededError, UnfinishedError
from eos_sink.log import DecisionRegister, check_forward, superseded
from eos_sink.metrics import Step
from eos_sink.model import Decision, Numbering, PlanToken, Prepared, Tally, TaskReport
from eos_sink.options import SinkOptions
from eos_sink.ports import Kafka
from eos_sink.stats import StepClock
from eos_sink.verdicts import (
    check_replay,
    check_rewrite,
    check_unmoved,
    check_vote,
    vote_margin_ms,
)

_LOGGER = logging.getLogger("eos_sink.driver")


def _now_ms() -> int:
    return int(time.time() * 1000)


class Committer:
    """The committer of one query in one process, kept between batches."""

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        now_ms: Callable[[], int] = _now_ms,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kafka = kafka
        self._options = options
        self._names = options.names
        self._register = DecisionRegister(kafka, options.names)
        self._now_ms = now_ms
        self._clock = clock
        self._journal = CommitJournal(options.names)
        self._checked = {options.topic}
        if options.metrics_log:
            events.show()

    def commit(self, reports: Sequence[TaskReport]) -> None:
        """Make a written batch visible, or see that it is.

        Raises:
            CommitFailedError, SupersededError: nothing is decided.
            UnfinishedError: decided; a restart finishes it.
            OutcomeUnknownError: unknown which; a restart finds out.
            OperatorNeededError: a replay with other rows than decided, or a checkpoint that has
                moved to another identity amid a batch.
        """
        with superseded_run(self._names):
            self._commit(reports, Deadline(self._options.step_timeout))

    def _commit(self, reports: Sequence[TaskReport], deadline: Deadline) -> None:
        if any(report.skipped for report in reports):
            rows = Tally.total([report.tally for report in reports]).rows
            _LOGGER.warning(
                "Query %s: %s is skipped, since a later version is decided; its %s rows are not "
                "written.",
                self._names.query,
                reports[0].batch,
                rows,
            )
        elif any(report.replayed for report in reports):
            self._commit_replay(reports, deadline)
        elif any(report.prepared for report in reports):
            decision = Decision(
                batch=reports[0].batch,
                slot=reports[0].slot,
                partitions=len(reports),
                total=Tally.total([report.tally for report in reports]),
                prepared=_prepared(reports),
                run=reports[0].run,
            )
            self._decide(reports, decision, deadline)

    def abort(self, reports: Sequence[TaskReport], token: PlanToken | None = None) -> None:
        """Give up a batch unless it is decided: what the decision names is settled instead.

        Without a token and any report the plan is unknown, and with it the right to void; the next
        plan of the query, or the time-out, ends what the tasks left open.

        Args:
            token: the plan's, where it is known without a report.
        """
        deadline = Deadline(self._options.step_timeout)
        entry = self._register.open(deadline)
        decision = entry.decision
        if decision is not None:
            settle(self._kafka, self._names, decision, deadline, just_decided=False)
        token = reports[0].token if reports else token
        if token is None:
            return
        listed = list_undecided(self._kafka, self._names, decision, deadline)
        decided = decision.transactions(self._names).keys() if decision else frozenset()
        prepared = {r.prepared.transaction(self._names, r.slot) for r in reports if r.prepared}
        given_up = {*listed, *prepared} - decided
        try:
            with superseded_run(self._names):
                void(self._register, token, entry, deadline, self._journal.aborting())
        except SupersededError:
            return  # A newer driver owns the query; its recovery cleans up.
        abort_all(self._kafka, given_up, deadline)
        self._journal.aborted(reports, len(given_up))

    def close(self) -> None:
        """Leave no client behind."""
        self._register.close()
        self._kafka.close()

    def _decide(
        self,
        reports: Sequence[TaskReport],
        decision: Decision,
        deadline: Deadline,
        rewritten: frozenset[int] = frozenset(),
    ) -> None:
        token = reports[0].token
        record = self._register.expect(token, deadline).record
        if decision.batch.namesakes and not record.knows(decision.batch.stream):
            # The stream's first decision here: has the query written under another identity?
            check_unmoved(self._names, decision, self._register.elsewhere(deadline))
        self._check_topics(decision, deadline)
        clock = StepClock(self._clock)
        self._vote([r for r in reports if r.prepared], deadline)
        clock.end(Step.VOTE)
        figures = self._journal.deciding(decision, reports, rewritten, clock, self._now_ms())
        clock.begin()
        self._register.write(token, decision, deadline, figures)
        clock.end(Step.DECIDE)
        lost = settle(self._kafka, self._names, decision, deadline, just_decided=True)
        clock.end(Step.SETTLE)
        if lost:
            raise UnfinishedError(
                f"Query {self._names.query}: {decision.batch} is decided, but its partitions "
                f"{sorted(lost)} were aborted meanwhile, by their time-out or a late attempt of "
                "their tasks.",
                remedy="Start the query again: Spark replays the batch and these are written "
                "again.",
                data={"batch": decision.batch.batch, "partitions": sorted(lost)},
            )
        self._journal.committed(decision, rewritten, clock, token.seq + 1)

    def _check_topics(self, decision: Decision, deadline: Deadline) -> None:
        """Topics of the column are known only now. What may not be read back is not decided."""
        for topic in set(decision.topics) - self._checked:
            self._kafka.check_topic(topic, deadline)
            self._checked.add(topic)

    def _vote(self, reports: Sequence[TaskReport], deadline: Deadline) -> None:
        transactions = [r.prepared.transaction(self._names, r.slot) for r in reports if r.prepared]
        states = self._kafka.control().describe(
            [t.transactional_id for t in transactions], deadline
        )
        margin = vote_margin_ms(self._options.transaction_timeout_ms)
        now_ms = self._now_ms()
        check_vote(transactions, states, now_ms, margin)
        self._journal.voted(states.values(), now_ms)

    def _commit_replay(self, reports: Sequence[TaskReport], deadline: Deadline) -> None:
        token, lost = reports[0].token, reports[0].lost
        entry = self._register.read(deadline)
        decision = entry.decision
        check_forward(token, entry)
        if entry.seq != token.seq or decision is None:
            raise superseded(token, entry)
        if decision.batch.numbering is Numbering.FOREACH and not any(r.tally.rows for r in reports):
            # Of several frames an empty one changes nothing, whichever was written first.
            return
        run = reports[0].run
        if not lost:
            check_replay(self._names, decision, reports)
            self._journal.replayed(decision)
            if run != decision.run:
                # So that a second frame of this run is not taken for one more replay.
                figures = self._journal.next()
                self._register.write(token, replace(decision, run=run), deadline, figures)
            return
        check_rewrite(self._names, decision, lost, reports)
        kept = [entry for entry in decision.prepared if entry.partition not in lost]
        entries = sorted([*kept, *_prepared(reports)], key=lambda entry: entry.partition)
        ruling = replace(decision.ruling, lost=decision.ruling.lost - lost)
        rewritten = replace(decision, prepared=tuple(entries), ruling=ruling, run=run)
        self._decide(reports, rewritten, deadline, lost)


def _prepared(reports: Sequence[TaskReport]) -> tuple[Prepared, ...]:
    return tuple(report.prepared for report in reports if report.prepared)
