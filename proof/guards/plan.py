"""Guards of the planner, and of the steps towards rest."""

from __future__ import annotations

from proof.guards.guard import drop, guard, insert, never, swap

_PLANNER = "eos_sink/driver/planner.py"
_EXECUTOR = "eos_sink/driver/reconcile.py"
_STORY = "tests/protocol/test_stories.py::"
_LEADERLESS = "tests/protocol/test_leaderless.py::"
_ZOMBIE = "integration/test_zombies.py::"


GUARDS = (
    guard(
        "a plan reads the log",
        "Each plan is made from the log, never from the memory of the process.",
        swap(
            _PLANNER,
            "_continue",
            "self._register.read(deadline)",
            "self._view.entry if self._view else self._register.read(deadline)",
        )
        + drop(_PLANNER, "_continue", "entry = self._register.read(deadline, anew=True)"),
        f"{_STORY}test_batches_take_turns_with_the_slots",
        rows=("NO_PLANREAD",),
    ),
    guard(
        "a plan that finds nothing new asks the newest leader",
        "A deposed leader that is cut off hides what was decided since.",
        drop(_PLANNER, "_continue", "entry = self._register.read(deadline, anew=True)"),
        "tests/protocol/test_lost_log.py::"
        "test_a_plan_from_which_a_deposed_leader_hides_the_decision_asks_the_newest",
        outside="the model has one leader of the log",
    ),
    guard(
        "what is decided is settled without the driver's id",
        "Decided rows do not wait for a partition without a leader that the driver's id waits for.",
        never(_EXECUTOR, "settle_without_id", "describe_driver(...).is_ending"),
        f"{_LEADERLESS}test_what_is_decided_is_settled_before_the_drivers_id_is_free[plan]",
        f"{_LEADERLESS}test_what_is_decided_is_settled_before_the_drivers_id_is_free[abort]",
        rows=("M_SETTLEWAITS",),
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
        rows=("M_LOGINIT",),
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
)
