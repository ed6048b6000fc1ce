"""Guards of the planner: reading the log, recovery, membership, aborted transactions."""

from __future__ import annotations

from proof.guards.guard import Proof, Removals, always, drop, guard, insert, never, swap

_PLANNER = "eos_sink/driver/planner.py"
_MACHINE = "eos_sink/protocol/reconcile.py"
_EXECUTOR = "eos_sink/driver/reconcile.py"
_VERSIONS = "eos_sink/kafka_config/broker_versions.py"
_HANGING = "eos_sink/driver/hanging.py"
_HOW_ENDED = (
    "tests/decision_log/test_hanging.py::"
    "test_the_coordinator_and_the_log_tell_how_a_tasks_transaction_has_ended"
)
_HOW_ENDED_DRIVER = (
    "tests/decision_log/test_hanging.py::test_the_records_name_the_transactions_that_the_driver_"
    "has_committed"
)
_STORY = "tests/protocol/test_stories.py::"
_GUARD = "tests/protocol/test_guards.py::"
_LOST = "tests/protocol/test_lost_log.py::"
_LEADERLESS = "tests/protocol/test_leaderless.py::"
_MARKERS = "integration/test_markers.py::"
_WEEK = "tests/protocol/test_quiet_week.py::"
_ZOMBIE = "integration/test_zombies.py::"
_WAKES_UP = (
    f"{_GUARD}test_a_commit_that_wakes_up_while_its_transactions_are_aborted_decides_nothing"
)


def _without(step: str) -> Removals:
    return swap(_MACHINE, "next_step", f"({step}, ...)", f"({step}, False)")


_ONE_RECORD = always(_PLANNER, "_continue", "entry.seq == planned.seq + 1")
_NEW_DECISION = always(_PLANNER, "_continue", "entry.decision != planned.decision")

