"""Says what stops a query, and what its user does then: one row for each reason.

Rules raise `stop(reason, facts)`. The edge (`named`) knows the query's names and log, and gives the
error its whole text. `docs/internals/messages.md` shows this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from eos_sink.errors import (
    Action,
    ClusterError,
    CommitFailedError,
    ConfigurationError,
    EosSinkError,
    OperatorNeededError,
    OutcomeUnknownError,
    ProduceFailedError,
    SupersededError,
    UnfinishedError,
)
from eos_sink.identity import (
    DEFAULT_LOG,
    DEFAULT_PREFIX,
    Origin,
    QueryNames,
    shown_location,
)
from eos_sink.shell import quote, sink_command

Place = tuple[str, int]

_SOME = 5
_INPUT = (
    "Restore the checkpoint and the input that the batch was made from (a checkpoint restored from "
    "an older copy reads a larger range; a non-deterministic query gives other rows at each run)."
)
_SAME_ROWS = {
    "STREAM": _INPUT,
    "FOREACH": f"{_INPUT} If foreachBatch writes several frames to one topic, leave the first as "
    "it is and give each further one an eos.id of its own.",
    "VERSION": "Write the rows that this version had before, or new ones under a higher "
    "txnVersion, and each frame under a txnAppId of its own (a non-deterministic frame has other "
    "rows each time).",
    "ONCE": "Write the rows that this write had before, or new ones without eos.write.id (a "
    "non-deterministic frame has other rows each time).",
}
"""By `Numbering`, as all that depends on who numbers the batches."""
_HANGS = (
    "{hanging} was ended while the partition had no leader. Kafka forgot it there (KAFKA-20734), "
    "and nothing tells any more whether it was committed or aborted."
)
_END_HANGING = (
    "Keep a copy of its rows, then go on as 'A forgotten transaction' on the page below says: "
    "kafka-console-consumer.sh --bootstrap-server HOST:PORT --topic {hanging.topic} --partition "
    "{hanging.partition} --offset {hanging.start} --property print.key=true "
    "--property print.headers=true --timeout-ms 30000"
)
_OF_HANGING = (
    "topic=hanging.topic partition=hanging.partition offset=hanging.start "
    "transaction=hanging.transaction.transactional_id batch=decision.batch.batch"
)
_OF_DECISION = "batch=decision.batch.batch partitions rows"
_LOST_PART = (
    "{decision.batch} is decided. Its partitions {partitions} ({missing} of its {rows} rows) are "
    "lost, the others are visible, and the replay is not written: it has the rows in other "
    "partitions, and {why}. Nothing of it becomes visible."
)
_OF_LOST_PART = (
    f"{_OF_DECISION} decided_partitions=decision.partitions replay_partitions=replay_partitions"
)
_CHOOSE_PART = (
    "{resolve} shows what is in Kafka; add --accept to keep that (the {missing} rows are not "
    "written) or --forget to write the whole replay (rows that are visible are there twice)."
)
_UNKNOWN_PLACES = (
    "{decision.batch} was decided, but for its partitions {partitions} ({missing} rows) neither "
    "the transaction coordinator nor the topic knows any more whether they were committed: their "
    "records at {places} cannot be read ({why})."
)
_MOVED = (
    "Spark runs {batch}, but {decided} was decided under another identity, {was}. The batch's "
    "partitions and rows would be written twice. Nothing of it is visible here."
)
_OF_MOVED = (
    "batch=batch.batch partitions rows stream=batch.stream query=former.query prefix=former.prefix"
)
_LOOK_FOR_ROWS = "Set the offsets of group {group} to the first rows that are not in the topic"
_OF_RIVAL = "seq? planned? by?"
_PLAN_TOO_OLD = (
    "the driver's membership in group {names.group} has ended, {minutes:g} min after its process "
    "ended or stood still: {refused} Nothing of the batch is visible."
)
_PLAN_SOONER = (
    "Start the query again: Spark replays the batch. If that fails the same way, the batch is "
    "planned more than {minutes:g} min before it is decided: make batches smaller, or "
    "raise group.max.session.timeout.ms on the brokers (at most an hour of it is used)."
)
_NOT_TAKEN = "Kafka did not take all records of {transactional_id} ({failed.kind.value}): {failed}"
_FIX_ROW = (
    "Fix what is named (for a record that is too large: max.message.bytes of the topic and "
    "kafka.max.request.size), or name a topic for such rows with option eos.dead.letter.topic, and "
    "start the query again: Spark replays the batch."
)
_OF_RETIRED = "batch=batch.batch stream=batch.stream follower=now.stream"
_OF_UNFINISHED = "batch=decision.batch.batch stream=decision.batch.stream transactions"
_OF_COPIES = "topic partitions min.insync.replicas=needed"
_CREATE_DESTINATION = (
    "Create what is missing (kafka-topics --create or --alter) or correct the option. Nothing was "
    "written."
)
_KEPT_ACTIONS = (Action.FIX, Action.RESOLVE)
_BEFORE_WRITE = (
    "This happened before anything of this write was written: run it, or the query that makes it, "
    "again when the cause is gone."
)
_NOTHING = "Nothing of the batch is visible."
_GIVE_TOPIC = "Give each row the name of a topic for rows, or filter such rows."
_READS_BACK = "Start the query again: it reads back what was decided and finishes it."
_START = "start the query with startingOffsets=eos_sink.starting_offsets(options)."
_OF_PAIRS = "batch=batch.batch stream=batch.stream group=known.group stands begins"
_OLD_CHECKPOINT = (
    "Continue with the old checkpoint. To give up on purpose what only that has: {offsets} "
    "--give-up-state"
)
_OF_STREAM = "stream=batch.stream"
_OF_BEGUN = "batch=batch.batch stream=batch.stream begins"
_LEFT_OUT = (
    "the last decided batch is {last}, and {batch} follows, at other source offsets (decided end "
    "and begin): {pairs}. The sink has written no row of what is between: the function of "
    "foreachBatch has left these batches out, or has caught the error of the sink. It has to write "
    "the frame of each batch, at least frame.limit(0), and to raise the errors of the sink. "
    "Nothing of this batch is visible."
)
_UNREADABLE = (
    "the checkpoint at {location} {what}, and the query's source offsets are needed from there. "
    "Nothing of the batch is visible."
)


class Text(NamedTuple):
    """A row.

    Attributes:
        error: the class.
        message: what has happened and what it means for the data, with facts in braces.
        remedy: one action.
        data: the facts for programs; `name=fact` under another name, `name?` if there is one.
        action: the remedy for programs, where it is not the one of the class.
    """

    error: type[EosSinkError]
    message: str
    remedy: str
    data: str = ""
    action: Action | None = None

    @property
    def looks_for_rows(self) -> bool:
        """True if the operator has to look which rows are in the topic."""
        return _LOOK_FOR_ROWS in self.remedy


class Reason:
    """Why a query stops. No enum: each process of Spark's would take a while to make it."""

    IN_DOUBT = Text(
        OperatorNeededError,
        _UNKNOWN_PLACES,
        "In doubt: {resolve} shows what is left; add --visible if the rows are or were there (they "
        "are not written again) or --lost if they never were (the replay writes them again).",
        "batch=decision.batch.batch partitions rows=missing",
    )
    TOPIC_MADE_AGAIN = Text(
        OperatorNeededError,
        _UNKNOWN_PLACES,
        "None of these rows is in the topic that is there now. To write them there: {resolve} "
        "--lost, then start the query again.",
        "batch=decision.batch.batch partitions rows=missing",
    )
    OLD_CHECKPOINT = Text(
        OperatorNeededError,
        "Spark runs {batch}, but batch {decision.batch.batch} of the same stream (partitions "
        "{partitions}, {rows} rows) is decided in Kafka already: another run has gone on since "
        "this one read the checkpoint, or an old copy of the checkpoint is in use. Rows would be "
        "written twice.",
        "Start the query again. If it stops with this again, restore the newest copy of the "
        "checkpoint. To write what Spark runs now on purpose: {resolve} --forget",
        "batch=batch.batch partitions rows decided=decision.batch.batch",
    )
    MOVED_CHECKPOINT = Text(
        OperatorNeededError,
        _MOVED,
        "Start the query once as it was then: {was}. It finishes its batch. Change it after that.",
        _OF_MOVED,
    )
    MOVED_AND_RETIRED = Text(
        OperatorNeededError,
        _MOVED,
        "Start the query with a new checkpoint that begins behind {decided}: all rows up to "
        "there are visible.",
        _OF_MOVED,
    )
    MOVED_AND_FOLLOWED = Text(
        OperatorNeededError,
        _MOVED,
        "Start the query as it was then: {was}, with the checkpoint of {record.latest}, which has "
        "followed there.",
        _OF_MOVED,
    )
    UNREPAIRED = Text(
        OperatorNeededError,
        "Spark runs {batch}, but partitions {partitions} ({missing} rows) of {decision.batch} were "
        "aborted after their decision and only a replay of that batch can write them again.",
        "{run_again} To give these rows up on purpose: {resolve} --accept",
        "batch=decision.batch.batch partitions rows=missing",
    )
    OTHER_ROWS = Text(
        OperatorNeededError,
        "{decision.batch} is decided, and Spark replays it with other rows: {difference} "
        "(partitions {partitions}). Going on would lose or double rows.",
        "{same_rows} Otherwise {resolve} shows what is in Kafka; add --accept to keep that (rows "
        "that only the replay has are not written) or --forget to write the replay too (rows that "
        "both have are there twice). Rows that only the decision has may come again with a later "
        "batch.",
        _OF_DECISION,
    )
    NEEDS_PARTITIONS = Text(
        OperatorNeededError,
        _LOST_PART,
        "{start} with the settings that split the batch into {decision.partitions} partitions when "
        "it was decided (spark.sql.shuffle.partitions, cores, adaptive execution; the page below "
        "lists them under 'Other partitions'): exactly the lost rows are written again, and the "
        "batches after it may have any settings.",
        _OF_LOST_PART,
        Action.FIX,
    )
    NOT_REPAIRABLE = Text(OperatorNeededError, _LOST_PART, _CHOOSE_PART, _OF_LOST_PART)
    NO_RECORD = Text(
        OperatorNeededError,
        "the decision log {log} has no record of it, but transactions of it were committed before: "
        "{transactions_some}. So there was a record: "
        "the topic was deleted or emptied, or the query wrote to another log. Its last batch could "
        "be written twice. Nothing was changed.",
        "Set eos.log.topic to the topic that the query used before, or restore that topic. To "
        "start without it (a batch that Spark replays is written, even if it is there already): "
        "{resolve} --forget",
        f"{_OF_DECISION} log transactions",
    )
    LOG_WENT_BACK = Text(
        OperatorNeededError,
        "the decision log {position.topic}[{position.partition}] is at seq {entry.seq} (0: it has "
        "no record), offset {entry.position.offset}, but this run has read seq {known} at offset "
        "{position.offset}: records were lost, or the topic was deleted and created again. Which "
        "batch was decided last is not certain any more; its rows could be written twice.",
        "Restore the topic, and start the query again in a new process. To go on without what is "
        "lost (a batch that Spark replays is written, even if it is there already): end this "
        "process, and run {resolve} --forget",
        f"{_OF_DECISION} known seq=entry.seq",
    )
    UNREADABLE_RECORD = Text(
        OperatorNeededError,
        "this version cannot read the decision log's record at {where}: {error!r}. Its batch, "
        "partitions and rows are not known.",
        "Use the version of eos-sink that wrote it, or a newer one.",
        _OF_DECISION,
        Action.FIX,
    )
    HANGING = Text(
        OperatorNeededError,
        f"{_HANGS} Nothing was written.",
        _END_HANGING,
        _OF_HANGING,
    )
    HANGING_REPEATED = Text(
        OperatorNeededError,
        f"{_HANGS} Its rows are of task {{task.partition}} of {{decision.batch}}, the last one "
        "that is decided. Nothing was written.",
        _END_HANGING,
        _OF_HANGING,
    )
    HANGING_DECIDED = Text(
        OperatorNeededError,
        f"{_HANGS} Its rows are of {{decision.batch}}, after which others were decided. Nothing "
        "was written.",
        _END_HANGING,
        _OF_HANGING,
    )
    UNSEEN_PARTITIONS = Text(
        OutcomeUnknownError,
        "{partitions_some} had no leader that answers, or an open transaction whose coordinator "
        "does not answer. Kafka may have forgotten to end an earlier transaction of the query "
        "there (KAFKA-20734), and its next one would end that with its own outcome. Nothing new "
        "was written; what is decided becomes visible where there are leaders.",
        "Start a broker that has a copy of each partition which kafka-topics.sh --describe "
        "--unavailable-partitions shows. Then start the query again: it ends what is open.",
        "partitions",
    )
    ROWS_HELD_BACK = Text(
        OutcomeUnknownError,
        "only what is in the topic tells where the query stands, and readers do not have all of it "
        "yet: a transaction is open in {partitions_some}. Nothing was written.",
        "Start the query again. The transaction ends, by its timeout at the latest.",
        "partitions",
        Action.RUN_AGAIN,
    )
    MOVED_GROUP = Text(
        OperatorNeededError,
        "the query has written last under another identity, {was}, and does not go on from there "
        "with its checkpoint; or another query uses its group {group}. "
        "Nothing was written.",
        "Start the query as it was then: {was}.",
        "group query=former.query prefix=former.prefix",
    )
    RIVAL_UNKNOWN = Text(
        SupersededError,
        "{opening} Another run of the query has taken over; it has not said which one.",
        "Let the other run go on. If there is none, start this query again.",
        _OF_RIVAL,
    )
    RIVAL_PROCESS = Text(
        SupersededError,
        "{opening} Another process of the same run has taken over, or a newer run that has not "
        "written to the log yet.",
        "Start the query again, unless a newer run of it goes on: then keep the newer run.",
        _OF_RIVAL,
        Action.RUN_AGAIN,
    )
    RIVAL_OPERATOR = Text(
        SupersededError,
        "{opening} An operator has used {theirs.tool}: {theirs}.{this_run}",
        "Start the query again.",
        _OF_RIVAL,
        Action.RUN_AGAIN,
    )
    RIVAL_QUERY = Text(
        SupersededError,
        "{opening} Two queries share one identity: {theirs} has taken over.{this_run}",
        "Give each of the two an eos.id of its own, or stop the one that the other replaces.",
        _OF_RIVAL,
        Action.FIX,
    )
    RIVAL_RESTART = Text(
        SupersededError,
        "{opening} The same query was started again: {theirs} has taken over.{this_run}",
        "Let the newer run go on. If it has ended, start this query again.",
        _OF_RIVAL,
    )
    RIVAL_WRITE = Text(
        SupersededError,
        "{opening} Another batch write under the same identity goes on{rival}; writes that run at "
        "the same time need an eos.id or a txnAppId each.{this_run}",
        "Run this write, or the query that makes it, again when the other one is done.",
        _OF_RIVAL,
        Action.RUN_AGAIN,
    )
    PLAN_TOO_OLD = Text(CommitFailedError, _PLAN_TOO_OLD, _PLAN_SOONER, "session_ms")
    PLAN_TOO_OLD_TO_WRITE = Text(ProduceFailedError, _PLAN_TOO_OLD, _PLAN_SOONER, "session_ms kind")
    ROW_REJECTED = Text(
        ProduceFailedError,
        f"{_NOT_TAKEN} Nothing of the batch is visible.",
        _FIX_ROW,
        "kind=failed.kind.value",
        # Without a change such a record fails each time.
        Action.FIX,
    )
    ROW_GROWS = Text(
        ProduceFailedError,
        f"{_NOT_TAKEN} The brokers compress what they get for topic {{failed.topic}} again "
        "(compression.type={rules.compression}), which makes larger what cannot be compressed; "
        "then a batch may have {rules.max_bytes} bytes (max.message.bytes). Nothing of the batch "
        "is visible.",
        _FIX_ROW,
        "kind=failed.kind.value topic=failed.topic compression.type=rules.compression",
        Action.FIX,
    )
    ROW_TIME = Text(
        ProduceFailedError,
        f"{_NOT_TAKEN} The time of a row is that of eos.timestamp.column, else that of the machine "
        "that writes it, and it is too far from the brokers' clock for topic {failed.topic} "
        "(message.timestamp.after.max.ms, message.timestamp.before.max.ms). Nothing of the batch "
        "is visible.",
        "Correct the clock that is wrong, or the rows' times, or let the topic take them "
        "(message.timestamp.type=LogAppendTime takes any), and start the query again: Spark "
        "replays the batch.",
        "kind=failed.kind.value topic=failed.topic",
        Action.FIX,
    )
    ROWS_NOT_DELIVERED = Text(
        ProduceFailedError,
        f"{_NOT_TAKEN} Nothing of the batch is visible.",
        "Check the topic's brokers and its in-sync replicas (min.insync.replicas), then start the "
        "query again: Spark replays the batch.",
        "kind=failed.kind.value",
    )
    TRANSACTION_FAILED = Text(
        ProduceFailedError,
        f"{_NOT_TAKEN} Nothing of the batch is visible.",
        "Start the query again: Spark replays the batch, under a new producer epoch.",
        "kind=failed.kind.value",
    )
    ID_TAKEN = Text(
        ProduceFailedError,
        "another attempt has taken the transactional id {transactional_id}, or its transaction "
        "timed out: {error} Nothing of the batch is visible.",
        "If batches take longer than eos.transaction.timeout.ms, make them smaller or raise it. "
        "Then start the query again: Spark replays the batch.",
        "kind",
    )
    OTHER_VERSION = Text(
        ConfigurationError,
        "the driver and a task run different versions of the sink: {driver} and {task}. Nothing of "
        "the batch is visible.",
        "Install eos-sink {wanted} for the driver and on every executor, then start the query "
        "again.",
        "driver task",
    )
    OTHER_DIGEST = Text(
        OperatorNeededError,
        "{decision.batch} is decided by a version of eos-sink that makes other fingerprints of "
        "rows. Spark replays it, and it cannot be told whether the rows are the same. Nothing of "
        "this replay is written.",
        "{start} once with that version: it finishes the batch. Upgrade after that. If it is not "
        "at hand, {resolve} shows what is in Kafka; add --accept to keep that.",
        _OF_DECISION,
        Action.FIX,
    )
    OTHER_ROUTE = Text(
        ConfigurationError,
        "{decision.batch} is decided, and was written with {decision.route}. Now its rows would go "
        "elsewhere, with {now}: the batch would be split, or its rows could not be compared. "
        "Nothing of this replay is written.",
        "Start the query once with {decision.route}, until it has finished this batch. Change it "
        "then.",
        "batch=decision.batch.batch",
    )
    FORGOTTEN_NUMBER = Text(
        ConfigurationError,
        "whether {batch} was written is not known any more: of the numbers below "
        "{written.forgotten_below} the decision log keeps the last {most} ranges only. Nothing of "
        "this write was written.",
        "If its rows are not in the topic, write them under a number that was never used: a higher "
        "txnVersion, or no eos.write.id.",
        "batch=batch.batch forgotten_below=written.forgotten_below",
    )
    SECOND_FRAME = Text(
        ConfigurationError,
        "{batch} is written a second time under this identity in one run: another frame to the "
        "same topic, or the same write tried again. The sink could not tell a replay of the one "
        "from the other. The first write is decided, nothing of this one is.",
        "Leave the first write as it is, give each further one an eos.id of its own "
        "(.option('eos.id', '<query and frame>')), and start the query again. If it is the same "
        "write tried again, let the error end the query instead.",
        "batch=batch.batch",
    )
    GONE_ON_ELSEWHERE = Text(
        ConfigurationError,
        "Spark runs {batch}, but its query has gone on under another identity: with another "
        "eos.id, checkpoint location or eos.transactional.id.prefix, or with another way of "
        "writing. If both wrote, rows would be there twice.",
        "Start the query as it was started last. Nothing of the batch was written.",
        _OF_RETIRED,
    )
    FOLLOWED = Text(
        ConfigurationError,
        "Spark runs {batch}, but {successor} has followed it under this identity: a new "
        "checkpoint, or another query with the same eos.id. If both wrote, rows would be there "
        "twice.",
        "Continue with the checkpoint of {successor}; or, if this is another query, give it an "
        "eos.id of its own (.option('eos.id', '<query>')). Nothing of the batch was written.",
        _OF_RETIRED,
    )
    SHARED_IDENTITY = Text(
        ConfigurationError,
        "a streaming query and single writes have the same eos.id: {decided} was written under it, "
        "and now it is {batch}. The sink could not tell what is repeated.",
        "Give this write an eos.id of its own (.option('eos.id', '<name>')). Nothing of it was "
        "written.",
        "batch=batch.batch stream=batch.stream",
    )
    NEW_STREAM_WITHOUT_GROUP = Text(
        ConfigurationError,
        "{batch} is of a new checkpoint, which begins where the query stands in its source only "
        "with eos.source.group.id: the decision log has the offsets after {last}. Nothing of this "
        "batch is visible.",
        f"Add .option('eos.source.group.id', '{{known.group}}'), and {_START}",
        "batch=batch.batch stream=batch.stream group=known.group",
    )
    TOO_MANY_STREAMS = Text(
        ConfigurationError,
        "{batch} is of a new stream, and {streams} streams have been followed under this identity "
        "already. The decision log keeps the last batch of each, so that none is written twice. "
        "Nothing of this batch is visible.",
        "Give each job an eos.id of its own (.option('eos.id', '<job>')).",
        "streams",
    )
    TOPICS_GONE = Text(
        CommitFailedError,
        "topics {topics} were deleted, or deleted and created again, since the batch was planned, "
        "and rows of it with them. Nothing of the batch is visible.",
        "Start the query again: Spark replays the batch, and its rows are written to the topics "
        "that have these names then.",
        "topics",
    )
    OFFSETS_MISSING = Text(
        CommitFailedError,
        "Spark has not written the offsets of batch {number} within {seconds:.0f} s: there is no "
        "file {file}. Nothing of the batch is visible.",
        "Start the query again. If the file is missing again, make the checkpoint's file system "
        "answer, or remove asyncProgressTrackingEnabled.",
        "batch=number file",
    )
    OFFSETS_OF_ANOTHER_RUN = Text(
        SupersededError,
        "{file} was written by another run of the query, which has begun {batch}, too. Nothing of "
        "the batch of this run is visible.",
        "Let the other run go on. If it has ended, start this query again.",
        "batch=batch.batch file",
    )
    CLAIMED_TWICE = Text(
        CommitFailedError,
        "another run has claimed {subject} at the same time, under another identity: "
        "{other.names.group}. Nothing of this batch is visible.",
        "Make sure that only one of them runs, then start it again.",
        "query=other.names.query prefix=other.names.prefix",
    )
    NOT_OPEN = Text(
        CommitFailedError,
        "the prepared transaction {wanted.transactional_id} (producer id {wanted.producer_id}, "
        "epoch {wanted.epoch}) is no longer open: its coordinator says {state.status.value}, "
        "producer id {state.transaction.producer_id}, epoch {state.transaction.epoch}. It timed "
        "out or another attempt of the task took its id. Nothing of the batch is visible.",
        "Start the query again: Spark replays the batch. If batches take longer than the "
        "transaction timeout, make them smaller or raise eos.transaction.timeout.ms.",
    )
    TOO_LATE = Text(
        CommitFailedError,
        "the batch took {took_s:.0f} s, too close to the transaction timeout of {timeout_s:.0f} s "
        "to decide it safely. Nothing of it is visible.",
        "Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger) or raise "
        "eos.transaction.timeout.ms, then start the query again.",
        "left_ms",
    )
    LOST_SINCE = Text(
        UnfinishedError,
        "{decision.batch} is decided, but its partitions {partitions} were aborted since, by their "
        "timeout, by a late attempt of their tasks, or since a topic was deleted and made again.",
        "Start the query again: Spark replays the batch and these are written again.",
        "batch=decision.batch.batch partitions",
    )
    LOST_ELSEWHERE = Text(
        UnfinishedError,
        "{decision.batch} is decided. Its partitions {partitions} are lost, the others are "
        "visible, and the replay has its rows in other partitions.",
        "Start the query again: it reads back which rows are visible, and writes the others.",
        "batch=decision.batch.batch stream=decision.batch.stream partitions "
        "decided_partitions=decision.partitions replay_partitions",
    )
    HIDDEN = Text(
        UnfinishedError,
        "{decision.batch} is decided, and how {number} of its {prepared} transactions have ended "
        "could not be seen within {seconds:.0f} s: readers wait {waits}.",
        "Start the query again when that has ended: what was aborted is written again.",
        f"{_OF_UNFINISHED} waits_for",
    )
    UNFINISHED = Text(
        UnfinishedError,
        "{decision.batch} is decided, but {number} of its {prepared} transactions could not be "
        "finished within {seconds:.0f} s: {transactions_some}. Their rows become visible when they "
        "are.",
        "Check the brokers and the topic __transaction_state, then start the query again: the "
        "batch is finished before anything else.",
        _OF_UNFINISHED,
    )
    STILL_OPEN = Text(
        OutcomeUnknownError,
        "{number} transactions of batches that were given up are still open, and block readers "
        "until they time out: {transactions_some}.",
        "Check the brokers and the topic __transaction_state, then start the query again: its "
        "start aborts them.",
    )
    PENDING_OFFSETS = Text(
        OutcomeUnknownError,
        "group {names.group} has pending offsets: a transaction of the query is still open and "
        "could not be ended.",
        "Check the brokers and the topic __transaction_state, then start the query again.",
    )
    UNREADABLE_TOPIC = Text(
        ClusterError,
        "topic {topic}, in which a part of a decided batch is visible, could not be read back "
        "within {seconds:.0f} s: {unread}. Nothing was written.",
        "Start the query again when the topic can be read, with a larger eos.step.timeout.ms if it "
        "is long.",
        "topic",
    )
    KEYED_DEAD_LETTERS = Text(
        ClusterError,
        "topic {topic!r}, which option eos.dead.letter.topic names, is compacted: it refuses rows "
        "without a key, and deletes rows.",
        "Set its cleanup.policy to delete, or name another topic. Nothing was written.",
        "topic",
    )
    NO_DESTINATION = Text(
        ClusterError,
        "{kafka_error}: topic {topic!r}, which option eos.destinations declares, does not exist.",
        _CREATE_DESTINATION,
        "kafka_error topic",
    )
    NO_PARTITION = Text(
        ClusterError,
        "{kafka_error}: topic {topic!r} has {number} partitions, and option eos.destinations "
        "declares {first} to {last}.",
        _CREATE_DESTINATION,
        "kafka_error topic",
    )
    TOO_FEW_COPIES = Text(
        ClusterError,
        "topic {topic!r} has {copies} copies, fewer than its min.insync.replicas={needed}: it "
        "takes no row with acks=all.",
        "Lower min.insync.replicas or add replicas (kafka-reassign-partitions). Nothing was "
        "written.",
        _OF_COPIES,
    )
    TOO_FEW_IN_SYNC = Text(
        ClusterError,
        "topic {topic!r} has only {copies} copies in sync in partition {partitions_some}, and "
        "min.insync.replicas={needed}: it takes no row with acks=all.",
        "Bring the missing brokers back, then start the query again. Nothing was written.",
        _OF_COPIES,
    )
    IS_A_LOG = Text(
        ConfigurationError,
        "topic {topic!r} is the decision log of queries that have their own eos.log.topic: a row "
        "in it would stop them.",
        "Write to another topic. Nothing of the batch is visible.",
        "topic",
    )
    NO_MARKERS = Text(
        OutcomeUnknownError,
        "{became} But it still has to write that to {partitions_some}, and takes no other "
        "transaction of {names.driver} until then: no batch can be decided or given up.",
        "Check the brokers and the topic __transaction_state. Then start the query again: it "
        "finishes what was decided and aborts the rest.",
        "partitions status",
    )
    OLD_COORDINATOR = Text(
        OutcomeUnknownError,
        "no transaction coordinator tells which producer id and epoch {driver} was given.",
        "Look for a broker that is cut off from the others, and stop it; then start the query "
        "again.",
    )
    NO_LEADER = Text(
        OutcomeUnknownError,
        "{became} But it still has to write that to {partitions_some}, which has no leader, and "
        "takes no other transaction of {names.driver} until then: no batch can be decided or given "
        "up.",
        "Start a broker that has a copy of it (kafka-topics.sh --describe "
        "--unavailable-partitions). Then start the query again: it finishes what was decided and "
        "aborts the rest.",
        "partitions status",
    )
    LOG_NOT_SEEN = Text(
        OutcomeUnknownError,
        "partition {home.partition} of the decision log {home.topic} has no leader that answers, "
        "or the query's last record is still being committed there.",
        "Start the partition's brokers, then start the query again.",
    )
    LOG_SILENT = Text(
        OutcomeUnknownError,
        "the decision log did not answer within {seconds:.0f} s: {error}",
        _READS_BACK,
    )
    NO_ANSWER = Text(
        OutcomeUnknownError,
        "the commit of the record had no answer, and it may be written: {what}",
        _READS_BACK,
    )
    LOG_LONGER = Text(
        OutcomeUnknownError,
        "the decision log has records behind the end that it reported, {reached}.",
        _READS_BACK,
    )
    LOG_REFUSES = Text(
        ClusterError,
        "the decision log refuses the record: {error}",
        "Raise max.message.bytes of the decision log's topic, or use fewer partitions a batch.",
    )
    LOG_REFUSES_TIME = Text(
        ClusterError,
        "the decision log {log} refuses the record, whose time is that of the driver's machine: "
        "its clock and the brokers' are too far apart (message.timestamp.after.max.ms, "
        "message.timestamp.before.max.ms of the topic). {error}",
        "Correct the clock that is wrong, or let the log take any time, as one that the sink "
        "creates does, then start the query again:\nkafka-configs --bootstrap-server HOST:PORT "
        "--alter --entity-type topics --entity-name {log} --add-config "
        "message.timestamp.type=LogAppendTime",
    )
    NOT_NOTED = Text(
        OutcomeUnknownError,
        "the start of the query could not be noted in the decision log: {error}. Nothing was "
        "written.",
        "Start the query again.",
    )
    BEGINS_ELSEWHERE = Text(
        OperatorNeededError,
        "{batch} of {checkpoint} begins at other source offsets than those where {last} has ended, "
        "and would {effects}: {pairs}. Nothing of it is visible.",
        "{restart}",
        _OF_PAIRS,
    )
    BATCHES_LEFT_OUT = Text(
        OperatorNeededError,
        _LEFT_OUT,
        "{restart} The batches are read again, and what the function writes elsewhere is written "
        "again.",
        _OF_PAIRS,
    )
    BATCHES_LEFT_OUT_OF_STATE = Text(
        OperatorNeededError,
        _LEFT_OUT,
        "Restore the checkpoint as it was after {last}, and start the query again.",
        _OF_PAIRS,
    )
    POSITION_UNKNOWN = Text(
        OperatorNeededError,
        "{begins_new}, and where the query stands in its source only its old checkpoint knows, "
        "since {stale_since} without eos.source.group.id. With that one, the next batch makes it "
        "known.",
        f"{_LOOK_FOR_ROWS}, accept them with {{offsets}} --use group, and start the query again.",
        _OF_STREAM,
    )
    POSITION_OF_OLD_TOPIC = Text(
        OperatorNeededError,
        "the query cannot go on where its checkpoint stands: {gone}. The decision log does not "
        "know where it stands, since {stale_since} without eos.source.group.id. Nothing was "
        "written.",
        f"{_LOOK_FOR_ROWS}, and accept them with {{offsets}} --use group. {{anew}}",
        "places",
    )
    LOST_STATE = Text(
        OperatorNeededError,
        "{begins_new}, but that of {last} has state. Rows that wait in it (aggregates, joins, "
        "watermarks) were read and are in no topic yet; a new checkpoint would lose them.",
        _OLD_CHECKPOINT,
        _OF_STREAM,
    )
    OTHER_SOURCES = Text(
        OperatorNeededError,
        "{begins_new}, and {last} had rows of other sources than the Kafka topics whose offsets "
        "the decision log has ({topics_some}). A new checkpoint would read the others from "
        "elsewhere.",
        _OLD_CHECKPOINT,
        _OF_STREAM,
    )
    GROUP_DIFFERS = Text(
        OperatorNeededError,
        "the query stands at other offsets than group {group} has (decision log and group): "
        "{pairs}. They were reset, have expired, or another program has committed them. Nothing "
        "was written.",
        "Run {offsets} --use record, which commits the log's offsets to the group, and start the "
        "query again: no row is repeated or skipped.",
        "group stands committed",
    )
    FOREIGN_GROUP = Text(
        ConfigurationError,
        "the query has committed nothing to group {group} yet, but the group has offsets, and the "
        "query begins elsewhere (query and group): {pairs}. Nothing was written.",
        "Name another group with eos.source.group.id, and start the query again.",
        "group committed",
    )
    HALF_VISIBLE = Text(
        OperatorNeededError,
        "partitions {partitions} ({missing} rows) of {decision.batch} were aborted after their "
        "decision, and its other rows are visible. A new checkpoint would repeat the ones or skip "
        "the others.",
        "Start the query with its old checkpoint: it writes these rows again. To give them up on "
        "purpose: {resolve} --accept",
        "batch=decision.batch.batch partitions rows=missing",
    )
    GROUP_IN_USE = Text(
        ClusterError,
        "group {group}, which option eos.source.group.id names, has members ({members_some}): the "
        "query would overwrite the offsets that they read from. Nothing was written.",
        "Name a group that no consumer joins.",
        "group members",
    )
    OTHER_CLUSTER = Text(
        ConfigurationError,
        "the source's offsets (checkpoint {location}) do not fit the cluster that the sink writes "
        "to: {gone}. They can only be committed with the rows if the source is on the same "
        "cluster. Nothing was written.",
        "Leave eos.source.group.id out.",
        "places",
    )
    ROWS_GONE = Text(
        OperatorNeededError,
        "the query cannot go on where it stands in its source: {gone}. Rows that it had not read "
        "there are lost. Nothing was written.",
        "Run {offsets} --drop {gone_topics}: the query goes on at the first row that is there. "
        "{restart}",
        "places",
    )
    ROWS_GONE_UNDER_STATE = Text(
        OperatorNeededError,
        "the query cannot go on where it stands in its source: {gone}. Rows that it had not read "
        "there are lost, and the state of its checkpoint with them, since a new one has to begin "
        "behind them. Nothing was written.",
        "Run {offsets} --drop {gone_topics} --give-up-state: the query goes on at the first row "
        "that is there. {anew}",
        "places",
    )
    ROWS_CUT = Text(
        OperatorNeededError,
        "the query cannot go on where it stands in its source: {gone}. The log was cut off there, "
        "and nothing tells which of its rows are new. Nothing was written.",
        f"{_LOOK_FOR_ROWS}, and accept them with {{offsets}} --use group. {{restart}}",
        "places",
    )
    ROWS_GONE_BEFORE_GROUP = Text(
        OperatorNeededError,
        "the query cannot begin where group {group} is: {gone}. Rows that were not read there are "
        "lost. Nothing was written.",
        "Run kafka-consumer-groups --bootstrap-server HOST:PORT --group {group_quoted} "
        "{gone_partitions} --reset-offsets --to-earliest --execute, and start the query again: it "
        "begins at the first row that is there.",
        "places",
    )
    REPLAYED_ELSEWHERE = Text(
        OperatorNeededError,
        "{batch} is decided, and Spark repeats it with other source offsets (decided and now): "
        "{pairs}. The checkpoint is an older copy, whose batch was made again. Going on would lose "
        "rows.",
        "{restart}",
        "batch=batch.batch stream=batch.stream",
    )
    BEGUN_ELSEWHERE = Text(
        OperatorNeededError,
        "the decision log does not know who has begun {batch}: {location} has its offsets and no "
        "commit, and the batches before were finished by another sink, or under another eos.id or "
        "way of writing. Its rows may be in the topic, in whole or in part. Nothing of it was "
        "written now.",
        "Start the query as it was when it finished the batch before, with the same sink, options "
        f"and way of writing, until it has finished this one and is idle. Then, as now, {_START}",
        _OF_BEGUN,
        Action.LOOK,
    )
    BEGUN_BEFORE = Text(
        OperatorNeededError,
        "{batch}, the first one of {location}, was begun by a start that the decision log does not "
        "know: by another sink, or by a program that has not called eos_sink.starting_offsets "
        "before, or failed soon. This sink has written nothing of it.",
        "If another sink has begun it, start the query with that one, until it has finished the "
        "batch and is idle. If not: {restart} The batch is read again, from the same offsets on.",
        _OF_BEGUN,
        Action.LOOK,
    )
    FIRST_OF_OLD_TOPIC = Text(
        OperatorNeededError,
        "topic {topics_some} of the source was deleted and created again since the query was "
        "started, and {batch}, the first one of {location}, may have the former one's offsets and "
        "rows. Nothing was written.",
        "{restart}",
        "batch=batch.batch stream=batch.stream topics",
    )
    OTHER_CHECKPOINT = Text(
        ConfigurationError,
        _UNREADABLE,
        "Give the sink the checkpointLocation of this very query, within foreachBatch as an option "
        "of the writer, and start the query again.",
    )
    NO_CHECKPOINT = Text(
        ConfigurationError,
        _UNREADABLE,
        "Give the sink the checkpointLocation of this very query, with its scheme (hdfs://, "
        f"s3a://, file://), and {_START}",
    )
    DAMAGED_CHECKPOINT = Text(ConfigurationError, _UNREADABLE, "{restart}")
    # Columns and rows.
    NO_VALUE = Text(
        ConfigurationError,
        "required column 'value' is missing; the query has {columns}. Nothing was written.",
        "Select it, for example: {meant} AS value. Names are case-sensitive.",
        "condition",
    )
    NO_TOPIC = Text(
        ConfigurationError,
        "there is neither option topic nor a column 'topic'. Nothing was written.",
        "Set .option('topic', '<name>') or select a column 'topic'.",
        "condition",
    )
    COLUMN_TYPE = Text(
        ConfigurationError,
        "column '{name}' has type {given}; allowed: {allowed}. Nothing was written.",
        "Cast it: CAST({name} AS {wanted}) AS {name}.",
        "condition",
    )
    NO_TIMESTAMP = Text(
        ConfigurationError,
        f"option eos.timestamp.column names {{column!r}}, which is none of {{columns}}. {_NOTHING}",
        "Select that column, or correct or remove the option.",
    )
    NULL_TOPIC = Text(
        ConfigurationError,
        f"[{{condition}}] a row has null in column 'topic' and option topic is not set. {_NOTHING}",
        _GIVE_TOPIC,
        "condition",
    )
    WRONG_TOPIC = Text(
        ConfigurationError,
        "a row has {shown} in column 'topic', which cannot be the name of a topic that "
        f"applications write. {_NOTHING}",
        _GIVE_TOPIC,
        "topic",
    )
    ROW_FOR_LOG = Text(
        ConfigurationError,
        "a row has {topic!r} in column 'topic', the decision log, where the sink keeps its "
        f"decisions. {_NOTHING}",
        _GIVE_TOPIC,
        "topic",
    )
    NEGATIVE_PARTITION = Text(
        ConfigurationError,
        f"a row has {{partition}} in column 'partition'. {_NOTHING}",
        "Partitions count from 0; null leaves the choice to the key.",
        "partition",
    )
    EARLY_TIME = Text(
        ConfigurationError,
        "a row has a time before 1970-01-01 00:00:00.001 UTC in column {name!r}, which option "
        f"eos.timestamp.column names: a Kafka record cannot have it. {_NOTHING}",
        "Filter such rows or make it null, which means now.",
        "milliseconds",
    )
    WRONG_HEADER = Text(
        ConfigurationError,
        "a row has a header without a key in column 'headers', or with a key that is not UTF-8 or "
        f"has a zero character in it, where librdkafka would cut it off. {_NOTHING}",
        "Give each header a key of text.",
    )
    LETTER_ABOVE_QUEUE = Text(
        ProduceFailedError,
        "a row that Kafka would refuse has {bytes} bytes, and the client has room for {limit} at a "
        f"time. {_NOTHING}",
        "Set kafka.buffer.memory to {needed} or more, then start the query again: Spark replays "
        "the batch.",
        "kind bytes limit",
        Action.FIX,
    )
    LETTER_TOO_LARGE = Text(
        ProduceFailedError,
        "a row that Kafka would refuse has {bytes} bytes, more than the dead letter topic {topic} "
        f"takes ({{limit}}). {_NOTHING}",
        "Raise max.message.bytes of that topic (kafka-configs --bootstrap-server HOST:PORT --alter "
        "--entity-type topics --entity-name {topic} --add-config max.message.bytes={needed}), then "
        "start the query again: Spark replays the batch.",
        "kind bytes limit",
        Action.FIX,
    )
    TWIN_FIELDS = Text(
        ConfigurationError,
        "column '{column}' has a struct with two fields {twin!r}, which Spark cannot hand to a "
        "data source in Python, whether it is written or not. Nothing was written.",
        "Select only the columns that the sink writes (value, key, topic, headers, partition) "
        "before writeStream or write.",
        "column",
    )
    # The Spark session, and how the sink is called.
    THREADS_NOT_PINNED = Text(
        ConfigurationError,
        "PYSPARK_PIN_THREAD is not true, so a write inside foreachBatch does not see its query and "
        "would write a repeated batch again. Nothing was written.",
        "Unset it before Spark starts, or give the write txnAppId and txnVersion.",
    )
    MISSING_LIBRARY = Text(
        ConfigurationError,
        "the Python that Spark's workers run, {python}, {problem}. Nothing was written.",
        "Install eos-sink for it with its libraries (pip install --upgrade eos-sink), or set "
        "PYSPARK_PYTHON to the Python that has them.",
    )
    ONLY_WRITES = Text(
        ConfigurationError,
        "kafka-eos writes to Kafka and does not read.",
        "Read with Spark's own source, format('kafka'), and its option "
        "kafka.isolation.level=read_committed.",
    )
    NO_OVERWRITE = Text(
        ConfigurationError,
        "mode('overwrite') would have to delete what is in the topic, which this sink never does. "
        "Nothing was written or deleted.",
        "Use mode('append').",
    )
    NO_PYTHON_SOURCES = Text(
        ConfigurationError,
        'Spark {version} cannot know format("kafka-eos"): data sources in Python came with Spark '
        "4.0.",
        "Write with df.writeStream.foreachBatch(eos_sink.foreach_batch(options)), and a batch with "
        "eos_sink.write(df, options). Both apply the session's defaults without a call of "
        "register.",
    )
    NO_DEFAULTS = Text(
        ConfigurationError,
        "Spark {version} has found kafka-eos by its name and does not take it again with defaults, "
        "so {prefix}* cannot be applied.",
        "Give them as options of each query, and do not call register. Spark 4.2 applies them.",
    )
    DEFAULT_TWICE = Text(
        ConfigurationError,
        "{setting} is set twice, with two values: its name is case-insensitive. Nothing was "
        "written.",
        "Set it once.",
    )
    DEFAULTS_NOT_APPLIED = Text(
        ConfigurationError,
        "the session sets {ignored}, which this query was started without. Nothing was written.",
        "Call eos_sink.register(spark) after they are set and before the query starts: Spark "
        "passes no settings to a data source in Python.",
    )
    SPECULATION = Text(
        ConfigurationError,
        "spark.speculation is on: a second attempt of a task would abort what the first one has "
        "written. Nothing was written.",
        "Start the session with spark.speculation=false.",
    )
    NO_QUERY_OF_SOURCE = Text(
        ConfigurationError,
        "option eos.source.group.id is for the batches of a streaming query, and this write is of "
        "none. Nothing was written.",
        "Remove it.",
    )
    NO_EOS_ID = Text(
        ConfigurationError,
        "option eos.id is missing: the checkpoint location does not reach foreachBatch, and "
        "without a name a restart could not be distinguished from another query. Nothing was "
        "written.",
        "Set it to a name that stays the same across restarts and is unique on the cluster; each "
        "further write of the same batch needs one of its own.",
    )
    WRITE_ID_IN_QUERY = Text(
        ConfigurationError,
        "option eos.write.id is for writes outside of a query, and this one is of a batch of "
        "foreachBatch, which has its number. Nothing was written.",
        "Remove it.",
    )
    NUMBERED_TWICE = Text(
        ConfigurationError,
        "options txnAppId, txnVersion and eos.write.id are for eos_sink.write; Spark numbers the "
        "batches of a query. Nothing was written.",
        "Remove them.",
    )
    QUERY_NOT_SEEN = Text(
        ConfigurationError,
        "the function of eos_sink.foreach_batch does not see which query runs it: it was called in "
        "a thread of its own, or PYSPARK_PIN_THREAD is not true. Nothing was written.",
        "Pass it to foreachBatch, or call it in the thread of your own function there, and leave "
        "PYSPARK_PIN_THREAD at its default, true.",
    )
    NO_CONNECT = Text(
        ConfigurationError,
        "eos_sink.foreach_batch and eos_sink.write do not work with Spark Connect. Nothing was "
        "written.",
        "Write with format('kafka-eos') there (Spark 4.0 and newer), or use a classic session.",
    )
    JOB_GROUP = Text(
        ConfigurationError,
        "the job group was changed inside foreachBatch, to {run!r}: Spark's own, the run id of the "
        f"query, tells a repeated batch from another frame of the same batch. {_NOTHING}",
        "Remove setJobGroup, or give the write txnAppId and txnVersion.",
    )
    NO_MICRO_BATCH = Text(
        ConfigurationError,
        "{what}. Nothing was written.",
        "Write with df.writeStream and a micro-batch trigger (processingTime, availableNow): "
        "continuous and real-time mode have no batches to commit.",
    )
    UNREPORTED = Text(
        EosSinkError,
        f"Spark commits a batch with {{missing_reports}} tasks unreported. {_NOTHING}",
        "Start the query again: Spark replays the batch.",
    )
    # The checkpoint, and starting_offsets.
    NO_KAFKA_SOURCE = Text(
        ConfigurationError,
        "{file} has offsets of {sources} sources, none of a Kafka source{selected}. Nothing was "
        "written.",
        "Correct option subscribe, subscribePattern or assign of the sink, or leave out the option "
        "eos.source.group.id.",
        "file",
    )
    UNKNOWN_LOCATION = Text(
        ConfigurationError,
        "the checkpoint {location} cannot be read: this sink knows local paths, {schemes}. Nothing "
        "was written.",
        "Move the checkpoint to one of them, or leave out the option eos.source.group.id.",
    )
    UNREADABLE_FILE = Text(
        ClusterError,
        "{file} cannot be read: {why}. Nothing was written.",
        "Python processes on the driver's host read it as their own user, with the credentials of "
        "their environment, not with Hadoop's: give them access.",
        "file",
    )
    DAMAGED_FILE = Text(
        ClusterError,
        "{file} is damaged or cut short: {why}. Nothing was written.",
        "Restore the file from its original, and start the query again.",
        "file",
    )
    UNKNOWN_FORMAT = Text(
        ConfigurationError,
        "{file} has format {format!r}; known are {formats}. Nothing was written.",
        "Use a version of Spark that this version of eos-sink supports, or leave out the option "
        "eos.source.group.id.",
        "file",
    )
    READ_TWICE = Text(
        ConfigurationError,
        "two sources of the query read {topic}[{partition}] ({file}), so it has two positions "
        "there, and a consumer group can hold one. Nothing was written.",
        "Read the topic with one source and use its DataFrame twice, or leave out option "
        "eos.source.group.id.",
        "file topic partition",
    )
    WRONG_DEFAULT = Text(
        ConfigurationError, "default is {default!r}, none of {defaults}.", "Correct it."
    )
    NO_SOURCE_GROUP = Text(
        ConfigurationError,
        "option eos.source.group.id is missing: without it the decision log does not know the "
        "source's offsets.",
        "Give starting_offsets the options of the sink and of the source.",
    )
    NO_SOURCE_TOPIC = Text(
        ConfigurationError,
        "the options name no topic of the source that exists and that this principal may describe, "
        "and the decision log knows none.",
        "Give starting_offsets the source's option subscribe, subscribePattern or assign.",
    )
    SOURCE_TOPIC_MISSING = Text(
        ClusterError,
        "topic {topic}, which the source's options name, does not exist. Nothing was written.",
        "Create it, or take it out of the option.",
        "topic",
    )


