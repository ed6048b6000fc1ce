"""Plans: what the tasks of a batch need to know, and the recovery before the first plan.

Spark calls `streamWriter()` for each batch in a process that it keeps between batches, even across
restarts of the query, and ends after an idle minute. So a planner's memory only saves time: each
plan reads the log to its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.hanging import topics_of
from eos_sink.driver.batch_metrics import log_superseded
from eos_sink.driver.hanging import end_hanging
from eos_sink.driver.planned_topics import PlannedTopics
from eos_sink.driver.processes import current_run, is_dead_here, uses_tcp_to_spark
from eos_sink.driver.reconcile import Actor, bring_to_rest, list_committed, settle_without_id
from eos_sink.driver.session import DriverSession
from eos_sink.errors import EosSinkError, OperatorNeededError, SupersededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import GroupMember, Kafka
from eos_sink.messages import named
from eos_sink.metrics import events
from eos_sink.metrics.names import Count, Event
from eos_sink.metrics.stats import Stats
from eos_sink.protocol.model import (
    DIGEST,
    NO_CLAIMS,
    Change,
    Decision,
    KnownClaims,
    LogEntry,
    LogRecord,
    Plan,
    Run,
)
from eos_sink.protocol.reconcile import Role, View
from eos_sink.protocol.rules import check_unrecorded
from eos_sink.protocol.values import RECORDED_MS, MemberRefused, MemberState
from eos_sink.sink_options import SinkOptions

if TYPE_CHECKING:
    from eos_sink.driver.checkpoint_files import CheckpointFiles
    from eos_sink.driver.source_reader import SourceReader

_STABLE_TRY_S = 2.0
_MEMBERS_AGE_S = 10.0
_LOGGER = logging.getLogger("eos_sink.driver")
_TCP_COSTS = (
    "Spark exchanges data with its Python processes over TCP, whose delayed acknowledgements cost "
    "about 40 ms in each step of a batch and about 50 ms in each task. Start Spark with --conf "
    "spark.python.unix.domain.socket.enabled=true."
)


class Planner:
    """The planner of one query in one process."""

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        run: Run | None = None,
        files: CheckpointFiles | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        run: None: this process's.
        files: Spark's checkpoint, if the query names a group for the source's offsets; None: the
            one at its location.
        """
        self._kafka = kafka
        self._options = options
        self._names = options.names
        self._run = run or current_run(options.origin)
        self._register = DecisionRegister(kafka, options.names)
        self._session = DriverSession(kafka, options, self._run, clock)
        self._checked = False
        self._topics = PlannedTopics(kafka, options)
        # What the last plan was made from.
        self._view: View | None = None
        self._source: SourceReader | None = None
        # The stream of which the first batch of a run was checked.
        self._source_checked: str | None = None
        self._members_seen: Deadline | None = None
        if options.source is not None:
            from eos_sink.driver.source_reader import SourceReader

            self._source = SourceReader(kafka, options, options.source, files)
        if options.metrics_log:
            events.log_to_stderr()
        for warning in options.cluster.client.warnings:
            _LOGGER.warning("%s", warning)

    def plan(self, query: str | None = None) -> Plan:
        """Plan the next batch.

        Args:
            query: Spark's id of the query, where it is known before the tasks run.

        Raises:
            ConfigurationError, ClusterError: a problem that can be found before writing.
            SupersededError: a newer run of the query has taken over; names it.
            UnfinishedError: the decided batch could not be finished in time.
            OperatorNeededError: the log has lost what was decided.
        """
        deadline = Deadline(self._options.step_timeout)
        source = self._options.source
        with (
            named(self._names, self._options.log_topic, source=source),
            log_superseded(self._names),
        ):
            view = self._bring_to_rest(deadline)
            if self._source is not None:
                view = self._check_source(self._source, query, view, deadline)
            view, visible = self._read_back(view, deadline)
            self._view = view
            record, decision = view.record, view.decision
            return Plan(
                self._session.token(view.entry),
                decision,
                view.lost,
                view.doubtful,
                view.made_again,
                self._options.route,
                self._topics.read_rules(decision, deadline),
                record.given_up,
                visible,
                record.written,
                record.retired,
                self._topics.read_ids(decision, deadline),
                record.room,
            )

    def refuse_tasks(self, given_up: LogEntry) -> None:
        """Join again, so that Kafka refuses tasks of a failed job that may still run, and end what
        they have left open. If anything was written since, it does nothing: it would replace a
        newer write, of this process too. A process that has not planned may do it for the one that
        has.

        Args:
            given_up: the record that has given up the plan of the tasks.

        Raises:
            EosSinkError: as in `plan`; the next plan does it.
        """
        deadline = Deadline(self._options.step_timeout)
        if self._register.read(deadline).seq == given_up.seq:
            self._session.close()
            self._recover(deadline)

    def close(self) -> None:
        """Leave no client behind, and no member that would go on with its heartbeats."""
        self._forget()
        self._register.close()
        self._kafka.close()

    def _bring_to_rest(self, deadline: Deadline) -> View:
        try:
            go_on = self._continue if self._is_current_member(deadline) else self._recover
            return go_on(deadline)
        except MemberRefused as refused:
            self._forget()
            from eos_sink.protocol.refused import refused_member

            latest, session_ms = self._register.try_read(), self._session.session_ms
            raise refused_member(refused, self._run, latest, session_ms) from refused
        except EosSinkError:
            # The next plan recovers from what was half done.
            self._forget()
            raise

    # Plan: is this run still the current one, and did the plan before come to anything?

    def _is_current_member(self, deadline: Deadline) -> bool:
        state = self._session.state
        if state is MemberState.CURRENT:
            return True
        self._forget()
        if state is MemberState.REPLACED and not self._options.origin.batch:
            # Joining again would replace the newer run in turn, unless that one has ended.
            latest = self._read_successor(deadline)
            self._checked = latest is not None and self._takes_turns_with(latest.record.run)
            if not self._checked and not (latest and _has_ended(latest.record)):
                raise self._replaced(latest)
        return False

    def _read_successor(self, deadline: Deadline) -> LogEntry | None:
        """The record of the run that has replaced this one: only the log tells which it is, so if
        it cannot be read, that is the error. None: it is not the log that this run has read."""
        try:
            return self._register.read(deadline)
        except OperatorNeededError:
            return None

    def _replaced(self, latest: LogEntry | None) -> EosSinkError:
        from eos_sink.protocol.refused import replaced

        return replaced(self._run, latest)

    def _takes_turns_with(self, other: Run | None) -> bool:
        """True if the run that planned last has finished its plan: it is another planner process
        of this run. Or any other run of batch writes, which may come between two of this process.
        """
        if other is None or not self._options.origin.batch:
            return other is not None and other.is_sibling_of(self._run)
        return other != self._run

    def _continue(self, deadline: Deadline) -> View:
        entry = self._register.read(deadline)
        if self._view is not None and entry.seq <= self._view.entry.seq:
            # Nothing was written since the last plan, unless a deposed leader says so.
            entry = self._register.read(deadline, anew=True)
        if self._takes_turns_with(entry.record.run):
            # It has replaced this member, even if the group has not said so yet.
            self._forget()
            self._checked = not self._options.origin.batch
            return self._recover(deadline)
        if entry.record.run not in (None, self._run):
            # A newer run has joined: this one learns it before its tasks are refused.
            if not _has_ended(entry.record):
                raise self._replaced(entry)
            self._forget()
            return self._recover(deadline)
        if self._options.origin.batch and self._may_be_running(entry):
            # Its tasks have this member's metadata: only a new member makes Kafka refuse them.
            self._session.close()
            return self._recover(deadline)
        planned = self._view and self._view.entry
        if planned and entry.seq == planned.seq + 1 and _is_new(entry.decision, planned.decision):
            return bring_to_rest(self._kafka, View.of(self._names, entry), deadline)
        # The last plan came to nothing. Its abort() may not have known of it, or may have died.
        return self._repair(entry, Role.REPAIR, deadline)

    def _may_be_running(self, entry: LogEntry) -> bool:
        """True if tasks of the last batch write of this process may run: it is not decided, so it
        goes on in another thread or has failed, and Spark does not wait for the tasks of a failed
        job; or the log does not say yet that its decision is settled."""
        if self._view is not None and self._view.decision == entry.decision:
            return True
        return entry.record.needs_settled_note and not entry.record.settled

    # Recover: check, join, open, bring to rest.

    def _recover(self, deadline: Deadline) -> View:
        if not self._checked:
            self._check(deadline)
            self._checked = True
        else:
            settle_without_id(self._kafka, self._names, self._register, deadline)
        try:
            member = self._session.join(deadline)
            try:
                return self._start(member, deadline)
            except SupersededError:
                if member.state() is not MemberState.CURRENT:
                    raise
                # No newer driver: the end that was read came from a deposed leader.
                return self._start(member, deadline)
        except BaseException:
            self._forget()
            raise

    def _start(self, member: GroupMember, deadline: Deadline) -> View:
        entry = self._register.open(deadline)
        before = entry.record.run
        if before is not None and before.origin.contradicts(self._run.origin):
            _LOGGER.warning(
                "Query %s was run before by %s and is run now by %s. If both are alive they "
                "replace each other in turns: give each of two queries an eos.id of its own.",
                self._names.query,
                before,
                self._run,
            )
        return self._repair(entry, Role.START, deadline, member)

    def _repair(
        self, entry: LogEntry, role: Role, deadline: Deadline, member: GroupMember | None = None
    ) -> View:
        """Bring the query to rest: what the plans before have left behind is settled or aborted.

        Args:
            member: of a start.
        """
        # The last batch may have failed because a topic has other rules now.
        self._topics.forget()
        before, starts = entry.record.run, role is Role.START
        same = before is not None and (before == self._run or self._run.is_sibling_of(before))
        new_run = starts and not same

        def fence(view: View) -> LogEntry:
            is_first, listed = not view.fenced, bool(view.listed)
            counts = {Count.ABORTS: listed, Count.RUNS: new_run and is_first}
            figures = Stats.of_counts({**counts, Count.RECOVERIES: starts and is_first})
            change = Change(view.decision, figures, view.seen, gives_up=listed or new_run)
            return self._register.append(self._session.token(view.entry), change, deadline)

        def look(view: View) -> None:
            topics = topics_of(self._options, view.decision)
            end_hanging(self._kafka, self._names, self._register.records, topics, deadline)

        def is_stable(view: View) -> bool:
            assert member is not None
            soon = Deadline(min(_STABLE_TRY_S, deadline.left))
            return member.wait_stable(view.entry.position, soon)

        view = View.of(self._names, entry) if self._view is None else self._view.at(entry)
        view = bring_to_rest(self._kafka, view, deadline, Actor(role, fence, look, is_stable))
        if starts:
            run = str(self._run) if new_run else None
            events.emit(Event.RECOVERED, self._names.query, run=run, transactions=view.aborted)
            if new_run and uses_tcp_to_spark():
                _LOGGER.warning("%s", _TCP_COSTS)
        if view.aborted:
            events.emit(Event.ABORTED, self._names.query, transactions=view.aborted)
        return view

    def _check(self, deadline: Deadline) -> None:
        """Find what can be wrong before the driver that runs now, if any, is replaced."""
        control, timeout_ms = self._kafka.control(), self._options.transaction_timeout_ms
        control.check_brokers(deadline)
        self._topics.check(deadline)
        self._kafka.check_settings(self._names.driver, timeout_ms)
        self._check_unrecorded(deadline)
        settle_without_id(self._kafka, self._names, self._register, deadline)
        # Not with the driver's id, whose timeout tells that the log had a record.
        control.check_timeout(self._names.probe, max(timeout_ms, RECORDED_MS), deadline)

    def _check_unrecorded(self, deadline: Deadline) -> None:
        """Before the driver's id is inited: its state may be the last trace of a lost log."""
        if self._register.has_record(deadline):
            return
        states = list_committed(self._kafka, f"{self._names.group}-", deadline)
        # Listed before the log is read: what another run commits meanwhile has its record by then.
        if states and not self._register.read(deadline).seq:
            check_unrecorded(self._names, states)

    def _check_source(
        self, source: SourceReader, query: str | None, view: View, deadline: Deadline
    ) -> View:
        """Let the position return to the start of a decided batch that has become invisible, if its
        checkpoint is gone: what it had read has to be read again. Then check, once for each
        checkpoint, the batch that Spark has begun; the log knows from then on where the query is.

        Args:
            query: Spark's id of the query, whose checkpoint it has to be; None: it is not known.
        """
        if query is not None and self._source_checked != query:
            from eos_sink.driver.checkpoint_files import check_query

            check_query(source.files, query)
        if view.lost and not view.doubtful:
            start = source.find_return(view.record, view.lost, deadline)
            if start is not None:
                view = self._write(view, Change(None, source=start), deadline)
        if self._members_seen is None or self._members_seen.passed:
            # Spark keeps a planner over restarts of its query.
            source.check_members(deadline)
            self._members_seen = Deadline(_MEMBERS_AGE_S)
        stream = source.stream
        if stream is None or self._source_checked != stream:
            begins = source.check_first(view.record, deadline)
            if begins is not None:
                change = Change(view.decision, source=begins)
                view = self._write(view, change, deadline, source.claims)
            self._source_checked = stream
        return view

    def _read_back(self, view: View, deadline: Deadline) -> tuple[View, bytes | None]:
        """The hashes of the visible rows, if a replay writes the others in any partitions. If they
        cannot be told, the log says so from then on."""
        decision, lost = view.decision, view.lost
        if decision is None or view.doubtful or decision.digest != DIGEST:
            return view, None
        if not decision.needs_completion(lost):
            return view, None
        # numpy and pyarrow are for rows only.
        from eos_sink.driver import completion

        try:
            return view, completion.read_back(self._kafka, decision, lost, deadline)
        except completion.RefusedCompletion as refused:
            why = str(refused)
            if decision.completed:
                raise completion.not_told(decision, lost, why) from refused
            _LOGGER.warning(
                "Query %s: the lost partitions of %s have to be written as they were: %s.",
                self._names.query,
                decision.batch,
                why,
            )
            change = Change(completion.by_partition(decision, why))
            return self._write(view, change, deadline), None

    def _write(
        self, view: View, change: Change, deadline: Deadline, known: KnownClaims = NO_CLAIMS
    ) -> View:
        """Write a record that changes what the plan is made from, but not what became of it."""
        token = self._session.token(view.entry)
        entry = self._register.append(token, change, deadline, known=known)
        return replace(view, entry=entry) if entry.decision else View.of(self._names, entry)

    def _forget(self) -> None:
        self._session.close()
        self._checked = False


def _is_new(decision: Decision | None, before: Decision | None) -> bool:
    """False also if a replay, which has failed, has only noted how it differs."""
    return decision is not None and not decision.repeats(before)


def _has_ended(record: LogRecord) -> bool:
    """True if a start of the query replaces no run: its last one is known to have ended, or goes on
    under another identity. Spark keeps a planner over a restart of its query, and another run may
    have come and gone between."""
    return record.is_left or (record.run is not None and is_dead_here(record.run))
