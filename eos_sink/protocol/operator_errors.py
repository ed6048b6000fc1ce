"""Errors that need an operator's choice: one function for each doubt.

Each error has batch, partitions and rows as far as they are known, in its text and in its data, and
names the command that shows the evidence and carries out the choice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from eos_sink.errors import Action, OperatorNeededError
from eos_sink.identity import DEFAULT_LOG, DEFAULT_PREFIX, Origin, QueryNames
from eos_sink.protocol.model import BatchId, Decision, Entry, LogRecord, Numbering, RowDigest
from eos_sink.protocol.values import Position
from eos_sink.shell import quote, sink_command

VISIBLE, LOST, ACCEPT, FORGET = "--visible", "--lost", "--accept", "--forget"
STREAM = "--stream"

_INPUT = (
    "Restore the checkpoint and the input that the batch was made from (a checkpoint restored from "
    "an older copy reads a larger range; a non-deterministic query gives other rows at each run)."
)
_SAME_ROWS = {
    Numbering.STREAM: _INPUT,
    Numbering.FOREACH: f"{_INPUT} If foreachBatch writes several frames to one topic, leave the "
    "first as it is and give each further one an eos.id of its own.",
    Numbering.VERSION: "Write the rows that this version had before, or new ones under a higher "
    "txnVersion, and each frame under a txnAppId of its own (a non-deterministic frame has other "
    "rows each time).",
    Numbering.ONCE: "Write the rows that this write had before, or new ones without eos.write.id "
    "(a non-deterministic frame has other rows each time).",
}
_SETTINGS = (
    "spark.sql.shuffle.partitions (after a shuffle), the number of cores or local[N] and "
    "spark.default.parallelism, spark.sql.adaptive.enabled=false if partitions were not adapted "
    "then (Spark 4.1 and newer adapt those of a stream without state), "
    "spark.sql.files.maxPartitionBytes (files), minPartitions (Kafka)"
)
_SHOWN_IDS = 5


def run_again(batch: BatchId) -> str:
    """How the rows of a decided batch are finished; a write that was not decided is written."""
    if batch.numbering is Numbering.ONCE:
        how = f'with .option("eos.write.id", "{batch.batch}")'
    elif batch.numbering is Numbering.VERSION:
        how = f"under txnVersion {batch.batch}"
    else:
        return "Start the query with that stream's checkpoint, so that Spark replays the batch."
    return f"Run the write again {how} and the same rows: none is lost or written twice."


def resolve_command(names: QueryNames, log: str, choice: str = "") -> str:
    """The command that shows the evidence; with a choice, it carries the choice out."""
    return _command(["resolve", names.query], names, log, "", [choice] if choice else [])


def offsets_command(names: QueryNames, log: str, group: str, choice: str) -> str:
    """The command that changes where a query stands in its source.

    Args:
        group: the query's, which the decision log may not know yet.
    """
    options = ["--group", quote(group), choice]
    return _command(["offsets", names.query], names, log, "", options)


def _command(
    what: Sequence[object], names: QueryNames, log: str, stream: str, options: Sequence[str] = ()
) -> str:
    words = [sink_command(*what, "--bootstrap-server", "HOST:PORT")]
    if log != DEFAULT_LOG:
        words.append(f"--log-topic {quote(log)}")
    if names.prefix != DEFAULT_PREFIX:
        words.append(f"--prefix {quote(names.prefix)}")
    words += options
    if stream:
        words.append(f"{STREAM} {quote(stream)}")
    return " ".join(words)


def in_doubt(
    names: QueryNames,
    log: str,
    decision: Decision,
    doubtful: Collection[int],
    made_again: Collection[str] = (),
) -> OperatorNeededError:
    """Neither coordinator nor topic knows any more what became of these partitions.

    Args:
        made_again: topics that were deleted and created again since.
    """
    partitions = sorted(doubtful)
    entries = [entry for entry in decision.prepared if entry.partition in doubtful]
    rows = decision.count_rows(doubtful)
    places = ", ".join(str(entry.witness) for entry in entries)
    why = "deleted or compacted"
    if made_again:
        why = f"deleted and created again since: {', '.join(sorted(made_again))}"
    topics = {entry.witness.topic for entry in entries}
    letters = {each.partition for each in decision.dead_letters} & {*doubtful}
    remedy = ""
    if topics <= {*made_again} and decision.route.topic and not letters:
        # All of their rows were in the topic that is gone.
        remedy = (
            "None of these rows is in the topic that is there now. To write them there: "
            f"{resolve_command(names, log, LOST)}, then start the query again."
        )
    return _needed(
        f"Query {names.query}: {decision.batch} was decided, but for its partitions {partitions} "
        f"({rows} rows) neither the transaction coordinator nor the topic knows any more whether "
        f"they were committed: their records at {places} cannot be read ({why}).",
        remedy
        or f"In doubt: {resolve_command(names, log)} shows what is left; add {VISIBLE} if the rows "
        f"are or were there (they are not written again) or {LOST} if they never were (the replay "
        "writes them again).",
        decision.batch.batch,
        partitions,
        rows,
    )


def old_checkpoint(
    names: QueryNames, log: str, batch: BatchId, decision: Decision
) -> OperatorNeededError:
    """Spark runs a batch of the same stream that is older than the decided one."""
    partitions = _partitions(decision)
    return _needed(
        f"Query {names.query}: Spark runs {batch}, but batch {decision.batch.batch} of the same "
        f"stream (partitions {partitions}, {decision.total.rows} rows) is decided in Kafka "
        "already, so an old copy of the checkpoint is in use. Rows would be written twice.",
        "Restore the newest copy of the checkpoint. To write what Spark runs now on purpose: "
        f"{resolve_command(names, log, FORGET)}",
        batch.batch,
        partitions,
        decision.total.rows,
        decided=decision.batch.batch,
    )


def moved_checkpoint(
    names: QueryNames, batch: BatchId, former: QueryNames, record: LogRecord, decided: BatchId
) -> OperatorNeededError:
    """The stream was written under another identity, up to this batch or further.

    Args:
        record: the latest one of the former identity.
        decided: the stream's last batch there.
    """
    was = former_start(former, record, decided)
    remedy = (
        f"Start the query once as it was then: {was}. It finishes its batch. Change it after that."
        if not record.has_retired(decided.stream)
        else f"Start the query with a new checkpoint that begins behind batch {decided.batch}: all "
        "rows up to there are visible."
    )
    return _needed(
        f"Query {names.query}: Spark runs {batch}, but {decided} was decided under another "
        f"identity, {was}. The batch's partitions and rows would be written twice. Nothing of it "
        "is visible here.",
        remedy,
        batch.batch,
        stream=batch.stream,
        query=former.query,
        prefix=former.prefix,
    )


def former_start(former: QueryNames, record: LogRecord, decided: BatchId) -> str:
    """How a query was started under a former identity: its way of writing, and its names."""
    origin = record.run.origin if record.run else Origin()
    given = former.group if origin == Origin() else f"{origin} ({former.group})"
    inside = decided.numbering is Numbering.FOREACH
    return f"{'within foreachBatch' if inside else 'with writeStream.format'}, {given}"


def unrepaired(
    names: QueryNames, log: str, batch: BatchId, decision: Decision, lost: frozenset[int]
) -> OperatorNeededError:
    """Decided partitions were lost, and Spark does not replay their batch."""
    partitions = sorted(lost)
    rows = decision.count_rows(lost)
    return _needed(
        f"Query {names.query}: Spark runs {batch}, but partitions {partitions} ({rows} rows) of "
        f"{decision.batch} were aborted after their decision and only a replay of that batch can "
        "write them again.",
        f"{run_again(decision.batch)} To give these rows up on purpose: "
        f"{resolve_command(names, log, ACCEPT)}",
        decision.batch.batch,
        partitions,
        rows,
    )


def other_rows(
    names: QueryNames, log: str, decision: Decision, difference: str, partitions: list[int]
) -> OperatorNeededError:
    """Spark replays the decided batch with other rows."""
    return _needed(
        f"Query {names.query}: {decision.batch} is decided, and Spark replays it with other rows: "
        f"{difference} (partitions {partitions}). Going on would lose or double rows.",
        f"{_SAME_ROWS[decision.batch.numbering]} Otherwise {resolve_command(names, log)} shows "
        f"what is in Kafka; add {ACCEPT} to keep that (rows that only the replay has are not "
        f"written) or {FORGET} to write the replay too (rows that both have are there twice).",
        decision.batch.batch,
        partitions,
        decision.total.rows,
    )


def needs_partitions(  # noqa: PLR0913, PLR0917
    names: QueryNames,
    log: str,
    decision: Decision,
    lost: frozenset[int],
    why: str,
    replay_partitions: int | None = None,
) -> OperatorNeededError:
    """A part of the decision is lost, and only its partitions tell which rows that are.

    Args:
        why: it cannot be told which rows are visible.
        replay_partitions: how many the replay has.
    """
    partitions, missing = sorted(lost), decision.count_rows(lost)
    old = f"{_old_settings(decision)} Only if they cannot be had: "
    if decision.completed:
        old = ""
    return _needed(
        f"Query {names.query}: {decision.batch} is decided. Its partitions {partitions} ({missing} "
        f"of its {decision.total.rows} rows) are lost, the others are visible, and the replay is "
        f"not written: it has the rows in other partitions, and {why}. Nothing of it becomes "
        "visible.",
        f"{old}{resolve_command(names, log)} shows what is in Kafka; add {ACCEPT} to keep that "
        f"(the {missing} rows are not written) or {FORGET} to write the whole replay (rows that "
        "are visible are there twice).",
        decision.batch.batch,
        partitions,
        decision.total.rows,
        action=Action.RESOLVE if decision.completed else Action.FIX,
        decided_partitions=decision.partitions,
        replay_partitions=replay_partitions,
    )


def _old_settings(decision: Decision) -> str:
    is_of_write = decision.batch.numbering.is_of_write
    again = "Run the write again" if is_of_write else "Start the query"
    return (
        f"{again} with the settings that it had when the batch was decided: {_SETTINGS}. With the "
        f"{decision.partitions} partitions of the decision exactly the lost rows are written "
        "again, which loses and doubles nothing, and the batches after it may have any settings."
    )


def compare_rows(replay: RowDigest, decided: RowDigest) -> str:
    return (
        f"the replay has {replay.rows} rows and {replay.bytes} bytes (fingerprint "
        f"{replay.fingerprint:016x}), the decision {decided.rows} rows and {decided.bytes} bytes "
        f"(fingerprint {decided.fingerprint:016x})"
    )


def no_record(
    names: QueryNames, log: str, ids: Sequence[str], partitions: list[int]
) -> OperatorNeededError:
    """The log has no record of a query whose transactions were committed before."""
    shown = ", ".join(ids[:_SHOWN_IDS]) + (" ..." if len(ids) > _SHOWN_IDS else "")
    # Rows that the driver has written leave no id but its own.
    written = f" (tasks have written partitions {partitions})" if partitions else ""
    return _needed(
        f"Query {names.query}: the decision log {log} has no record of it, but transactions of it "
        f"were committed before: {shown}. So there was a record: the topic was deleted or emptied, "
        "or the query wrote to another log. Which batch was decided last, and with how many rows, "
        f"is not known any more{written}; it could be written twice. Nothing was changed.",
        "Set eos.log.topic to the topic that the query used before, or restore that topic. To "
        "start without it (a batch that Spark replays is written, even if it is there already): "
        f"{resolve_command(names, log, FORGET)}",
        partitions=partitions,
        log=log,
        transactions=list(ids),
    )


def went_back(names: QueryNames, seq: int, position: Position, now: Entry) -> OperatorNeededError:
    """The log no longer has what this run read there: seq `seq` at `position`."""
    found = f"is at seq {now.seq}, offset {now.position.offset}" if now.seq else "has no record"
    decision = now.decision
    return _needed(
        f"Query {names.query}: the decision log {position.topic}[{position.partition}] {found}, "
        f"but this run has read seq {seq} at offset {position.offset}: records were lost, or the "
        "topic was deleted and created again. Which batch, partitions and rows were decided last "
        "is not certain any more; they could be written twice.",
        "Restore the topic, and make sure that it is compacted and never deleted. If it has the "
        "latest decision all the same, start the query again. "
        f"{resolve_command(names, position.topic)} shows what it has; add {FORGET} to go on "
        "without it.",
        decision.batch.batch if decision else None,
        _partitions(decision) if decision else [],
        decision.total.rows if decision else None,
        known=seq,
        seq=now.seq,
    )


def unreadable_record(where: str, error: Exception) -> OperatorNeededError:
    """The log's record is of an unknown format."""
    return _needed(
        f"This version cannot read the decision log's record at {where}: {error!r}. Its batch, "
        "partitions and rows are not known.",
        "Use the version of eos-sink that wrote it, or a newer one: this one's eos-sink resolve "
        "cannot read it either. If another program writes to this topic, stop it and restore the "
        "record.",
        action=Action.FIX,
    )


def _needed(  # noqa: PLR0913
    message: str,
    remedy: str,
    batch: int | None = None,
    partitions: Sequence[int] = (),
    rows: int | None = None,
    *,
    action: Action | None = None,
    **more: Any,
) -> OperatorNeededError:
    data = {"batch": batch, "partitions": list(partitions), "rows": rows, **more}
    return OperatorNeededError(message, remedy=remedy, data=data, action=action)


def _partitions(decision: Decision) -> list[int]:
    return sorted(decision.digests)
