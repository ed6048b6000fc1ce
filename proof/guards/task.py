"""Guards of tasks and replays."""

from __future__ import annotations

from proof.guards.guard import Proof, always, drop, guard, move, never, swap

_MODEL = "eos_sink/protocol/model.py"
_WRITER = "eos_sink/task/writer.py"
_PRODUCER = "eos_sink/kafka/producer.py"
_RULES = "eos_sink/protocol/rules.py"
_DECIDE = "eos_sink/protocol/decide.py"
_COMMITTER = "eos_sink/driver/committer.py"
_REJECTING = "eos_sink/task/rejected.py"
_INLINE = "eos_sink/protocol/inline.py"
_COMPLETER = "eos_sink/driver/completion.py"
_STORY = "tests/protocol/test_stories.py::"
_GUARD = "tests/protocol/test_guards.py::"
_VERDICT = "tests/protocol/test_rules.py::"
_OTHERS = "tests/protocol/test_other_partitions.py::"
_COMPLETION = "tests/protocol/test_completion.py::"
_JOBS = "tests/protocol/test_batch.py::"
_ZOMBIE = "integration/test_zombies.py::"
_REPLAY = "integration/test_replays.py::"
_BAD = "integration/test_bad_input.py::"
_MAY_BE_OPEN = (
    "tests/task/test_writer.py::"
    "test_a_repeated_attempt_writes_nothing_while_what_the_first_has_left_may_be_open"
)
_REJECTED = "tests/task/test_rejected.py::"
_RECOMPRESSED = "integration/test_recompressed.py::"
_INLINED = "tests/protocol/test_inline.py::"
_LEVEL = f"{_RECOMPRESSED}test_a_level_that_compresses_less_than_the_default_is_not_taken_for_it"
_WITHOUT_COMPLETION = "the model has no operator"

_FIRST = drop(_WRITER, "_produce", "self._send_offset(producer)", nth=1, of=2)
_LAST = drop(_WRITER, "_produce", "self._send_offset(producer)", nth=2, of=2)

