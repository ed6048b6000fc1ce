"""Guards of commit and abort: vote, decide, commit; fence, then abort."""

from __future__ import annotations

from proof.guards.guard import drop, guard, insert, never, swap

_COMMITTER = "eos_sink/driver/committer.py"
_CONTROL = "eos_sink/kafka/transaction_control.py"
_REGISTER = "eos_sink/decision_log/register.py"
_STORY = "tests/protocol/test_stories.py::"
_GUARD = "tests/protocol/test_guards.py::"
_CLOCKS = "tests/protocol/test_clocks.py::"
_LATE = "tests/protocol/test_late_offsets.py::"

_VOTE = "answer = write.deadline.within(min(...))"

GUARDS = (
    guard(
        "a batch is decided after its offsets are in the checkpoint",
        "With asynchronous progress tracking the next run makes a batch without offsets anew, with "
        "other rows.",
        never(
            _COMMITTER,
            "_commit",
            "self._late_files is not None and reports and reports[0].batch.numbering.is_by_spark",
        ),
        f"{_LATE}test_whatever_ends_a_run_nobody_is_needed[strike0-group-250]",
        outside="the model's batches are the same when they are repeated",
    ),
    guard(
        "a batch is decided by its own run's offsets",
        "A run that wakes up does not take a later run's offsets for its own.",
        never(
            "eos_sink/driver/checkpoint_files.py",
            "await_own",
            "not planned_ms[0] <= constructed_ms <= planned_ms[1]",
        ),
        f"{_LATE}test_offsets_that_were_constructed_after_the_plan_or_before_the_last_"
        "are_another_runs[3]",
        outside="the model's batches are the same when they are repeated",
    ),
    guard(
        "a first plan waits for the offsets of its batch",
        "What is there before is the state of the run before.",
        never(
            "eos_sink/driver/source_reader.py",
            "check_first",
            "self._options.late_checkpoint is not None",
        ),
        f"{_LATE}test_offsets_that_are_late_stop_nobody",
        outside="the model has no checkpoint",
    ),
    guard(
        "a transaction is ended when its partitions have leaders",
        "Kafka 4 drops the marker of a partition without one: decided rows stay invisible, and "
        "aborted ones appear with the next transaction of the same id.",
        swap(_CONTROL, "end", "self._leaders.find_missing(...)", "frozenset[Transaction]()"),
        "integration/test_markers.py::test_a_decided_transaction_is_ended_when_its_partitions_have_leaders",
        rows=("M_LEADER",),
    ),
    guard(
        "a repeated decision writes no rows beside those of its first attempt",
        "The driver's id aborts the first attempt, which Kafka forgets in a partition without a "
        "leader: the commit of the next attempt makes the rows of both visible.",
        never(_REGISTER, "_send", "write.is_repeated and write.rows"),
        "tests/protocol/test_leaderless.py::test_rows_are_not_written_beside_those_that_an_attempt_has_left_open_but_by_a_replay"
        "[it timed out]",
        "integration/test_markers.py::test_a_repeated_decision_does_not_bring_back_the_rows_of_its_first_attempt",
        rows=("M_REPEATED",),
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
        "a decision is committed before the first transaction times out",
        "The vote limits the time of the commit that follows it.",
        swap(_REGISTER, "_send", _VOTE, "write.vote(begun)"),
        f"{_CLOCKS}test_a_decision_is_committed_before_the_first_transaction_times_out_or_not_at_all",
        outside="the model has no clock",
    ),
    guard(
        "a retried decision is preceded by another vote",
        "A write that was fenced and retried does not decide transactions that have ended "
        "meanwhile.",
        swap(
            _REGISTER,
            "_send",
            "if write.vote is not None:",
            "write.vote is not None and not self._voted",
        )
        + insert(_REGISTER, "_send", "self._voted = True", before=_VOTE)
        + insert(
            _REGISTER, "__init__", "self._voted = False", after="self._seen: LogEntry | None = None"
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
            "before = self._register.require_current(token, deadline)\n"
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
        "rows are in the topics of now when they are decided",
        "Kafka commits a transaction whose topic was deleted and made again, without its rows.",
        drop("eos_sink/driver/committer.py", "_decide", "check_same_topics(...)"),
        "tests/protocol/test_routes.py::test_a_batch_whose_topic_is_made_again_before_it_is_decided_is_written_again[65536-deciding]",
        outside="the model's topics are never deleted",
    ),
    guard(
        "a refused fence ends the abort",
        "An abort that cannot fence the plans aborts nothing: the listed transactions may be "
        "decided by now.",
        swap(
            _COMMITTER,
            "_give_up.fence",
            "return self._register.append(...)",
            "try:\n"
            "    return self._register.append(follow(token, view.entry), change, deadline)\n"
            "except (SupersededError, CommitFailedError):\n"
            "    return view.entry",
        ),
        f"{_GUARD}test_an_abort_whose_fence_is_refused_aborts_nothing",
        rows=("M_ABORTANYWAY",),
    ),
)
