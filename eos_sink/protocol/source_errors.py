"""Errors about the source's offsets: where a query stands, and where a checkpoint begins.

Each remedy is one action with at most one command. Following it repeats and skips no row, unless
it says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from eos_sink.errors import Action, ClusterError, ConfigurationError, OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.messages import command
from eos_sink.protocol.model import BatchId, Decision, SourcePosition
from eos_sink.protocol.values import Offsets, Place
from eos_sink.shell import quote

USE_GROUP, USE_RECORD = "--use group", "--use record"

_SHOWN = 5
_START = "start the query with startingOffsets=eos_sink.starting_offsets(options)"


@dataclass(frozen=True)
class Reading:
    """What an error names of a query that reads a source.

    Attributes:
        names: of the query.
        log: the decision log's topic.
        group: the one that the query names.
        location: of a checkpoint that has begun, without secrets; None: there is none yet.
    """

    names: QueryNames
    log: str
    group: str
    location: str | None = None

    @property
    def title(self) -> str:
        return f"Query {self.names.query}"

    @property
    def restart(self) -> str:
        """Begin where the log says. Spark ignores startingOffsets once a checkpoint has its first
        batch."""
        if self.location is None:
            return _START
        return (
            f"delete the checkpoint directory {self.location}, which keeps where it began, and "
            f"{_START}"
        )

    def command(self, choice: str) -> str:
        return command("offsets", self.names, self.log, "--group", quote(self.group), choice)

    def continue_or_restart(self, known: SourcePosition) -> str:
        """With an old checkpoint that does not fit. Only a newer copy has its state."""
        if known.stateful or known.others:
            return "Restore the newest copy of the checkpoint, and start the query again."
        return f"{_capital(self.restart)}."


def begins_elsewhere(
    query: Reading,
    batch: BatchId,
    known: SourcePosition,
    wrong: Mapping[Place, tuple[int, int]],
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
    return OperatorNeededError(
        f"{query.title}: {batch} of {what} begins at other source offsets than those where "
        f"{_last(known)} has ended, and would {' and '.join(effects)}: "
        f"{_show_both(wrong)}. Nothing of it is visible.",
        remedy=f"{_capital(query.restart)}." if new else query.continue_or_restart(known),
        data=_data_of_both(batch, known, wrong),
    )


def batches_left_out(
    query: Reading,
    batch: BatchId,
    known: SourcePosition,
    wrong: Mapping[Place, tuple[int, int]],
) -> OperatorNeededError:
    """Batches before this one were not decided, and Spark has gone on: the function of foreachBatch
    has not written them, or has caught the error of the sink.

    Args:
        wrong: of each partition the offset that the query stands at, and the one it begins at.
    """
    return OperatorNeededError(
        f"{query.title}: the last decided batch is {_last(known)}, and {batch} follows, at "
        f"other source offsets (decided end and begin): {_show_both(wrong)}. The sink has written "
        "no row of what is between: the function of foreachBatch has left these batches out, or "
        "has caught the error of the sink. Nothing of this batch is visible.",
        remedy="Let the function write the frame in each batch, at least frame.limit(0), and raise "
        f"the errors of the sink. Then {query.restart}: the batches are read again, and what the "
        "function writes elsewhere is written again.",
        data=_data_of_both(batch, known, wrong),
    )


def unknown_position(
    query: Reading, batch: BatchId | None, known: SourcePosition | None
) -> OperatorNeededError:
    """A new checkpoint begins, and batches were decided without the source's offsets."""
    why = (
        "its last batch was decided without eos.source.group.id"
        if known is None
        else f"a batch was decided after {_last(known)} without eos.source.group.id"
    )
    return OperatorNeededError(
        f"{query.title}: {_begins(batch)}, and where the query stands in its source only its old "
        f"checkpoint knows, since {why}. With that one, the next batch makes it known.",
        remedy=f"Set the offsets of group {query.group} to the first rows that are not in the "
        "topic (kafka-consumer-groups --reset-offsets), accept them with "
        f"{query.command(USE_GROUP)}, and {query.restart}.",
        data={"stream": batch.stream if batch else None},
    )


