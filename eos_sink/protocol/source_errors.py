"""Errors about the source's offsets: where a query stands, and where a checkpoint begins.

Following a remedy repeats and skips no row, unless it says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eos_sink.errors import Action, ClusterError, ConfigurationError, OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.protocol.model import BatchId, Decision, Numbering, SourcePosition
from eos_sink.protocol.operator_errors import ACCEPT, offsets_command, resolve_command
from eos_sink.protocol.values import Offsets, Place

USE_GROUP, USE_RECORD = "--use group", "--use record"

_SHOWN = 5
_START = "start the query with startingOffsets=eos_sink.starting_offsets(options)"
_RESET = "(kafka-consumer-groups --reset-offsets)"


def begins_elsewhere(  # noqa: PLR0913, PLR0917
    names: QueryNames,
    log: str,
    batch: BatchId,
    known: SourcePosition,
    wrong: Mapping[Place, tuple[int, int]],
    location: str | None,
    *,
    new: bool,
) -> OperatorNeededError:
    """The batch begins at other offsets than those that the last one has ended at.

    Args:
        wrong: of each partition the offset that the query stands at, and the one it begins at.
        new: the checkpoint is another one than that of the last batch.
    """
    repeated = {place: at for place, at in wrong.items() if at[1] < at[0]}
    skipped = {place: at for place, at in wrong.items() if at[1] > at[0]}
    effects = [
        *([f"repeat {_count(repeated)} rows"] if repeated else []),
        *([f"skip {_count(skipped)} rows"] if skipped else []),
    ]
    what = "a new checkpoint" if new else "the checkpoint"
    keep = ""
    if known.batch.batch < 0 and batch.numbering is Numbering.FOREACH:
        # The function of foreachBatch gives the directory, and the planner cannot check it.
        keep = (
            "If the sink was given the checkpointLocation of another query before, keep this one: "
            f"set the offsets of group {known.group} to where it begins {_RESET}, accept them "
            f"({offsets_command(names, log, USE_GROUP)}), and start the query again. Else "
        )
    return OperatorNeededError(
        f"Query {names.query}: {batch} of {what} begins at other source offsets than those where "
        f"{_last(known)} has ended, and would {' and '.join(effects)}: "
        f"{_show_both(wrong)}. Nothing of it is visible.",
        remedy=keep
        + ("" if new else "Restore the newest copy of the checkpoint. Or ")
        + f"{_without(location)}{_START}. To begin elsewhere on purpose, reset the offsets of "
        f"group {known.group} {_RESET} and accept them first: "
        f"{offsets_command(names, log, USE_GROUP)}",
        data=_data_of_both(batch, known, wrong),
    )


def batches_left_out(  # noqa: PLR0913, PLR0917
    names: QueryNames,
    log: str,
    batch: BatchId,
    known: SourcePosition,
    wrong: Mapping[Place, tuple[int, int]],
    location: str,
) -> OperatorNeededError:
    """Batches before this one were not decided, and Spark has gone on: the function of foreachBatch
    has not written them, or has caught the error of the sink.

    Args:
        wrong: of each partition the offset that the query stands at, and the one it begins at.
    """
    return OperatorNeededError(
        f"Query {names.query}: the last decided batch is {_last(known)}, and {batch} follows, at "
        f"other source offsets (decided end and begin): {_show_both(wrong)}. The sink has written "
        "no row of what is between. Nothing of this batch is visible.",
        remedy="If the function of foreachBatch catches errors, let it raise those of the sink; "
        f"{_without(location)}{_START}: the batches are read again, and what the function writes "
        "elsewhere is written again. If it has left these batches out on purpose, keep the "
        f"checkpoint: set the offsets of group {known.group} to where {batch} begins {_RESET}, "
        f"accept them ({offsets_command(names, log, USE_GROUP)}), start the query again, and let "
        "the function write each batch from now on, at least batch.limit(0).",
        data=_data_of_both(batch, known, wrong),
    )


def unknown_position(
    names: QueryNames,
    log: str,
    batch: BatchId | None,
    known: SourcePosition | None,
    location: str | None,
) -> OperatorNeededError:
    """A new checkpoint begins, and batches were decided without the source's offsets."""
    why = (
        "its last batch was decided without eos.source.group.id"
        if known is None
        else f"a batch was decided after {_last(known)} without eos.source.group.id"
    )
    return OperatorNeededError(
        f"Query {names.query}: {_begins(batch)}, and where the query stands in its source is not "
        f"known, since {why}.",
        remedy="If the old checkpoint still exists, continue with that for one batch: the position "
        "is known then. Else find out which rows are in the topic, "
        f"{_without(location)}set the offsets of the group to the first rows that are not "
        f"{_RESET}, accept them ({offsets_command(names, log, USE_GROUP)}), and {_START}.",
        data={"stream": batch.stream if batch else None},
    )


