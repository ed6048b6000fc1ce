"""Guards of the source's offsets: where a checkpoint begins, and what a decision moves."""

from __future__ import annotations

from proof.guards.guard import always, drop, guard, never, swap

_RULES = "eos_sink/protocol/source_rules.py"
_HANDOVER = "eos_sink/protocol/handover.py"
_READER = "eos_sink/driver/source_reader.py"
_COMMITTER = "eos_sink/driver/committer.py"
_PLANNER = "eos_sink/driver/planner.py"
_TEST = "tests/protocol/test_source.py::"
_BATCH = f"{_TEST}TestABatch::"
_FIRST = f"{_TEST}TestTheFirstStart::"
_NEW = f"{_TEST}TestANewCheckpoint::"
_LOST = f"{_TEST}TestALostDecision::"
_OPTION = f"{_TEST}TestTheOption::"
_ANOTHER = f"{_TEST}TestAnotherGroup::"
_CHOSEN = f"{_TEST}TestTheGroupsOffsets::"
_CATCHES = f"{_TEST}TestAFunctionThatCatchesErrors::"
_TOPIC = f"{_TEST}TestATopicThatIsNew::"
_BEGUN = "tests/protocol/test_starting_offsets.py::TestABatchThatIsThereUnfinished::"
_GONE = f"{_TEST}TestATopicThatIsGone::"
_WAYS = f"{_TEST}TestBothWaysToWrite::"

