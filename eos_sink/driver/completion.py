"""Complete a decided batch of which a part is lost, by a replay in other partitions.

The planner reads back the visible rows; tasks write the rows that are not among them. The digests
prove that nothing is lost or doubled. If it cannot be told which rows are visible, the record says
so, and the lost partitions have to be written as they were.

Each transaction has a producer id and an epoch of its own, the driver's too, and the record batches
of a topic carry both: so the rows of a decision are known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, PartitionTail
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Decision, RowDigest
from eos_sink.protocol.rules import Replay
from eos_sink.protocol.values import ProducerIdentity
from eos_sink.rows.fingerprint import Hashes, RowDigester
from eos_sink.rows.rows import Row, Rows

MOST_ROWS = 4_000_000
"""Visible rows of which each task gets the hashes, 32 MB."""
_TAIL, _WIDER = 10_000, 10
TWINS = (
    "a lost row has the same content as a visible one, so no task knows which of them it has to "
    "write"
)


class RefusedCompletion(Exception):
    """It cannot be told which rows are visible; the message says why."""


def check_completion(decision: Decision, lost: Collection[int]) -> None:
    """Check, by the decision alone, that its visible rows can be recognised.

    Raises:
        RefusedCompletion: they cannot.
    """
    letters = sorted({each.partition for each in decision.dead_letters} - {*lost})
    if letters:
        raise RefusedCompletion(
            f"rows of partitions {letters} are in the dead letter topic "
            f"{decision.dead_letter_topic}, where they are not what they were"
        )
    digests = decision.digests
    rows = sum(digests[each].rows for each in digests.keys() - lost)
    if rows > MOST_ROWS:
        raise RefusedCompletion(f"{rows} rows are visible, more than {MOST_ROWS}")


def read_back(kafka: Kafka, decision: Decision, lost: frozenset[int], deadline: Deadline) -> bytes:
    """Read the visible rows of a decision, whose transactions are known.

    Returns:
        Their hashes, sorted and each once, as eight bytes.

    Raises:
        RefusedCompletion: not all rows are there, or they do not have the decided content.
        ClusterError: topics cannot be read by the deadline.
    """
    check_completion(decision, lost)
    wanted = _visible(decision, lost)
    # Where dead letters are, no visible row of these partitions is.
    topics = sorted(decision.topics.keys() - {decision.route.dead_letters})
    varies, most = decision.route.topic is None, _TAIL
    while True:
        found = {each: _FoundRows(topic_varies=varies) for each in wanted}
        tails = _scan(kafka, topics, found, most, deadline)
        wrong = [
            partition
            for who, digests in wanted.items()
            if found[who].digest != RowDigest.total(digests.values())
            for partition in digests
        ]
        if not wrong:
            visible = [part for rows in found.values() for part in rows.hashes]
            return np.unique(np.concatenate(visible)).astype("<u8").tobytes()
        if all(tail.read_from == tail.start for tail in tails):
            partitions = sorted(wrong)
            raise RefusedCompletion(
                f"the rows of partitions {partitions} in {topics} are not those that were decided: "
                "retention or compaction has deleted some, or they had a column partition or "
                "eos.timestamp.column"
            )
        most *= _WIDER


def refuse(
    decision: Decision, lost: frozenset[int], replay: Replay, partitions: int
) -> tuple[Decision | None, EosSinkError]:
    """Refuse a replay that has not written the lost rows.

    Args:
        replay: in other partitions, or with twins.
        partitions: how many the replay has.

    Returns:
        The decision that the next plan has to have, None: as it is; and the error.
    """
    if replay is Replay.TWINS:
        again = None if decision.completed else by_partition(decision, TWINS)
        return again, not_told(decision, lost, TWINS, partitions)
    why = decision.by_partition
    if not why:
        try:
            check_completion(decision, lost)
        except RefusedCompletion as refused:
            why = str(refused)
    if why:
        return None, not_told(decision, lost, why, partitions)
    error = stop(Reason.LOST_ELSEWHERE, decision=decision, lost=lost, replay_partitions=partitions)
    return replace(decision, by_row=True), error


def by_partition(decision: Decision, why: str) -> Decision:
    """Only the old partitions are a way from then on, since it cannot be told which rows are
    visible."""
    return replace(decision, by_row=False, by_partition=why)


def not_told(
    decision: Decision, lost: frozenset[int], why: str, replay_partitions: int | None = None
) -> EosSinkError:
    """A part of the decision is lost, and only its partitions tell which rows that are.

    Args:
        why: it cannot be told which rows are visible.
        replay_partitions: how many the replay has.
    """
    return stop(
        Reason.NOT_REPAIRABLE if decision.completed else Reason.NEEDS_PARTITIONS,
        decision=decision,
        lost=lost,
        why=why,
        replay_partitions=replay_partitions,
    )


class _FoundRows(RowDigester):
    def __init__(self, *, topic_varies: bool) -> None:
        super().__init__(topic_varies=topic_varies)
        self.hashes: list[Hashes] = []

    def add(self, rows: Rows) -> Hashes:
        found = super().add(rows)
        self.hashes.append(found)
        return found


def _visible(
    decision: Decision, lost: frozenset[int]
) -> dict[ProducerIdentity, dict[int, RowDigest]]:
    """The partitions that are visible, by the transaction that has their rows."""
    found: dict[ProducerIdentity, dict[int, RowDigest]] = {}
    for some in decision.prepared:
        if some.partition not in lost:
            producer = ProducerIdentity(some.producer_id, some.epoch)
            found.setdefault(producer, {})[some.partition] = some.digest
    for each in decision.inlined:
        assert each.producer is not None, "of a decision in the log"
        found.setdefault(each.producer, {})[each.partition] = each.digest
    return found


def _scan(
    kafka: Kafka,
    topics: Collection[str],
    found: Mapping[ProducerIdentity, _FoundRows],
    most: int,
    deadline: Deadline,
) -> list[PartitionTail]:
    def add_row(producer: ProducerIdentity, row: Row) -> None:
        found[producer].add_row(row)

    tails: list[PartitionTail] = []
    for topic in topics:
        seen = kafka.read_back().scan_topic(topic, frozenset(found), most, add_row, deadline)
        unread = next((each.unread for each in seen if each.unread), "it cannot be seen")
        if not seen or any(each.unread for each in seen):
            raise stop(
                Reason.UNREADABLE_TOPIC, topic=topic, seconds=deadline.seconds, unread=unread
            )
        tails += seen
    return tails