GUARDS = (
    guard(
        "a plan reads the log",
        "Each plan is made from the log, never from the memory of the process.",
        swap(
            _PLANNER,
            "_continue",
            "self._register.read(deadline)",
            "self._view.entry if self._view else self._register.read(deadline)",
        ),
        f"{_STORY}test_batches_take_turns_with_the_slots",
        rows=("NO_PLANREAD",),
    ),
    guard(
        "brokers that can verify transactions",
        "Without verification, the next attempt commits a late row of an aborted transaction.",
        drop(_VERSIONS, "", "Ability(24, ...)"),
        "tests/kafka_config/test_broker_versions.py::test_a_broker_that_cannot_verify_transactions_is_too_old",
        rows=("NOVERIFY",),
    ),
    guard(
        "brokers that do verify transactions",
        "Verification can be disabled on each broker.",
        never(_VERSIONS, "check_verification", 'value == "false"'),
        "tests/kafka_config/test_broker_versions.py::test_a_broker_that_does_not_verify_is_refused_and_an_unreadable_setting_is_not",
        rows=("NOVERIFY",),
    ),
    guard(
        "what is decided is settled first",
        "Decided transactions are committed before a batch is planned, and by an abort that comes "
        "after the decision.",
        _without("Step.COMMIT"),
        f"{_GUARD}test_the_first_plan_after_a_crash_settles_what_is_decided",
        f"{_STORY}test_a_late_attempt_after_the_decision_loses_a_partition_which_is_written_again",
        f"{_STORY}test_abort_after_the_decision_settles_instead",
        rows=("M_NOSETTLE", "M_ABORTBLIND"),
    ),
    guard(
        "settled is remembered by decision",
        "A second decision of the same batch, for lost partitions, is settled too.",
        swap(
            _MACHINE,
            "at",
            "entry.decision != self.entry.decision",
            "not entry.decision or entry.decision.batch != getattr(self.decision, 'batch', None)",
        ),
        "tests/protocol/test_reconcile.py::test_a_decision_is_settled_once",
        rows=("M_SETTLEDBATCH",),
    ),
    guard(
        "the log keeps what was seen settled",
        "Coordinators and topics forget; a record that repeats a decision says that its rows are "
        "visible.",
        swap(_PLANNER, "fence", "Change(...)", "Change(view.decision, figures)"),
        f"{_WEEK}test_what_a_recovery_has_seen_settled_is_kept_in_the_log",
        rows=("NO_SETTLEDBIT",),
    ),
    guard(
        "an override is not recorded as seen",
        "The operator's choice is read, and may be changed, as long as the doubt lasts.",
        swap(_MACHINE, "seen", "replace(...)", "each"),
        f"{_WEEK}test_what_a_ruling_calls_visible_is_not_kept_as_seen",
        outside="the model has no operator",
    ),
    guard(
        "a new decision is not settled",
        "Only a record that repeats a decision keeps the note that it was seen settled.",
        swap("eos_sink/protocol/model.py", "next", "self.settled and repeats", "self.settled"),
        f"{_WEEK}test_a_new_decision_is_settled_again",
        rows=("M_SETTLEDKEPT",),
    ),
    guard(
        "a start names the partition that the driver's id waits for",
        "Otherwise no error says which broker is missing.",
        swap(
            "eos_sink/decision_log/opening.py",
            "open_log",
            "explain_wait(...)",
            "contextlib.nullcontext()",
        ),
        f"{_LEADERLESS}test_an_aborted_transaction_that_waits_for_a_partition_names_it[plan]",
        f"{_LEADERLESS}test_an_aborted_transaction_that_waits_for_a_partition_names_it[abort]",
        outside="the model's transactions end in one step",
    ),
    guard(
        "what is decided is settled without the driver's id",
        "Decided rows do not wait for a partition without a leader that the driver's id waits for.",
        never(_EXECUTOR, "settle_without_id", "describe_driver(...).is_ending"),
        f"{_LEADERLESS}test_what_is_decided_is_settled_before_the_drivers_id_is_free[plan]",
        f"{_LEADERLESS}test_what_is_decided_is_settled_before_the_drivers_id_is_free[abort]",
        outside="the model's transactions end in one step",
    ),
    guard(
        "hanging transactions are ended before a plan",
        "What Kafka has forgotten to end in a partition ends there with the next transaction of "
        "the same producer: aborted rows appear, committed ones are lost.",
        _without("Step.LOOK"),
        f"{_MARKERS}test_a_transaction_that_times_out_without_a_leader_does_not_come_back"
        "[a new process]",
        f"{_MARKERS}test_a_committed_transaction_whose_marker_was_dropped_becomes_visible_at_the_next_start",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "a plan waits for partitions that cannot be looked at",
        "What Kafka has forgotten to end there ends with the next transaction, and its outcome.",
        drop(_HANGING, "end_hanging", "raise stop(...)"),
        f"{_LEADERLESS}test_what_is_decided_is_settled_before_a_plan_waits_for_a_partition_to_look_at",
        f"{_MARKERS}test_a_plan_waits_for_a_partition_without_a_leader_and_names_it",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "what is decided is committed before a plan waits",
        "Readers of other partitions do not wait for the one that cannot be looked at.",
        swap(_MACHINE, "next_step", "(Step.ASK_TOPIC_IDS, ...)", "(Step.LOOK, role.plans)"),
        f"{_LEADERLESS}test_what_is_decided_is_settled_before_a_plan_waits_for_a_partition_to_look_at",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "a hanging transaction ends as it has ended elsewhere",
        "If it is not known whether rows are decided, they are neither committed nor aborted.",
        never(_HANGING, "_of_driver", "each.seq > before + 1"),
        f"{_HOW_ENDED_DRIVER}[kept5-None]",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "the log is made readable before the driver's id is initialised",
        "What Kafka has forgotten to end in the log keeps everyone from reading it, and "
        "InitProducerId takes away how it has ended.",
        drop(_EXECUTOR, "settle_without_id", "end_in_log(...)"),
        f"{_LEADERLESS}test_what_hangs_in_the_log_is_ended_before_the_drivers_id_is_initialised"
        "[TransactionStatus.COMPLETE_COMMIT-0-True]",
        f"{_LEADERLESS}test_the_drivers_id_is_not_initialised_while_its_partition_of_the_log_has_"
        "no_leader",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "an abort of a later transaction is not taken for that of a hanging one",
        "The next batch of a task's id may have been aborted after this one was committed. To "
        "abort this one loses its rows.",
        always(_HANGING, "was_committed", "last is decisions[-1]"),
        f"{_HOW_ENDED}[TransactionStatus.COMPLETE_ABORT-1-kept9-None]",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "a hanging transaction is looked for in all decisions",
        "A committed one may be of a batch before the latest decided one. To abort it loses its "
        "rows.",
        swap(
            _HANGING,
            "was_committed",
            "decisions = ...",
            "decisions = [each.decision for each in records[-1:] if each.decision]",
        ),
        f"{_HOW_ENDED}[TransactionStatus.COMPLETE_COMMIT-2-kept14-True]",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "only the log tells who has replaced a planner",
        "A planner that cannot read the log does not take another process of its run for a rival.",
        swap(
            _PLANNER,
            "_read_successor",
            "self._register.read(deadline)",
            "self._register.try_read()",
        ),
        "tests/protocol/test_rivals.py::test_a_log_that_is_held_up_does_not_make_a_rival_of_a_planner_of_the_same_session"
        "[told by the group]",
        outside="in the model a run has one planner process",
    ),
    guard(
        "a replaced member never joins again",
        "Of two live drivers the newer one wins permanently.",
        swap(_PLANNER, "_joined", "state is MemberState.REPLACED", "state is MemberState.CURRENT"),
        f"{_STORY}test_a_stale_planner_does_not_join_again",
        rows=("M_REJOIN",),
    ),
    guard(
        "an expired member recovers",
        "A planner whose session has ended joins again before it plans.",
        swap(
            _PLANNER, "_joined", "state is MemberState.CURRENT", "state is not MemberState.REPLACED"
        ),
        f"{_STORY}test_a_planner_whose_session_has_ended_recovers_and_goes_on",
        rows=("M_EXPIRED",),
    ),
    guard(
        "a plan has the longest session",
        "Tasks can write under a plan whose process is gone for as long as the brokers allow.",
        swap(
            "eos_sink/driver/session.py",
            "join",
            "self._join_for(longest_ms, deadline)",
            "self._join_for(group_session_ms(timeout_ms), deadline)",
        ),
        f"{_GUARD}test_a_plan_outlives_its_process_for_the_longest_session",
        outside="the model has no clock",
    ),
    guard(
        "an idle member has expired",
        "If the client itself has left the group, the planner joins again before the next plan.",
        swap("eos_sink/kafka/member.py", "state", "self._poll(0)", "self._check(0)"),
        "integration/test_contract.py::TestMember::test_a_member_that_was_idle_for_too_long_has_expired_and_a_new_one_joins[4.3.0]",
        outside="the model's member lives as long as its process",
    ),
    guard(
        "a plan lists undecided transactions",
        "Open transactions of an earlier run are found and aborted.",
        _without("Step.LIST"),
        f"{_STORY}test_the_next_plan_ends_what_an_abort_without_any_report_left_open",
        rows=("M_NOSWEEP",),
    ),
    guard(
        "plans are fenced",
        "Earlier plans can no longer be decided after a start, a repair or an abort.",
        _without("Step.FENCE"),
        f"{_GUARD}test_half_a_task_that_goes_on_after_the_next_plan_is_never_decided",
        f"{_WAKES_UP}[Moment.AFTER-plan]",
        f"{_WAKES_UP}[Moment.BEFORE-abort]",
        f"{_STORY}test_half_a_task_that_goes_on_after_an_abort_is_never_decided",
        f"{_ZOMBIE}test_a_commit_is_refused_also_when_no_newer_driver_has_joined"
        "[4.3.0-FaultPoint.COMMITTER_OPEN_BEFORE]",
        rows=("NO_VOID",),
    ),
    guard(
        "fence, then abort",
        "A transaction is aborted only after its batch can no longer be decided.",
        swap(
            _MACHINE,
            "next_step",
            "(Step.FENCE, ...)",
            "(Step.ABORT, role.fences and bool(view.listed))",
        )
        + swap(_MACHINE, "next_step", "(Step.ABORT, ...)", "(Step.FENCE, role.fences and fences)"),
        f"{_WAKES_UP}[Moment.AFTER-plan]",
        f"{_WAKES_UP}[Moment.AFTER-abort]",
        rows=("NO_VOID",),
    ),
    guard(
        "list, then fence",
        "Transactions of a plan made after the fence are not aborted.",
        swap(_MACHINE, "next_step", "(Step.LIST, ...)", "(Step.FENCE, role.fences)")
        + swap(_MACHINE, "next_step", "(Step.FENCE, ...)", "(Step.LIST, role.fences)"),
        f"{_STORY}test_a_zombie_that_has_fenced_aborts_nothing_that_began_after_its_fence[plan]",
        f"{_STORY}test_a_zombie_that_has_fenced_aborts_nothing_that_began_after_its_fence[abort]",
        f"{_ZOMBIE}test_a_recovery_that_wakes_up_late_aborts_only_what_it_has_listed[4.3.0-FaultPoint.PLANNER_WRITE_AFTER]",
        f"{_ZOMBIE}test_an_abort_that_wakes_up_late_aborts_only_what_it_has_listed[4.3.0-FaultPoint.COMMITTER_WRITE_AFTER]",
        rows=("M_VOIDFIRST",),
    ),
    guard(
        "abort exactly what was listed",
        "By producer id and epoch: a newer transaction under the same transactional id stays open.",
        insert(
            _EXECUTOR,
            "_abort",
            "ids = [t.transactional_id for t in view.listed]\n"
            "states = kafka.control().describe(ids, deadline).values()\n"
            "view = replace(view, listed=frozenset(state.transaction for state in states))",
            before="answered = ...",
        ),
        f"{_STORY}test_a_zombie_that_has_fenced_aborts_nothing_that_began_after_its_fence[abort]",
        f"{_ZOMBIE}test_an_abort_that_wakes_up_late_aborts_only_what_it_has_listed[4.3.0-FaultPoint.COMMITTER_WRITE_AFTER]",
        rows=("NO_SWEEP",),
    ),
    guard(
        "a recovery fences the plans even if it listed nothing",
        "Older plans cannot be decided any more, even if nothing is open.",
        never(_MACHINE, "next_step", "role.fences_always and not view.fenced"),
        Proof(
            f"{_GUARD}test_a_plan_from_before_a_recovery_is_refused_also_if_that_has_listed_nothing",
            without="the decision carries the plan's member",
        ),
        rows=("NO_VOID",),
    ),
    guard(
        "recovery waits until nothing is pending",
        "The group's offset is stable only when none of the query's transactions is open.",
        _without("Step.WAIT"),
        f"{_GUARD}test_a_recovery_lists_again_while_a_transaction_is_pending",
        rows=("M_NOWAIT",),
    ),
    guard(
        "recovery lists again while something is pending",
        "A transaction that a moving coordinator has hidden from the list is found.",
        swap(_MACHINE, "again", "self.done & _SETTLING", "self.done - {Step.WAIT}"),
        f"{_GUARD}test_a_recovery_lists_again_while_a_transaction_is_pending",
        rows=("NO_RELIST",),
    ),
    guard(
        "open transactions of a failed plan are aborted",
        "Unless exactly one new decision has come, the next plan lists what is open.",
        _ONE_RECORD + _NEW_DECISION,
        f"{_STORY}test_the_next_plan_ends_what_an_abort_without_any_report_left_open",
        f"{_STORY}test_the_next_plan_ends_what_an_abort_that_died_after_its_fence_left_open",
        rows=("NO_REPLAN",),
    ),
    guard(
        "a new record alone is not a decision",
        "A fence adds a record too: only a new decision proves that the plan succeeded.",
        _NEW_DECISION,
        f"{_STORY}test_the_next_plan_ends_what_an_abort_that_died_after_its_fence_left_open",
        rows=("M_SEQONLY",),
    ),
    guard(
        "one new record, not more",
        "A fence after a decision means an abort that may have died halfway.",
        _ONE_RECORD,
        f"{_GUARD}test_the_next_plan_ends_what_an_abort_of_a_decided_batch_left_open",
        outside="no row combines a commit that dies, an abort that dies, and a late attempt",
    ),
    guard(
        "a start that read an old end offset takes over again",
        "A replaced leader reported the offset; no other run has replaced this one.",
        always(_PLANNER, "_recover", "member.state() is not MemberState.CURRENT"),
        f"{_LOST}test_a_start_that_reads_an_older_end_goes_on_from_the_latest_record",
        outside="the model reads the log in one step",
    ),
)
