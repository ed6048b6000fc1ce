"""Guards of commit and abort: vote, decide, settle; read, list, fence, abort."""

from __future__ import annotations

from proof.guards.guard import Proof, always, drop, guard, insert, never, swap

_COMMITTER = "eos_sink/driver/committer.py"
_MACHINE = "eos_sink/protocol/reconcile.py"
_RULES = "eos_sink/protocol/rules.py"
_OUTCOME = "eos_sink/protocol/outcome.py"
_CONTROL = "eos_sink/kafka/transaction_control.py"
_REGISTER = "eos_sink/decision_log/register.py"
_STORY = "tests/protocol/test_stories.py::"
_GUARD = "tests/protocol/test_guards.py::"
_VERDICT = "tests/protocol/test_rules.py::"
_CLOCKS = "tests/protocol/test_clocks.py::"
_WEEK = "tests/protocol/test_quiet_week.py::"
_ZOMBIE = "integration/test_zombies.py::"
_REPLAY = "integration/test_replays.py::"
_CRASH = "integration/test_crash_points.py::"
_CONTRACT = "integration/test_contract.py::"
_WAKES_UP = (
    f"{_GUARD}test_a_commit_that_wakes_up_while_its_transactions_are_aborted_decides_nothing"
)
_TIME_PASSES = f"{_CLOCKS}test_time_that_passes_in_the_drivers_transaction_counts_in_the_vote"

_VOTE = "answer = deadline.within(min(...))"

