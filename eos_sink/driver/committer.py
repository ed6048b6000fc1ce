"""After the tasks: vote, decide and settle, or fence the plan and abort.

Spark calls `commit()` and `abort()` in another process than `streamWriter()`. It calls `abort()`
also if the process of `commit()` died after the decision, or while an interrupted `commit()` runs.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.register import check_current
from eos_sink.driver.batch_metrics import BatchMetrics, log_superseded
from eos_sink.driver.settle import Settlement, settle
from eos_sink.errors import (
    CommitFailedError,
    SupersededError,
)
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, named, stop
from eos_sink.metrics import events
from eos_sink.metrics.names import Count, Step
from eos_sink.metrics.stats import Stats, StepClock
from eos_sink.protocol.decide import decide
from eos_sink.protocol.model import (
    BatchId,
    Change,
    Decision,
    Entry,
    LogRecord,
    Numbering,
    PlanToken,
    RowDigest,
    SourcePosition,
    TaskReport,
    stream_subject,
)
from eos_sink.protocol.rules import (
    check_replay,
    check_rewrite,
    check_same_topics,
    check_same_version,
    check_streams,
    check_vote,
    completes,
    in_doubt,
    vote_margin_ms,
)
from eos_sink.protocol.values import ProducerFenced, Transaction, TransactionStatus, this_package
from eos_sink.sink_options import SinkOptions

# What few batches need is imported where it is used: Spark starts a process for the commits.
if TYPE_CHECKING:
    from eos_sink.driver.source_reader import CheckpointFiles, SourceReader
    from eos_sink.kafka.rows import Rows

_LOGGER = logging.getLogger("eos_sink.driver")
_NOTE_S = 10.0


class Committer:
    """The committer of one query in one process, kept between batches."""

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        clock: Callable[[], float] = time.monotonic,
        files: CheckpointFiles | None = None,
    ) -> None:
        """Args:
        files: Spark's checkpoint, if the query names a group for the source's offsets; None: the
            one at its location.
        """
        self._kafka = kafka
        self._options = options
        self._names, self._log = options.names, options.log_topic
        self._register = DecisionRegister(kafka, options.names, clock)
        self._now_ms = now_ms
        self._clock = clock
        self._metrics = BatchMetrics(options.names)
        self._checked = {options.topic}
        self._no_logs = set(options.named_topics)
        self._followed: set[str] = set()
        self._source: SourceReader | None = None
        if options.source is not None:
            from eos_sink.driver.source_reader import SourceReader

            self._source = SourceReader(kafka, options, options.source, files)
        if options.metrics_log:
            events.log_to_stderr()

    def commit(self, reports: Sequence[TaskReport]) -> None:
        """Make a written batch visible, or check that it is.

        Raises:
            CommitFailedError, SupersededError: nothing is decided.
            UnfinishedError: decided; a restart finishes it.
            OutcomeUnknownError: decided or not; a restart finds out.
            ConfigurationError: a second frame, or too many streams, under one identity; or a task
                runs another version.
            OperatorNeededError: a replay with other rows than decided, an old checkpoint, or one
                that was moved to another identity during a batch.
        """
        source = self._options.source
        with named(self._names, self._log, source=source), log_superseded(self._names):
            self._commit(reports, Deadline(self._options.step_timeout))

    def _commit(self, reports: Sequence[TaskReport], deadline: Deadline) -> None:
        for report in reports:
            check_same_version(this_package(), getattr(report, "package", None))
        if any(report.skipped for report in reports):
            total = RowDigest.total(report.digest for report in reports)
            _LOGGER.warning(
                "Query %s: %s is skipped, since it was written before; its %s rows are not written "
                "again.",
                self._names.query,
                reports[0].batch,
                total.rows,
            )
        elif any(report.replayed for report in reports):
            self._commit_replay(reports, deadline)
        elif self._source is not None or any(report.has_written for report in reports):
            # Without rows there is a decision only if it moves the source's offsets.
            rows = self._unpack(reports)
            decision = decide(reports, self._options.route)
            record = self._register.expect(reports[0].token, deadline).record
            check_streams(record, decision.batch)
            if self._source is None and record.is_new_stream(decision.batch):
                _LOGGER.warning(
                    "Query %s: a new checkpoint begins with %s, under an identity that has written "
                    "before, and the old one is refused from now on. Rows that this query reads "
                    "again are there twice.",
                    self._names.query,
                    decision.batch,
                )
            self._decide(reports, decision, rows, deadline)

    def abort(self, reports: Sequence[TaskReport], token: PlanToken | None = None) -> Entry | None:
        """Give up a batch. What the decision names is settled instead.

        Without token and reports the plan is unknown, so it cannot be fenced: the query's next
        plan, or the timeout, ends what the tasks left open.

        Args:
            token: the plan's, if it is known without a report.

        Returns:
            The record that gives up the plan; None: the plan is unknown, or not the latest one.
        """
        from eos_sink.driver.abort import (
            abort_all,
            fence_plans,
            list_undecided,
            settle_without_id,
        )

        deadline = Deadline(self._options.step_timeout)
        token = reports[0].token if reports else token
        settle_without_id(self._kafka, self._names, self._register, deadline, token)
        entry = self._register.open(deadline, token)
        decision = entry.decision
        found = Settlement()
        if decision is not None:
            found = settle(self._kafka, self._names, entry.record, deadline, just_decided=False)
        if token is None:
            return None
        listed = list_undecided(self._kafka, self._names, decision, deadline)
        decided = decision.transactions(self._names).keys() if decision else frozenset()
        prepared = self._transactions(reports)
        given_up = {*listed, *prepared} - decided
        figures = self._metrics.take_pending() + Stats({Count.ABORTS: 1})
        try:
            with log_superseded(self._names):
                change = Change(decision, figures, found.seen, gives_up=True)
                entry = fence_plans(self._register, token, entry, change, deadline)
        except SupersededError:
            return None  # A newer driver owns the query; its recovery cleans up.
        except CommitFailedError as refused:
            self._leave_open(refused)
            return None
        abort_all(self._kafka, given_up, deadline)
        self._metrics.aborted(reports, len(given_up))
        return entry

    def prepare(self) -> None:
        """Open the log for the next commit, in the background: Spark writes the end of this batch
        and the start of the next one meanwhile."""
        self._register.prepare(Deadline(self._options.step_timeout))

    def close(self) -> None:
        """Leave no client behind."""
        self._register.close()
        self._kafka.close()

    def _decide(
        self,
        reports: Sequence[TaskReport],
        decision: Decision,
        rows: Sequence[Rows],
        deadline: Deadline,
        rewritten: frozenset[int] = frozenset(),
    ) -> None:
        token = reports[0].token
        record = self._register.expect(token, deadline).record
        known: Sequence[QueryNames] = ()
        if not rewritten:
            known = self._leave_former_identities(token, record, decision, deadline)
        source = self._move_source(record, decision.batch, deadline)
        topics = self._know_topics(reports, rows, deadline)
        decision = replace(decision, topics={**decision.topics, **dict(sorted(topics))})
        self._check_topics(decision, deadline)
        clock = StepClock(self._clock)
        figures = self._metrics.count_decision(decision, reports, rewritten, clock, self._now_ms())
        prepared = self._transactions(reports)

        def vote(begun: float) -> float:
            check_same_topics(topics, self._kafka.topic_ids(dict(topics), deadline))
            if not prepared:
                return deadline.left
            with clock.inner(Step.VOTE):
                return self._vote(prepared, token.planned_s, begun, deadline)

        clock.begin()
        change = Change(decision, figures, settled=not decision.prepared, source=source)
        entry = self._register.append(
            token, change, deadline, rows=rows, vote=vote if topics else None, known=known
        )
        self._followed.add(decision.batch.stream)
        clock.end(Step.DECIDE)
        found = settle(self._kafka, self._names, entry.record, deadline, just_decided=True)
        clock.end(Step.SETTLE)
        if found.doubtful:
            raise in_doubt(decision, found.doubtful)
        if found.lost:
            raise stop(Reason.LOST_SINCE, decision=decision, lost=found.lost)
        self._metrics.committed(decision, rewritten, clock, token.seq + 1)
        self._warn_of_dead_letters(decision.batch, reports)
        unsettled = entry.record.needs_settled_note and not entry.record.settled
        if found.seen and unsettled:
            self._note_settled(token, entry, deadline)

    def _leave_former_identities(
        self, token: PlanToken, record: LogRecord, decision: Decision, deadline: Deadline
    ) -> Sequence[QueryNames]:
        """Before the first decision of a stream under this identity, to this topic; of frames,
        which may have several identities at once, in each process.

        Returns:
            The other identities that have claimed the stream.
        """
        batch, before = decision.batch, record.decision
        may_share = batch.numbering is Numbering.FOREACH
        known = before and (before.batch.stream, before.route.topic)
        is_first = may_share or known != (batch.stream, decision.route.topic)
        if batch.numbering.is_by_spark and is_first and batch.stream not in self._followed:
            from eos_sink.decision_log.claims import read_claims

            claims = read_claims(self._kafka, stream_subject(batch), deadline)
            others = [claim.names for claim in claims if claim.names != self._names]
            if others:
                from eos_sink.driver.former_identities import leave_former_identities

                group = self._options.source.group if self._options.source else ""
                leave_former_identities(self._kafka, token, decision, others, group, deadline)
            return others
        return ()

    def _move_source(
        self, record: LogRecord, batch: BatchId, deadline: Deadline
    ) -> SourcePosition | None:
        """The position after a batch, which begins where the query stands."""
        if self._source is None:
            return None
        known, decided = record.source, record.decision
        if known and decided and known.batch == decided.batch == batch:
            # Its lost partitions are written again.
            return known
        return self._source.check(record, self._source.read(record, batch, deadline), deadline)

    def _warn_of_dead_letters(self, batch: BatchId, reports: Sequence[TaskReport]) -> None:
        counts: Counter[str] = Counter()
        for report in reports:
            counts.update(report.dead_letters)
        if counts:
            _LOGGER.warning(
                "Query %s: %s has %s rows that Kafka would have refused (%s). They are in topic "
                "%s, with the reason in their headers.",
                self._names.query,
                batch,
                counts.total(),
                ", ".join(f"{error} {number}" for error, number in sorted(counts.items())),
                self._options.dead_letter_topic,
            )

    def _leave_open(self, refused: CommitFailedError) -> None:
        """The plan has expired, and can be decided no more; what is open may be a newer one's."""
        _LOGGER.warning(
            "Query %s: the batch is given up. What is open of it is aborted at the query's next "
            "start, or when it times out: %s",
            self._names.query,
            refused.message,
        )

    def _note_settled(self, token: PlanToken, entry: Entry, deadline: Deadline) -> None:
        """Note in the log that the batch is visible: the next batch may be another stream's, after
        Kafka has forgotten these transactions."""
        try:
            from eos_sink.driver.abort import fence_plans

            change = Change(entry.decision, self._metrics.take_pending(), settled=True)
            fence_plans(self._register, token, entry, change, deadline.within(_NOTE_S))
        except Exception as error:  # noqa: BLE001 - no failure here changes that the batch is visible
            _LOGGER.warning(
                "Query %s: %s is committed, but the decision log could not note it: %s. The next "
                "write asks Kafka.",
                self._names.query,
                entry.decision and entry.decision.batch,
                error,
            )

    def _transactions(self, reports: Sequence[TaskReport]) -> list[Transaction]:
        return [r.prepared.transaction(self._names, r.slot) for r in reports if r.prepared]

    def _know_topics(
        self, reports: Sequence[TaskReport], rows: Sequence[Rows], deadline: Deadline
    ) -> set[tuple[str, str]]:
        """Each topic of the rows, with its ids from before they were written."""
        known = {each for report in reports for each in report.topics.items()}
        new = _topics(rows) - dict(known).keys()
        return known | {*self._kafka.topic_ids(new, deadline).items()} if new else known

    def _check_topics(self, decision: Decision, deadline: Deadline) -> None:
        """Topics of the column are known only now. A batch that may not be read back is not
        decided; inlined rows never need to be. Nor is one with rows in a decision log."""
        for topic in {entry.witness.topic for entry in decision.prepared} - self._checked:
            self._kafka.check_topic(topic, deadline)
            self._checked.add(topic)
        new = decision.topics.keys() - self._no_logs
        if new:
            from eos_sink.decision_log.other_logs import check_no_logs

            check_no_logs(self._kafka, new, deadline)
            self._no_logs |= new

    def _vote(
        self,
        prepared: Sequence[Transaction],
        planned: float,
        begun: float,
        deadline: Deadline,
    ) -> float:
        """Called within the driver's own transaction. Its start is the brokers' time, like the
        starts of the tasks' transactions; since then the rows may have waited, so the time that has
        passed here counts too. This machine's time of day may be wrong. So may a coordinator's: a
        start outside of the time since the plan is not believed, and the plan's counts.

        Returns:
            Seconds until the first of the prepared transactions times out.

        Raises:
            CommitFailedError: nothing is decided.
        """
        driver = self._names.driver
        ids = [transaction.transactional_id for transaction in prepared]
        states = self._kafka.control().describe([driver, *ids], deadline)
        own = states.pop(driver)
        if own.status is not TransactionStatus.ONGOING:
            raise ProducerFenced(f"The transaction of {driver} is {own.status.value}.")
        now = self._clock()
        now_ms = own.started_ms + round((now - begun) * 1000)
        oldest_ms = now_ms - max(0, round((now - planned) * 1000))
        for name, state in states.items():
            if not oldest_ms <= state.started_ms <= now_ms:
                states[name] = replace(state, started_ms=oldest_ms)
        margin = vote_margin_ms(self._options.transaction_timeout_ms)
        left_ms = check_vote(prepared, states, now_ms, margin)
        self._metrics.voted(states.values(), now_ms)
        return left_ms / 1000

    def _commit_replay(self, reports: Sequence[TaskReport], deadline: Deadline) -> None:
        token, lost, spark_run = reports[0].token, reports[0].lost, reports[0].spark_run
        entry = self._register.read(deadline, token)
        check_current(token, entry)
        decision = entry.decision
        if decision is None:
            from eos_sink.protocol.refused import superseded

            raise superseded(token, entry)
        if self._source is not None:
            if spark_run and spark_run == decision.spark_run:
                # Also without rows: another batch would have some.
                raise stop(Reason.SECOND_FRAME, batch=decision.batch)
            self._source.check_replay(entry.record, decision.batch)
        has_rows = any(report.digest.rows for report in reports)
        if decision.batch.numbering is Numbering.FOREACH and not has_rows:
            # Of several frames an empty one changes nothing, in any order.
            return
        if not lost:
            check_replay(decision, reports)
            self._metrics.replayed(decision.batch)
            if spark_run != decision.spark_run:
                # So that a second frame of this run is not taken for another replay.
                repeated = replace(decision, spark_run=spark_run)
                change = Change(repeated, self._metrics.take_pending())
                self._register.append(token, change, deadline)
            return
        self._check_rewrite(token, decision, lost, reports, deadline)
        rows = self._unpack(reports)
        rewritten = decide(reports, self._options.route, decision)
        self._decide(reports, rewritten, rows, deadline, lost)

    def _check_rewrite(
        self,
        token: PlanToken,
        decision: Decision,
        lost: frozenset[int],
        reports: Sequence[TaskReport],
        deadline: Deadline,
    ) -> None:
        partitions = len(reports)
        if decision.needs_completion(lost):
            check_replay(decision, reports)
            if not completes(decision, lost, reports):
                # numpy and pyarrow are for rows only.
                from eos_sink.driver.completion import TWINS, complete_by_partition, not_told

                if not decision.completed:
                    complete_by_partition(self._register, token, decision, TWINS, deadline)
                raise not_told(decision, lost, TWINS, partitions)
        elif not check_rewrite(decision, lost, reports):
            from eos_sink.driver.completion import complete_by_row

            raise complete_by_row(self._register, token, decision, lost, partitions, deadline)

    def _unpack(self, reports: Sequence[TaskReport]) -> list[Rows]:
        """The rows that tasks have handed over, by destination."""
        taken = [report.inline for report in reports if report.inline]
        refused = [report.inline_dead_letters for report in reports if report.inline_dead_letters]
        by_topic = ((taken, self._options.topic), (refused, self._options.dead_letter_topic))
        if not taken:
            return []
        # numpy and pyarrow are for rows only.
        from eos_sink.kafka.rows import unpack

        unpacked = (unpack(packed, topic) for packed, topic in by_topic if packed)
        return [rows for rows in unpacked if len(rows)]


def _topics(rows: Sequence[Rows]) -> set[str]:
    return {topic for some in rows for topic in some.topics[0]}
