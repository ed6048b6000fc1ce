"""Plans: what the tasks of a batch need to know, and the recovery before the first plan.

Spark calls `streamWriter()` for each batch in a process that it keeps between batches, even across
restarts of the query, and ends after an idle minute. So a planner's memory only saves time: each
plan reads the log to its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.hanging import topics_of
from eos_sink.decision_log.other_logs import check_no_logs
from eos_sink.driver.abort import (
    abort_all,
    fence_plans,
    list_undecided,
    settle_without_id,
)
from eos_sink.driver.batch_metrics import log_superseded
from eos_sink.driver.hanging import end_hanging
from eos_sink.driver.processes import (
    current_run,
    is_dead_here,
    uses_tcp_to_spark,
)
from eos_sink.driver.session import DriverSession
from eos_sink.driver.settle import Settlement, commit_open, settle
from eos_sink.errors import (
    EosSinkError,
    OperatorNeededError,
    SupersededError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.kafka.read_topic_rules import read_topic_rules
from eos_sink.messages import Reason, named, stop
from eos_sink.metrics import events
from eos_sink.metrics.names import Count, Event
from eos_sink.metrics.stats import Stats
from eos_sink.protocol.model import (
    Change,
    Decision,
    Entry,
    LogRecord,
    Plan,
    Run,
    SourcePosition,
)
from eos_sink.protocol.rules import check_unrecorded
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.protocol.values import MemberRefused, MemberState
from eos_sink.sink_options import SinkOptions

if TYPE_CHECKING:
    from eos_sink.driver.source_reader import CheckpointFiles, SourceReader

_STABLE_TRY_S = 2.0
_RULES_AGE_S = 60.0
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
        self._rules: tuple[dict[str, TopicRules], Deadline] | None = None
        self._topics: tuple[Mapping[str, str], Deadline] | None = None
        self._planned: Entry | None = None
        self._settled: tuple[Decision, Settlement] | None = None
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
            try:
                go_on = self._continue if self._joined(deadline) else self._recover
                entry = go_on(deadline)
            except MemberRefused as refused:
                self._forget()
                from eos_sink.protocol.refused import refused_member

                latest = self._register.try_read()
                session_ms = self._session.session_ms
                raise refused_member(refused, self._run, latest, session_ms) from refused
            except EosSinkError:
                # The next plan recovers from what was half done.
                self._forget()
                raise
            found = self._settle(entry, deadline)
            if self._source is not None:
                if query is not None and self._source_checked != query:
                    self._source.check_query(query)
                entry, found = self._check_source(self._source, entry, found, deadline)
            entry, visible = self._read_back(entry, found, deadline)
            self._planned = entry
            token = self._session.token(entry)
            return Plan(
                token,
                entry.decision,
                found.lost,
                found.doubtful,
                found.made_again,
                self._options.route,
                self._read_rules(entry, deadline),
                entry.record.given_up,
                visible,
                entry.record.written,
                entry.record.retired,
                self._know_topics(entry, deadline),
            )

    def refuse_tasks(self, given_up: Entry) -> None:
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

    # Plan: is this run still the current one, and did the plan before come to anything?

    def _joined(self, deadline: Deadline) -> bool:
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

    def _read_successor(self, deadline: Deadline) -> Entry | None:
        """The record of the run that has replaced this one: only the log tells which it is, so if
        it cannot be read, that is the error. None: it is not the log that this run has read."""
        try:
            return self._register.read(deadline)
        except OperatorNeededError:
            return None

    def _replaced(self, latest: Entry | None) -> EosSinkError:
        from eos_sink.protocol.refused import replaced

        return replaced(self._run, latest)

    def _takes_turns_with(self, other: Run | None) -> bool:
        """True if the run that planned last has finished its plan: it is another planner process
        of this run. Or any other run of batch writes, which may come between two of this process.
        """
        if other is None or not self._options.origin.batch:
            return other is not None and other.is_sibling_of(self._run)
        return other != self._run

    def _continue(self, deadline: Deadline) -> Entry:
        entry = self._register.read(deadline)
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
        planned = self._planned
        if planned and entry.seq == planned.seq + 1 and entry.decision != planned.decision:
            return entry
        # The last plan came to nothing. Its abort() may not have known of it, or may have died.
        return self._abort_undecided(entry, deadline)

    def _may_be_running(self, entry: Entry) -> bool:
        """True if tasks of the last batch write of this process may run: it is not decided, so it
        goes on in another thread or has failed, and Spark does not wait for the tasks of a failed
        job; or the log does not say yet that its decision is settled."""
        if self._planned is not None and self._planned.decision == entry.decision:
            return True
        return entry.record.needs_settled_note and not entry.record.settled

    # Recover: check, join, open, settle, list, fence, abort, wait until nothing is pending.

    def _recover(self, deadline: Deadline) -> Entry:
        if not self._checked:
            self._check(deadline)
            self._checked = True
        else:
            settle_without_id(self._kafka, self._names, self._register, deadline)
        try:
            member = self._session.join(deadline)
            try:
                entry = self._take_over(deadline)
            except SupersededError:
                if member.state() is not MemberState.CURRENT:
                    raise
                # No newer driver: the end that was read came from a deposed leader.
                entry = self._take_over(deadline)
            while not member.wait_stable(
                entry.position, Deadline(min(_STABLE_TRY_S, deadline.left))
            ):
                if deadline.passed:
                    raise stop(Reason.PENDING_OFFSETS)
                # A coordinator that moved while it was asked may have hidden a transaction.
                entry = self._abort_undecided(entry, deadline)
        except BaseException:
            self._forget()
            raise
        return entry

    def _check(self, deadline: Deadline) -> None:
        """Find what can be wrong before the driver that runs now, if any, is replaced."""
        control, timeout_ms = self._kafka.control(), self._options.transaction_timeout_ms
        control.check_brokers(deadline)
        declared = self._options.destinations
        if declared is not None:
            from eos_sink.driver.check_destinations import check_destinations

            views = self._kafka.describe_topics(declared.topics, deadline)
            for warning in check_destinations(declared, views):
                _LOGGER.warning("%s", warning)
        elif self._options.topic is not None:
            self._kafka.check_topic(self._options.topic, deadline)
        # First, so that no error advises to change the cleanup.policy of a log.
        check_no_logs(self._kafka, self._options.named_topics, deadline)
        self._check_dead_letter_topic(deadline)
        self._kafka.check_settings(self._names.driver, timeout_ms)
        self._check_unrecorded(deadline)
        settle_without_id(self._kafka, self._names, self._register, deadline)
        # Not with the driver's id, whose timeout tells that the log had a record.
        control.check_timeout(self._names.probe, timeout_ms, deadline)

    def _check_dead_letter_topic(self, deadline: Deadline) -> None:
        name = self._options.dead_letter_topic
        if name is None:
            return
        self._kafka.check_topic(name, deadline)
        rules = read_topic_rules(self._kafka, [name], deadline)[name]
        if rules is not None and rules.keyed:
            raise stop(Reason.KEYED_DEAD_LETTERS, topic=name)

    def _read_rules(self, entry: Entry, deadline: Deadline) -> dict[str, TopicRules]:
        """The rules of the topics that are known here, so that tasks need not ask for them. A task
        asks again before it rejects a row. Without dead letters they only bound record batches: as
        far as they may be seen, and once, since a batch that is refused is repeated by a new plan.
        """
        options = self._options
        letters = options.dead_letter_topic
        if self._rules is None or (letters is not None and self._rules[1].passed):
            written = entry.decision.topics if entry.decision and not options.topic else ()
            names = sorted({*options.named_topics, *written})
            found = read_topic_rules(self._kafka, names, deadline, hidden=letters is None)
            there = {name: rules for name, rules in found.items() if rules is not None}
            self._rules = there, Deadline(_RULES_AGE_S)
        return self._rules[0]

    def _know_topics(self, entry: Entry, deadline: Deadline) -> dict[str, str]:
        """The ids of the topics that are known here, so that tasks need not ask for them. A batch
        is not decided if they have others by then, and the plan after that asks again. So does
        each one of a batch write: between two of them a topic is often made again."""
        decision = entry.decision
        if self._topics is None or self._topics[1].passed:
            ids = self._kafka.topic_ids(topics_of(self._options, decision), deadline)
            self._topics = ids, Deadline(0 if self._options.origin.batch else _RULES_AGE_S)
        # Another topic of the column is as its batch has found it.
        return {**(decision.topics if decision else {}), **self._topics[0]}

    def _check_unrecorded(self, deadline: Deadline) -> None:
        """Before the driver's id is inited: its state may be the last trace of a lost log."""
        if self._register.has_record(deadline):
            return
        control = self._kafka.control()
        committed = control.list_committed(f"{self._names.group}-", deadline)
        # Listed before the log is read: what another run commits meanwhile has its record by then.
        if committed and not self._register.read(deadline).seq:
            states = control.describe(committed, deadline)
            check_unrecorded(self._names, states.values())

    def _take_over(self, deadline: Deadline) -> Entry:
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
        return self._abort_undecided(entry, deadline, recovers=True)

    def _abort_undecided(
        self, entry: Entry, deadline: Deadline, *, recovers: bool = False
    ) -> Entry:
        """Settle the decision; list, fence and abort what it does not name.

        Args:
            recovers: fence even if nothing is open.
        """
        # The last batch may have failed because a topic has other rules now.
        self._rules = self._topics = None
        # First: a decision may be settled only if its rows can be read.
        self._end_hanging(entry, deadline)
        seen = self._settle(entry, deadline).seen
        listed = list_undecided(self._kafka, self._names, entry.decision, deadline)
        if not listed and not recovers:
            return entry
        before = entry.record.run
        same = before is not None and (before == self._run or self._run.is_sibling_of(before))
        new_run = recovers and not same
        figures = Stats.of_counts(
            {Count.ABORTS: bool(listed), Count.RUNS: new_run, Count.RECOVERIES: recovers}
        )
        change = Change(entry.decision, figures, seen, gives_up=bool(listed) or new_run)
        token = self._session.token(entry)
        entry = fence_plans(self._register, token, entry, change, deadline)
        abort_all(self._kafka, listed, deadline)
        if listed:
            # What is open in one partition may hang in another one, from an earlier attempt.
            self._end_hanging(entry, deadline)
        if recovers:
            run = str(self._run) if new_run else None
            events.emit(Event.RECOVERED, self._names.query, run=run, transactions=len(listed))
            if new_run and uses_tcp_to_spark():
                _LOGGER.warning("%s", _TCP_COSTS)
        if listed:
            events.emit(Event.ABORTED, self._names.query, transactions=len(listed))
        return entry

    def _end_hanging(self, entry: Entry, deadline: Deadline) -> None:
        """End what a transaction of a plan that came to nothing has left open. Readers of other
        partitions need not wait for one that cannot be looked at."""
        kafka, names, record = self._kafka, self._names, entry.record
        end_hanging(
            kafka,
            names,
            self._register.records,
            topics_of(self._options, entry.decision),
            deadline,
            lambda: commit_open(kafka, names, record, deadline, just_decided=False),
        )

    def _settle(self, entry: Entry, deadline: Deadline) -> Settlement:
        """The outcome of the latest decision, which one process settles once."""
        if entry.decision is None:
            return Settlement()
        if self._settled is None or self._settled[0] != entry.decision:
            found = settle(self._kafka, self._names, entry.record, deadline, just_decided=False)
            self._settled = (entry.decision, found)
        return self._settled[1]

    def _check_source(
        self, source: SourceReader, entry: Entry, found: Settlement, deadline: Deadline
    ) -> tuple[Entry, Settlement]:
        """Let the position return to the start of a decided batch that has become invisible, if its
        checkpoint is gone: what it had read has to be read again. Then check, once for each
        checkpoint, the batch that Spark has begun; the log knows from then on where the query is.
        """
        if found.lost and not found.doubtful:
            start = source.find_return(entry.record, found.lost, deadline)
            if start is not None:
                entry, found = self._write_source(entry, None, start, deadline), Settlement()
        if self._members_seen is None or self._members_seen.passed:
            # Spark keeps a planner over restarts of its query.
            source.check_members(deadline)
            self._members_seen = Deadline(_MEMBERS_AGE_S)
        stream = source.stream
        if stream is None or self._source_checked != stream:
            begins = source.check_first(entry.record, deadline)
            if begins is not None:
                entry = self._write_source(entry, entry.decision, begins, deadline)
            self._source_checked = stream
        return entry, found

    def _write_source(
        self,
        entry: Entry,
        decision: Decision | None,
        position: SourcePosition,
        deadline: Deadline,
    ) -> Entry:
        token = self._session.token(entry)
        return self._register.append(token, Change(decision, source=position), deadline)

    def _read_back(
        self, entry: Entry, found: Settlement, deadline: Deadline
    ) -> tuple[Entry, bytes | None]:
        """The hashes of the visible rows, if a replay writes the others in any partitions. If they
        cannot be told, the log says so from then on."""
        decision = entry.decision
        if decision is None or found.doubtful or not decision.needs_completion(found.lost):
            return entry, None
        # numpy and pyarrow are for rows only.
        from eos_sink.driver import completion

        lost = found.lost
        try:
            return entry, completion.read_back(self._kafka, decision, lost, deadline)
        except completion.RefusedCompletion as refused:
            if decision.completed:
                raise completion.not_told(decision, lost, str(refused)) from refused
            token, why = self._session.token(entry), str(refused)
            _LOGGER.warning(
                "Query %s: the lost partitions of %s have to be written as they were: %s.",
                self._names.query,
                decision.batch,
                why,
            )
            return completion.complete_by_partition(
                self._register, token, decision, why, deadline
            ), None

    def _forget(self) -> None:
        self._session.close()
        self._checked = False


def _has_ended(record: LogRecord) -> bool:
    """True if a start of the query replaces no run: its last one is known to have ended, or goes on
    under another identity. Spark keeps a planner over a restart of its query, and another run may
    have come and gone between."""
    return record.is_left or (record.run is not None and is_dead_here(record.run))