GUARDS = (
    guard(
        "a transaction is ended when its partitions have leaders",
        "Kafka 4 drops the marker of a partition without one: decided rows stay invisible, and "
        "aborted ones appear with the next transaction of the same id.",
        swap(_CONTROL, "end", "self._leaders.find_missing(...)", "frozenset[Transaction]()"),
        "integration/test_markers.py::test_a_decided_transaction_is_ended_when_its_partitions_have_leaders",
        Proof(
            "integration/test_markers.py::test_an_aborted_transaction_does_not_come_back_with_the_next_one",
            without="hanging transactions are ended before a plan",
        ),
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "what may be forgotten does not count as ended",
        "A decided transaction that hangs in a partition loses its rows there when its id aborts "
        "next. A start finds it.",
        swap(_CONTROL, "end", "answered.keys() - doubtful", "answered"),
        "tests/kafka/test_leaders.py::test_a_transaction_whose_leader_goes_while_it_is_ended_is_not_taken_for_ended[slowly]",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "a repeated decision writes no rows beside those of its first attempt",
        "The driver's id aborts the first attempt, which Kafka forgets in a partition without a "
        "leader: the commit of the next attempt makes the rows of both visible.",
        never(_REGISTER, "append", "tried and rows"),
        "tests/protocol/test_leaderless.py::test_rows_are_not_written_beside_those_that_an_attempt_has_left_open_but_by_a_replay"
        "[it timed out]",
        "integration/test_markers.py::test_a_repeated_decision_does_not_bring_back_the_rows_of_its_first_attempt",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "abort leaves an expired plan to the next start",
        "Giving up what can be decided no more is not a second error.",
        swap(_COMMITTER, "abort", "CommitFailedError", "MemoryError"),
        "integration/test_slow_plans.py::test_the_driver_reports_it_if_the_rows_were_few_enough_to_come_through_it",
        outside="it concerns an error, not a state",
    ),
    guard(
        "vote",
        "A batch is decided only if each of its transactions is open.",
        swap(_COMMITTER, "_decide", "self._vote(...)", "deadline.left"),
        f"{_STORY}test_a_late_attempt_before_the_vote_fails_the_batch",
        "integration/test_guards.py::test_a_batch_is_not_decided_when_an_id_was_taken_while_it_was_written[4.3.0]",
        rows=("M_NOVOTE",),
    ),
    guard(
        "vote by producer id and epoch",
        "An open transaction of another attempt is not the one that was prepared.",
        never(_RULES, "check_vote", "state.transaction != transaction"),
        f"{_VERDICT}test_one_under_another_epoch_or_producer_fails_the_vote[other0]",
        f"{_GUARD}test_a_batch_whose_id_has_a_newer_open_transaction_is_not_decided",
        rows=("M_NOVOTE",),
    ),
    guard(
        "vote with a margin",
        "A batch near its timeout is not decided.",
        never(_RULES, "check_vote", "left_ms < margin_ms"),
        f"{_VERDICT}test_one_near_its_time_out_fails_the_vote[54001-False]",
        f"{_STORY}test_a_batch_too_near_its_time_out_is_not_decided",
        outside="the model has no clock: a timeout can happen at any step, also after the vote",
    ),
    guard(
        "vote by the brokers' clocks",
        "The age of a transaction does not depend on the clock of the driver's machine.",
        swap(_COMMITTER, "_vote", "own.started_ms", "self._now_ms()"),
        f"{_CLOCKS}test_a_driver_with_a_wrong_clock_decides[3600000]",
        f"{_CLOCKS}test_a_driver_with_a_wrong_clock_decides_nothing_near_a_time_out[-3600000]",
        outside="the model has no clock",
    ),
    guard(
        "vote with coordinators whose clocks differ",
        "A start that cannot be is replaced by that of the plan.",
        never(_COMMITTER, "_vote", "not oldest_ms <= state.started_ms <= now_ms"),
        f"{_CLOCKS}test_coordinators_whose_clocks_differ_cost_no_batch[task--3600000]",
        f"{_CLOCKS}test_with_coordinators_whose_clocks_differ_the_time_since_the_plan_counts[3600000]",
        outside="the model has no clock",
    ),
    guard(
        "time that passes in the driver's transaction counts in the vote",
        "Rows may wait for their partition before the vote, and the vote itself for an answer.",
        swap(_COMMITTER, "_vote", "own.started_ms + ...", "own.started_ms"),
        f"{_TIME_PASSES}[rows that wait for their partition]",
        f"{_TIME_PASSES}[a vote whose answer comes late]",
        outside="the model has no clock",
    ),
    guard(
        "a decision is committed before the first transaction times out",
        "The vote limits the time of the commit that follows it.",
        swap(_REGISTER, "_append", _VOTE, "vote(begun)"),
        f"{_CLOCKS}test_a_decision_is_committed_before_the_first_transaction_times_out_or_not_at_all",
        outside="the model has no clock",
    ),
    guard(
        "vote within the driver's own transaction",
        "A driver that was fenced before its vote fails as stale.",
        never(_COMMITTER, "_vote", "own.status is not TransactionStatus.ONGOING"),
        f"{_CLOCKS}test_a_driver_that_was_fenced_before_its_vote_learns_that_it_is_stale",
        outside="the write compares again; this check only names the cause",
    ),
    guard(
        "a retried decision is preceded by another vote",
        "A write that was fenced and retried does not decide transactions that have ended "
        "meanwhile.",
        swap(_REGISTER, "_append", "if vote is not None:", "vote is not None and not self._voted")
        + insert(_REGISTER, "_append", "self._voted = True", before=_VOTE)
        + insert(
            _REGISTER, "__init__", "self._voted = False", after="self._seen: Entry | None = None"
        ),
        f"{_CLOCKS}test_a_decision_that_is_written_again_is_voted_on_again",
        rows=("M_NOVOTE",),
    ),
    guard(
        "decide, then commit",
        "No transaction is committed before the decision is in the log.",
        insert(
            _COMMITTER,
            "_decide",
            "before = self._register.expect(token, deadline)\n"
            "early = replace(before.record, decision=decision, settled=False)\n"
            "view = View.of(self._names, replace(before, record=early), just_decided=True)\n"
            "bring_to_rest(self._kafka, view, deadline)",
            before="entry = self._register.append(...)",
        ),
        "tests/protocol/test_faults.py::test_without_a_fault_every_row_is_visible_once_and_nothing_stops",
        outside="the model asserts this at each commit and has no step that commits an undecided "
        "transaction",
    ),
    guard(
        "a missing report stops the commit",
        "Spark's commit() without the report of some task decides nothing.",
        swap(
            "eos_sink/spark/sink_writer.py",
            "check_all_reported",
            "len(found) != len(reports)",
            "not reports",
        ),
        "tests/spark/test_data_source.py::test_a_batch_of_which_a_task_has_not_reported_is_not_decided",
        outside="in the model Spark commits when all tasks have reported",
    ),
    guard(
        "only the planner's process recovers",
        "The process of commit() and abort() neither joins the group nor fences plans.",
        never("eos_sink/spark/data_source.py", "streamWriter", "self._committing is not None"),
        "tests/spark/test_data_source.py::test_the_process_of_commits_does_not_take_the_planners_place",
        outside="the model has one planner per run",
    ),
    guard(
        "the witness decides",
        "A refused EndTxn or another epoch is not an abort: the sink reads the record itself.",
        swap(
            "eos_sink/driver/evidence.py",
            "_ask_witnesses",
            "seen = ...",
            "from eos_sink.protocol.values import Visibility\n"
            "seen = dict.fromkeys(asked, Visibility.ABORTED)",
        ),
        f"{_STORY}test_a_committed_transaction_that_answers_fenced_is_known_by_its_witness",
        f"{_REPLAY}test_a_committed_batch_whose_ids_are_taken_is_known_by_its_witnesses[4.3.0]",
        rows=("NO_WITNESS",),
    ),
    guard(
        "settled is judged by producer id and epoch",
        "The coordinator's state of a later attempt says nothing about the decided transaction.",
        never(_OUTCOME, "_without_topic", "state.transaction != evidence.transaction"),
        "tests/protocol/test_outcome.py::test_the_page_shows_the_function",
        outside="nothing commits an id that a late attempt has taken, so this state is never "
        "reached",
    ),
    guard(
        "an unreadable witness stops",
        "If there is no evidence about a decided transaction, an operator decides.",
        swap(
            _OUTCOME,
            "outcome",
            "Outcome.COMMITTED if evidence.later else Outcome.IN_DOUBT",
            "Outcome.COMMITTED",
        ),
        f"{_STORY}test_a_witness_that_was_deleted_leaves_a_fenced_transaction_in_doubt",
        f"{_REPLAY}test_without_witnesses_an_operator_decides[4.3.0]",
        rows=("M_UNREADOK", "M_UNREADLOST"),
    ),
    guard(
        "a record that is gone proves no abort",
        "Retention or compaction removes committed records too: only one that is still there, and "
        "hidden from readers, was aborted.",
        swap(
            "eos_sink/kafka/visibility.py",
            "_judge",
            "first.is_control_batch or all(...)",
            "False",
        ),
        f"{_CONTRACT}TestCompaction::test_a_record_that_was_compacted_away_is_unreadable_whatever_became_of_it[4.3.0]",
        rows=("M_UNREADLOST",),
    ),
    guard(
        "another transaction's record proves nothing",
        "It stands at the witness's offset after the topic was deleted and made again.",
        never(
            "eos_sink/kafka/visibility.py",
            "_judge",
            "(first.producer_id, first.producer_epoch) != ...",
        ),
        "tests/kafka/test_visibility.py::test_a_record_of_another_producer_or_epoch_is_none_of_the_transaction",
        f"{_CONTRACT}TestVisibility::test_a_record_of_another_transaction_is_none_of_this_one"
        "[4.3.0-another epoch]",
        outside="the model's topics are never deleted",
    ),
    guard(
        "a marker of the next epoch needs rows before it",
        "The marker may belong to the next transaction, unless it follows rows of the decided one.",
        always("eos_sink/kafka/log_scan.py", "_ends", "has_rows"),
        f"{_CONTRACT}TestMarkers::test_the_marker_of_the_next_epoch_proves_nothing_where_the_own_one_may_be_gone[4.3.0]",
        outside="the model has no markers: its witnesses are visible, aborted or unreadable",
    ),
    guard(
        "a batch is not split over two topics",
        "What is lost of a batch goes by the same option topic as what is visible of it.",
        drop(_RULES, "assign", "_check_route(...)"),
        "tests/protocol/test_routes.py::test_what_is_lost_of_a_batch_does_not_go_by_other_options_than_the_rest[topic]",
        outside="the model has one topic",
    ),
    guard(
        "rows are in the topics of now when they are decided",
        "Kafka commits a transaction whose topic was deleted and made again, without its rows.",
        drop("eos_sink/driver/committer.py", "_decide", "check_same_topics(...)"),
        "tests/protocol/test_routes.py::test_a_batch_whose_topic_is_made_again_before_it_is_decided_is_written_again[65536-deciding]",
        outside="the model's topics are never deleted",
    ),
    guard(
        "an open transaction in a topic that was made again is lost",
        "To commit it would make no row visible in the topic of that name.",
        never(
            "eos_sink/protocol/outcome.py",
            "_without_topic",
            "is_in_vain(...)",
        ),
        "tests/protocol/test_routes.py::test_an_open_batch_is_written_to_the_topic_that_was_made_again",
        outside="the model's topics are never deleted",
    ),
    guard(
        "a batch in doubt is not replayed",
        "Neither counted, which may lose its rows, nor written, which may duplicate them.",
        never(_RULES, "assign", "if plan.doubtful:"),
        f"{_WEEK}test_a_batch_in_doubt_that_is_replayed_stops",
        rows=("M_UNREADOK",),
    ),
    guard(
        "only Spark's next batch proves the commit",
        "Another stream, a later version or another write goes on after a failed one too.",
        never(_RULES, "assign", "plan.doubtful and not proves_commit(...)"),
        f"{_WEEK}test_another_stream_does_not_prove_it",
        rows=("M_DOUBTANY",),
    ),
    guard(
        "a batch write is noted as settled",
        "The next one may come when Kafka has forgotten what became of it.",
        never(_COMMITTER, "_decide", "view.seen"),
        f"{_WEEK}test_a_weekly_batch_write_needs_no_operator[made0]",
        outside="the model has no batch writes",
    ),
    guard(
        "EndTxn up to version 4",
        "From version 5 on, each EndTxn increases the epoch, by which the sink identifies its "
        "transactions.",
        swap(_CONTROL, "", "_END_TXN_VERSION = 4", "_END_TXN_VERSION = 5"),
        f"{_CONTRACT}TestControl::test_a_foreign_abort_leaves_the_epoch_and_the_task_opens_a_new_transaction[4.3.0]",
        outside="the model has EndTxn as it is up to version 4",
    ),
    guard(
        "what a decision names is not listed",
        "A reported transaction that the decision names is not aborted.",
        swap(_MACHINE, "listing", "self.listed | transactions - decided", "transactions"),
        "tests/protocol/test_reconcile.py::test_the_order_is_kept_in_every_state[give up]",
        rows=("M_ABORTBLIND",),
    ),
    guard(
        "a list excludes decided transactions",
        "Open transactions that the decision names are not aborted.",
        always(_RULES, "undecided", "state.transaction not in decided"),
        f"{_VERDICT}test_open_transactions_that_the_decision_does_not_name_are_undecided",
        rows=("M_ABORTBLIND",),
    ),
    guard(
        "decided is judged by producer id and epoch",
        "A later attempt under a decided transactional id is open and undecided.",
        swap(
            _RULES,
            "undecided",
            "state.transaction not in decided",
            "state.transaction.transactional_id not in {t.transactional_id for t in decided}",
        ),
        f"{_VERDICT}test_open_transactions_that_the_decision_does_not_name_are_undecided",
        f"{_GUARD}test_a_late_attempt_under_a_decided_id_is_aborted_at_once",
        rows=("M_UNDBYID",),
    ),
    guard(
        "a refused fence ends the abort",
        "An abort that cannot fence the plans aborts nothing: the listed transactions may be "
        "decided by now.",
        drop(_COMMITTER, "abort", "return None", nth=2, of=3),
        f"{_GUARD}test_an_abort_whose_fence_is_refused_aborts_nothing",
        rows=("M_ABORTANYWAY",),
    ),
)