def stop(text: Text, /, **facts: Any) -> EosSinkError:
    """The error of a rule, which names no query: the edge adds `names` and `log`."""
    known = _Facts(facts)
    message = text.message.format_map(known)
    names = facts.get("names")
    start = f"Query {names.query}: " if names else ""
    error = text.error(
        f"{start}{message}" if start else f"{message[0].upper()}{message[1:]}",
        remedy=text.remedy.format_map(known),
        data=dict(known.data(text.data)),
        action=text.action,
    )
    error.stop = text, facts
    return error


@contextmanager
def named(names: QueryNames, log: str, **known: Any) -> Iterator[None]:
    """The edge: errors name the query, and its commands.

    Args:
        known: what else texts need: `source`, its `SourceOptions`; and `write`, the batch of a
            batch write, or None in its plan, before anything of it is written.
    """
    try:
        yield
    except EosSinkError as error:
        if error.stop is not None:
            text, facts = error.stop
            whole = stop(text, **{"names": names, "log": log, **known, **facts})
            vars(error).update(vars(whole))
            error.args = whole.args
        if "write" in known:
            _tell_writer(error, known["write"])
        raise


def _tell_writer(error: EosSinkError, batch: Any) -> None:
    """The classes speak of queries, which Spark starts again. A write is run by its user, again
    under its number after any error."""
    if isinstance(error, ConfigurationError) or (batch and batch.numbering.is_by_spark):
        return  # Nothing of it is decided, and the remedy is whole; or a query's it is.
    is_once = batch is not None and batch.numbering.name == "ONCE"
    EosSinkError.__init__(
        error,
        error.message,
        remedy=f"{error.remedy} {run_again(batch) if batch else _BEFORE_WRITE}",
        data={**error.data, "write_id": batch.batch} if is_once else error.data,
        action=error.action if error.action in _KEPT_ACTIONS else Action.RUN_AGAIN,
    )


