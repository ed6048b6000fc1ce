"""Guards of the planner: reading the log, recovery, membership, aborted transactions."""

from __future__ import annotations

from proof.guards.guard import Guard, Removal, proofs

_PLANNER = "eos_sink/driver/planner.py"
_ABORT_MODULE = "eos_sink/driver/abort.py"
_VERSIONS = "eos_sink/kafka_config/broker_versions.py"
_STORY = "tests/protocol/test_stories.py::"
_GUARD = "tests/protocol/test_guards.py::"
_LOST = "tests/protocol/test_lost_log.py::"
_LEADERLESS = "tests/protocol/test_leaderless.py::"
_MARKERS = "integration/test_markers.py::"
_WEEK = "tests/protocol/test_quiet_week.py::"
_ZOMBIE = "integration/test_zombies.py::"
_CRASH = "integration/test_crash_points.py::"

_LIST = "        listed = list_undecided(self._kafka, self._names, entry.decision, deadline)\n"
_NOTHING = "        if not listed and not recovers:\n            return entry\n"
_FENCE = (
    "        entry = fence_plans(\n"
    "            self._register, token, entry, deadline, figures, settled=seen, gives_up=failed\n"
    "        )\n"
)
_ABORT = "        abort_all(self._kafka, listed, deadline)\n"
_ABORT_AGAIN = "                entry = self._abort_undecided(entry, deadline)\n"

_WAKES_UP = (
    _GUARD + "test_a_commit_that_wakes_up_while_its_transactions_are_aborted_decides_nothing"
)