def lost_state(query: Reading, batch: BatchId | None, known: SourcePosition) -> OperatorNeededError:
    """The old checkpoint has state; rows that wait there are read, and not visible."""
    return OperatorNeededError(
        f"{query.title}: {_begins(batch)}, but that of {_last(known)} has state. Rows that "
        "wait in it (aggregates, joins, watermarks) were read and are in no topic yet; a new "
        "checkpoint would lose them, which option eos.source.discard.state=true allows.",
        remedy="Continue with the old checkpoint.",
        data={"stream": batch.stream if batch else None},
    )


def other_sources(
    query: Reading, batch: BatchId | None, known: SourcePosition
) -> OperatorNeededError:
    """Where the query stands in its other sources, only the old checkpoint knows."""
    return OperatorNeededError(
        f"{query.title}: {_begins(batch)}, and {_last(known)} had rows of other sources "
        "than the Kafka topics whose offsets the decision log has "
        f"({', '.join(sorted({topic for topic, _ in known.end}))}). A new checkpoint would read "
        "the others from elsewhere, which option eos.source.discard.state=true allows.",
        remedy="Continue with the old checkpoint. Topics of this cluster that the sink's option "
        "subscribe names, too, are in the log after one batch with it.",
        data={"stream": batch.stream if batch else None},
    )


def group_differs(query: Reading, known: SourcePosition, committed: Offsets) -> OperatorNeededError:
    """The group's offsets are not those of the decision log: reset, expired, or someone else's."""
    stands, places = known.end, known.differs(committed)
    shown = _show({p: f"{stands[p]} and {committed.get(p, 'none')}" for p in places})
    return OperatorNeededError(
        f"{query.title} stands at other offsets than group {query.group} has (decision log and "
        f"group): {shown}. They were reset, have expired, or another program has committed them. "
        "Nothing was written.",
        remedy=f"Run {query.command(USE_RECORD)}: it commits the log's offsets to the group, and "
        f"no row is repeated or skipped. Then {query.restart}.",
        data={
            "group": query.group,
            "stands": as_json({place: stands[place] for place in places}),
            "committed": as_json({p: committed[p] for p in places if p in committed}),
        },
    )


def foreign_group(query: Reading, start: Offsets, committed: Offsets) -> ConfigurationError:
    """The log knows no position, and the group has offsets of another program."""
    wrong = {p: (committed[p], at) for p, at in start.items() if committed.get(p, at) != at}
    return ConfigurationError(
        f"{query.title} has committed nothing to group {query.group} yet, but the group has "
        f"offsets, and the query begins elsewhere (group and query): {_show_both(wrong)}. Nothing "
        "was written.",
        remedy="Name another group with eos.source.group.id, and start the query again.",
        data={"group": query.group, "committed": as_json({p: committed[p] for p in wrong})},
    )


def half_visible(query: Reading, decision: Decision, lost: Collection[int]) -> OperatorNeededError:
    """Only the checkpoint that a decided batch was made with can write its lost rows."""
    partitions = sorted(lost)
    rows = decision.count_rows(lost)
    return OperatorNeededError(
        f"{query.title}: partitions {partitions} ({rows} rows) of {decision.batch} were "
        "aborted after their decision, and its other rows are visible. A new checkpoint would "
        "repeat the ones or skip the others.",
        remedy="Start the query with its old checkpoint: it writes these rows again. If that is "
        f"lost, {command('resolve', query.names, query.log, '--accept')} gives these rows up.",
        data={"batch": decision.batch.batch, "partitions": partitions, "rows": rows},
    )


def group_in_use(query: Reading, members: Collection[str]) -> ClusterError:
    """Consumers are members of the group that the query commits to."""
    return ClusterError(
        f"Group {query.group}, which option eos.source.group.id names, has members "
        f"({', '.join(sorted(members)[:_SHOWN])}{_more(members)}): {query.title} would "
        "overwrite the offsets that they read from. Nothing was written.",
        remedy="Name a group that no consumer joins.",
        data={"group": query.group, "members": sorted(members)},
    )


def not_on_this_cluster(query: Reading, wrong: Mapping[Place, str]) -> ConfigurationError:
    """The source's partitions are not those of the sink's cluster."""
    where = f" (checkpoint {query.location})" if query.location else ""
    return ConfigurationError(
        f"{query.title}{where}: the source's offsets do not fit the cluster that the sink "
        f"writes to: {_show(wrong)}. The source's offsets can only be committed with the "
        "rows if it is on the same cluster. Nothing was written.",
        remedy="Leave eos.source.group.id out.",
        data={"places": {_name(place): why for place, why in wrong.items()}},
    )


