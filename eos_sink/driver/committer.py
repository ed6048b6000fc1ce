"""What follows the tasks: vote, decide and settle, or void and abort.

Spark calls `commit()` and `abort()` in another process than `streamWriter()`'s, and `abort()` also
when the process of `commit()` died after the decision, or lives on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from eos_sink.decision_log import DecisionRegister, Entry, check_forward, superseded
from eos_sink.driver.abort import abort_all, list_undecided, void
from eos_sink.driver.batch_metrics import CommitJournal, superseded_run
from eos_sink.driver.settle import settle
from eos_sink.errors import SupersededError, UnfinishedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, ProducerFenced, Transaction, TransactionStatus
from eos_sink.metrics import events
from eos_sink.metrics.names import Step
from eos_sink.metrics.stats import StepClock
from eos_sink.options import SinkOptions
from eos_sink.protocol import operator_errors
from eos_sink.protocol.model import (
    Decision,
    LogRecord,
    Numbering,
    PlanToken,
    Prepared,
    RowDigest,
    TaskReport,
)
from eos_sink.protocol.rules import (
    check_replay,
    check_rewrite,
    check_streams,
    check_unmoved,
    check_vote,
    is_already_visible,
    vote_margin_ms,
)

_LOGGER = logging.getLogger("eos_sink.driver")
_NOTE_S = 10.0


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
        self._names, self._log = options.names, options.log_topic
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
            ConfigurationError: a second frame, or too many streams, under one identity.
            OperatorNeededError: a replay with other rows than decided, an old checkpoint, or one
                that has moved to another identity amid a batch.
        """
        with superseded_run(self._names):
            self._commit(reports, Deadline(self._options.step_timeout))

    def _commit(self, reports: Sequence[TaskReport], deadline: Deadline) -> None:
        if any(report.skipped for report in reports):
            rows = RowDigest.total([report.digest for report in reports]).rows
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
                total=RowDigest.total([report.digest for report in reports]),
                prepared=_prepared(reports),
                spark_run=reports[0].spark_run,
            )
            record = self._register.expect(reports[0].token, deadline).record
            if is_already_visible(self._names, self._log, record, decision):
                self._pass_over(reports, record, deadline)
            else:
                check_streams(self._names, record, decision)
                self._decide(reports, decision, deadline)

    def abort(self, reports: Sequence[TaskReport], token: PlanToken | None = None) -> None:
        """Give up a batch unless it is decided: what the decision names is settled instead.

        Without a token and any report the plan is unknown, and with it the right to void; the next
        plan of the query, or the time-out, ends what the tasks left open.

        Args:
            token: the plan's, where it is known without a report.
        """
        deadline = Deadline(self._options.step_timeout)
        token = reports[0].token if reports else token
        entry = self._register.open(deadline, token)
        decision = entry.decision
        if decision is not None:
            settle(self._kafka, self._names, entry.record, deadline, just_decided=False)
        if token is None:
            return
        listed = list_undecided(self._kafka, self._names, decision, deadline)
        decided = decision.transactions(self._names).keys() if decision else frozenset()
        prepared = self._transactions(reports)
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
            check_unmoved(self._names, self._log, decision, self._register.elsewhere(deadline))
        self._check_topics(decision, deadline)
        clock = StepClock(self._clock)
        figures = self._journal.deciding(decision, reports, rewritten, clock, self._now_ms())
        prepared = self._transactions(reports)

        def vote() -> None:
            with clock.inner(Step.VOTE):
                self._vote(prepared, deadline)

        clock.begin()
        entry = self._register.write(token, decision, deadline, figures, before_commit=vote)
        clock.end(Step.DECIDE)
        found = settle(self._kafka, self._names, entry.record, deadline, just_decided=True)
        clock.end(Step.SETTLE)
        if found.doubtful:
            raise operator_errors.in_doubt(self._names, self._log, decision, found.doubtful)
        if found.lost:
            raise UnfinishedError(
                f"Query {self._names.query}: {decision.batch} is decided, but its partitions "
                f"{sorted(found.lost)} were aborted meanwhile, by their time-out or a late attempt "
                "of their tasks.",
                remedy="Start the query again: Spark replays the batch and these are written "
                "again.",
                data={"batch": decision.batch.batch, "partitions": sorted(found.lost)},
            )
        self._journal.committed(decision, rewritten, clock, token.seq + 1)
        if found.seen and entry.record.needs_settled_note:
            self._keep_settled(token, entry, deadline)

    def _keep_settled(self, token: PlanToken, entry: Entry, deadline: Deadline) -> None:
        """Note in the log that the batch is visible, since the next batch may be another's and come
        when Kafka has forgotten."""
        try:
            figures, soon = self._journal.next(), deadline.within(_NOTE_S)
            void(self._register, token, entry, soon, figures, settled=True)
        except Exception as error:  # noqa: BLE001 - the batch is visible whatever fails here
            _LOGGER.warning(
                "Query %s: %s is committed, but the decision log could not be told so: %s. The "
                "next write asks Kafka for it.",
                self._names.query,
                entry.decision and entry.decision.batch,
                error,
            )

    def _pass_over(
        self, reports: Sequence[TaskReport], record: LogRecord, deadline: Deadline
    ) -> None:
        """What the tasks have written was visible before another stream took the query's names.
        The record makes their plan undecidable, as a void does, before they are aborted."""
        batch = reports[0].batch
        known = record.other_stream(batch.stream)
        assert known is not None
        # So that a second frame of this run is not taken for one more replay.
        earlier = record.with_other_stream(
            batch.stream, replace(known, spark_run=reports[0].spark_run)
        )
        figures = self._journal.next()
        self._register.write(
            reports[0].token, record.decision, deadline, figures, other_streams=earlier
        )
        prepared = self._transactions(reports)
        abort_all(self._kafka, prepared, deadline)
        self._journal.replayed(batch)

    def _transactions(self, reports: Sequence[TaskReport]) -> list[Transaction]:
        return [r.prepared.transaction(self._names, r.slot) for r in reports if r.prepared]

    def _check_topics(self, decision: Decision, deadline: Deadline) -> None:
        """Topics of the column are known only now. What may not be read back is not decided."""
        for topic in set(decision.topics) - self._checked:
            self._kafka.check_topic(topic, deadline)
            self._checked.add(topic)

    def _vote(self, prepared: Sequence[Transaction], deadline: Deadline) -> None:
        """Called within the driver's own transaction, which has just begun: its start is the time
        by the brokers' clocks, as those of the tasks are. This machine's clock may be wrong."""
        driver = self._names.driver
        ids = [transaction.transactional_id for transaction in prepared]
        states = self._kafka.control().describe([driver, *ids], deadline)
        own = states.pop(driver)
        if own.status is not TransactionStatus.ONGOING:
            raise ProducerFenced(f"The transaction of {driver} is {own.status.value}.")
        margin = vote_margin_ms(self._options.transaction_timeout_ms)
        check_vote(prepared, states, own.started_ms, margin)
        self._journal.voted(states.values(), own.started_ms)

    def _commit_replay(self, reports: Sequence[TaskReport], deadline: Deadline) -> None:
        token, lost = reports[0].token, reports[0].lost
        entry = self._register.read(deadline, token)
        decision = entry.decision
        check_forward(token, entry)
        if entry.seq != token.seq or decision is None:
            raise superseded(token, entry)
        if decision.batch.numbering is Numbering.FOREACH and not any(
            r.digest.rows for r in reports
        ):
            # Of several frames an empty one changes nothing, whichever was written first.
            return
        spark_run = reports[0].spark_run
        if not lost:
            check_replay(self._names, self._log, decision, reports)
            self._journal.replayed(decision.batch)
            if spark_run != decision.spark_run:
                # So that a second frame of this run is not taken for one more replay.
                figures = self._journal.next()
                self._register.write(
                    token, replace(decision, spark_run=spark_run), deadline, figures
                )
            return
        check_rewrite(self._names, self._log, decision, lost, reports)
        kept = [entry for entry in decision.prepared if entry.partition not in lost]
        entries = sorted([*kept, *_prepared(reports)], key=lambda entry: entry.partition)
        override = replace(decision.override, lost=decision.override.lost - lost)
        rewritten = replace(
            decision, prepared=tuple(entries), override=override, spark_run=spark_run
        )
        self._decide(reports, rewritten, deadline, lost)


def _prepared(reports: Sequence[TaskReport]) -> tuple[Prepared, ...]:
    return tuple(report.prepared for report in reports if report.prepared)
