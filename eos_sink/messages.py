"""What stops a query, and what its user does then: one row for each reason.

Rules raise `stop(reason, facts)`. The edge (`named`) knows the query's names and log, and gives the
error its whole text. `docs/errors.md` shows this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

from eos_sink.errors import Action, EosSinkError, OperatorNeededError, OutcomeUnknownError
from eos_sink.identity import DEFAULT_LOG, DEFAULT_PREFIX, Origin, QueryNames
from eos_sink.shell import quote, sink_command

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
    "Copy its rows: kafka-console-consumer.sh --bootstrap-server HOST:PORT --topic {hanging.topic} "
    "--partition {hanging.partition} --offset {hanging.start} shows them. Abort it: "
    "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic {hanging.topic} --partition "
    "{hanging.partition} --start-offset {hanging.start}. "
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


class Text(NamedTuple):
    """A row.

    Attributes:
        error: the class.
        message: what has happened and what it means for the data, with facts in braces.
        remedy: one action.
        data: the facts for programs; `name=fact` under another name.
        action: the remedy for programs, where it is not the one of the class.
    """

    error: type[EosSinkError]
    message: str
    remedy: str
    data: str = ""
    action: Action | None = None


class Reason(Enum):
    """Why a query stops."""

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
        "{partitions}, {rows} rows) is decided in Kafka already, so an old copy of the checkpoint "
        "is in use. Rows would be written twice.",
        "Restore the newest copy of the checkpoint. To write what Spark runs now on purpose: "
        "{resolve} --forget",
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
        "both have are there twice).",
        _OF_DECISION,
    )
    NEEDS_PARTITIONS = Text(
        OperatorNeededError,
        _LOST_PART,
        "{start} with the settings that it had when the batch was decided: "
        "spark.sql.shuffle.partitions (after a shuffle), the number of cores or local[N] and "
        "spark.default.parallelism, spark.sql.adaptive.enabled=false if partitions were not "
        "adapted then (Spark 4.1 and newer adapt those of a stream without state), "
        "spark.sql.files.maxPartitionBytes (files), minPartitions (Kafka). With the "
        "{decision.partitions} partitions of the decision exactly the lost rows are written again, "
        "which loses and doubles nothing, and the batches after it may have any settings. Only if "
        f"they cannot be had: {_CHOOSE_PART}",
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
        "Restore the topic, and make sure that it is compacted and never deleted. If it has the "
        "latest decision all the same, start the query again. {resolve} shows what it has; add "
        "--forget to go on without it.",
        f"{_OF_DECISION} known seq=entry.seq",
    )
    UNREADABLE_RECORD = Text(
        OperatorNeededError,
        "this version cannot read the decision log's record at {where}: {error!r}. Its batch, "
        "partitions and rows are not known.",
        "Use the version of eos-sink that wrote it, or a newer one: this one's eos-sink resolve "
        "cannot read it either. If another program writes to this topic, stop it and restore the "
        "record.",
        _OF_DECISION,
        Action.FIX,
    )
    HANGING = Text(
        OperatorNeededError,
        f"{_HANGS} Nothing was written.",
        f"{_END_HANGING}Write those of them again, with another producer, that are of a decided "
        "batch (eos-sink explain shows one) and not in the topic behind that offset. Then start "
        "the query again.",
        _OF_HANGING,
    )
    HANGING_REPEATED = Text(
        OperatorNeededError,
        f"{_HANGS} Its rows are of {{decision.batch}}. Nothing was written.",
        f"{_END_HANGING}Before that, see how it has ended in other partitions: {{resolve}} shows "
        "its marker (task {task.partition}). If the marker is committed, write the copied rows "
        "again with another producer, and add --accept to that command, since the replay would "
        "write all rows of the task. If it is not, write none: the replay writes them, or an error "
        "says to. Then start the query again.",
        _OF_HANGING,
    )
    HANGING_DECIDED = Text(
        OperatorNeededError,
        f"{_HANGS} Its rows are of {{decision.batch}}. Nothing was written.",
        f"{_END_HANGING}Write the rows again with another producer: they were decided, and no "
        "replay of their batch follows. Then start the query again.",
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
    MOVED_GROUP = Text(
        OperatorNeededError,
        "the query has written last under another identity, {was}, which has moved group {group}, "
        "and does not go on from there with its checkpoint; or another query uses its group. "
        "Nothing was written.",
        "Start the query as it was then: {was}.",
        "group query=former.query prefix=former.prefix",
    )


def stop(reason: Reason, /, **facts: Any) -> EosSinkError:
    """The error of a rule, which names no query: the edge adds `names` and `log`."""
    text, known = reason.value, _Facts(facts)
    message = text.message.format_map(known)
    names = facts.get("names")
    start = f"Query {names.query}: " if names else ""
    error = text.error(
        f"{start}{message}" if start else f"{message[0].upper()}{message[1:]}",
        remedy=text.remedy.format_map(known),
        data={
            name: known.find(path or name)
            for name, _, path in (each.partition("=") for each in text.data.split())
        },
        action=text.action,
    )
    error.stop = reason, facts
    return error


@contextmanager
def named(names: QueryNames, log: str) -> Iterator[None]:
    """The edge: errors name the query, and its commands."""
    try:
        yield
    except EosSinkError as error:
        if error.stop is not None:
            reason, facts = error.stop
            whole = stop(reason, **{"names": names, "log": log, **facts})
            vars(error).update(vars(whole))
            error.args = whole.args
        raise


def run_again(batch: Any) -> str:
    """How the rows of a decided batch are finished; a write that was not decided is written."""
    if batch.numbering.name == "ONCE":
        how = f'with .option("eos.write.id", "{batch.batch}")'
    elif batch.numbering.name == "VERSION":
        how = f"under txnVersion {batch.batch}"
    else:
        return "Start the query with that stream's checkpoint, so that Spark replays the batch."
    return f"Run the write again {how} and the same rows: none is lost or written twice."


def command(what: str, names: QueryNames | None, log: str, *options: str) -> str:
    """A command of eos-sink about a query.

    Args:
        options: quoted.
    """
    query = "QUERY" if names is None else names.query
    words = [sink_command(what, query, "--bootstrap-server", "HOST:PORT")]
    if log != DEFAULT_LOG:
        words.append(f"--log-topic {quote(log)}")
    if names is not None and names.prefix != DEFAULT_PREFIX:
        words.append(f"--prefix {quote(names.prefix)}")
    return " ".join([*words, *options])


class _Facts(dict[str, Any]):
    """What is known of a stop, and what follows from it."""

    def __missing__(self, name: str) -> Any:
        if name.endswith("_some"):
            every = list(self[name.removesuffix("_some")])
            return ", ".join(every[:_SOME]) + (" ..." if len(every) > _SOME else "")
        return _DERIVED[name](self)

    def find(self, path: str) -> Any:
        """A fact, or an attribute of one; None: it has none."""
        name, *attributes = path.split(".")
        value = self[name]
        for attribute in attributes:
            value = getattr(value, attribute, None)
        return value


def _lost_partitions(facts: _Facts) -> list[int]:
    decision = facts["decision"]
    return sorted(facts.get("lost", decision.digests if decision else ()))


def _former_start(facts: _Facts) -> str:
    """How a query was started under a former identity: its way of writing, and its names."""
    group, run = facts["former"].group, facts["record"].run
    origin = run.origin if run else Origin()
    given = group if origin == Origin() else f"{origin} ({group})"
    inside = facts["decided"].numbering.name == "FOREACH"
    return f"{'within foreachBatch' if inside else 'with writeStream.format'}, {given}"


_DERIVED: dict[str, Callable[[_Facts], Any]] = {
    "decision": lambda _: None,
    "names": lambda _: None,
    "log": lambda _: DEFAULT_LOG,
    "partitions": _lost_partitions,
    "rows": lambda facts: facts.find("decision.total.rows"),
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
}
