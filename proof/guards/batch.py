"""Guards of batch writes: their numbers, and frames of foreachBatch."""

from __future__ import annotations

from proof.guards.guard import always, drop, guard, never, swap

_CACHE = "eos_sink/spark/client_cache.py"
_PLANNER = "eos_sink/driver/planner.py"
_RULES = "eos_sink/protocol/rules.py"
_COMMITTER = "eos_sink/driver/committer.py"
_REGISTER = "eos_sink/decision_log/register.py"
_BATCH = "tests/protocol/test_batch.py::"
_SINGLE = "tests/protocol/test_single_writes.py::"
_OUTSIDE = "the model's batches are those of streams"


GUARDS = (
    guard(
        "two writes of one session do not share a member",
        "Spark plans the second write in the process of the first one, so their plans look alike.",
        never(_PLANNER, "_continue", "self._may_be_running(entry)"),
        f"{_BATCH}test_of_two_writes_of_one_session_at_the_same_time_the_older_one_is_refused[once]",
        f"{_BATCH}test_the_note_of_a_write_does_not_give_up_the_next_one_of_its_session",
        outside=_OUTSIDE,
    ),
    guard(
        "a second frame is refused",
        "Two frames under one identity in one batch are different frames, not a frame and its "
        "replay.",
        never(_RULES, "assign", "spark_run == decision.spark_run"),
        f"{_BATCH}test_a_second_frame_under_one_identity_is_refused_also_if_it_has_the_same_rows[a]",
        outside=_OUTSIDE,
    ),
    guard(
        "a replayed frame records its run",
        "A later frame of the same run is a second frame.",
        never(_COMMITTER, "_compare", "spark_run != decision.spark_run"),
        f"{_BATCH}test_a_second_frame_is_refused_in_a_run_that_has_replayed_the_first[a]",
        outside=_OUTSIDE,
    ),
    guard(
        "a rewritten frame records its run",
        "The same holds after lost partitions were written again.",
        swap(
            "eos_sink/protocol/decide.py",
            "decide",
            "spark_run=first.spark_run",
            "spark_run=decided.spark_run if decided else first.spark_run",
        ),
        f"{_BATCH}test_a_second_frame_is_refused_in_a_run_that_has_rewritten_the_first",
        outside=_OUTSIDE,
    ),
    guard(
        "threads of a user's driver write one query in turns",
        "Planner and committer are not made for two threads, and a second plan would refuse the "
        "first one's tasks.",
        swap(_CACHE, "lease", "entry.lock.acquire(timeout=_PATIENCE_S)", "True"),
        "tests/spark/test_client_cache.py::test_threads_of_one_query_take_turns_and_those_of_others_do_not_wait",
        outside=_OUTSIDE,
    ),
    guard(
        "each run of a query has its own planner in a user's driver",
        "A callback of a stopped query that still runs must not commit with the plan of the next "
        "run.",
        swap(_CACHE, "lease", "entry.made_from != (options, run)", "entry.made_from is None"),
        "tests/spark/test_client_cache.py::test_each_run_of_a_query_gets_a_value_of_its_own",
        outside=_OUTSIDE,
    ),
    guard(
        "a function of foreachBatch that does not see its query is refused",
        "Its batch would be a write without a number, which a replay repeats.",
        never(
            "eos_sink/spark/foreach_batch.py",
            "write_batch",
            "query is None or properties(BATCH) != str(number)",
        ),
        "integration/test_foreach_batch.py::test_a_function_that_does_not_see_its_query_is_refused[4.3.0]",
        outside=_OUTSIDE,
    ),
    guard(
        "without pinned threads a write has a version",
        "Inside foreachBatch it would be a write without a number, which a replay repeats.",
        never(
            "eos_sink/spark/classic_session.py",
            "check_threads",
            "version is None and not pins_threads()",
        ),
        "tests/spark/test_writers.py::test_without_pinned_threads_a_write_needs_a_version",
        "tests/spark/test_foreach_batch.py::test_without_pinned_threads_a_write_needs_a_version",
        "integration/test_foreach_batch.py::test_without_pinned_threads_a_write_needs_a_version[4.3.0]",
        outside=_OUTSIDE,
    ),
    guard(
        "only batch writes come in any order",
        "A batch of a stream that is older than the decided one may have rows that the decided one "
        "had not.",
        never(_RULES, "assign", "is_older and not batch.numbering.is_of_write"),
        f"{_BATCH}test_an_old_copy_of_the_checkpoint_is_refused_also_inside_foreach_batch",
        outside=_OUTSIDE,
    ),
    guard(
        "a number that was written is not written again",
        "A write is run again after any error, also when others have followed it.",
        never(_RULES, "assign", "batch.batch in plan.written"),
        f"{_SINGLE}test_a_lower_version_that_was_never_written_is_written",
        outside=_OUTSIDE,
    ),
    guard(
        "a number that may have been written is refused",
        "The record keeps a thousand ranges: below them it is not known what was written.",
        never(_RULES, "assign", "plan.written.forgets(batch.batch)"),
        f"{_SINGLE}test_a_number_below_all_that_are_kept_is_refused",
        outside=_OUTSIDE,
    ),
    guard(
        "a query is recognised with and without foreachBatch",
        "A batch that writeStream decided is not written again by foreachBatch, and the reverse.",
        swap(
            _RULES,
            "check_former",
            "each.is_of_query(batch)",
            "each.stream == batch.stream",
        ),
        f"{_BATCH}test_a_query_that_changes_to_or_from_foreach_batch_during_a_batch_is_refused[write_stream]",
        outside=_OUTSIDE,
    ),
    guard(
        "an abort without reports aborts a batch write",
        "The next plan may be days later, and readers would wait.",
        swap(
            _COMMITTER,
            "abort",
            "reports[0].token if reports else token",
            "reports[0].token if reports else None",
        ),
        f"{_BATCH}test_an_abort_without_reports_ends_what_the_tasks_have_left_open",
        outside="in the model Spark plans again at once",
    ),
    guard(
        "tasks of a failed job are refused",
        "Spark does not wait for them. A transaction opened after the abort would block readers.",
        drop(_PLANNER, "refuse_tasks", "self._recover(...)"),
        f"{_BATCH}test_a_task_that_goes_on_after_its_job_has_failed_leaves_nothing_open",
        outside="in the model Spark plans again at once",
    ),
    guard(
        "a failed write refuses its tasks",
        "The next plan, which would refuse them too, may be days later.",
        drop("eos_sink/spark/writers.py", "BatchWriter._abort", "planner.refuse_tasks(...)"),
        "tests/spark/test_writers.py::test_a_task_that_begins_after_its_job_has_failed_is_refused",
        outside="in the model Spark plans again at once",
    ),
    guard(
        "a failed job refuses its tasks",
        "In a user's driver the next plan, which would refuse them too, may be days later.",
        drop("eos_sink/spark/foreach_batch.py", "_write", "clients.planner.refuse_tasks(...)"),
        "tests/spark/test_foreach_batch.py::test_a_task_that_begins_after_its_job_has_failed_is_refused",
        outside="in the model Spark plans again at once",
    ),
    guard(
        "a failed write that was followed refuses no tasks",
        "Joining again would replace the write that goes on.",
        always(_PLANNER, "refuse_tasks", "self._register.read(deadline).seq == given_up.seq"),
        f"{_BATCH}test_a_plan_that_comes_while_a_failed_write_is_aborted_is_not_replaced[other]",
        outside=_OUTSIDE,
    ),
)