def lost_state(
    names: QueryNames, batch: BatchId | None, known: SourcePosition, location: str | None
) -> OperatorNeededError:
    """The old checkpoint has state; rows that wait there are read, and not visible."""
    return OperatorNeededError(
        f"Query {names.query}: {_begins(batch)}, but that of {_last(known)} has state. Rows that "
        "wait in it (aggregates, joins, watermarks) were read and are in no topic yet; a new "
        "checkpoint would lose them.",
        remedy="Continue with the old checkpoint. Or, to go on without its state, "
        f"{_without(location)}set the option eos.source.discard.state=true and {_START}.",
        data={"stream": batch.stream if batch else None},
    )


def other_sources(
    names: QueryNames, batch: BatchId | None, known: SourcePosition, location: str | None
) -> OperatorNeededError:
    """Where the query stands in its other sources, only the old checkpoint knows."""
    return OperatorNeededError(
        f"Query {names.query}: {_begins(batch)}, and {_last(known)} had rows of other sources "
        "than the Kafka topics whose offsets the decision log has "
        f"({', '.join(sorted({topic for topic, _ in known.end}))}). A new checkpoint would read "
        "the others from elsewhere.",
        remedy="Continue with the old checkpoint. If all of the others are Kafka topics of this "
        "cluster, name them in the sink's option subscribe as well: after one batch with the old "
        "checkpoint the log has their offsets, too. Or, if you make sure yourself that the others "
        f"begin where they have to, {_without(location)}set the option "
        f"eos.source.discard.state=true and {_START}.",
        data={"stream": batch.stream if batch else None},
    )


def group_differs(  # noqa: PLR0913, PLR0917
    names: QueryNames,
    log: str,
    group: str,
    known: SourcePosition,
    committed: Offsets,
    location: str | None,
) -> OperatorNeededError:
    """The group's offsets are not those of the decision log: reset, expired, or someone else's."""
    stands, places = known.end, known.differs(committed)
    shown = _show({p: f"{stands[p]} and {committed.get(p, 'none')}" for p in places})
    return OperatorNeededError(
        f"Query {names.query} stands at other offsets than group {group} has (decision log and "
        f"group): {shown}. They were reset, have expired, or another program has "
        "committed them. Nothing was written.",
        remedy=f"Choose: {offsets_command(names, log, USE_RECORD)} keeps what the log says, and "
        "commits it to the group: no row of this query is repeated or skipped. "
        f"{offsets_command(names, log, USE_GROUP)} begins where the group is: choose it if the "
        "query has written under another eos.id since, or within foreachBatch instead of by "
        "itself or the reverse, and has moved the group there; its rows would be repeated else. "
        f"Then {_without(location)}{_START}. With a topic that was deleted and created again, "
        "Kafka deletes the group's offsets in it, and those of the log are of no use: set them to "
        f"its first rows {_RESET}, and choose the group.",
        data={
            "group": group,
            "stands": as_json({place: stands[place] for place in places}),
            "committed": as_json({p: committed[p] for p in places if p in committed}),
        },
    )


