"""Guards of batch writes: versions, frames of foreachBatch, and writes that are not repeated."""

from __future__ import annotations

from tools.guards.guard import Guard, Removal, proofs

_PLANNER = "eos_sink/driver/planner.py"
_VERDICTS = "eos_sink/protocol/rules.py"
_COMMITTER = "eos_sink/driver/committer.py"
_BATCH = "tests/protocol/test_batch.py::"
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
        "a partly lost write stops the next one",
        "Only a write without any visible row is skipped.",
        (
            Removal(
                _VERDICTS,
                " and lost == decision.digests.keys()\n",
                "\n",
            ),
        ),
        proofs(_BATCH + "test_a_write_of_which_a_part_is_lost_stops_the_next_one"),
        outside=_OUTSIDE,
    ),
    Guard(
        "a single write of which the driver has written a part stops the next one",
        "Rows in the decision's transaction are visible, even if all other partitions are lost.",
        (
            Removal(
                _VERDICTS,
                " and lost == decision.digests.keys()\n",
                " and lost == {entry.partition for entry in decision.prepared}\n",
            ),
        ),
        proofs(
            "tests/protocol/test_inline.py::"
            "test_a_single_write_is_not_taken_for_invisible_if_the_driver_wrote_a_part_of_it"
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