GUARDS = (
    guard(
        "a later attempt writes nothing beside what the earlier one has left",
        "Its transaction may be open in a partition that had no leader when it was aborted.",
        drop(_WRITER, "_open", "self._check_earlier_attempt(...)"),
        _MAY_BE_OPEN,
        "integration/test_markers.py::test_a_later_attempt_of_a_task_writes_nothing_beside_what_the_earlier_one_has_left",
        outside="the model's transactions end in all partitions at once",
    ),
    guard(
        "a witness has a known offset",
        "A record acknowledged without an offset has no known position.",
        swap(
            "eos_sink/kafka/confluent_client.py",
            "_make_callback",
            "error is None and ...",
            "error is None",
        ),
        "tests/kafka/test_offsets.py::test_only_the_first_row_with_a_known_offset_is_reported",
        outside="the model's records have offsets",
    ),
    guard(
        "a task's transaction carries the plan's member",
        "Kafka refuses the task of a driver whose group member was replaced.",
        _FIRST + _LAST,
        f"{_STORY}test_a_stale_driver_is_refused_in_tasks_which_free_readers_at_once",
        f"{_ZOMBIE}test_a_stale_drivers_task_is_refused_at_once[4.3.0-FaultPoint.TASK_INIT_BEFORE]",
        rows=("M_NOMEMBER_T",),
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
        "a refused task aborts",
        "The rows of a refused task do not block readers.",
        drop(_WRITER, "_give_up", "with contextlib.suppress(...):"),
        f"{_STORY}test_a_stale_driver_is_refused_in_tasks_which_free_readers_at_once",
        outside="the model's refused task aborts in the same step",
    ),
    guard(
        "a partition without rows opens nothing",
        "It has no transaction and no witness.",
        swap(_WRITER, "_report", "filter(len, data)", "iter(data)"),
        f"{_GUARD}test_a_partition_of_empty_arrow_batches_opens_nothing",
        f"{_REPLAY}test_an_empty_partition_opens_no_transaction[4.3.0]",
        outside="the model's transactions all have rows",
    ),
    guard(
        "a batch without rows decides nothing",
        "It writes no record, so idle queries do not write to the log.",
        always(_COMMITTER, "_commit", "any(report.has_written for report in reports)"),
        f"{_STORY}test_a_partition_without_rows_opens_nothing_and_a_batch_without_rows_writes_no_record",
        outside="not a matter of safety",
    ),
    guard(
        "keys go to the same partitions as with Java clients",
        "Consumers that join topics by partition find a key in the same partition.",
        swap(_PRODUCER, "", '"murmur2_random"', '"consistent_random"'),
        "integration/test_guards.py::test_keys_land_where_java_clients_put_them[4.3.0]",
        outside="not a matter of the protocol",
    ),
    guard(
        "slots take turns",
        "A new batch takes other transactional ids than the decided one.",
        swap(_RULES, "assign", "1 - decision.slot", "decision.slot"),
        f"{_STORY}test_batches_take_turns_with_the_slots",
        Proof(
            f"{_GUARD}test_a_visible_batch_is_not_taken_for_lost_when_the_next_one_crashes",
            without="the witness decides",
        ),
        rows=("NO_SLOT",),
    ),
    guard(
        "a replay of a decided batch is counted",
        "The rows are visible already, so a replay does not write them.",
        always(_RULES, "assign", "partition in plan.lost or decision.is_invisible(plan.lost)"),
        f"{_STORY}test_a_replay_of_a_settled_batch_writes_nothing",
        f"{_REPLAY}test_a_visible_batch_is_counted_and_not_written_again[4.3.0]",
        rows=("M_REWRITE",),
    ),
    guard(
        "a batch is identified by stream and number",
        "After its checkpoint is deleted, a query counts from zero again; its batches are new.",
        swap(_RULES, "assign", "decision.batch == batch", "decision.batch.batch == batch.batch"),
        f"{_VERDICT}test_a_batch_of_another_stream_is_new_whatever_its_number[5]",
        f"{_REPLAY}test_a_deleted_checkpoint_starts_a_new_stream_and_frees_readers[4.3.0]",
        rows=("M_NUMBER",),
    ),
    guard(
        "an older batch stops",
        "A batch before the decided one means an old copy of the checkpoint.",
        never(_RULES, "assign", "decision.batch.batch > batch.batch"),
        f"{_STORY}test_a_checkpoint_restored_one_batch_back_stops",
        f"{_REPLAY}test_a_checkpoint_restored_further_back_is_refused[4.3.0]",
        rows=("M_NOOLDER",),
    ),
    guard(
        "a stream that was followed is refused",
        "A batch that was decided before another checkpoint took over is not written again.",
        never(_RULES, "_check_identity", "any(...)"),
        f"{_GUARD}test_a_batch_of_a_checkpoint_that_was_put_back_is_not_written_again",
        rows=("M_NOEARLIER",),
    ),
    guard(
        "no stream is forgotten",
        "The last batch of each stream is known, however many write under one identity.",
        swap(_MODEL, "next", "(*retired, replace(...))", "(self.latest,)"),
        "tests/protocol/test_model.py::test_a_record_forgets_no_stream",
        rows=("M_NOEARLIER",),
    ),
    guard(
        "a position does not have what another identity reads",
        "The rows would be read again under the identity that the query goes back to.",
        never(_MODEL, "next", "source is not None and source.group != change.group"),
        "tests/protocol/test_starting_offsets.py::TestAFormerIdentity"
        "::test_does_not_know_what_was_written_without_the_option",
        outside="the model has one identity",
    ),
    guard(
        "a query and single writes share no identity",
        "Neither could tell what the other one repeats.",
        never(
            _RULES,
            "_check_identity",
            "decision and decision.batch.numbering.is_by_spark != batch.numbering.is_by_spark",
        ),
        f"{_VERDICT}test_a_query_and_single_writes_do_not_share_an_identity[Numbering.FOREACH-Numbering.ONCE]",
        outside="the model has no batch writes",
    ),
    guard(
        "there is room for every stream",
        "A stream for which the record has no room is refused before anything is decided.",
        never(_RULES, "check_streams", "len(record.retired) >= MAX_STREAMS"),
        f"{_JOBS}test_one_query_too_many_under_an_identity_is_refused_before_anything_is_decided",
        outside="the model has two checkpoints",
    ),
    guard(
        "a former identity takes no more batches",
        "A query that goes back to it would write again what it has decided under the new one.",
        drop("eos_sink/driver/former_identities.py", "_retire", "retires=..."),
        "tests/protocol/test_moved.py::test_a_query_that_changes_back_is_refused_by_its_former_identity",
        outside="the model has one identity",
    ),
    guard(
        "a moved checkpoint stops",
        "The first batch of an identity was not decided under another identity before.",
        swap(
            _COMMITTER,
            "_decide",
            "self._check_claims(token, record, decision, deadline)",
            "()",
        ),
        "tests/protocol/test_moved.py::test_a_batch_that_was_decided_at_the_old_place_is_not_written_at_the_new_one",
        outside="the model has one identity",
    ),
    guard(
        "of two identities that claim a stream at once one writes",
        "Each has read the claims before the other one's was there.",
        never("eos_sink/decision_log/claims.py", "check_claims", "other.names not in (...)"),
        "tests/protocol/test_moved.py::test_of_two_identities_that_claim_a_stream_at_once_one_writes_its_first_batch[commit]",
        outside="the model has one identity",
    ),
    guard(
        "a frame keeps its identity until its batch is done",
        "Under a new identity it would be written again.",
        never(_RULES, "check_former", "_is_same_frame(decision, latest)"),
        "tests/protocol/test_moved.py::test_a_frame_that_an_earlier_run_has_decided_is_not_written_under_another_identity",
        outside="the model has one identity",
    ),
    guard(
        "the decision log takes no rows",
        "A row in it would be read as a decision, or stop a query as an unreadable one.",
        never("eos_sink/options.py", "_log_topic", '_given(options, "topic") == log')
        + drop(_WRITER, "_take", "check_topics(...)")
        + never(_REJECTING, "_find_wrong_topics", "name == self._options.log_topic"),
        "tests/test_options.py::test_the_decision_log_takes_no_rows[given0-topic]",
        "tests/protocol/test_destinations.py::test_a_row_for_the_decision_log_is_refused[-0]",
        "tests/protocol/test_destinations.py::test_a_row_for_the_decision_log_is_a_dead_letter[-0]",
        f"{_BAD}test_a_row_for_the_decision_log_does_not_get_there[4.3.0-65536]",
        outside="the model has no topics",
    ),
    guard(
        "the logs of other sinks take no rows",
        "A row in one would stop a query that has nothing to do with it.",
        drop("eos_sink/driver/planned_topics.py", "check", "check_no_logs(...)")
        + drop("eos_sink/driver/decided_topics.py", "check", "check_no_logs(...)")
        + never(_REJECTING, "_find_wrong_topics", "name in self._logs"),
        f"{_BAD}test_an_option_that_names_the_log_of_another_sink_is_refused[4.3.0-topic]",
        f"{_BAD}test_a_row_for_the_log_of_another_sink_does_not_become_visible[4.3.0-65536]",
        f"{_BAD}test_a_row_for_the_log_of_another_sink_is_a_dead_letter[4.3.0-65536]",
        outside="the model has no topics",
    ),
    guard(
        "a row that looks like a decision stops no query",
        "Applications forward what they get: one such row would stop each query that writes the "
        "topic, at each restart.",
        always("eos_sink/kafka/log_topic.py", "may_be_log", "policy in (...)")
        + swap(
            "eos_sink/decision_log/other_logs.py",
            "find_logs",
            "2 * sum(map(is_record, values)) > len(values)",
            "any(map(is_record, values))",
        ),
        f"{_BAD}test_a_row_that_looks_like_a_decision_does_not_stop_the_queries_of_its_topic[4.3.0-delete]",
        f"{_BAD}test_a_row_that_looks_like_a_decision_does_not_stop_the_queries_of_its_topic[4.3.0-compact]",
        outside="the model has no topics",
    ),
    guard(
        "the keys of headers are UTF-8",
        "Java clients read U+FFFD otherwise, and confluent-kafka cannot read the headers at all.",
        drop("eos_sink/kafka/rows.py", "find_wrong_keys", "wrong = wrong | ..."),
        f"{_REJECTED}test_each_row_is_written_or_refused_or_a_dead_letter_whichever_way_it_goes",
        f"{_BAD}test_an_invalid_row_is_refused_or_a_dead_letter_whichever_way_it_goes[4.3.0-native-header-key]",
        outside="the model's records have no headers",
    ),
    guard(
        "a witness is a row in its own topic",
        "A decision whose topics are dead letter topics alone hides a moved checkpoint.",
        swap(_WRITER, "send", "kind in self._known", "self._known"),
        f"{_REJECTED}test_the_witness_is_a_row_in_its_own_topic_however_late_it_comes[0-1]",
        outside="the model has no dead letters",
    ),
    guard(
        "lost partitions need their batch",
        "A query does not continue past decided rows that were lost.",
        never(_RULES, "assign", "if plan.lost:"),
        f"{_VERDICT}test_a_batch_after_lost_partitions_stops[batch0]",
        f"{_STORY}test_a_query_does_not_go_past_lost_partitions",
        rows=("M_LOSTGONE",),
    ),
    guard(
        "a replay has the decided totals",
        "Other rows under the same batch number stop the query.",
        swap(_RULES, "compare", "total != decision.total", "total is None"),
        f"{_STORY}test_a_replay_with_other_rows_stops",
        f"{_REPLAY}test_a_replay_with_other_rows_needs_an_operator[4.3.0]",
        f"{_COMPLETION}test_a_replay_with_other_rows_is_not_written",
        rows=("M_NOTALLY",),
    ),
    guard(
        "rewritten partitions have the decided rows",
        "Each rewritten partition has the fingerprint of the decision.",
        swap(_RULES, "compare", "moved or ...", "len(reports) != decision.partitions"),
        f"{_STORY}test_lost_partitions_are_not_rewritten_from_rows_that_moved",
        f"{_REPLAY}test_a_lost_partition_is_not_repaired_with_the_rows_of_others[4.3.0]",
        rows=("M_NOFINGER",),
    ),
    guard(
        "exactly the lost partitions are rewritten",
        "A partition too many or too few stops the query.",
        never(_RULES, "compare", "wrote != wanted"),
        f"{_VERDICT}test_a_rewritten_set_that_is_not_the_lost_one_stops[rewritten1]",
        outside="the model's tasks follow their plan",
    ),
    guard(
        "a rewrite has the decided number of partitions",
        "Partition numbers identify the same rows only if their number is unchanged.",
        never(_RULES, "compare", "len(reports) != decision.partitions"),
        f"{_VERDICT}test_a_rewrite_in_another_number_of_partitions_has_not_written_the_lost_ones[4]",
        outside="the model's batch keeps its two partitions",
    ),
    guard(
        "only a batch without a visible row is written in other partitions",
        "A visible row of it would be there twice.",
        always(_MODEL, "is_invisible", "lost == self.digests.keys()"),
        f"{_COMPLETION}test_a_replay_in_other_partitions_writes_what_is_not_visible[fewer]",
        f"{_REPLAY}test_a_batch_that_is_visible_in_part_goes_on_with_its_old_partitions[4.3.0]",
        outside="the model's batch keeps its two partitions",
    ),
    guard(
        "a batch without a visible row is written in the partitions of its replay",
        "With more cores or other settings Spark never has the old ones again.",
        never(_RULES, "assign", "decision.is_invisible(plan.lost)"),
        f"{_OTHERS}test_a_batch_that_is_lost_as_a_whole_is_written_in_the_partitions_of_its_replay[more]",
        f"{_REPLAY}test_a_batch_that_is_lost_as_a_whole_may_have_other_partitions[4.3.0-more]",
        outside="the model's batch keeps its two partitions",
    ),
    guard(
        "a rewrite in other partitions keeps nothing of the former ones",
        "A later replay is compared with the partitions that were written last, and an operator's "
        "choice ends with the transaction that it was about.",
        swap(
            _DECIDE,
            "decide",
            "partitions=...",
            "partitions=decided.partitions if decided else len(reports)",
        )
        + drop(_DECIDE, "decide", "visible=chosen.visible - lost"),
        f"{_OTHERS}test_a_batch_that_is_lost_as_a_whole_is_written_in_the_partitions_of_its_replay[more]",
        f"{_OTHERS}test_an_operators_choices_end_with_the_partitions_that_they_are_about",
        outside="the model's batch keeps its two partitions",
    ),
    guard(
        "a completion writes only rows that are not visible",
        "The others would be there twice.",
        swap(
            "eos_sink/task/missing_rows.py",
            "select",
            "self._visible[places] != hashes",
            "hashes == hashes",
        ),
        f"{_COMPLETION}test_a_replay_in_other_partitions_writes_what_is_not_visible[fewer]",
        "integration/test_completion.py::test_a_replay_in_other_partitions_writes_what_is_not_visible[4.3.0-1]",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "a completion has written exactly the lost rows",
        "A lost row with the content of a visible one would be missing.",
        always(_RULES, "compare", "written == missing"),
        f"{_COMPLETION}test_a_lost_row_with_the_content_of_a_visible_one_leaves_the_old_partitions",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "the partitions of a completion have numbers of their own",
        "The decision names its old and its new transactions, and each has its id.",
        drop(_RULES, "assign", "decision.partitions"),
        f"{_COMPLETION}test_a_replay_in_other_partitions_writes_what_is_not_visible[more]",
        f"{_COMPLETION}test_a_completion_that_is_lost_in_part_too_is_completed_at_once",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "the driver writes no rows of a completion",
        "They could not be read back if a part of it was lost.",
        never(_WRITER, "_share", "self._plan.visible is not None"),
        f"{_COMPLETION}test_the_driver_writes_no_rows_of_a_completion",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "rows are read back until they are the decided ones",
        "A visible row that is not found would be written again.",
        always(_COMPLETER, "read_back", "not wrong"),
        f"{_COMPLETION}test_the_topic_is_read_further_back_until_all_rows_are_found",
        f"{_COMPLETION}test_deleted_rows_cannot_be_told_from_lost_ones",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "what the driver has written is read back",
        "A completion would write it again.",
        swap(
            _COMPLETER,
            "read_back",
            "visible = ...",
            "visible = [*(part for rows in found.values() for part in rows.hashes)]",
        ),
        f"{_COMPLETION}test_rows_that_the_driver_has_written_are_read_back",
        "integration/test_completion.py::test_rows_that_the_driver_has_written_are_read_back[4.3.0]",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "a batch that cannot be completed is written by its partitions",
        "With the old partitions the query goes on.",
        swap(_COMPLETER, "by_partition", "by_row=False", "by_row=True"),
        f"{_COMPLETION}test_a_lost_row_with_the_content_of_a_visible_one_leaves_the_old_partitions",
        f"{_COMPLETION}test_deleted_rows_cannot_be_told_from_lost_ones",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "a topic that could not be read refuses no completion",
        "The next start reads it.",
        never(_COMPLETER, "_scan", "not seen or ..."),
        f"{_COMPLETION}test_a_topic_that_cannot_be_read_now_is_read_by_the_next_start",
        outside=_WITHOUT_COMPLETION,
    ),
    guard(
        "the fingerprint covers dead letters",
        "A repeated batch has the same rows, even if another topic takes them by then.",
        move(_WRITER, "_take", "digester.add(rows)", after="if self._rejected is not None:"),
        f"{_REJECTED}test_a_replay_compares_all_rows_whichever_topic_they_are_in[0]",
        outside="the model's rows are all accepted",
    ),
    guard(
        "a task rejects a row only by rules that it has read itself",
        "Kafka may take the row by now: a limit was raised, or partitions were added.",
        never(_REJECTING, "sort_out", "not suspects <= self._read"),
        f"{_REJECTED}test_a_row_is_not_rejected_by_rules_that_are_no_longer_true",
        outside="the model's rows are all accepted",
    ),
    guard(
        "tasks that were not expected hand over little",
        "The driver can hold the rows of all tasks, however many a batch has.",
        never(_INLINE, "inline_share", "partition >= max(tasks, _USUAL_TASKS)"),
        f"{_INLINED}test_the_rows_of_all_tasks_fit_into_the_driver_whatever_was_expected",
        outside="the model's rows have no size",
    ),
    guard(
        "an attempt that failed shrinks what the driver takes",
        "A batch that the driver cannot take does not fail forever.",
        drop(_COMMITTER, "abort", "gives_up=True"),
        f"{_INLINED}test_a_batch_that_fails_again_and_again_is_written_by_its_tasks",
        outside="the model's rows have no size",
    ),
    guard(
        "failed attempts before the first decision count",
        "A first batch that the driver cannot take does not fail forever.",
        swap(_MODEL, "next", "decision is None and self.decision is None", "gives_up"),
        "tests/protocol/test_model.py::test_a_record_counts_the_plans_that_were_given_up_since_the_decision",
        outside="the model's rows have no size",
    ),
    guard(
        "the driver takes no rows of a topic that takes less than it sends",
        "Its record batches are as large as the option says, even if a topic takes less.",
        never(_WRITER, "_share", "sizes.batch < most"),
        f"{_REJECTED}test_rows_of_a_topic_that_takes_less_than_the_driver_sends_do_not_go_through_it[4095-False]",
        outside="the model's rows have no size",
    ),
    guard(
        "record batches leave room for the codec of their topic",
        "The brokers compress them again, which makes larger what cannot be compressed, and refuse "
        "what is then above the limit, at each restart.",
        swap("eos_sink/protocol/topic_rules.py", "sure_bytes", "max(...)", "self.max_bytes"),
        f"{_RECOMPRESSED}test_full_batches_fit_into_a_topic_that_compresses_them_again[4.3.0-strict-native-gzip]",
        f"{_RECOMPRESSED}test_full_batches_fit_into_a_topic_that_compresses_them_again"
        "[4.3.0-dead letters-inline-gzip]",
        outside="the model's rows have no size",
    ),
    guard(
        "a row is judged by its size after the codec of its topic",
        "A row that fits only until the brokers compress it is a dead letter and does not stop the "
        "query at each restart.",
        swap(_REJECTING, "_find_too_large", "stored > sure", "stored > limits"),
        f"{_RECOMPRESSED}test_a_row_that_only_fits_before_it_is_compressed_is_refused_by_name_or_a_dead_letter[4.3.0-none-native-gzip]",
        outside="the model's rows have no size",
    ),
    guard(
        "a codec's level counts where it compresses less than the default",
        "A row is a dead letter and does not stop the query at each restart.",
        swap(
            "eos_sink/task/record_sizes.py",
            "_compress",
            "usual if level is None or usual is None else level",
            "usual",
        ),
        f"{_LEVEL}[4.3.0-the client's]",
        f"{_LEVEL}[4.3.0-the topic's]",
        outside="the model's rows have no size",
    ),
    guard(
        "long topics of dead letters are limited in each slice, and are not repeated",
        "They would take gigabytes, or be larger than the dead letter topic takes.",
        swap(
            _REJECTING,
            "_to_letters",
            "RecordSizes(rows).sizes()[0] + ...",
            "RecordSizes(rows).sizes()[0]",
        )
        + swap(
            _REJECTING,
            "_find_wrong_topics",
            "what = ...",
            'what = f"cannot be written: {name!r}" if name else "is null or empty"',
        ),
        f"{_REJECTED}test_dead_letters_with_long_topics_are_made_in_slices",
        f"{_REJECTED}test_the_reason_of_a_dead_letter_does_not_repeat_a_long_topic",
        outside="the model's rows have no size",
    ),
    guard(
        "dead letters do not make the queue of a task larger",
        "A topic that takes a gigabyte would let each task keep one.",
        swap(
            _REJECTING,
            "sizes",
            "min(self._dead_letter_rules().max_bytes, ...)",
            "self._dead_letter_rules().max_bytes",
        ),
        f"{_REJECTED}test_a_dead_letter_topic_that_takes_very_much_does_not_let_the_queue_grow[default]",
        outside="the model's rows have no size",
    ),
    guard(
        "dead letters are made in slices",
        "They would take the memory of their rows two times more.",
        swap(_REJECTING, "_to_letters", "slices = ...", "slices = 0 * ends"),
        f"{_REJECTED}test_dead_letters_are_made_in_slices",
        outside="the model's rows have no size",
    ),
)
