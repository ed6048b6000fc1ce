"""Guards of the decision log: register, clients, topic."""

from __future__ import annotations

from proof.guards.guard import drop, guard, insert, move, never, swap

_REGISTER = "eos_sink/decision_log/register.py"
_TRANSACTION = "eos_sink/decision_log/driver_transaction.py"
_PLANNER = "eos_sink/driver/planner.py"
_READERS = "eos_sink/kafka/log_reader.py"
_FETCH = "eos_sink/kafka/fetch.py"
_READ_BACK = "eos_sink/kafka/read_back.py"
_CLOCKS = "tests/protocol/test_clocks.py::"
_LEADERLESS = "integration/test_leaderless.py::"
_INLINE = "tests/protocol/test_inline.py::"
_IN_REGISTER = "tests/decision_log/test_register.py::"
_STORY = "tests/protocol/test_stories.py::"
_LOST = "tests/protocol/test_lost_log.py::"
_SOURCES = "tests/protocol/test_source_explored.py::"
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
        swap(_REGISTER, "_open_for", "opened.entry.seq != token.seq", "False"),
        f"{_IN_REGISTER}test_a_log_that_was_opened_before_another_write_is_opened_again",
        rows=("M_HELD",),
    ),
    guard(
        "claims are compared in the transaction that makes them",
        "Of two identities that take a stream or a group at once, one is stopped.",
        never(_REGISTER, "_send", "claim.is_of_stream or claim.subject == write.known.subject"),
        f"{_SOURCES}test_of_two_identities_that_take_a_group_at_once_one_is_stopped",
        rows=("M_GROUPCLAIM", "M_STREAMCLAIM"),
    ),
    guard(
        "a first position is of the topics of the start",
        "Rows that were read before a topic was made again do not count in the new one.",
        drop(
            "eos_sink/driver/source_reader.py",
            "_check_noted",
            "if note and (is_old := ...):",
        ),
        f"{_SOURCES}test_a_source_that_is_made_again_in_the_very_first_batch_is_noticed",
        f"{_SOURCES}test_a_source_that_is_made_again_is_noticed_without_a_position",
        outside="the model's topics stay",
    ),
    guard(
        "a checkpoint keeps the topics that it has first seen",
        "Where the log knows no position, only they tell that its offsets are of former topics.",
        swap("eos_sink/ops/starting_offsets.py", "find", "former if goes_on else {}", "{}"),
        f"{_SOURCES}test_a_source_that_is_made_again_is_noticed_without_a_position",
        outside="the model's topics stay",
    ),
    guard(
        "an identity that the query has left is not where a new checkpoint begins",
        "The one that it has gone to may be at the same offset, and about to decide.",
        swap(
            "eos_sink/driver/source_reader.py",
            "_check_movers",
            "own.source.progress - own.is_left",
            "own.source.progress",
        ),
        f"{_SOURCES}test_an_identity_that_the_query_has_left_is_not_where_a_new_checkpoint_begins",
        rows=("M_LEFTEQUAL",),
    ),
    guard(
        "an epoch of the driver has one transaction",
        "A late request of a transaction acts on no other one.",
        drop(_REGISTER, "_send", "self._close_producer()"),
        f"{_IN_REGISTER}test_each_write_has_an_epoch_of_its_own",
        rows=("M_ONEEPOCH", "M_EPOCH"),
    ),
    guard(
        "a write of unknown outcome is read back",
        "Before a retry, the register opens the log, which fences the earlier write, and reads it.",
        drop(_REGISTER, "_end_attempt", "self._close_producer()"),
        f"{_IN_REGISTER}test_an_open_log_that_was_fenced_is_opened_and_compared_again",
        rows=("M_BLINDRETRY",),
    ),
    guard(
        "a refused write aborts its transaction",
        "A write that Kafka refuses does not block readers of the log.",
        swap(_REGISTER, "_end_attempt", "self._abort()", "self._close_producer()"),
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
        swap(_FETCH, "fetch_each", "isolation_level=int(committed)", "0")
        + swap(
            _READ_BACK,
            "visibility",
            "committed=True",
            "False",
        ),
        f"{_CONTRACT}TestLog::test_an_aborted_write_is_not_read[4.3.0]",
        f"{_CONTRACT}TestVisibility::test_an_aborted_record_before_a_committed_one_is_aborted[4.3.0]",
        outside="the model has committed records only",
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
        "inlined rows and their decision are in one transaction",
        "Otherwise a crash between the two leaves rows that the replay writes again.",
        insert(
            _TRANSACTION,
            "send_rows",
            "producer.commit(deadline)\nproducer.begin()",
            after="producer.produce_rows(...)",
        ),
        f"{_INLINE}test_a_single_fault_at_each_gate_loses_and_doubles_nothing"
        "[Fault.KILL_RUN-new JVM-small-1]",
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
        "a write reads the records before it",
        "The end offset may have come from a leader that was replaced.",
        drop(_REGISTER, "_send", "self._check_end(...)"),
        f"{_IN_REGISTER}test_a_record_behind_the_end_of_a_replaced_leader_is_not_overwritten",
        f"{_ON_KAFKA}test_a_record_behind_a_reported_end_that_is_too_low_is_not_overwritten[4.3.0]",
        rows=("M_STALEEND",),
    ),
)