def run_again(batch: Any) -> str:
    """Say how the rows of a decided batch are finished; a write that was not decided is written."""
    if batch.numbering.name == "ONCE":
        how = f'with .option("eos.write.id", "{batch.batch}")'
    elif batch.numbering.name == "VERSION":
        how = f"under txnVersion {batch.batch}"
    else:
        return "Start the query with that stream's checkpoint, so that Spark replays the batch."
    return f"Run the write again {how} and the same rows: none is lost or written twice."


def as_json(offsets: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition, as Spark writes them."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def command(what: str, names: QueryNames, log: str, *options: str) -> str:
    """A command of eos-sink about a query.

    Args:
        options: quoted.
    """
    words = [sink_command(what, names.query, "--bootstrap-server", "HOST:PORT")]
    if log != DEFAULT_LOG:
        words.append(f"--log-topic {quote(log)}")
    if names.prefix != DEFAULT_PREFIX:
        words.append(f"--prefix {quote(names.prefix)}")
    return " ".join([*words, *options])


class _Facts(dict[str, Any]):
    """The facts of a stop, and what follows from them."""

    def __missing__(self, name: str) -> Any:
        if name.endswith("_some"):
            every = list(self[name.removesuffix("_some")])
            return ", ".join(map(str, every[:_SOME])) + (" ..." if len(every) > _SOME else "")
        return _DERIVED[name](self)

    def data(self, spec: str) -> Iterator[tuple[str, Any]]:
        for each in spec.split():
            name, _, path = each.partition("=")
            value = self.find(path or name.rstrip("?"))
            if value is not None or not name.endswith("?"):
                yield name.rstrip("?"), value

    def find(self, path: str) -> Any:
        """A fact, or an attribute of one; None: it has none."""
        name, *attributes = path.split(".")
        value = self.get(name) if name not in _DERIVED else self[name]
        for attribute in attributes:
            value = getattr(value, attribute, None)
        return value


def _lost_partitions(facts: _Facts) -> list[int]:
    decision = facts["decision"]
    return sorted(facts.get("lost", decision.digests if decision else ()))


def _opening(facts: _Facts) -> str:
    if "planned" in facts:
        return (
            "the decision log is at seq {seq} while this batch was planned from seq {planned}, so "
            "none of this run's rows of the batch is visible.".format_map(facts)
        )
    group = facts["names"].group
    return f"a newer driver has joined group {group}, so this run may write nothing any more."


def _former_start(facts: _Facts) -> str:
    """Say how a query was started under a former identity: its way of writing, and its names."""
    group, run = facts["former"].group, facts["record"].run
    origin = run.origin if run else Origin()
    given = group if origin == Origin() else f"{origin} ({group})"
    inside = facts["decided"].numbering.name == "FOREACH"
    return f"{'within foreachBatch' if inside else 'with writeStream.format'}, {given}"


def _effects(facts: _Facts) -> str:
    """Say what a batch does that begins elsewhere than the one before has ended."""
    moved = [begins - stands for stands, begins in facts["wrong"].values()]
    repeated, skipped = -sum(n for n in moved if n < 0), sum(n for n in moved if n > 0)
    effects = (f"repeat {repeated} rows", repeated), (f"skip {skipped} rows", skipped)
    return " and ".join(text for text, rows in effects if rows)


def _begins_new(facts: _Facts) -> str:
    batch = facts["batch"]
    if batch is None:
        return "a new checkpoint begins"
    return f"{batch} is of a new checkpoint, and nothing of it is visible"


def _last(facts: _Facts) -> str:
    batch = facts["known"].batch
    return str(batch) if batch.batch >= 0 else f"the start of stream {batch.stream}"


def _restart(facts: _Facts) -> str:
    """How a checkpoint is replaced that does not fit. Spark ignores startingOffsets once it has its
    first batch; and only a newer copy has the state of a stream."""
    known, batch = facts["known"], facts["batch"]
    if known and batch and known.batch.stream == batch.stream and known.needs_checkpoint:
        return "Restore the newest copy of the checkpoint, and start the query again."
    return _anew(facts)


def _anew(facts: _Facts) -> str:
    """Say how the query begins a new checkpoint."""
    if facts["location"] is None:
        return f"{_START[0].upper()}{_START[1:]}"
    return (
        "Delete the checkpoint directory {location}, which keeps where it began, and "
        f"{_START}".format_map(facts)
    )


def _show(places: Mapping[Place, Any]) -> str:
    shown = [f"{topic}[{number}] {text}" for (topic, number), text in sorted(places.items())]
    more = f" and {len(shown) - _SOME} more" if len(shown) > _SOME else ""
    return f"{'; '.join(shown[:_SOME])}{more}"


def _pick(side: int) -> Callable[[_Facts], dict[str, dict[str, int]]]:
    """One side of the pairs of offsets, as far as it is there."""
    return lambda facts: as_json(
        {place: pair[side] for place, pair in facts["wrong"].items() if pair[side] is not None}
    )


_DERIVED: dict[str, Callable[[_Facts], Any]] = {
    "decision": lambda _: None,
    # Until the edge has added the query's.
    "names": lambda _: QueryNames(DEFAULT_PREFIX, "QUERY"),
    "log": lambda _: DEFAULT_LOG,
    "partitions": _lost_partitions,
    "rows": lambda facts: facts.find("decision.total.rows"),
    "number": lambda facts: len(facts["transactions"]),
    "prepared": lambda facts: len(facts["decision"].prepared),
    "opening": _opening,
    "this_run": lambda facts: f" This one is {facts['mine']}." if facts["mine"] else "",
    "rival": lambda facts: f": {facts['theirs']}" if facts["theirs"] else "",
    "missing": lambda facts: facts["decision"].count_rows(facts["lost"]),
    "resolve": lambda facts: command("resolve", facts["names"], facts["log"]),
    "run_again": lambda facts: run_again(facts["decision"].batch),
    "same_rows": lambda facts: _SAME_ROWS[facts["decision"].batch.numbering.name],
    "start": lambda facts: (
        "Run the write again"
        if facts["decision"].batch.numbering.is_of_write
        else "Start the query"
    ),
    "was": _former_start,
    # Of the source's offsets.
    "source": lambda _: None,
    "group": lambda facts: facts.find("source.group") or "GROUP",
    "location": lambda facts: facts["source"] and shown_location(facts["source"].checkpoint),
    "batch": lambda _: None,
    "known": lambda _: None,
    "effects": _effects,
    "begins_new": _begins_new,
    "last": _last,
    "restart": _restart,
    "anew": _anew,
    "stale_since": lambda facts: (
        f"a batch was decided after {facts['last']}"
        if facts["known"]
        else "its last batch was decided"
    ),
    "checkpoint": lambda facts: (
        "the checkpoint"
        if facts["known"].batch.stream == facts["batch"].stream
        else "a new checkpoint"
    ),
    "offsets": lambda facts: command(
        "offsets", facts["names"], facts["log"], "--group", quote(facts["group"])
    ),
    "pairs": lambda facts: _show(
        {at: f"{a} and {'none' if b is None else b}" for at, (a, b) in facts["wrong"].items()}
    ),
    "stands": _pick(0),
    "begins": _pick(1),
    "committed": _pick(1),
    "topics": lambda facts: sorted({topic for topic, _ in facts["known"].end}),
    "gone": lambda facts: _show(facts["places_gone"]),
    "places": lambda facts: {f"{t}[{p}]": why for (t, p), why in facts["places_gone"].items()},
    "gone_topics": lambda facts: quote(",".join(sorted({t for t, _ in facts["places_gone"]}))),
    "gone_partitions": lambda facts: " ".join(
        f"--topic {quote(topic)}:{','.join(str(number) for _, number in places)}"
        for topic, places in groupby(sorted(facts["places_gone"]), itemgetter(0))
    ),
    "group_quoted": lambda facts: quote(facts["group"]),
}
