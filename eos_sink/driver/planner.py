"""Plans: what the tasks of a batch need to know, and the recovery that comes before the first.

Spark calls `streamWriter()` for each batch in a process that it keeps between batches, also across
restarts of the query, and kills when idle for a minute. What a planner remembers is therefore an
optimisation; each plan reads the log to its end.
"""

from __future__ import annotations

import logging

from eos_sink.decision_log import DecisionRegister, Entry, refused_member, replaced
from eos_sink.driver.abort import abort_all, list_undecided, void
from eos_sink.driver.batch_metrics import PlanJournal, superseded_run
from eos_sink.driver.check_destinations import check_destinations
from eos_sink.driver.processes import current_run
from eos_sink.driver.settle import Settlement, settle
from eos_sink.errors import (
    ConfigurationError,
    EosSinkError,
    OutcomeUnknownError,
    SupersededError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import GroupMember, Kafka, MemberRefused, MemberState
from eos_sink.kafka_config.destinations import Destinations
from eos_sink.metrics import events
from eos_sink.options import SinkOptions
from eos_sink.protocol.model import Decision, Plan, PlanToken, Run
from eos_sink.protocol.rules import check_unrecorded, group_session_ms, longest_session_ms

_STABLE_TRY_S = 2.0
_LOGGER = logging.getLogger("eos_sink.driver")


class Planner:
    """The planner of one query in one process."""

    def __init__(self, kafka: Kafka, options: SinkOptions, run: Run | None = None) -> None:
        self._kafka = kafka
        self._options = options
        self._names = options.names
        self._register = DecisionRegister(kafka, options.names)
        self._run = run or current_run(options)
        self._journal = PlanJournal(options.names, self._run)
        self._member: GroupMember | None = None
        self._metadata = b""
        self._session_ms = 0
        self._checked = False
        self._planned: Entry | None = None
        self._settled: tuple[Decision, Settlement] | None = None
        if options.metrics_log:
            events.show()
        for warning in options.warnings:
            _LOGGER.warning("%s", warning)

    def plan(self) -> Plan:
        """Plan the next batch.

        Raises:
            ConfigurationError, ClusterError: something is wrong that can be seen before writing.
            SupersededError: a newer run of the query has taken over; names it.
            UnfinishedError: the decided batch could not be finished in time.
            OperatorNeededError: the log has lost what was decided.
        """
        with superseded_run(self._names):
            return self._plan(Deadline(self._options.step_timeout))

    def _plan(self, deadline: Deadline) -> Plan:
        try:
            entry = self._current(deadline) if self._joined() else self._recover(deadline)
        except MemberRefused as refused:
            self._forget()
            latest = self._register.try_read()
            raise refused_member(
                self._names, refused, self._run, latest, self._session_ms
            ) from refused
        except EosSinkError:
            # Whatever was half done, the next plan recovers.
            self._forget()
            raise
        self._planned = entry
        found = self._settle(entry, deadline)
        return Plan(self._token(entry), entry.decision, found.lost, found.doubtful)

    def close(self) -> None:
        """Leave no client behind, and no member that would go on with its heartbeats."""
        self._forget()
        self._register.close()
        self._kafka.close()

    def _joined(self) -> bool:
        if self._member is None:
            return False
        state = self._member.state()
        if state is MemberState.CURRENT:
            return True
        self._forget()
        if state is MemberState.REPLACED and not self._options.origin.batch:
            # Never a reason to join again: the newer run would be replaced in turn.
            latest = self._register.try_read()
            if latest is None or not self._in_turns(latest):
                raise replaced(self._names, self._run, latest)
            self._checked = True
        return False

    def _in_turns(self, latest: Entry) -> bool:
        """Another process has planned last, and is done with it: a planner of this very run. Or, of
        batch writes, any other: each is a run by itself, and may come between two of this process.
        """
        run = latest.record.run
        if run is None or not self._options.origin.batch:
            return run is not None and run.is_sibling_of(self._run)
        return run != self._run

    def _current(self, deadline: Deadline) -> Entry:
        entry = self._register.read(deadline)
        if self._in_turns(entry):
            # It has joined in this one's place, whether or not the group has said so by now.
            self._forget()
            self._checked = not self._options.origin.batch
            return self._recover(deadline)
        if self._options.origin.batch and self._may_run(entry):
            # Its tasks have this member's metadata: only a new one has them refused.
            self._close_member()
            return self._recover(deadline)
        planned = self._planned
        if planned and entry.seq == planned.seq + 1 and entry.decision != planned.decision:
            return entry
        # The plan before came to nothing. Its abort() may not have known of it, or died amid.
        return self._sweep(entry, deadline, always_void=False)

    def _may_run(self, entry: Entry) -> bool:
        """The batch write that this process planned before may be another thread's and go on: it
        is neither decided nor given up, or its decision is not noted as settled, which follows."""
        if self._planned is not None and self._planned.seq == entry.seq:
            return True
        return entry.record.needs_settled_note and not entry.record.settled

    def _recover(self, deadline: Deadline) -> Entry:
        if not self._checked:
            self._check(deadline)
            self._checked = True
        try:
            member = self._join(deadline)
            try:
                entry = self._take_over(deadline)
            except SupersededError:
                if member.state() is not MemberState.CURRENT:
                    raise
                # Nobody has come since: the end that was read was a deposed leader's.
                entry = self._take_over(deadline)
            while not member.wait_stable(Deadline(min(_STABLE_TRY_S, deadline.left))):
                if deadline.passed:
                    raise OutcomeUnknownError(
                        f"Group {self._names.group} has pending offsets: a transaction of the "
                        "query is open still and could not be ended.",
                        remedy="Check the brokers and the topic __transaction_state, then start "
                        "the query again.",
                    )
                # A coordinator that moved while it was asked may have hidden a transaction.
                entry = self._sweep(entry, deadline, always_void=False)
        except BaseException:
            self._forget()
            raise
        return entry

    def _take_over(self, deadline: Deadline) -> Entry:
        entry = self._register.open(deadline)
        self._tell_of_another_query(entry)
        return self._sweep(entry, deadline, always_void=True)

    def _join(self, deadline: Deadline) -> GroupMember:
        """Join for the longest session that the brokers grant; once known, it is not asked for."""
        timeout_ms = self._options.transaction_timeout_ms
        longest_ms = self._session_ms
        if not longest_ms:
            longest_ms = longest_session_ms(timeout_ms, self._kafka.longest_session(deadline))
        try:
            return self._join_for(longest_ms, deadline)
        except ConfigurationError:
            # If they refuse the shortest one too, the error says what to do.
            self._close_member()
            return self._join_for(group_session_ms(timeout_ms), deadline)

    def _join_for(self, session_ms: int, deadline: Deadline) -> GroupMember:
        member = self._kafka.member(self._names.group, self._names.driver, session_ms)
        self._member = member
        self._metadata = member.join(deadline)
        self._session_ms = session_ms
        return member

    def _check(self, deadline: Deadline) -> None:
        """What can be wrong is found before the driver that runs now, if any, is replaced."""
        self._kafka.control().check_brokers(deadline)
        if self._options.destinations is not None:
            self._check_destinations(self._options.destinations, deadline)
        elif self._options.topic is not None:
            self._kafka.check_topic(self._options.topic, deadline)
        timeout_ms = self._options.transaction_timeout_ms
        self._kafka.producer(self._names.driver, timeout_ms).close()
        self._check_unrecorded(deadline)
        self._kafka.control().check_timeout(self._names.driver, timeout_ms, deadline)

    def _check_destinations(self, declared: Destinations, deadline: Deadline) -> None:
        views = self._kafka.view_topics(declared.topics, deadline)
        for weakness in check_destinations(declared, views):
            _LOGGER.warning("%s", weakness)

    def _check_unrecorded(self, deadline: Deadline) -> None:
        """Before anything inits the driver's id, whose state may be the last trace of a log."""
        if self._register.known(deadline):
            return
        control = self._kafka.control()
        committed = control.list_committed(f"{self._names.group}-", deadline)
        # Listed before it is read: what another run commits meanwhile has its record by then.
        if committed and not self._register.read(deadline).seq:
            states = control.describe(committed, deadline)
            check_unrecorded(self._names, self._options.log_topic, states.values())

    def _tell_of_another_query(self, entry: Entry) -> None:
        before = entry.record.run
        if before is not None and before.origin.contradicts(self._run.origin):
            _LOGGER.warning(
                "Query %s was run before by %s and is run now by %s. If both are alive they "
                "replace each other in turns: give each of two queries an eos.id of its own.",
                self._names.query,
                before,
                self._run,
            )

    def _sweep(self, entry: Entry, deadline: Deadline, *, always_void: bool) -> Entry:
        seen = self._settle(entry, deadline).seen
        listed = list_undecided(self._kafka, self._names, entry.decision, deadline)
        if listed or always_void:
            figures = self._journal.voiding(entry, len(listed), recovers=always_void)
            token = self._token(entry)
            entry = void(self._register, token, entry, deadline, figures, settled=seen)
            abort_all(self._kafka, listed, deadline)
            self._journal.voided()
        return entry

    def _settle(self, entry: Entry, deadline: Deadline) -> Settlement:
        """What became of the latest decision, which is settled once a process."""
        if entry.decision is None:
            return Settlement()
        if self._settled is None or self._settled[0] != entry.decision:
            found = settle(self._kafka, self._names, entry.record, deadline, just_decided=False)
            self._settled = (entry.decision, found)
        return self._settled[1]

    def _token(self, entry: Entry) -> PlanToken:
        return PlanToken(
            self._names, entry.seq, entry.position, self._metadata, self._run, self._session_ms
        )

    def _forget(self) -> None:
        self._close_member()
        self._checked = False

    def _close_member(self) -> None:
        if self._member is not None:
            self._member.close()
        self._member = None
