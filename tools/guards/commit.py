"""Guards of commit and abort: vote, decide, settle; look, list, void, abort."""

from __future__ import annotations

from tools.guards.guard import Guard, Removal, proofs

_COMMITTER = "eos_sink/driver/committer.py"
_SETTLE = "eos_sink/driver/settle.py"
_VERDICTS = "eos_sink/verdicts.py"
_SOURCE = "eos_sink/datasource.py"
_WRITERS = "eos_sink/writers.py"
_STORY = "tests/protocol/test_stories.py::"
_GUARD = "tests/protocol/test_guards.py::"
_VERDICT = "tests/test_verdicts.py::"
_ZOMBIE = "integration/test_zombies.py::"
_REPLAY = "integration/test_replays.py::"
_CRASH = "integration/test_crash_points.py::"
_CONTRACT = "integration/test_contract.py::"

_LIST = (
    "        listed = list_undecided(self._kafka, self._names, decision, deadline)\n"
    "        decided = decision.transactions(self._names).keys() if decision else frozenset()\n"
    "        prepared = {r.prepared.transaction(self._names, r.slot) for r in reports "
    "if r.prepared}\n"
    "        given_up = {*listed, *prepared} - decided\n"
)
_VOID = "                void(self._register, token, entry, deadline, self._journal.aborting())\n"
_VOID_OR_LEAVE = (
    "        try:\n"
    "            with superseded_run(self._names):\n"
    + _VOID
    + "        except SupersededError:\n"
    + "            return  # A newer driver owns the query; its recovery cleans up.\n"
)
_ABORT = "        abort_all(self._kafka, given_up, deadline)\n"
_WRITE = "        self._register.write(token, decision, deadline, figures)\n"
_DECIDE_IT = _WRITE + "        clock.end(Step.DECIDE)\n"
_SETTLE_IT = (
    "        lost = settle(self._kafka, self._names, decision, deadline, just_decided=True)\n"
)