def foreign_group(
    names: QueryNames, group: str, start: Offsets, committed: Offsets, location: str | None
) -> ConfigurationError:
    """The log knows no position, and the group has offsets of another program.

    Args:
        location: of a new checkpoint; None: the query has batches already, and its checkpoint or
            the log knows where it stands.
    """
    wrong = {p: (committed[p], at) for p, at in start.items() if committed.get(p, at) != at}
    return ConfigurationError(
        f"Query {names.query} has committed nothing to group {group} yet, but the group has "
        f"offsets, and the query begins elsewhere (group and query): {_show_both(wrong)}. "
        "Nothing was written.",
        remedy="Name another group with eos.source.group.id. Or, "
        + (
            "if no other program needs these offsets, delete the group (kafka-consumer-groups "
            "--delete), and start the query again as it is, with the checkpoint that it has."
            if location is None
            else f"to begin where the group is, {_without(location)}start the query with "
            "startingOffsets=eos_sink.starting_offsets(options, default='committed')."
        ),
        data={"group": group, "committed": as_json({p: committed[p] for p in wrong})},
    )


def half_visible(
    names: QueryNames, log: str, decision: Decision, lost: Collection[int]
) -> OperatorNeededError:
    """Only the checkpoint that a decided batch was made with can write its lost rows."""
    partitions = sorted(lost)
    rows = decision.count_rows(lost)
    return OperatorNeededError(
        f"Query {names.query}: partitions {partitions} ({rows} rows) of {decision.batch} were "
        "aborted after their decision, and its other rows are visible. A new checkpoint would "
        "repeat the ones or skip the others.",
        remedy="Start the query with its old checkpoint: it writes these rows again. To give them "
        f"up on purpose: {resolve_command(names, log, ACCEPT)}; a new checkpoint begins after "
        "them then.",
        data={"batch": decision.batch.batch, "partitions": partitions, "rows": rows},
    )


def group_in_use(names: QueryNames, group: str, members: Collection[str]) -> ClusterError:
    """Consumers are members of the group that the query commits to."""
    return ClusterError(
        f"Group {group}, which option eos.source.group.id names, has members "
        f"({', '.join(sorted(members)[:_SHOWN])}{_more(members)}): query {names.query} would "
        "overwrite the offsets that they read from. Nothing was written.",
        remedy="Name a group that no consumer joins, or stop these consumers.",
        data={"group": group, "members": sorted(members)},
    )


def not_on_this_cluster(
    names: QueryNames, log: str, group: str, wrong: Mapping[Place, str], location: str | None
) -> ConfigurationError:
    """The source's partitions are not those of the sink's cluster, or not the former ones."""
    where = f" (checkpoint {location})" if location else ""
    return ConfigurationError(
        f"Query {names.query}{where}: the source's offsets do not fit the cluster that the sink "
        f"writes to: {_show(wrong)}. The source's offsets can only be committed with the "
        "rows if it is on the same cluster. Nothing was written.",
        remedy="Leave eos.source.group.id out if the source is on another cluster. If a topic was "
        f"deleted and created again, {_without(location)}set the offsets of group {group} in it to "
        f"its first rows {_RESET}, and in topics that the group has no offsets of, to where the "
        "query stands; accept them, if the query has written with this sink before "
        f"({offsets_command(names, log, USE_GROUP)}); and start the query with "
        "startingOffsets=eos_sink.starting_offsets(options, default='committed').",
        data={"places": {_name(place): why for place, why in wrong.items()}},
    )


def rows_are_gone(
    names: QueryNames, log: str, wrong: Mapping[Place, tuple[int, int]], location: str | None
) -> OperatorNeededError:
    """The position lies before the first row that a partition still has."""
    shown = _show({place: f"{at}, first row {first}" for place, (at, first) in wrong.items()})
    return OperatorNeededError(
        f"Query {names.query} has to go on at offsets that its source no longer has: "
        f"{shown}. {_count(wrong)} rows were "
        "deleted before they were read. Nothing was written.",
        remedy=f"To go on without them, {_without(location)}set the offsets of the group to the "
        f"first rows {_RESET}, accept them ({offsets_command(names, log, USE_GROUP)}), and "
        f"{_START}.",
        data={"stands": as_json({place: at[0] for place, at in wrong.items()})},
    )


