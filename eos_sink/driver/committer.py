"""After the tasks: vote, decide and settle, or fence the plan and abort.

Spark calls `commit()` and `abort()` in another process than `streamWriter()`. It calls `abort()`
also if the process of `commit()` died after the decision, or while an interrupted `commit()` runs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.register import check_current, follow
from eos_sink.driver.batch_metrics import BatchMetrics, log_superseded
from eos_sink.driver.decided_topics import DecidedTopics
from eos_sink.driver.reconcile import Actor, bring_to_rest, settle, settle_without_id
from eos_sink.errors import (
    CommitFailedError,
    SupersededError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, named, stop
from eos_sink.metrics import events
from eos_sink.metrics.names import Count, Step
from eos_sink.metrics.stats import Stats, StepClock
from eos_sink.protocol.decide import decide
from eos_sink.protocol.model import (
    NO_CLAIMS,
    BatchId,
    Change,
    Decision,
    KnownClaims,
    LogEntry,
    LogRecord,
    Numbering,
    PlanToken,
    SourcePosition,
    TaskReport,
    stream_subject,
)
from eos_sink.protocol.reconcile import Role, View
from eos_sink.protocol.rules import (
    Replay,
    check_same_topics,
    check_same_version,
    check_streams,
    check_vote,
    compare,
    vote_margin_ms,
)
from eos_sink.protocol.values import (
    MOST_INLINE_BYTES,
    ProducerFenced,
    Transaction,
    TransactionStatus,
    this_package,
)
from eos_sink.sink_options import SinkOptions

# What few batches need is imported where it is used: Spark starts a process for the commits.
if TYPE_CHECKING:
    from eos_sink.driver.checkpoint_files import CheckpointFiles
    from eos_sink.driver.source_reader import SourceReader
    from eos_sink.rows.rows import Rows

_LOGGER = logging.getLogger("eos_sink.driver")
_NOTE_S = 10.0


@dataclass(frozen=True)
class _Batch:
    """A batch that is to be decided.

    Attributes:
        rows: that the driver writes.
        rewritten: partitions that an earlier decision of the batch has lost.
    """

    reports: Sequence[TaskReport]
    decision: Decision
    rows: Sequence[Rows]
    rewritten: frozenset[int] = frozenset()


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
        files: Spark's checkpoint, if the query names a group for the source's offsets, or Spark
            writes there while a batch runs; None: the one at its location.
        """
        self._kafka = kafka
        self._options = options
        self._names, self._log = options.names, options.log_topic
        self._register = DecisionRegister(kafka, options.names, clock)
        self._now_ms = now_ms
        self._clock = clock
        self._metrics = BatchMetrics(options.names)
        self._topics = DecidedTopics(kafka, options)
        self._followed = set[tuple[str, str]]()
        self._sent = 0, 0.0
        self._source: SourceReader | None = None
        if options.source is not None:
            from eos_sink.driver.source_reader import SourceReader

            self._source = SourceReader(kafka, options, options.source, files)
        self._late_files: CheckpointFiles | None = None
        # The last batches here, and when they were planned.
        self._planned_ms: dict[BatchId, int] = {}
        if options.late_checkpoint is not None:
            from eos_sink.checkpoint import Checkpoint

            self._late_files = files or Checkpoint(options.late_checkpoint, None)
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
        # A batch without tasks has no report.
        if self._late_files is not None and reports and reports[0].batch.numbering.is_by_spark:
            self._await_offsets(self._late_files, reports[0], deadline)
        batch = None
        if any(report.skipped for report in reports):
            self._metrics.skipped(reports)
        elif any(report.replayed for report in reports):
            batch = self._compare(reports, deadline)
        elif self._source is not None or any(report.has_written for report in reports):
            # Without rows there is a decision only if it moves the source's offsets.
            decision = decide(reports, self._options.route)
            batch = _Batch(reports, decision, self._unpack(reports))
        if batch is not None:
            self._decide(batch, deadline)

    def _await_offsets(self, files: CheckpointFiles, of: TaskReport, deadline: Deadline) -> None:
        from eos_sink.driver.checkpoint_files import await_own

        before = BatchId(of.batch.stream, of.batch.batch - 1)
        planned_ms = self._planned_ms.get(before, 0), of.token.planned_ms
        # A next run takes over the file that this one refuses.
        self._planned_ms = {}
        await_own(files, of.batch, planned_ms, deadline)
        self._planned_ms = {before: planned_ms[0], of.batch: planned_ms[1]}

    def _decide(self, batch: _Batch, deadline: Deadline) -> None:
        """Check, write the record, settle; then say what has happened."""
        reports, rows, rewritten = batch.reports, batch.rows, batch.rewritten
        decision, token = batch.decision, batch.reports[0].token
        record = self._register.require_current(token, deadline).record
        check_streams(record, decision.batch, has_group=self._source is not None)
        known = self._check_claims(token, record, batch, deadline)
        source = self._check_source(record, decision.batch, deadline)
        topics = self._topics.ids_of(reports, rows, deadline)
        decision = replace(decision, topics={**decision.topics, **dict(sorted(topics))})
        self._topics.check(decision, deadline)

        clock = StepClock(self._clock)
        figures = self._metrics.count_decision(decision, reports, rewritten, clock, self._now_ms())
        settled, room = not decision.prepared, self._room(record)
        change = Change(decision, figures, settled=settled, source=source, room=room)
        prepared = self._transactions(reports)

        def vote(begun: float) -> float:
            check_same_topics(topics, self._kafka.topic_ids(dict(topics), deadline))
            if not prepared:
                return deadline.left
            with clock.inner(Step.VOTE):
                return self._vote(prepared, token.planned_s, begun, deadline)

        clock.begin()
        entry = self._register.append(
            token, change, deadline, rows=rows, vote=vote if topics else None, known=known
        )
        clock.end(Step.DECIDE)
        self._sent = _inline_bytes(reports), self._register.rows_part
        view = settle(self._kafka, View.of(self._names, entry, just_decided=True), deadline)
        clock.end(Step.SETTLE)
        if view.lost:
            raise stop(Reason.LOST_SINCE, decision=decision, lost=view.lost)

        self._followed.add((decision.batch.stream, decision.spark_run))
        self._metrics.committed(decision, rewritten, clock, entry.seq)
        self._warn(record, decision.batch, reports)
        self._note_settled(token, view, deadline)

    def _compare(self, reports: Sequence[TaskReport], deadline: Deadline) -> _Batch | None:
        """Compare a replay with what is decided; None: there is nothing left to decide."""
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
            return None
        replay = compare(decision, lost, reports)
        if replay is Replay.REPAIRS:
            again = decide(reports, self._options.route, decision)
            return _Batch(reports, again, self._unpack(reports), lost)
        if replay is not Replay.SAME:
            # numpy and pyarrow are for rows only.
            from eos_sink.driver.completion import refuse

            noted, error = refuse(decision, lost, replay, len(reports))
            if noted is not None:
                self._register.append(token, Change(noted), deadline)
            raise error
        self._metrics.replayed(decision.batch)
        if spark_run != decision.spark_run:
            # So that a second frame of this run is not taken for another replay.
            noted = replace(decision, spark_run=spark_run)
            self._register.append(token, Change(noted, self._metrics.take_pending()), deadline)
        return None

    def abort(
        self, reports: Sequence[TaskReport], token: PlanToken | None = None
    ) -> LogEntry | None:
        """Give up a batch. What the decision names is settled instead.

        Without token and reports the plan is unknown, so it cannot be fenced: the query's next
        plan, or the timeout, ends what the tasks left open.

        Args:
            token: the plan's, if it is known without a report.

        Returns:
            The record that gives up the plan; None: the plan is unknown, or not the latest one.
        """
        deadline = Deadline(self._options.step_timeout)
        token = reports[0].token if reports else token
        settle_without_id(self._kafka, self._names, self._register, deadline, token)
        view = View.of(self._names, self._register.open(deadline, token))
        if token is None:
            bring_to_rest(self._kafka, view, deadline)
            return None
        try:
            with log_superseded(self._names):
                view = self._give_up(token, view, reports, deadline)
        except SupersededError:
            return None  # A newer driver owns the query; its recovery cleans up.
        except CommitFailedError as refused:
            self._metrics.warn_of_open(refused)
            return None
        self._metrics.aborted(reports, view.aborted)
        return view.entry

    def prepare(self) -> None:
        """Open the log for the next commit, in the background: Spark writes the end of this batch
        and the start of the next one meanwhile."""
        self._register.prepare(Deadline(self._options.step_timeout))

    def close(self) -> None:
        """Leave no client behind."""
        self._register.close()
        self._kafka.close()

    def _give_up(
        self, token: PlanToken, view: View, reports: Sequence[TaskReport], deadline: Deadline
    ) -> View:
        """Write the record that ends the plan, then abort what its tasks have left open."""

        def fence(view: View) -> LogEntry:
            figures, room = self._metrics.take_pending() + Stats({Count.ABORTS: 1}), None
            if sent := _inline_bytes(reports):
                from eos_sink.protocol.inline import room_after_failure

                room = room_after_failure(view.record.room, sent)
            change = Change(view.decision, figures, view.seen, gives_up=True, room=room)
            return self._register.append(follow(token, view.entry), change, deadline)

        listing = view.listing(frozenset(self._transactions(reports)))
        return bring_to_rest(self._kafka, listing, deadline, Actor(Role.GIVE_UP, fence))

    def _check_claims(
        self, token: PlanToken, record: LogRecord, written: _Batch, deadline: Deadline
    ) -> KnownClaims:
        """Before the first decision of a stream under this identity, to this topic; of frames,
        which may have several identities at once, in each process.

        Returns:
            What was read of the stream's claims.
        """
        decision, before = written.decision, record.decision
        batch = decision.batch
        may_share = batch.numbering is Numbering.FOREACH
        known = before and (before.batch.stream, before.route.topic)
        is_first = may_share or known != (batch.stream, decision.route.topic)
        followed = batch.stream, decision.spark_run
        is_first = is_first and not written.rewritten and followed not in self._followed
        if batch.numbering.is_by_spark and is_first:
            from eos_sink.decision_log.claims import read_claims_from

            subject = stream_subject(batch)
            claims, reached = read_claims_from(self._kafka, subject, deadline)
            others = [claim.names for claim in claims if claim.names != self._names]
            if others:
                from eos_sink.driver.former_identities import leave_former_identities

                group = self._options.source.group if self._options.source else ""
                leave_former_identities(self._kafka, token, decision, others, group, deadline)
            return KnownClaims(subject, tuple(others), reached)
        return NO_CLAIMS

    def _check_source(
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

    def _room(self, record: LogRecord) -> int | None:
        """For inlined rows, as fast as the last ones were on the brokers; None: as before."""
        if record.room == MOST_INLINE_BYTES and not self._sent[0]:
            return None
        from eos_sink.protocol.inline import room_after

        return room_after(record.room, *self._sent)

    def _warn(self, before: LogRecord, batch: BatchId, reports: Sequence[TaskReport]) -> None:
        if self._source is None and before.is_new_stream(batch):
            self._metrics.warn_of_new_stream(batch)
        self._metrics.warn_of_dead_letters(reports, self._options.dead_letter_topic)

    def _note_settled(self, token: PlanToken, view: View, deadline: Deadline) -> None:
        """Note in the log that a write is visible: the next batch may be another stream's, after
        Kafka has forgotten these transactions."""
        entry = view.entry
        if not view.seen or entry.record.settled or not entry.record.needs_settled_note:
            return
        try:
            change = Change(entry.decision, self._metrics.take_pending(), settled=True)
            self._register.append(follow(token, entry), change, deadline.within(_NOTE_S))
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

    def _unpack(self, reports: Sequence[TaskReport]) -> list[Rows]:
        """The rows that tasks have handed over, by destination."""
        taken = [report.inline for report in reports if report.inline]
        refused = [report.inline_dead_letters for report in reports if report.inline_dead_letters]
        by_topic = ((taken, self._options.topic), (refused, self._options.dead_letter_topic))
        if not taken:
            return []
        # numpy and pyarrow are for rows only.
        from eos_sink.rows.rows import unpack

        unpacked = (unpack(packed, topic) for packed, topic in by_topic if packed)
        return [rows for rows in unpacked if len(rows)]


def _inline_bytes(reports: Sequence[TaskReport]) -> int:
    return sum(len(each.inline) + len(each.inline_dead_letters) for each in reports)
