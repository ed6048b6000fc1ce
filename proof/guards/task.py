"""Guards of tasks, of the source's offsets, and of operators' choices."""

from __future__ import annotations

from proof.guards.guard import drop, guard, never, swap

_WRITER = "eos_sink/task/writer.py"
_PRODUCER = "eos_sink/kafka/producer.py"
_GUARD = "tests/protocol/test_guards.py::"
_BAD = "integration/test_bad_input.py::"
_MAY_BE_OPEN = (
    "tests/task/test_writer.py::"
    "test_a_repeated_attempt_writes_nothing_while_what_the_first_has_left_may_be_open"
)

_FIRST = drop(_WRITER, "_produce", "self._send_offset(producer)", nth=1, of=2)
_LAST = drop(_WRITER, "_produce", "self._send_offset(producer)", nth=2, of=2)

_COMMITTER = "eos_sink/driver/committer.py"
_PLANNER = "eos_sink/driver/planner.py"
_TEST = "tests/protocol/test_source.py::"
_BATCH = f"{_TEST}TestABatch::"
_START = f"{_TEST}TestTheFirstStart::"
_NEW = f"{_TEST}TestANewCheckpoint::"
_RESOLVE = "eos_sink/ops/resolve.py"
_NO_OPERATOR = "the model has no operator"

GUARDS = (
    guard(
        "a later attempt writes nothing beside what the earlier one has left",
        "Its transaction may be open in a partition that had no leader when it was aborted.",
        drop(_WRITER, "_open", "self._check_earlier_attempt(...)"),
        _MAY_BE_OPEN,
        "integration/test_markers.py::test_a_later_attempt_of_a_task_writes_nothing_beside_what_the_earlier_one_has_left",
        rows=("M_ATTEMPT",),
    ),
    guard(
        "the member goes with the first rows",
        "A stale task is refused before it has written much.",
        _FIRST,
        f"{_GUARD}test_a_stale_drivers_task_is_refused_before_it_has_read_on",
        rows=("M_NOMEMBER_T",),
    ),
    guard(
        "the member goes with the last rows",
        "A failed delivery, or a member replaced meanwhile, is noticed at the end.",
        _LAST,
        f"{_GUARD}test_a_task_whose_last_record_does_not_arrive_is_not_prepared",
        f"{_GUARD}test_a_stale_task_that_goes_on_after_it_was_aborted_frees_readers",
        f"{_GUARD}test_a_stale_drivers_task_with_few_rows_is_refused",
        outside="in the model all rows arrive (M_ONEOFFSET changes nothing there)",
    ),
    guard(
        "a record that could not be delivered fails its task",
        "The client would report it only at its own commit, but the driver commits.",
        drop(_PRODUCER, "send_offset", "self.check()"),
        f"{_BAD}test_a_row_for_a_topic_that_does_not_exist_is_not_lost_in_silence[4.3.0]",
        outside="in the model all rows arrive",
    ),
    guard(
        "the source's offsets are in the decision's transaction",
        "The group has read exactly the rows that are decided.",
        drop(
            "eos_sink/decision_log/driver_transaction.py",
            "send_rows",
            "producer.send_group_offsets(...)",
        ),
        f"{_BATCH}test_rows_and_position_become_visible_together[transactions]",
        rows=("M_GROUPAPART",),
    ),
    guard(
        "the log knows the position before the first rows",
        "A checkpoint that is lost before its first decision is followed by one that begins at the "
        "same offsets.",
        never(_PLANNER, "_check_source", "if begins is not None:"),
        f"{_START}test_the_log_knows_the_position_before_any_row[transactions]",
        outside="the position that the first plan writes is not in the model",
    ),
    guard(
        "the committer compares again",
        "Spark keeps the planner's process, which has compared the checkpoint before this one.",
        swap(
            _COMMITTER,
            "_check_source",
            "self._source.check(...)",
            "self._source.read(record, batch, deadline).moves(known)",
        ),
        f"{_NEW}test_a_kept_planner_does_not_hide_it_from_the_commit[transactions]",
        outside="the model has one comparison, in the step of the decision",
    ),
    guard(
        "what is decided and open is committed before it is accepted",
        "After the choice no start commits it, and its rows are lost.",
        never(_RESOLVE, "write_choice", "decision.override.accepted"),
        "tests/ops/test_resolve.py::test_what_is_decided_is_committed_before_it_is_accepted_or_dropped[Choice.ACCEPT]",
        "tests/ops/test_resolve.py::test_what_is_decided_and_not_seen_is_neither_accepted_nor_dropped[Choice.ACCEPT]",
        outside=_NO_OPERATOR,
    ),
)