def replayed_elsewhere(
    names: QueryNames, batch: BatchId, known: SourcePosition, end: Offsets, location: str
) -> OperatorNeededError:
    """A decided batch is repeated with other source offsets."""
    wrong = {p: (known.end.get(p, 0), end[p]) for p in end if known.end.get(p) != end[p]}
    return OperatorNeededError(
        f"Query {names.query}: {batch} is decided, and Spark repeats it with other source offsets "
        f"(decided and now): {_show_both(wrong)}. The checkpoint is an older copy, whose batch "
        "was made again. Going on would lose rows.",
        remedy=f"Restore the newest copy of the checkpoint. Or {_without(location)}{_START}.",
        data={"batch": batch.batch, "stream": batch.stream},
    )


def unfinished_elsewhere(
    names: QueryNames, batch: BatchId, location: str, group: str, begins: Offsets
) -> OperatorNeededError:
    """Another sink has begun this batch, and may have written it.

    Args:
        begins: the offsets before the batch, as far as the checkpoint shows them.
    """
    accept = (
        f"{_RESET}, and start the query with "
        "startingOffsets=eos_sink.starting_offsets(options, default='committed')."
    )
    where = _show({place: str(offset) for place, offset in begins.items()})
    return OperatorNeededError(
        f"Query {names.query}: {batch} was begun before this start, by a sink that is not this "
        f"one: {location} has its offsets and no commit. Its rows may be in the topic, in whole or "
        "in part. Nothing of it was written by this sink.",
        remedy="If no other sink has ever written with this checkpoint, its rows are in no topic: "
        f"{_without(location)}start the query again; with default='latest' it would skip the rows "
        f"that have come since: set the offsets of group {group} to where the batch begins "
        f"({where or 'unknown'}) {accept} Else start the query once more with the sink that has "
        "begun the batch, let it finish it, and stop it while it is idle. Or find out which rows "
        f"are in the topic, {_without(location)}set the offsets of group {group} to the first "
        f"rows that are not {accept}",
        data={"batch": batch.batch, "stream": batch.stream, "begins": as_json(begins)},
        action=Action.LOOK,
    )


def as_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition, as Spark writes them."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def _data_of_both(
    batch: BatchId, known: SourcePosition, wrong: Mapping[Place, tuple[int, int]]
) -> dict[str, Any]:
    return {
        "batch": batch.batch,
        "stream": batch.stream,
        "group": known.group,
        "stands": as_json({place: at[0] for place, at in wrong.items()}),
        "begins": as_json({place: at[1] for place, at in wrong.items()}),
    }


def _show_both(wrong: Mapping[Place, tuple[int, int]]) -> str:
    return _show({place: f"{at[0]} and {at[1]}" for place, at in wrong.items()})


def _show(places: Mapping[Place, str]) -> str:
    shown = (f"{_name(place)} {text}" for place, text in sorted(places.items())[:_SHOWN])
    return f"{'; '.join(shown)}{_more(places)}"


def _begins(batch: BatchId | None) -> str:
    """None: before its first batch."""
    if batch is None:
        return "a new checkpoint begins"
    return f"{batch} is of a new checkpoint, and nothing of it is visible"


def _last(known: SourcePosition) -> str:
    batch = known.batch
    return str(batch) if batch.batch >= 0 else f"the start of stream {batch.stream}"


def _without(location: str | None) -> str:
    """Spark ignores startingOffsets once a checkpoint has its first batch."""
    if location is None:
        return ""
    return f"delete the checkpoint directory {location}, which keeps where it began, and "


def _count(wrong: Mapping[Place, tuple[int, int]]) -> int:
    return sum(abs(a - b) for a, b in wrong.values())


def _more(every: Collection[object]) -> str:
    return f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""


def _name(place: Place) -> str:
    return f"{place[0]}[{place[1]}]"