GUARDS = (
    Guard(
        "a plan reads the log",
        "Each plan is made from the log, never from the memory of the process.",
        (
            Removal(
                _PLANNER,
                "        entry = self._register.read(deadline)\n",
                "        entry = self._planned or self._register.read(deadline)\n",
            ),
        ),
        proofs(_STORY + "test_batches_take_turns_with_the_slots"),
        rows=("NO_PLANREAD",),
    ),
    Guard(
        "brokers that can verify transactions",
        "Without verification, the next attempt commits a late row of an aborted transaction.",
        (
            Removal(
                _VERSIONS,
                '    Ability(24, "AddPartitionsToTxn", 4, (3, 6), "KIP-890"),\n',
            ),
        ),
        proofs(
            "tests/kafka_config/test_broker_versions.py::test_a_broker_that_cannot_verify_transactions_is_too_old"
        ),
        rows=("NOVERIFY",),
    ),
    Guard(
        "brokers that do verify transactions",
        "Verification can be disabled on each broker.",
        (Removal(_VERSIONS, '    if value == "false":\n', "    if False:\n"),),
        proofs(
            "tests/kafka_config/test_broker_versions.py::test_a_broker_that_does_not_verify_is_refused_and_an_"
            "unreadable_setting_is_not"
        ),
        rows=("NOVERIFY",),
    ),
    Guard(
        "a plan settles first",
        "Decided transactions are committed before a batch is planned.",
        (
            Removal(
                _PLANNER,
                "        if entry.decision is None:\n            return Settlement()\n",
                "        if entry is not None:\n            return Settlement()\n",
            ),
        ),
        proofs(
            _GUARD + "test_the_first_plan_after_a_crash_settles_what_is_decided",
            _STORY + "test_a_late_attempt_after_the_decision_loses_a_partition_which_is_written_"
            "again",
        ),
        rows=("M_NOSETTLE",),
    ),
    Guard(
        "a plan settles before it lists",
        "Decided transactions are no longer open when open transactions are listed to be aborted.",
        (
            Removal(
                _PLANNER,
                "        seen = self._settle(entry, deadline).seen\n",
                "        seen = False\n",
            ),
        ),
        proofs(
            _GUARD + "test_a_recovery_ends_nothing_that_is_decided_with_an_abort",
            without="a list excludes decided transactions",
        ),
        rows=("M_NOSETTLE",),
    ),
    Guard(
        "settled is remembered by decision",
        "A second decision of the same batch, for lost partitions, is settled too.",
        (
            Removal(
                _PLANNER,
                "self._settled[0] != entry.decision:",
                "self._settled[0].batch != entry.decision.batch:",
            ),
        ),
        proofs(_GUARD + "test_what_is_decided_again_is_settled_again"),
        rows=("M_SETTLEDBATCH",),
    ),
    Guard(
        "the log keeps what was seen settled",
        "Coordinators and topics forget; a record that repeats a decision says that its rows "
        "are visible.",
        (Removal(_PLANNER, "figures, settled=seen, ", "figures, "),),
        proofs(_WEEK + "test_what_a_recovery_has_seen_settled_is_kept_in_the_log"),
        rows=("NO_SETTLEDBIT",),
    ),
    Guard(
        "an override is not recorded as seen",
        "The operator's choice is read, and may be changed, as long as the doubt lasts.",
        (
            Removal(
                "eos_sink/driver/settle.py",
                "    return outcome(replace(evidence, override=None, accepted=False)) is ",
                "    return outcome(evidence) is ",
            ),
        ),
        proofs(_WEEK + "test_what_a_ruling_calls_visible_is_not_kept_as_seen"),
        outside="the model has no operator",
    ),
    Guard(
        "a new decision is not settled",
        "Only a record that repeats a decision keeps the note that it was seen settled.",
        (
            Removal(
                "eos_sink/protocol/model.py",
                "        settled = settled or (self.settled and repeats)\n",
                "        settled = settled or self.settled\n",
            ),
        ),
        proofs(_WEEK + "test_a_new_decision_is_settled_again"),
        rows=("M_SETTLEDKEPT",),
    ),
    Guard(
        "a start names the partition that the driver's id waits for",
        "Otherwise no error says which broker is missing.",
        (
            Removal(
                _PLANNER,
                "        with explain_wait(self._kafka, self._names):\n"
                "            control.check_timeout(self._names.driver, timeout_ms, deadline)\n",
                "        control.check_timeout(self._names.driver, timeout_ms, deadline)\n",
            ),
            Removal(
                "eos_sink/decision_log/register.py",
                "            with explain_wait(self._kafka, self._names):\n"
                "                producer.init(deadline)\n",
                "            producer.init(deadline)\n",
            ),
        ),
        proofs(
            _LEADERLESS + "test_an_aborted_transaction_that_waits_for_a_partition_names_it[plan]",
            _LEADERLESS + "test_an_aborted_transaction_that_waits_for_a_partition_names_it[abort]",
        ),
        outside="the model's transactions end in one step",
    ),
    Guard(
        "what is decided is settled without the driver's id",
        "Decided rows do not wait for a partition without a leader that the driver's id waits for.",
        (
            Removal(
                _ABORT_MODULE,
                "    if driver.is_ending:\n",
                "    if False:\n",
            ),
        ),
        proofs(
            _LEADERLESS + "test_what_is_decided_is_settled_before_the_drivers_id_is_free[plan]",
            _LEADERLESS + "test_what_is_decided_is_settled_before_the_drivers_id_is_free[abort]",
        ),
        outside="the model's transactions end in one step",
    ),
    Guard(
        "hanging transactions are ended before a plan",
        "What Kafka has forgotten to end in a partition ends there with the next transaction of "
        "the same producer: aborted rows appear, committed ones are lost.",
        (
            Removal(
                _PLANNER,
                "        self._end_hanging(entry, deadline)\n"
                "        seen = self._settle(entry, deadline).seen\n",
                "        seen = self._settle(entry, deadline).seen\n",
            ),
        ),
        proofs(
            _MARKERS + "test_a_transaction_that_times_out_without_a_leader_does_not_come_back"
            "[a new process]",
            _MARKERS
            + "test_a_committed_transaction_whose_marker_was_dropped_becomes_visible_at_the_"
            "next_start",
        ),
        outside="the model's transactions end in all partitions at once",
    ),
    Guard(
        "a hanging transaction ends as it has ended elsewhere",
        "If nothing tells whether rows are decided, they are neither committed nor aborted.",
        (
            Removal(
                "eos_sink/decision_log/hanging.py",
                "        return None if may_be_decided and not aborts else False\n",
                "        return False\n",
            ),
        ),
        proofs(
            "tests/decision_log/test_hanging.py::"
            "test_the_state_of_the_drivers_id_before_it_was_initialised_tells_how_its_transaction_has_"
            "ended[None-kept9-None]"
        ),
        outside="the model's transactions end in all partitions at once",
    ),
    Guard(
        "a hanging transaction is looked for in all decisions",
        "A committed one may be of a batch before the latest decided one. To abort it loses its "
        "rows.",
        (
            Removal(
                "eos_sink/decision_log/hanging.py",
                "    decisions = [each.decision for each in records if each.decision]\n",
                "    decisions = [each.decision for each in records[-1:] if each.decision]\n",
            ),
        ),
        proofs(
            "tests/decision_log/test_hanging.py::"
            "test_the_coordinator_and_the_log_tell_how_a_tasks_transaction_has_ended"
            "[TransactionStatus.COMPLETE_COMMIT-2-kept10-True]",
            "tests/decision_log/test_hanging.py::"
            "test_the_state_of_the_drivers_id_before_it_was_initialised_tells_how_its_transaction_has_"
            "ended[before7-kept7-None]",
        ),
        outside="the model's transactions end in all partitions at once",
    ),
    Guard(
        "only the log tells who has replaced a planner",
        "A planner that cannot read the log does not take another process of its run for a rival.",
        (
            Removal(
                _PLANNER,
                "        try:\n            return self._register.read(deadline)\n",
                "        try:\n            return self._register.try_read()\n",
            ),
        ),
        proofs(
            "tests/protocol/test_rivals.py::test_a_log_that_is_held_up_does_not_make_a_rival_of_a_"
            "planner_of_the_same_session[told by the group]"
        ),
        outside="in the model a run has one planner process",
    ),
    Guard(
        "a replaced member never joins again",
        "Of two live drivers the newer one wins permanently.",
        (
            Removal(
                _PLANNER,
                "        if state is MemberState.REPLACED and",
                "        if state is MemberState.CURRENT and",
            ),
        ),
        proofs(_STORY + "test_a_stale_planner_does_not_join_again"),
        rows=("M_REJOIN",),
    ),
    Guard(
        "an expired member recovers",
        "A planner whose session has ended joins again before it plans.",
        (
            Removal(
                _PLANNER,
                "        if state is MemberState.CURRENT:\n            return True\n",
                "        if state is not MemberState.REPLACED:\n            return True\n",
            ),
        ),
        proofs(_STORY + "test_a_planner_whose_session_has_ended_recovers_and_goes_on"),
        rows=("M_EXPIRED",),
    ),
    Guard(
        "a plan has the longest session",
        "Tasks can write under a plan whose process is gone for as long as the brokers allow.",
        (
            Removal(
                "eos_sink/driver/session.py",
                "            return self._join_for(longest_ms, deadline)\n",
                "            return self._join_for(group_session_ms(timeout_ms), deadline)\n",
            ),
        ),
        proofs(_GUARD + "test_a_plan_outlives_its_process_for_the_longest_session"),
        outside="the model has no clock",
    ),
    Guard(
        "an idle member has expired",
        "If the client itself has left the group, the planner joins again before the next plan.",
        (
            Removal(
                "eos_sink/kafka/member.py",
                "            error = self._poll(0)\n",
                "            error = self._check(0)\n",
            ),
        ),
        proofs(
            "integration/test_contract.py::TestMember::"
            "test_a_member_that_was_idle_for_too_long_has_expired_and_a_new_one_joins[4.3.0]"
        ),
        outside="the model's member lives as long as its process",
    ),
    Guard(
        "a plan lists undecided transactions",
        "Open transactions of an earlier run are found and aborted.",
        (Removal(_PLANNER, _LIST, "        listed = []\n"),),
        proofs(_STORY + "test_the_next_plan_ends_what_an_abort_without_any_report_left_open"),
        rows=("M_NOSWEEP",),
    ),
    Guard(
        "a plan fences earlier plans",
        "Earlier plans can no longer be decided.",
        (Removal(_PLANNER, _FENCE),),
        proofs(
            _GUARD + "test_half_a_task_that_goes_on_after_the_next_plan_is_never_decided",
            _WAKES_UP + "[Moment.AFTER-plan]",
        ),
        rows=("NO_VOID",),
    ),
    Guard(
        "a plan fences, then aborts",
        "A transaction is aborted only after its batch can no longer be decided.",
        (Removal(_PLANNER, _FENCE + _ABORT, _ABORT + _FENCE),),
        proofs(
            _WAKES_UP + "[Moment.AFTER-plan]",
        ),
        rows=("NO_VOID",),
    ),
    Guard(
        "a plan lists, then fences",
        "Transactions of a plan made after the fence are not aborted.",
        (
            Removal(_PLANNER, _LIST + _NOTHING, "        listed = []\n"),
            Removal(_PLANNER, _FENCE, _FENCE + _LIST),
        ),
        proofs(
            _STORY
            + "test_a_zombie_that_has_fenced_aborts_nothing_that_began_after_its_fence[plan]",
            _ZOMBIE + "test_a_recovery_that_wakes_up_late_aborts_only_what_it_has_listed"
            "[4.3.0-FaultPoint.PLANNER_WRITE_AFTER]",
        ),
        rows=("M_VOIDFIRST",),
    ),
    Guard(
        "abort exactly what was listed",
        "By producer id and epoch: a newer transaction under the same transactional id stays open.",
        (
            Removal(
                _ABORT_MODULE,
                "    wanted = set(transactions)\n",
                "    ids = [t.transactional_id for t in transactions]\n"
                "    states = kafka.control().describe(ids, deadline).values()\n"
                "    wanted = {state.transaction for state in states}\n",
            ),
        ),
        proofs(
            _STORY
            + "test_a_zombie_that_has_fenced_aborts_nothing_that_began_after_its_fence[abort]",
            _ZOMBIE + "test_an_abort_that_wakes_up_late_aborts_only_what_it_has_listed"
            "[4.3.0-FaultPoint.COMMITTER_WRITE_AFTER]",
        ),
        rows=("NO_SWEEP",),
    ),
    Guard(
        "a recovery fences the plans even if it listed nothing",
        "Older plans cannot be decided any more, whatever is open.",
        (Removal(_PLANNER, "recovers=True", "recovers=False"),),
        proofs(
            _GUARD
            + "test_a_plan_from_before_a_recovery_is_refused_also_if_that_has_listed_nothing",
            without="the decision carries the plan's member",
        ),
        rows=("NO_VOID",),
    ),
    Guard(
        "recovery waits until nothing is pending",
        "The group's offset is stable only when none of the query's transactions is open.",
        (
            Removal(
                _PLANNER,
                "            while not member.wait_stable("
                "Deadline(min(_STABLE_TRY_S, deadline.left))):\n",
                "            while False:\n",
            ),
        ),
        proofs(_GUARD + "test_a_recovery_lists_again_while_a_transaction_is_pending"),
        rows=("M_NOWAIT",),
    ),
    Guard(
        "recovery lists again while something is pending",
        "A transaction that a moving coordinator has hidden from the list is found.",
        (Removal(_PLANNER, _ABORT_AGAIN),),
        proofs(_GUARD + "test_a_recovery_lists_again_while_a_transaction_is_pending"),
        rows=("NO_RELIST",),
    ),
    Guard(
        "open transactions of a failed plan are aborted",
        "Unless exactly one new decision has come, the next plan lists what is open.",
        (
            Removal(
                _PLANNER,
                "        if planned and entry.seq == planned.seq + 1 "
                "and entry.decision != planned.decision:\n",
                "        if planned:\n",
            ),
        ),
        proofs(
            _STORY + "test_the_next_plan_ends_what_an_abort_without_any_report_left_open",
            _STORY + "test_the_next_plan_ends_what_an_abort_that_died_after_its_fence_left_open",
        ),
        rows=("NO_REPLAN",),
    ),
    Guard(
        "a new record alone is not a decision",
        "A fence adds a record too: only a new decision proves that the plan succeeded.",
        (
            Removal(
                _PLANNER,
                "        if planned and entry.seq == planned.seq + 1 "
                "and entry.decision != planned.decision:\n",
                "        if planned and entry.seq == planned.seq + 1:\n",
            ),
        ),
        proofs(
            _STORY + "test_the_next_plan_ends_what_an_abort_that_died_after_its_fence_left_open"
        ),
        rows=("M_SEQONLY",),
    ),
    Guard(
        "one new record, not more",
        "A fence after a decision means an abort that may have died halfway.",
        (
            Removal(
                _PLANNER,
                "        if planned and entry.seq == planned.seq + 1 "
                "and entry.decision != planned.decision:\n",
                "        if planned and entry.decision != planned.decision:\n",
            ),
        ),
        proofs(_GUARD + "test_the_next_plan_ends_what_an_abort_of_a_decided_batch_left_open"),
        outside="no row combines a commit that dies, an abort that dies, and a late attempt",
    ),
    Guard(
        "a start that read an old end offset takes over again",
        "A replaced leader reported the offset; no other run has replaced this one.",
        (
            Removal(
                _PLANNER,
                "                if member.state() is not MemberState.CURRENT:\n"
                "                    raise\n",
                "                raise\n",
            ),
        ),
        proofs(_LOST + "test_a_start_that_reads_an_older_end_goes_on_from_the_latest_record"),
        outside="the model reads the log in one step",
    ),
)
