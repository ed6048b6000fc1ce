"""Guards of the decision log: register, clients, topic."""

from __future__ import annotations

from proof.guards.guard import Proof, always, drop, guard, insert, move, never, swap

_REGISTER = "eos_sink/decision_log/register.py"
_TRANSACTION = "eos_sink/decision_log/driver_transaction.py"
_PLANNER = "eos_sink/driver/planner.py"
_READERS = "eos_sink/kafka/log_reader.py"
_FETCH = "eos_sink/kafka/fetch.py"
_VISIBILITY = "eos_sink/kafka/visibility.py"
_TOPIC = "eos_sink/kafka/log_topic.py"
_CLOCKS = "tests/protocol/test_clocks.py::"
_LEADERLESS = "integration/test_leaderless.py::"
_INLINE = "tests/protocol/test_inline.py::"
_IN_REGISTER = "tests/decision_log/test_register.py::"
_IN_FETCH = "tests/kafka/test_fetch.py::"
_IN_READER = "tests/kafka/test_log_reader.py::"
_STORY = "tests/protocol/test_stories.py::"
_LOST = "tests/protocol/test_lost_log.py::"
_ZOMBIE = "integration/test_zombies.py::"
_ON_KAFKA = "integration/test_guards.py::"
_CONTRACT = "integration/test_contract.py::"

_CREATE_LOG = swap(
    _PLANNER, "_check", "self._check_unrecorded(deadline)", "self._register.connect(deadline)"
)