GUARDS = (
    Guard(
        "vote",
        "A batch is decided only if each of its transactions is open.",
        (
            Removal(
                _COMMITTER, "        self._vote([r for r in reports if r.prepared], deadline)\n"
            ),
        ),
        proofs(
            _STORY + "test_a_late_attempt_before_the_vote_fails_the_batch",
            "integration/test_guards.py::"
            "test_a_batch_is_not_decided_when_an_id_was_taken_while_it_was_written[4.3.0]",
        ),
        rows=("M_NOVOTE",),
    ),
    Guard(
        "vote by producer id and epoch",
        "An open transaction of another attempt is not the one that was prepared.",
        (
            Removal(
                _VERDICTS,
                "        if state.transaction != transaction or state.status is not "
                "TransactionStatus.ONGOING:\n",
                "        if state.status is not TransactionStatus.ONGOING:\n",
            ),
        ),
        proofs(
            _VERDICT + "test_one_under_another_epoch_or_producer_fails_the_vote[other0]",
            _GUARD + "test_a_batch_whose_id_has_a_newer_open_transaction_is_not_decided",
        ),
        rows=("M_NOVOTE",),
    ),
    Guard(
        "vote with a margin",
        "A batch near its time-out is not decided.",
        (Removal(_VERDICTS, "        if left_ms < margin_ms:\n", "        if False:\n"),),
        proofs(
            _VERDICT + "test_one_near_its_time_out_fails_the_vote[54001-False]",
            _STORY + "test_a_batch_too_near_its_time_out_is_not_decided",
        ),
        outside="the model has no clock: a time-out may strike at any step, also after the vote",
    ),
    Guard(
        "decide, then commit",
        "No transaction is committed before the decision is in the log.",
        (
            Removal(
                _COMMITTER,
                _DECIDE_IT + _SETTLE_IT,
                _SETTLE_IT + _DECIDE_IT,
            ),
        ),
        proofs(
            "tests/protocol/test_faults.py::test_without_a_fault_every_row_is_visible_once_and_"
            "nothing_stops",
            _CRASH + "test_spark_aborts_a_batch_whose_commit_was_killed"
            "[4.3.0-FaultPoint.COMMITTER_WRITE_BEFORE]",
        ),
        outside="the model asserts it at each commit and has no step that commits undecided",
    ),
    Guard(
        "a missing report stops the commit",
        "Spark's commit() with a task that has not reported decides nothing.",
        (
            Removal(
                _WRITERS,
                "        if len(reports) != len(messages):\n",
                "        if not messages:\n",
            ),
        ),
        proofs(
            "tests/test_datasource.py::test_a_batch_of_which_a_task_has_not_reported_is_not_decided"
        ),
        outside="the model's Spark commits when all tasks have reported",
    ),
    Guard(
        "only the planner's process recovers",
        "The process of commit() and abort() neither joins nor voids.",
        (Removal(_SOURCE, "        if self._unpickled:\n", "        if False:\n"),),
        proofs(
            "tests/test_datasource.py::test_the_process_of_commits_does_not_take_the_planners_place"
        ),
        outside="the model has one planner a run",
    ),
    Guard(
        "the witness tells",
        "A refused EndTxn or a foreign epoch is not an abort: the record itself is looked at.",
        (
            Removal(
                _SETTLE,
                "    found = kafka.visibility(list(by_witness), deadline) if by_witness else {}\n",
                "    from eos_sink.ports import Visibility\n\n"
                "    found = dict.fromkeys(by_witness, Visibility.ABORTED)\n",
            ),
        ),
        proofs(
            _STORY + "test_a_committed_transaction_that_answers_fenced_is_known_by_its_witness",
            _REPLAY + "test_a_committed_batch_whose_ids_are_taken_is_known_by_its_witnesses[4.3.0]",
        ),
        rows=("NO_WITNESS",),
    ),
    Guard(
        "settled is judged by producer id and epoch",
        "What the coordinator says of a later attempt says nothing of the decided transaction.",
        (
            Removal(
                _VERDICTS,
                "    if state.transaction != transaction:\n        return Settling.LOOK\n",
            ),
        ),
        proofs(
            _VERDICT + "test_under_another_epoch_or_producer_only_the_witness_can_tell"
            "[other0-TransactionStatus.COMPLETE_COMMIT]",
        ),
        outside="nothing commits an id that a late attempt has taken, so no such state is reached",
    ),
    Guard(
        "an unreadable witness stops",
        "Where nobody can tell what became of a decided transaction, a person is asked.",
        (Removal(_VERDICTS, "    if doubtful:\n", "    if False:\n"),),
        proofs(
            _STORY + "test_a_witness_that_was_deleted_leaves_a_fenced_transaction_in_doubt",
            _REPLAY + "test_without_witnesses_a_person_is_asked[4.3.0]",
        ),
        rows=("M_UNREADOK", "M_UNREADLOST"),
    ),
    Guard(
        "a compacted topic proves no abort",
        "There a committed record may be missing as well.",
        (
            Removal(
                "eos_sink/clients/cluster.py",
                "doubtful = answer is Visibility.ABORTED and compacted(witness.topic)\n",
                "doubtful = False\n",
            ),
        ),
        proofs(
            _CONTRACT + "TestVisibility::"
            "test_a_record_that_a_compacted_topic_does_not_show_is_in_doubt[4.3.0]"
        ),
        rows=("M_UNREADLOST",),
    ),
    Guard(
        "EndTxn up to version 4",
        "Above it each end moves the epoch, by which the sink knows its transactions.",
        (
            Removal(
                "eos_sink/clients/control.py", "_END_TXN_VERSION = 4\n", "_END_TXN_VERSION = 5\n"
            ),
        ),
        proofs(
            _CONTRACT + "TestControl::"
            "test_a_foreign_abort_leaves_the_epoch_and_the_task_opens_a_new_transaction[4.3.0]",
        ),
        outside="the model has EndTxn as it is up to version 4",
    ),
    Guard(
        "abort settles first",
        "An abort that comes after the decision makes the batch visible.",
        (
            Removal(
                _COMMITTER,
                "        if decision is not None:\n"
                "            settle(self._kafka, self._names, decision, deadline, "
                "just_decided=False)\n",
            ),
        ),
        proofs(
            _STORY + "test_abort_after_the_decision_settles_instead",
            _CRASH + "test_spark_aborts_a_batch_whose_commit_was_killed"
            "[4.3.0-FaultPoint.COMMITTER_WRITE_AFTER]",
        ),
        rows=("M_ABORTBLIND",),
    ),
    Guard(
        "abort minus what is decided",
        "A reported transaction that the decision names is not aborted.",
        (Removal(_COMMITTER, "{*listed, *prepared} - decided", "{*listed, *prepared}"),),
        proofs(
            _GUARD + "test_an_abort_of_a_decided_batch_ends_nothing_of_it_with_an_abort",
            without="abort settles first",
        ),
        rows=("M_ABORTBLIND",),
    ),
    Guard(
        "a list leaves out what is decided",
        "Of the open transactions those that the decision names are not given up.",
        (Removal(_VERDICTS, "        and state.transaction not in decided\n"),),
        (
            *proofs(
                _VERDICT + "test_open_transactions_that_the_decision_does_not_name_are_undecided"
            ),
            *proofs(
                _GUARD + "test_a_recovery_ends_nothing_that_is_decided_with_an_abort",
                without="recovery settles before it lists",
            ),
        ),
        rows=("M_ABORTBLIND",),
    ),
    Guard(
        "decided is judged by producer id and epoch",
        "A later attempt under a decided transactional id is open and undecided.",
        (
            Removal(
                _VERDICTS,
                "        and state.transaction not in decided\n",
                "        and state.transaction.transactional_id\n"
                "        not in {t.transactional_id for t in decided}\n",
            ),
        ),
        proofs(
            _VERDICT + "test_open_transactions_that_the_decision_does_not_name_are_undecided",
            _GUARD + "test_a_late_attempt_under_a_decided_id_is_swept_at_once",
        ),
        rows=("M_UNDBYID",),
    ),
    Guard(
        "abort voids",
        "What was planned before the abort can no longer be decided.",
        (Removal(_COMMITTER, _VOID, "                pass\n"),),
        proofs(
            _STORY + "test_a_commit_that_wakes_up_after_abort_decides_nothing",
            _STORY + "test_half_a_task_that_goes_on_after_an_abort_is_never_decided",
            _ZOMBIE + "test_a_commit_is_refused_also_when_no_newer_driver_has_joined"
            "[4.3.0-FaultPoint.COMMITTER_OPEN_BEFORE]",
        ),
        rows=("NO_VOID",),
    ),
    Guard(
        "abort voids, then aborts",
        "What is aborted was undecidable before.",
        (
            Removal(
                _COMMITTER,
                _VOID_OR_LEAVE + _ABORT,
                _ABORT + _VOID_OR_LEAVE,
            ),
        ),
        proofs(
            _GUARD + "test_a_commit_that_wakes_up_just_after_its_transactions_were_aborted_decides"
            "_nothing[abort]",
        ),
        rows=("NO_VOID",),
    ),
    Guard(
        "abort lists, then voids",
        "What was begun under a plan made after the void is not touched.",
        (
            Removal(_COMMITTER, _LIST),
            Removal(_COMMITTER, _VOID_OR_LEAVE, _VOID_OR_LEAVE + _LIST),
        ),
        proofs(
            _STORY
            + "test_a_zombie_that_has_voided_aborts_nothing_that_began_after_its_void[abort]",
            _ZOMBIE + "test_an_abort_that_wakes_up_late_aborts_only_what_it_has_listed"
            "[4.3.0-FaultPoint.COMMITTER_WRITE_AFTER]",
        ),
        rows=("M_VOIDFIRST",),
    ),
    Guard(
        "a refused void ends the abort",
        "Who may not void may not abort: what it has listed may be decided by now.",
        (
            Removal(
                _COMMITTER,
                "            return  # A newer driver owns the query; its recovery cleans up.\n",
                "            pass\n",
            ),
        ),
        proofs(_GUARD + "test_an_abort_whose_void_is_refused_aborts_nothing"),
        rows=("M_ABORTANYWAY",),
    ),
)
