"""Guards of tasks and replays."""

from __future__ import annotations

from tools.guards.guard import Guard, Removal, proofs

_WRITER = "eos_sink/task/writer.py"
_PRODUCER = "eos_sink/kafka/producer.py"
_VERDICTS = "eos_sink/protocol/rules.py"
_COMMITTER = "eos_sink/driver/committer.py"
_REJECTING = "eos_sink/task/rejected.py"
_STORY = "tests/protocol/test_stories.py::"
_GUARD = "tests/protocol/test_guards.py::"
_VERDICT = "tests/protocol/test_rules.py::"
_JOBS = "tests/protocol/test_batch.py::"
_ZOMBIE = "integration/test_zombies.py::"
_REPLAY = "integration/test_replays.py::"
_BAD = "integration/test_bad_input.py::"
_REJECTED = "tests/task/test_rejected.py::"

_FIRST = (
    "            # Kafka refuses a stale driver's task here, before it has written much.\n"
    "            self._send_offset(producer)\n"
)
_LAST = (
    "        # later sees all of the transaction. And librdkafka reports a failed record here.\n"
    "        self._send_offset(producer)\n"
)

GUARDS = (
    Guard(
        "a witness has a known offset",
        "A record acknowledged without an offset has no known position.",
        (
            Removal(
                "eos_sink/kafka/confluent_client.py",
                "            if error is None and partition is not None and offset is not None and "
                "offset >= 0:\n",
                "            if error is None:\n",
            ),
        ),
        proofs(
            "tests/kafka/test_offsets.py::test_only_the_first_row_with_a_known_offset_is_reported"
        ),
        outside="the model's records have offsets",
    ),
    Guard(
        "a task's transaction carries the plan's member",
        "Kafka refuses the task of a driver whose group member was replaced.",
        (Removal(_WRITER, _FIRST), Removal(_WRITER, _LAST)),
        proofs(
            _STORY + "test_a_stale_driver_is_refused_in_tasks_which_free_readers_at_once",
            _ZOMBIE
            + "test_a_stale_drivers_task_is_refused_at_once[4.3.0-FaultPoint.TASK_INIT_BEFORE]",
        ),
        rows=("M_NOMEMBER_T",),
    ),
    Guard(
        "the member goes with the first rows",
        "A stale task is refused before it has written much.",
        (Removal(_WRITER, _FIRST),),
        proofs(_GUARD + "test_a_stale_drivers_task_is_refused_before_it_has_read_on"),
        rows=("M_NOMEMBER_T",),
    ),
    Guard(
        "the member goes with the last rows",
        "A failed delivery, or a member replaced meanwhile, is noticed at the end.",
        (Removal(_WRITER, _LAST),),
        proofs(
            _GUARD + "test_a_task_whose_last_record_does_not_arrive_is_not_prepared",
            _GUARD + "test_a_stale_task_that_goes_on_after_it_was_aborted_frees_readers",
            _GUARD + "test_a_stale_drivers_task_with_few_rows_is_refused",
        ),
        outside="in the model all rows arrive (M_ONEOFFSET changes nothing there)",
    ),
    Guard(
        "a record that could not be delivered fails its task",
        "The client would report it only at its own commit, but the driver commits.",
        (
            Removal(
                _PRODUCER,
                "        if self._events.lost is not None:\n",
                "        if False:\n",
            ),
        ),
        proofs(
            _BAD + "test_a_row_for_a_topic_that_does_not_exist_is_not_lost_in_silence[4.3.0]",
        ),
        outside="in the model all rows arrive",
    ),
    Guard(
        "a refused task aborts",
        "The rows of a refused task do not hold up readers.",
        (
            Removal(
                _WRITER,
                "    with contextlib.suppress(Exception):\n"
                "        producer.abort(Deadline(_ABORT_S))\n",
            ),
        ),
        proofs(
            _STORY + "test_a_stale_driver_is_refused_in_tasks_which_free_readers_at_once",
        ),
        outside="the model's refused task aborts in the same step",
    ),
    Guard(
        "a partition without rows opens nothing",
        "It has no transaction and no witness.",
        (
            Removal(
                _WRITER,
                "        filled = filter(len, data)\n",
                "        filled = iter(data)\n",
            ),
        ),
        proofs(
            _GUARD + "test_a_partition_of_empty_arrow_batches_opens_nothing",
            _REPLAY + "test_an_empty_partition_opens_no_transaction[4.3.0]",
        ),
        outside="the model's transactions all have rows",
    ),
    Guard(
        "a batch without rows decides nothing",
        "It writes no record, so idle queries do not write to the log.",
        (
            Removal(
                _COMMITTER,
                "        elif any(report.has_written for report in reports):\n",
                "        else:\n",
            ),
        ),
        proofs(
            _STORY + "test_a_partition_without_rows_opens_nothing_and_a_batch_without_rows_writes"
            "_no_record",
        ),
        outside="not a matter of safety",
    ),
    Guard(
        "keys go to the same partitions as with Java clients",
        "Consumers that join topics by partition find a key in the same partition.",
        (
            Removal(
                "eos_sink/kafka/producer.py",
                '    "partitioner": "murmur2_random",\n',
                '    "partitioner": "consistent_random",\n',
            ),
        ),
        proofs("integration/test_guards.py::test_keys_land_where_java_clients_put_them[4.3.0]"),
        outside="not a matter of the protocol",
    ),
    Guard(
        "slots take turns",
        "A new batch takes other transactional ids than the decided one.",
        (
            Removal(
                _VERDICTS,
                "    return Assignment(Role.WRITE, 1 - decision.slot)\n",
                "    return Assignment(Role.WRITE, decision.slot)\n",
            ),
        ),
        (
            *proofs(_STORY + "test_batches_take_turns_with_the_slots"),
            *proofs(
                _GUARD + "test_a_visible_batch_is_not_taken_for_lost_when_the_next_one_crashes",
                without="the witness decides",
            ),
        ),
        rows=("NO_SLOT",),
    ),
    Guard(
        "a replay of a decided batch is counted",
        "The rows are visible already, so a replay does not write them.",
        (
            Removal(
                _VERDICTS,
                "        role = Role.WRITE if partition in plan.lost else Role.COUNT\n",
                "        role = Role.WRITE\n",
            ),
        ),
        proofs(
            _STORY + "test_a_replay_of_a_settled_batch_writes_nothing",
            _REPLAY + "test_a_visible_batch_is_counted_and_not_written_again[4.3.0]",
        ),
        rows=("M_REWRITE",),
    ),
    Guard(
        "a batch is identified by stream and number",
        "After its checkpoint is deleted, a query counts from zero again; its batches are new.",
        (
            Removal(
                _VERDICTS,
                "    if decision.batch == batch:\n",
                "    if decision.batch.batch == batch.batch:\n",
            ),
        ),
        proofs(
            _VERDICT + "test_a_batch_of_another_stream_is_new_whatever_its_number[5]",
            _REPLAY + "test_a_deleted_checkpoint_starts_a_new_stream_and_frees_readers[4.3.0]",
        ),
        rows=("M_NUMBER",),
    ),
    Guard(
        "an older batch stops",
        "A batch before the decided one means an old copy of the checkpoint.",
        (
            Removal(
                _VERDICTS,
                "    if decision.batch.stream == batch.stream "
                "and decision.batch.batch > batch.batch:\n",
                "    if False:\n",
            ),
        ),
        proofs(
            _STORY + "test_a_checkpoint_restored_one_batch_back_stops",
            _REPLAY + "test_a_checkpoint_restored_further_back_is_refused[4.3.0]",
        ),
        rows=("M_NOOLDER",),
    ),
    Guard(
        "other streams are remembered",
        "A batch that was decided before another checkpoint took over is not written again.",
        (
            Removal(
                _VERDICTS,
                "    if known is None or known.batch.batch < batch.batch:\n",
                "    if True:\n",
            ),
        ),
        proofs(
            _VERDICT + "test_an_older_batch_of_an_earlier_stream_stops[2]",
            _GUARD + "test_a_batch_of_a_checkpoint_that_was_put_back_is_not_written_again",
        ),
        rows=("M_NOEARLIER",),
    ),
    Guard(
        "no stream is forgotten",
        "The last batch of each stream is known, however many write under one identity.",
        (
            Removal(
                "eos_sink/protocol/model.py",
                "        return LogRecord(self.seq + 1, decision, writer, others, run",
                "        return LogRecord(self.seq + 1, decision, writer, others[-16:], run",
            ),
        ),
        proofs(
            _JOBS + "test_the_first_of_many_jobs_under_one_identity_is_replayed_without_an_operator"
            "[17]",
        ),
        rows=("M_NOEARLIER",),
    ),
    Guard(
        "there is room for every stream",
        "A stream for which the record has no room is refused before anything is decided.",
        (
            Removal(
                _VERDICTS,
                "    if is_kept and len(record.followed_by(decision)) >= MAX_STREAMS:\n",
                "    if False:\n",
            ),
        ),
        proofs(
            _JOBS + "test_one_query_too_many_under_an_identity_is_refused_before_anything_is"
            "_decided",
        ),
        outside="the model has two checkpoints",
    ),
    Guard(
        "a replay of an earlier stream has the decided rows",
        "Other rows under the same batch number stop the query.",
        (Removal(_VERDICTS, "    if known.total != total:\n", "    if False:\n"),),
        proofs(_VERDICT + "test_a_batch_of_an_earlier_stream_with_other_rows_stops[rows]"),
        rows=("M_EARLIERTALLY",),
    ),
    Guard(
        "a replay of an earlier stream is recorded before it is aborted",
        "The record fences the plan.",
        (
            Removal(
                _COMMITTER,
                "        self._register.write(token, record.decision, deadline, figures, "
                "other_streams=others)\n",
            ),
        ),
        proofs(_JOBS + "test_a_second_frame_is_refused_also_after_another_query_has_written"),
        outside="the model has no frames",
    ),
    Guard(
        "a moved checkpoint stops",
        "The first batch of an identity was not decided under another identity before.",
        (
            Removal(
                _COMMITTER,
                "check_unmoved(self._names, self._log, decision, others)",
                "pass",
            ),
        ),
        proofs(
            "tests/protocol/test_moved.py::"
            "test_a_batch_that_was_decided_at_the_old_place_is_not_written_at_the_new_one"
        ),
        outside="the model has one identity",
    ),
    Guard(
        "lost partitions need their batch",
        "A query does not continue past decided rows that were lost.",
        (
            Removal(
                _VERDICTS,
                "    if plan.lost and not _is_invisible_single_write(decision, plan.lost):\n",
                "    if False:\n",
            ),
        ),
        proofs(
            _VERDICT + "test_a_batch_after_lost_partitions_stops[batch0]",
            _STORY + "test_a_query_does_not_go_past_lost_partitions",
        ),
        rows=("M_LOSTGONE",),
    ),
    Guard(
        "a replay has the decided totals",
        "Other rows under the same batch number stop the query.",
        (Removal(_VERDICTS, "    if total != decision.total", "    if total is None"),),
        proofs(
            _STORY + "test_a_replay_with_other_rows_stops",
            _REPLAY + "test_a_replay_with_other_rows_needs_an_operator[4.3.0]",
        ),
        rows=("M_NOTALLY",),
    ),
    Guard(
        "rewritten partitions have the decided rows",
        "Each rewritten partition has the fingerprint of the decision.",
        (Removal(_VERDICTS, "    if moved or written != lost:\n", "    if written != lost:\n"),),
        proofs(
            _STORY + "test_lost_partitions_are_not_rewritten_from_rows_that_moved",
            _REPLAY + "test_a_lost_partition_is_not_repaired_with_the_rows_of_others[4.3.0]",
        ),
        rows=("M_NOFINGER",),
    ),
    Guard(
        "exactly the lost partitions are rewritten",
        "A partition too many or too few stops the query.",
        (Removal(_VERDICTS, "    if moved or written != lost:\n", "    if moved:\n"),),
        proofs(_VERDICT + "test_a_rewritten_set_that_is_not_the_lost_one_stops[rewritten1]"),
        outside="the model's tasks follow their plan",
    ),
    Guard(
        "a rewrite has the decided number of partitions",
        "Partition numbers identify the same rows only if their number is unchanged.",
        (Removal(_VERDICTS, "    if len(reports) != decision.partitions:\n", "    if False:\n"),),
        proofs(_VERDICT + "test_a_rewrite_in_another_number_of_partitions_stops[4]"),
        outside="the model's batch keeps its two partitions",
    ),
    Guard(
        "the fingerprint covers dead letters",
        "A repeated batch has the same rows, whichever topic takes them by then.",
        (
            Removal(
                _WRITER,
                "        digester.add(rows)\n"
                "        if self._rejected is None:\n"
                "            return [rows]\n"
                "        taken, dead_letters = self._rejected.sort_out(rows)\n",
                "        if self._rejected is None:\n"
                "            digester.add(rows)\n"
                "            return [rows]\n"
                "        taken, dead_letters = self._rejected.sort_out(rows)\n"
                "        digester.add(taken)\n",
            ),
        ),
        proofs(_REJECTED + "test_a_replay_compares_all_rows_whichever_topic_they_are_in[0]"),
        outside="the model's rows are all accepted",
    ),
    Guard(
        "a task rejects a row only by rules that it has read itself",
        "Kafka may take the row by now: a limit was raised, or partitions were added.",
        (
            Removal(
                _REJECTING,
                "            if not suspects <= self._read:\n",
                "            if False:\n",
            ),
        ),
        proofs(_REJECTED + "test_a_row_is_not_rejected_by_rules_that_are_no_longer_true"),
        outside="the model's rows are all accepted",
    ),
)