GUARDS = (
    guard(
        "compare before a write",
        "A record is written only if the latest one is the one that was planned from.",
        drop(_REGISTER, "check_current", "if entry.seq != token.seq:"),
        f"{_IN_REGISTER}test_a_write_from_an_old_plan_is_superseded",
        f"{_ZOMBIE}test_a_commit_is_refused_also_when_no_newer_driver_has_joined[4.3.0-FaultPoint.COMMITTER_VOTE_AFTER]",
        rows=("NO_CAS",),
    ),
    guard(
        "a log that deletes is refused",
        "Kafka keeps a decision until its key has a later one.",
        never(_TOPIC, "_check_policy", "policy != wanted"),
        "integration/test_log_topic.py::test_a_log_that_deletes_is_refused_before_anything_is_written[4.3.0-delete]",
        outside="the model's log keeps everything",
    ),
    guard(
        "a claim is read to the end of the log",
        "One behind an open transaction is found too.",
        swap(_READERS, "_read_all", "reader.read(deadline).end", "reader.read(deadline).stable"),
        f"{_CONTRACT}TestLog::test_a_claim_behind_an_open_transaction_is_waited_for[4.3.0]",
        outside="the model has one identity",
    ),
    guard(
        "open, then read",
        "The log is read after every other writer has been fenced.",
        move(
            "eos_sink/decision_log/opening.py",
            "open_log",
            "entry, reached = read()",
            before="producer = ...",
        ),
        f"{_IN_REGISTER}test_opening_fences_before_it_reads",
        rows=("M_READFIRST",),
    ),
    guard(
        "an open log serves one log position only",
        "What the process remembers of the log is used only for a plan made from the same record.",
        always(_REGISTER, "_current", "opened.entry.seq == token.seq"),
        f"{_IN_REGISTER}test_a_log_that_was_opened_before_another_write_is_opened_again",
        rows=("M_HELD",),
    ),
    guard(
        "an epoch of the driver has one transaction",
        "A late request of a transaction acts on no other one.",
        drop(_REGISTER, "_append", "self._let_go()"),
        f"{_IN_REGISTER}test_each_write_has_an_epoch_of_its_own",
        rows=("M_ONEEPOCH",),
    ),
    guard(
        "a write of unknown outcome is read back",
        "Before a retry, the register opens the log, which fences the earlier write, and reads it.",
        drop(_REGISTER, "append", "self._let_go()"),
        f"{_IN_REGISTER}test_an_open_log_that_was_fenced_is_opened_and_compared_again",
        rows=("M_BLINDRETRY",),
    ),
    guard(
        "a write of unknown outcome is recognised",
        "If the log has a record with the mark of this write, the write has succeeded.",
        drop(_REGISTER, "append", "if entry.record.writer == writer:"),
        Proof(
            f"{_STORY}test_a_decision_whose_answer_was_lost_is_read_back_and_not_sent_twice",
            without="a write of unknown outcome is in doubt behind later records",
        ),
        rows=("NO_WRITER",),
    ),
    guard(
        "a write of unknown outcome is in doubt behind later records",
        "That another driver has written since does not mean that nothing was decided.",
        never(_REGISTER, "_explained", "self._maybe_written and ..."),
        f"{_IN_REGISTER}test_a_write_whose_answer_was_lost_is_in_doubt_behind_the_record_of_another_driver",
        outside="the model compares with the latest record only",
    ),
    guard(
        "a record of another driver under the plan's next number decides nothing",
        "A stale driver that goes on at its commit names the run that has replaced it.",
        never(_REGISTER, "_hides_outcome", "isinstance(error, SupersededError)"),
        f"{_IN_REGISTER}test_a_write_whose_answer_was_lost_is_not_in_doubt_if_another_one_has_its_number",
        f"{_ZOMBIE}test_a_stale_driver_decides_nothing[4.3.0-FaultPoint.COMMITTER_WRITE_BEFORE]",
        outside="the model compares with the latest record only",
    ),
    guard(
        "a refused write aborts its transaction",
        "A write that Kafka refuses does not block readers of the log.",
        swap(_REGISTER, "append", "self._abandon()", "self._let_go()"),
        f"{_IN_REGISTER}test_a_replaced_members_write_is_superseded_and_leaves_nothing_open",
        outside="the model writes a record in one step",
    ),
    guard(
        "the decision carries the plan's member",
        "Kafka refuses the decision of a driver whose group member was replaced.",
        drop(_TRANSACTION, "send_rows", "producer.send_offset(...)"),
        f"{_STORY}test_a_driver_that_was_replaced_decides_nothing_even_before_its_successor_has_fenced",
        f"{_ZOMBIE}test_a_driver_whose_member_is_replaced_decides_nothing[4.3.0]",
        rows=("M_NOMEMBER",),
    ),
    guard(
        "the log is read to its high watermark",
        "A reader waits for a record behind another query's open transaction and does not skip it.",
        swap(_READERS, "latest", "self._log.read(deadline).end", "self._log.read(deadline).stable"),
        f"{_CONTRACT}TestLog::test_a_record_behind_the_open_transaction_of_another_query_is_waited_for[4.3.0]",
        outside="the model reads the log in one step",
    ),
    guard(
        "the log and witnesses are read committed",
        "Records of aborted or open transactions do not count.",
        swap(_FETCH, "fetch_each", "isolation_level=int(committed)", "isolation_level=0")
        + swap(
            _VISIBILITY,
            "find_visibility",
            "committed=True",
            "committed=False",
        ),
        f"{_CONTRACT}TestLog::test_an_aborted_write_is_not_read[4.3.0]",
        f"{_CONTRACT}TestVisibility::test_an_aborted_record_before_a_committed_one_is_aborted[4.3.0]",
        outside="the model has committed records only",
    ),
    guard(
        "batches of aborted transactions are passed over",
        "A Fetch response contains them, with a list of the transactions.",
        always(_FETCH, "select_committed", "not (batch.is_transactional and ...)"),
        f"{_CONTRACT}TestLog::test_an_aborted_write_is_not_read[4.3.0]",
        f"{_IN_FETCH}test_batches_of_aborted_transactions_are_passed_over",
        outside="the model has committed records only",
    ),
    guard(
        "an abort marker ends the abort of its producer",
        "The next transaction of the same producer counts.",
        drop(_FETCH, "select_committed", "producers.discard(...)"),
        f"{_IN_FETCH}test_batches_of_aborted_transactions_are_passed_over",
        outside="the model has committed records only",
    ),
    guard(
        "a new leader has to know the end of the log",
        "Until it does, the high watermark in its Fetch responses may be too low (KIP-207).",
        swap(_READERS, "_ask", "answer.leader == self._caught_up", "self._caught_up is not None"),
        f"{_IN_READER}test_a_new_leader_is_asked_for_the_end_before_its_answer_counts",
        outside="the model reads the log in one step",
    ),
    guard(
        "the log has 8 partitions",
        "A query's record is read from the partition to which it was written.",
        swap(_TOPIC, "ensure", "partitions != LOG_PARTITIONS", "partitions == 0"),
        f"{_ON_KAFKA}test_a_decision_log_of_another_size_is_refused[4.3.0-7]",
        outside="the model's log has no partitions",
    ),
    guard(
        "a record of another format stops",
        "A record that cannot be parsed counts neither as a decision nor as no decision.",
        swap(
            "eos_sink/decision_log/codec.py",
            "decode_as",
            'document["format"] != FORMAT',
            "not document",
        ),
        "tests/decision_log/test_codec.py::test_a_record_with_one_wrong_part_is_an_error[changes0]",
        outside="the model has no formats",
    ),
    guard(
        "a lost log stops the start",
        "Committed transactions prove that there was a record: a log without one has lost it.",
        _CREATE_LOG,
        f"{_LOST}test_a_query_whose_log_was_deleted_stops_before_it_writes_a_decided_batch_again",
        "integration/test_lost_log.py::test_a_decided_batch_is_not_written_again_when_the_log_was_deleted[4.3.0]",
        outside="the model's log is never deleted",
    ),
    guard(
        "traces of a lost log are read before an init",
        "InitProducerId of the driver's id deletes what may be the last trace.",
        _CREATE_LOG
        + insert(
            _PLANNER,
            "_start",
            "self._check_unrecorded(deadline)",
            after="entry = self._register.open(deadline)",
        ),
        f"{_LOST}test_the_drivers_own_id_is_trace_enough",
        outside="the model's log is never deleted",
    ),
    guard(
        "a log that has lost records is not used",
        "The log was deleted or replaced while the query ran.",
        never(_REGISTER, "_read_latest", "_is_behind(entry, before)"),
        f"{_IN_REGISTER}test_a_log_that_has_lost_what_was_read_is_not_read_on",
        f"{_LOST}test_a_log_that_was_created_again_is_not_taken_for_the_old_one",
        outside="the model's log is never deleted",
    ),
    guard(
        "a log that has lost the plan's record takes no decision",
        "A plan made from a record is not decided in a log without that record.",
        drop(_REGISTER, "check_current", "check_forward(...)"),
        f"{_IN_REGISTER}test_a_plan_is_refused_by_a_log_that_has_lost_its_record",
        outside="the model's log is never deleted",
    ),
    guard(
        "an abort does not create a lost log again",
        "A record with number 1 would hide that the log was lost.",
        drop(_REGISTER, "follow", "check_forward(...)"),
        f"{_LOST}test_an_abort_does_not_create_a_lost_log_again",
        outside="the model's log is never deleted",
    ),
    guard(
        "the log is keyed by the identity that fences",
        "Two drivers that do not fence each other have separate records.",
        swap("eos_sink/identity.py", "log_key", "self.group", "self.query"),
        "tests/protocol/test_prefixes.py::test_two_prefixes_of_one_id_never_overwrite_each_others_decisions",
        rows=("M_SHAREDKEY",),
    ),
    guard(
        "inlined rows and their decision are in one transaction",
        "Otherwise a crash between the two leaves rows that the replay writes again.",
        insert(
            _TRANSACTION,
            "send_rows",
            "producer.commit(deadline)\nproducer.begin()",
            after="producer.produce_rows(...)",
        ),
        f"{_INLINE}test_a_single_fault_at_each_gate_loses_and_doubles_nothing"
        "[Fault.KILL_RUN-new JVM-small-5]",
        "integration/test_inline.py::test_every_row_is_visible_once_after_a_crash_at[4.3.0-committer.write.after]",
        rows=("M_ROWSFIRST",),
    ),
    guard(
        "rows are on their brokers before the record is sent",
        "Other queries read the same partition of the log, and wait for the record's transaction.",
        drop(_TRANSACTION, "send_rows", "producer.flush(...)"),
        f"{_CLOCKS}test_rows_that_wait_keep_nothing_in_the_log_that_queries_share",
        f"{_LEADERLESS}test_a_query_whose_partition_has_no_leader_keeps_no_other_one_waiting",
        outside="the model has one query, and no time",
    ),
    guard(
        "a rewrite keeps the partitions that the driver has written",
        "The next replay compares its rows with them.",
        swap(
            "eos_sink/protocol/decide.py",
            "decide",
            "(*before.inlined, *inlined)",
            "tuple(inlined)",
        ),
        f"{_INLINE}test_a_rewrite_keeps_what_the_driver_has_written",
        outside="the model's partitions have one row each",
    ),
    guard(
        "a write reads the records before it",
        "The end offset may have come from a leader that was replaced.",
        drop(_REGISTER, "_append", "self._check_end(...)"),
        f"{_IN_REGISTER}test_a_record_behind_the_end_of_a_replaced_leader_is_not_overwritten",
        f"{_ON_KAFKA}test_a_record_behind_a_reported_end_that_is_too_low_is_not_overwritten[4.3.0]",
        rows=("M_STALEEND",),
    ),
    guard(
        "an end offset before a known record is read again",
        "A replaced leader reports it; without the retry the query would stop although the log "
        "lost nothing.",
        drop(_READERS, "latest", "end = self._read_again(...)"),
        f"{_ON_KAFKA}test_an_end_before_the_plans_record_is_asked_for_again[4.3.0]",
        outside="the model reads the log in one step",
    ),
)
