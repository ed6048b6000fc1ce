"""Guards of batch writes: versions, frames of foreachBatch, and writes that are not repeated."""

from __future__ import annotations

from proof.guards.guard import Guard, Removal, proofs

_PLANNER = "eos_sink/driver/planner.py"
_VERDICTS = "eos_sink/protocol/rules.py"
_COMMITTER = "eos_sink/driver/committer.py"
_BATCH = "tests/protocol/test_batch.py::"
_SINGLE = "tests/protocol/test_single_writes.py::"
_OUTSIDE = "the model's batches are those of streams"

GUARDS = (
    Guard(
        "two writes of one session do not share a member",
        "Spark plans the second write in the process of the first one, so their plans look alike.",
        (
            Removal(
                _PLANNER,
                "        if self._options.origin.batch and self._may_be_running(entry):\n",
                "        if False:\n",
            ),
        ),
        proofs(
            _BATCH + "test_of_two_writes_of_one_session_at_the_same_time_the_older_one_is_refused"
            "[once]",
            _BATCH + "test_the_note_of_a_write_does_not_give_up_the_next_one_of_its_session",
        ),
        outside=_OUTSIDE,
    ),
    Guard(
        "a second frame is refused",
        "Two frames under one identity in one batch are different frames, not a frame and its "
        "replay.",
        (
            Removal(
                _VERDICTS,
                "        if spark_run and spark_run == decision.spark_run:\n",
                "        if False:\n",
            ),
        ),
        proofs(
            _BATCH
            + "test_a_second_frame_under_one_identity_is_refused_also_if_it_has_the_same_rows[a]"
        ),
        outside=_OUTSIDE,
    ),
    Guard(
        "a replayed frame records its run",
        "A later frame of the same run is a second frame.",
        (
            Removal(
                _COMMITTER,
                "            if spark_run != decision.spark_run:\n",
                "            if False:\n",
            ),
        ),
        proofs(_BATCH + "test_a_second_frame_is_refused_in_a_run_that_has_replayed_the_first[a]"),
        outside=_OUTSIDE,
    ),
    Guard(
        "a rewritten frame records its run",
        "The same holds after lost partitions were written again.",
        (Removal(_COMMITTER, "            spark_run=spark_run,\n", ""),),
        proofs(_BATCH + "test_a_second_frame_is_refused_in_a_run_that_has_mended_the_first"),
        outside=_OUTSIDE,
    ),
    Guard(
        "only versions are skipped",
        "A batch of a stream that is older than the decided one may have rows that the "
        "decided one had not.",
        (
            Removal(
                _VERDICTS,
                "        if batch.numbering is Numbering.VERSION:\n",
                "        if batch.numbering is not Numbering.STREAM:\n",
            ),
        ),
        proofs(_BATCH + "test_an_old_copy_of_the_checkpoint_is_refused_also_inside_foreach_batch"),
        outside=_OUTSIDE,
    ),
    Guard(
        "a query is recognised with and without foreachBatch",
        "A batch that writeStream decided is not written again by foreachBatch, and the reverse.",
        (
            Removal(
                _VERDICTS,
                "its.stream in batch.namesakes and",
                "its.stream == batch.stream and",
            ),
        ),
        proofs(
            _BATCH + "test_a_query_that_changes_to_or_from_foreach_batch_during_a_batch_is_refused"
            "[write_stream]"
        ),
        outside=_OUTSIDE,
    ),
    Guard(
        "a lost write without a number is named to the next one",
        "Nothing repeats it, so every later write stops until its loss is acknowledged.",
        (
            Removal(
                _PLANNER,
                "            self._check_former_write(entry, found, deadline)\n",
            ),
        ),
        proofs(
            _SINGLE + "test_a_lost_write_stops_the_next_one_by_name[all]",
            _SINGLE + "test_a_lost_write_stops_the_next_one_by_name[part]",
        ),
        outside=_OUTSIDE,
    ),
    Guard(
        "only a write without a visible row is dropped",
        "Running it again would double what is visible, rows in the decision's transaction too.",
        (
            Removal(
                "eos_sink/driver/lost_write.py",
                "    if not decision.is_invisible(lost):\n",
                "    if False:\n",
            ),
        ),
        proofs(
            _SINGLE + "test_a_write_that_loses_a_part_after_its_decision_says_what_is_visible",
            _SINGLE + "test_a_write_of_which_the_driver_wrote_a_part_is_not_dropped",
        ),
        outside=_OUTSIDE,
    ),
    Guard(
        "a decided write without a number is not run again",
        "Whatever fails after its decision: its error is not one of the class that failed.",
        (
            Removal(
                _COMMITTER,
                "        if batch.numbering is not Numbering.ONCE:\n",
                "        if True:\n",
            ),
        ),
        proofs(_SINGLE + "test_whatever_fails_after_the_decision_the_write_is_not_run_again"),
        outside=_OUTSIDE,
    ),
    Guard(
        "a failed comparison looks for its own record",
        "A commit whose answer was lost may have been carried out before others wrote.",
        (
            Removal(
                "eos_sink/decision_log/register.py",
                "                    if self._maybe_written and isinstance(error, Exception):\n",
                "                    if False:\n",
            ),
        ),
        proofs(
            _SINGLE + "test_a_commit_without_an_answer_succeeds_though_others_have_followed[1-0]",
            "integration/test_single_writes.py::test_a_write_that_was_committed_without_an_answer_"
            "succeeds_though_others_have_followed[4.3.0-1-inlined]",
        ),
        outside=_OUTSIDE,
    ),
    Guard(
        "a record that is gone proves nothing",
        "If compaction has removed the record of the write's number, its outcome is not known.",
        (
            Removal(
                "eos_sink/decision_log/register.py",
                "        if own is None and any(each.seq > token.seq "
                "for each in (latest, *kept)):\n",
                "        if False:\n",
            ),
        ),
        proofs(_SINGLE + "test_a_commit_whose_record_is_compacted_has_an_unknown_outcome"),
        outside=_OUTSIDE,
    ),
    Guard(
        "a fence that others have followed makes no plan",
        "The tasks of a stale plan would take the ids of a newer driver's.",
        (
            Removal(
                "eos_sink/driver/abort.py",
                "    if not register.holds(written):\n",
                "    if False:\n",
            ),
        ),
        proofs(_SINGLE + "test_a_recovery_whose_record_others_have_followed_makes_no_plan"),
        outside=_OUTSIDE,
    ),
    Guard(
        "an error of a plan is not about this write",
        "What the plan could not settle is an earlier write; nothing of this one was written.",
        (
            Removal(
                "eos_sink/spark/remedies.py",
                "    if stage is Stage.PLAN:\n",
                "    if False:\n",
            ),
        ),
        proofs(
            "tests/spark/test_remedies.py::test_an_error_of_a_plan_blames_no_write_that_has_not_"
            "begun[SupersededError]",
            "integration/test_single_writes.py::test_an_error_about_a_former_write_does_not_blame_"
            "the_next_one[4.3.0]",
        ),
        outside=_OUTSIDE,
    ),
    Guard(
        "an abort without reports aborts a batch write",
        "The next plan may be days later, and readers would wait.",
        (
            Removal(
                _COMMITTER,
                "        token = reports[0].token if reports else token\n",
                "        token = reports[0].token if reports else None\n",
            ),
        ),
        proofs(_BATCH + "test_an_abort_without_reports_ends_what_the_tasks_have_left_open"),
        outside="in the model Spark plans again at once",
    ),
)