def cannot_continue(query: Reading, wrong: Mapping[Place, str]) -> OperatorNeededError:
    """The rows that the query has to go on with are no longer there.

    Args:
        wrong: what each of the partitions has instead.
    """
    topics = ",".join(sorted({topic for topic, _ in wrong}))
    return OperatorNeededError(
        f"{query.title} cannot go on where it stands in its source: {_show(wrong)}. Rows that it "
        "had not read there are lost. Nothing was written.",
        remedy=f"Run {query.command(f'--drop {quote(topics)}')}: the query goes on at the first "
        f"row that is there. Then {query.restart}.",
        data={"places": {_name(place): why for place, why in wrong.items()}},
    )


def rows_before_group_are_gone(query: Reading, wrong: Mapping[Place, str]) -> OperatorNeededError:
    """The group's offsets, at which the query is to begin, are not those of rows."""
    topics = ",".join(f"{topic}:{partition}" for topic, partition in sorted(wrong))
    return OperatorNeededError(
        f"{query.title} cannot begin where group {query.group} is: {_show(wrong)}. Rows that were "
        "not read there are lost. Nothing was written.",
        remedy=f"Run kafka-consumer-groups --bootstrap-server HOST:PORT --group "
        f"{quote(query.group)} --topic {quote(topics)} --reset-offsets --to-earliest --execute, "
        "and start the query again: it begins at the first row that is there.",
        data={"places": {_name(place): why for place, why in wrong.items()}},
    )


def replayed_elsewhere(
    query: Reading, batch: BatchId, known: SourcePosition, end: Offsets
) -> OperatorNeededError:
    """A decided batch is repeated with other source offsets."""
    wrong = {p: (known.end.get(p, 0), end[p]) for p in end if known.end.get(p) != end[p]}
    return OperatorNeededError(
        f"{query.title}: {batch} is decided, and Spark repeats it with other source offsets "
        f"(decided and now): {_show_both(wrong)}. The checkpoint is an older copy, whose batch "
        "was made again. Going on would lose rows.",
        remedy=query.continue_or_restart(known),
        data={"batch": batch.batch, "stream": batch.stream},
    )


def unfinished_elsewhere(query: Reading, batch: BatchId, begins: Offsets) -> OperatorNeededError:
    """Another sink has begun this batch, and may have written it.

    Args:
        begins: the offsets before the batch, as far as the checkpoint shows them.
    """
    return OperatorNeededError(
        f"{query.title}: the decision log does not know who has begun {batch}: {query.location} "
        "has its offsets and no commit, and has batches that another sink has finished. Its rows "
        "may be in the topic, in whole or in part. Nothing of it was written by this sink.",
        remedy="Start the query with the sink that has finished the batches before, let it finish "
        "this one, and stop it while it is idle; then start it with this sink and "
        "startingOffsets=eos_sink.starting_offsets(options).",
        data={"batch": batch.batch, "stream": batch.stream, "begins": as_json(begins)},
        action=Action.LOOK,
    )


def begun_before(query: Reading, batch: BatchId, begins: Offsets) -> OperatorNeededError:
    """The first batch of a checkpoint was begun before starting_offsets was called.

    Args:
        begins: the offsets before the batch, as far as the checkpoint shows them.
    """
    where = _show({place: str(offset) for place, offset in begins.items()})
    return OperatorNeededError(
        f"{query.title}: {batch}, the first one of {query.location}, was begun by a start that "
        "the decision log does not know: its program has not called eos_sink.starting_offsets "
        "before, or failed soon. This sink has written nothing of it.",
        remedy=f"{_capital(query.restart)}: the batch is read again"
        + (f", from the same offsets on ({where})." if where else "."),
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


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _count(wrong: Mapping[Place, tuple[int, int]]) -> int:
    return sum(abs(a - b) for a, b in wrong.values())


def _more(every: Collection[object]) -> str:
    return f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""


def _name(place: Place) -> str:
    return f"{place[0]}[{place[1]}]"
