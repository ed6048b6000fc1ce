"""Shows where a query stands in its source, and carries out a choice between log and group.

A choice is written as every decision is: join the query's group, open the log, compare, write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from eos_sink.decision_log import LogEntry
from eos_sink.driver.evidence import ask_all
from eos_sink.driver.topics import read_bounds, read_logs
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.ops import RefusedChoice
from eos_sink.ops.operator_run import join_as_operator, read_again, read_log
from eos_sink.protocol.model import BatchId, Change, SourcePosition
from eos_sink.protocol.outcome import Outcome, evidence_in_log, outcome
from eos_sink.protocol.source_rules import returns_to_start
from eos_sink.protocol.values import Offsets, Place

TOOL = "eos-sink offsets"


class Use(Enum):
    """Whose offsets count from now on."""

    RECORD = "record"
    GROUP = "group"


@dataclass(frozen=True)
class Drop:
    """Give up rows.

    Attributes:
        topics: of what is gone there: deleted rows, partitions, or the topic itself.
        state: that wait in the state of the checkpoint; and the offsets of other sources.
    """

    topics: frozenset[str] = frozenset()
    state: bool = False


@dataclass(frozen=True)
class SourceState:
    """The offsets of one query's source, as the log and the group have them.

    Attributes:
        entry: the log's latest record.
        group: the consumer group.
        position: what a new checkpoint begins at; None: the log does not know it.
        committed: the group's offsets.
        ends: of the partitions' logs, as far as they exist.
    """

    entry: LogEntry
    group: str
    position: SourcePosition | None
    committed: Offsets
    ends: Mapping[Place, int]

    @property
    def differs(self) -> bool:
        """True if the group has other offsets than the log, so that a new checkpoint stops."""
        recorded = self.entry.record.source
        return recorded is not None and bool(recorded.differs(self.committed))

    @property
    def lag(self) -> int | None:
        """See `SourcePosition.lag`."""
        return self.position.lag(self.ends) if self.position else None


def read_source(
    kafka: Kafka, names: QueryNames, group: str | None, deadline: Deadline
) -> SourceState:
    """Read where a query stands. Changes nothing.

    Args:
        group: if the log does not know the query's.

    Raises:
        RefusedChoice: the log does not know the query, or no group is known.
    """
    entry = read_log(kafka, names, deadline)
    if entry is None or not entry.seq:
        raise RefusedChoice(f"The decision log has no record of {names.query}.")
    recorded = entry.record.source
    group = group or (recorded.group if recorded else None)
    if group is None:
        raise RefusedChoice(
            f"{names.query} has no batch with eos.source.group.id. Name the group with --group."
        )
    position, decision = recorded, entry.decision
    if decision is not None and recorded is not None:
        evidence = evidence_in_log(names, decision, settled=entry.record.settled)
        evidence = ask_all(kafka, evidence, deadline)
        lost = frozenset(e.entry.partition for e in evidence if outcome(e) is Outcome.LOST)
        position = returns_to_start(entry.record, lost) or recorded
    committed = kafka.group_offsets(group, deadline)
    places = {*(position.reached if position else ()), *committed}
    ends = {place: at[1] for place, at in read_bounds(kafka, places, deadline).items()}
    return SourceState(entry, group, position, committed, ends)


def choose(
    kafka: Kafka, names: QueryNames, state: SourceState, chosen: Use | Drop, deadline: Deadline
) -> LogEntry:
    """Write the chosen position to the log and the group; every older run is refused then.

    Raises:
        RefusedChoice: the choice does not fit, or the log has changed meanwhile.
    """
    if chosen is Use.GROUP:
        position = _of_group(names, state)
        logs = read_logs(kafka, position, deadline)
        there = {place: at for place, at in position.end.items() if place in logs.bounds}
        recorded = state.entry.record.source
        # Where the group has no offset the log's stays, which is of the topic as it was then.
        unchosen = logs.ids.keys() - {topic for topic, _ in state.committed}
        former = recorded.topics if recorded else {}
        ids = {**logs.ids, **{topic: former[topic] for topic in unchosen & former.keys()}}
        position = replace(position, start=there, end=there, topics=ids)
    else:
        position = _of_log(kafka, names, state, chosen, deadline)
    entry = read_again(kafka, names, state.entry.seq, deadline)
    with join_as_operator(kafka, names, entry, TOOL, deadline) as append:
        return append(Change(entry.decision, source=position))


def _of_log(
    kafka: Kafka,
    names: QueryNames,
    state: SourceState,
    chosen: Literal[Use.RECORD] | Drop,
    deadline: Deadline,
) -> SourcePosition:
    recorded = state.entry.record.source
    if recorded is None or recorded.stale:
        raise RefusedChoice(
            f"The log does not know where {names.query} stands: its last batch was decided "
            "without eos.source.group.id. Reset the offsets of the group, and use these."
        )
    logs = read_logs(kafka, recorded, deadline)
    drop = chosen if isinstance(chosen, Drop) else Drop()
    dropped = drop.topics
    if drop.state and not dropped and state.differs:
        raise RefusedChoice(
            f"Group {state.group} has other offsets than the log. First add --use record or --use "
            "group, without --give-up-state."
        )
    if drop.state and not recorded.needs_checkpoint:
        raise RefusedChoice(f"{names.query} has nothing that only its checkpoint has.")
    if cut := logs.find_cut(recorded, dropped):
        place, end = min(cut.items())
        raise RefusedChoice(
            f"{names.query} is at {recorded.reached[place]} in {place[0]}[{place[1]}], whose log "
            f"was cut off and ends at {end}: nothing tells which of its rows are new. Reset the "
            f"offsets of group {state.group} with kafka-consumer-groups --reset-offsets to where "
            "the query is to go on, and use --use group."
        )
    position = logs.drop_gone(recorded, dropped)
    if dropped and position == recorded:
        raise RefusedChoice(
            f"Nothing is gone where {names.query} stands in {', '.join(sorted(dropped))}: it goes "
            "on there."
        )
    # Kafka takes no offset of a partition that does not exist.
    missing = sorted({topic for topic, _ in position.end.keys() - logs.bounds.keys()})
    if missing:
        raise RefusedChoice(
            f"{names.query} stands in partitions that do not exist any more. Add --drop "
            f"{','.join(sorted({*missing, *dropped}))}, and leave out --use."
        )
    return replace(position, group=state.group, given_up=drop.state)


def _of_group(names: QueryNames, state: SourceState) -> SourcePosition:
    recorded = state.entry.record.source
    if not state.committed:
        raise RefusedChoice(
            f"Group {state.group} has no offsets. Set them with kafka-consumer-groups "
            "--reset-offsets first."
        )
    decision = state.entry.decision
    batch = recorded.batch if recorded else (decision.batch if decision else BatchId("", -1))
    ends, left = state.committed, {}
    if recorded is not None and recorded.stale:
        _check_complete(names, state, recorded)
    elif recorded is not None:
        # Of a partition that the group has no offset of, nothing else is chosen; and in topics
        # that the query does not read the group may be another query's.
        read = {topic for topic, _ in recorded.reached}
        ends = {**recorded.end, **{p: at for p, at in ends.items() if p[0] in read}}
        left = {place: offset for place, offset in recorded.left.items() if place not in ends}
    return SourcePosition(
        state.group,
        batch,
        ends,
        ends,
        left,
        stateful=recorded is not None and recorded.stateful,
        others=recorded is not None and recorded.others,
    )


def _check_complete(names: QueryNames, state: SourceState, recorded: SourcePosition) -> None:
    """The log does not know the position, so the group has to have all of it."""
    missing = recorded.end.keys() & state.ends.keys() - state.committed.keys()
    if missing:
        topic, partition = min(missing)
        raise RefusedChoice(
            f"Group {state.group} has no offset of {topic}[{partition}], and the log does not know "
            f"either where {names.query} stands there. Set the offsets of all partitions with "
            "kafka-consumer-groups --reset-offsets first."
        )