GUARDS = (
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
        "a checkpoint that begins before the position stops",
        "It would write rows again that are visible.",
        never(_HANDOVER, "_check_begin", "start < reached[place]"),
        f"{_NEW}test_elsewhere_it_stops_and_names_both_sides[transactions-repeats]",
        rows=("M_EARLIER",),
    ),
    guard(
        "a checkpoint that begins behind the position stops",
        "It would skip rows that are not visible.",
        never(_HANDOVER, "_check_begin", "start > reached[place] and not skipped"),
        f"{_NEW}test_elsewhere_it_stops_and_names_both_sides[transactions-skips]",
        rows=("M_LATER",),
    ),
    guard(
        "a batch that foreachBatch has left out stops the next one",
        "Its function may have caught the sink's error: Spark goes on, and the rows are nowhere.",
        swap(_HANDOVER, "_check_begin", "is_function = ...", "is_function = False"),
        f"{_CATCHES}test_stops_at_each_batch_that_follows[transactions-1]",
        outside="the model has no foreachBatch",
    ),
    guard(
        "the start is read from the checkpoint",
        "Spark may have made the batch before again, with another end, after a part of its "
        "checkpoint was lost; the log has the end of the first one.",
        swap(
            _READER,
            "read",
            "before = ...",
            "before = record.source.end if record.source else self.files.initial_offsets()",
        ),
        f"{_NEW}test_a_batch_that_was_made_again_with_another_end[transactions]",
        rows=("M_TRUSTEND",),
    ),
    guard(
        "a start that cannot be read stops",
        "Where a checkpoint begins is never taken from the position that it is compared with.",
        swap(
            _READER,
            "read",
            "before = ...",
            "before = self._begin_of(batch.batch)\n"
            "if before is None and record.source: before = record.source.end",
        ),
        f"{_NEW}test_a_directory_that_does_not_show_where_it_begins[transactions]",
        rows=("M_UNREADABLE",),
    ),
    guard(
        "the checkpoint is that of the batch",
        "A directory that was deleted may be another query's by now: its offsets say nothing about "
        "these rows.",
        never(_READER, "check_query", "if there != query:"),
        f"{_FIRST}test_the_directory_of_another_query_is_refused[transactions]",
        rows=("M_NOMETA",),
    ),
    guard(
        "a plan that knows its query refuses another one's checkpoint",
        "Its offsets would become the position before a row is written.",
        never(_PLANNER, "plan", "if query is not None and ...:"),
        f"{_WAYS}test_the_planner_refuses_the_checkpoint_of_another_query_than_it_is_told"
        "[transactions]",
        outside="the model has one directory",
    ),
    guard(
        "a decided batch is repeated with its offsets",
        "Without rows nothing else tells that the batch was made again from an older checkpoint.",
        never(_HANDOVER, "check_replay", "if known and ...:"),
        f"{_BATCH}test_a_replay_of_other_offsets_stops[transactions]",
        rows=("M_REPLAYEND",),
    ),
    guard(
        "a new partition is read from its first row",
        "Rows that came before the query knew of the partition would be skipped.",
        never(_HANDOVER, "_check_logs", "if skipped:"),
        f"{_NEW}test_a_new_partition_begins_at_its_first_row[transactions]",
        rows=("M_NEWPARTITION",),
    ),
    guard(
        "a source that has deleted rows at the position stops",
        "If failOnDataLoss is false, Spark would skip them silently.",
        never(_HANDOVER, "_check_kept", "if gone:"),
        f"{_NEW}test_rows_that_were_deleted_stop_it[transactions]",
        outside="the model's source keeps its rows",
    ),
    guard(
        "where a new topic of a new checkpoint begins is noted before any row",
        "Its end, with default='latest', is elsewhere when the next checkpoint begins: the rows "
        "in between would be skipped.",
        always(_HANDOVER, "first_position", "not new or not is_new_stream(record, now.batch)"),
        f"{_TOPIC}test_is_read_from_where_its_first_start_was[transactions]",
        outside="in the model a topic begins with the first decision that has it",
    ),
    guard(
        "a new checkpoint of a query with state stops",
        "Rows that wait in the state are read and in no topic.",
        never(_HANDOVER, "_check_whole", "if known.stateful:"),
        f"{_NEW}test_state_is_not_lost_in_silence[transactions]",
        rows=("M_STATEFUL",),
    ),
    guard(
        "a decision that is invisible as a whole takes the position back",
        "Its rows are read again by the checkpoint that follows.",
        swap(_RULES, "returns_to_start", "replace(...)", "known"),
        f"{_LOST}test_invisible_as_a_whole_it_is_read_again",
        rows=("M_ENDALWAYS",),
    ),
    guard(
        "a decision that is visible in part does not take the position back",
        "Its visible rows would be written again; only its own checkpoint can write the others.",
        never(_RULES, "returns_to_start", "if not decision.is_invisible(lost):"),
        f"{_LOST}test_visible_in_part_it_stops_a_new_checkpoint",
        rows=("M_PARTLY",),
    ),
    guard(
        "a position that is taken back leaves a reset of the group",
        "What an operator has set would be overwritten silently.",
        swap(_READER, "find_return", "self.find_begin(...)", "start"),
        f"{_LOST}test_a_reset_of_the_group_is_not_overwritten",
        rows=("M_DROPBLIND",),
    ),
    guard(
        "a new checkpoint begins where the group is",
        "If the group was reset or has expired, an operator says which of the two counts.",
        never(_HANDOVER, "_check_group", "if places:"),
        f"{_NEW}test_a_group_that_was_reset_stops_it[transactions]",
        rows=("M_GROUP",),
    ),
    guard(
        "a query that is new to a group begins where the group is",
        "The offsets are another program's, and so may be the rows before them.",
        never(_HANDOVER, "check_foreign_group", "if wrong:"),
        f"{_FIRST}test_offsets_of_another_program_are_not_overwritten[transactions]",
        rows=("M_GROUPFIRST",),
    ),
    guard(
        "another group has no other offsets",
        "They would be another program's, and the query's next commit would overwrite them.",
        never(_HANDOVER, "Handover.needs_group", "known.group != self.group"),
        f"{_ANOTHER}test_that_another_program_uses_is_not_overwritten[transactions-False]",
        outside="the model has one group",
    ),
    guard(
        "a new checkpoint of a query with other sources stops",
        "Only the old checkpoint knows where the query stands in them.",
        never(_HANDOVER, "_check_whole", "if known.others:"),
        f"{_NEW}test_the_position_of_other_sources_is_not_lost_in_silence[transactions]",
        outside="the model has one source",
    ),
    guard(
        "a partition without an offset of the group keeps its position",
        "An operator chooses the offsets that the group has, not the first row of all others.",
        swap(
            "eos_sink/ops/source_position.py",
            "_of_group",
            "ends = {**known.end, **ends}",
            "pass",
        ),
        f"{_CHOSEN}test_of_some_partitions_leave_the_others_where_they_were[transactions]",
        outside="in the model a reset concerns all partitions",
    ),
    guard(
        "the log knows the position before the first rows",
        "A checkpoint that is lost before its first decision is followed by one that begins at the "
        "same offsets.",
        never(_PLANNER, "_check_source", "if begins is not None:"),
        f"{_FIRST}test_the_log_knows_the_position_before_any_row[transactions]",
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
        "a batch without the option makes the position stale",
        "Rows that were written since are not in it.",
        swap(
            "eos_sink/protocol/model.py",
            "SourcePosition.after",
            "replace(self, stale=True) if ends else self",
            "self",
        ),
        f"{_OPTION}test_switched_off_the_position_is_stale[transactions]",
        rows=("NO_STALE",),
    ),
    guard(
        "a query that has decided without a position stops a new checkpoint",
        "Only the old checkpoint knows what is visible.",
        never(_HANDOVER, "_check_known", "if now is None or ...:"),
        f"{_OPTION}test_switched_on_with_a_new_checkpoint_it_stops[transactions]",
        rows=("M_NOPOSITION",),
    ),
    guard(
        "a batch that another sink has begun is not written",
        "Its rows may be in the topic, in whole or in part.",
        never(_READER, "check_first", "if note is None or ...:"),
        f"{_BEGUN}test_of_another_sink_is_finished_by_that",
        rows=("M_AHEAD",),
    ),
    guard(
        "a batch that another identity of the query has decided is not written again",
        "Spark repeats it under the new identity, whose record does not know the stream.",
        never(_READER, "check_former", "if batch and each.batch >= batch.batch:"),
        "tests/protocol/test_starting_offsets.py::TestAFormerIdentity::"
        "test_that_has_decided_the_batch_finishes_it",
        outside="the model has one identity",
    ),
    guard(
        "a query changes its identity only with its checkpoint",
        "Another one does not tell what was decided there, and fences no driver that is left.",
        drop(_READER, "check_former", "self._check_movers(...)"),
        "tests/protocol/test_starting_offsets.py::TestAFormerIdentity::"
        "test_writes_the_first_batch_of_a_new_checkpoint[follows]",
        outside="the model has one identity",
    ),
    guard(
        "a topic that was created again is not read on at an old offset",
        "Its first rows would be skipped.",
        never(_RULES, "SourceLogs._lacks", "if known_id is not None and ...:"),
        f"{_GONE}test_and_made_again_while_it_was_not_read_begins_at_its_first_row[transactions]",
        outside="the model's source keeps its rows",
    ),
)
