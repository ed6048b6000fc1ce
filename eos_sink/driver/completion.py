"""Complete a decided batch of which a part is lost, by a replay in other partitions.

An operator has chosen it (`eos-sink resolve --complete`). The planner reads back the visible rows;
tasks write the rows that are not among them. The digests prove that nothing is lost or doubled.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from eos_sink.decision_log import DecisionRegister
from eos_sink.errors import ClusterError, OperatorNeededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Headers, Kafka, ProducerIdentity
from eos_sink.kafka.rows import Rows
from eos_sink.kafka.topic_traces import PartitionTail
from eos_sink.options import SinkOptions
from eos_sink.protocol import operator_errors
from eos_sink.protocol.fingerprint import Hashes, RowDigester
from eos_sink.protocol.model import Decision, PlanToken

MOST_ROWS = 4_000_000
"""Visible rows of which each task gets the hashes, 32 MB."""
_TAIL, _WIDER = 100_000, 10
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
    if decision.inlined:
        raise RefusedCompletion(
            f"the driver has written partitions {[each.partition for each in decision.inlined]}, "
            "and which rows these were is not known"
        )
    letters = sorted({each.partition for each in decision.dead_letters} - {*lost})
    if letters:
        raise RefusedCompletion(
            f"rows of partitions {letters} are in the dead letter topic "
            f"{decision.dead_letter_topic}, where they are not what they were"
        )
    rows = sum(each.digest.rows for each in decision.prepared if each.partition not in lost)
    if rows > MOST_ROWS:
        raise RefusedCompletion(f"{rows} rows are visible, more than {MOST_ROWS}")


def read_back(
    kafka: Kafka,
    options: SinkOptions,
    decision: Decision,
    lost: frozenset[int],
    deadline: Deadline,
) -> bytes:
    """Read the visible rows of a decision, whose transactions are known.

    Returns:
        Their hashes, sorted and each once, as eight bytes.

    Raises:
        RefusedCompletion: not all rows are there, or they do not have the decided content.
        ClusterError: topics cannot be read by the deadline.
    """
    check_completion(decision, lost)
    wanted = {
        ProducerIdentity(each.producer_id, each.epoch): each
        for each in decision.prepared
        if each.partition not in lost
    }
    declared = options.destinations.topics if options.destinations else []
    topics = sorted({*decision.topics, *declared})
    most = _TAIL
    while True:
        found = {each: _FoundRows(topic_varies=options.topic is None) for each in wanted}
        tails = _scan(kafka, topics, found, most, deadline)
        wrong = [each for who, each in wanted.items() if found[who].digest != each.digest]
        if not wrong:
            every = np.concatenate([each for rows in found.values() for each in rows.hashes])
            return np.unique(every).astype("<u8").tobytes()
        if all(tail.read_from == tail.start for tail in tails):
            partitions = sorted(each.partition for each in wrong)
            raise RefusedCompletion(
                f"the rows of partitions {partitions} in {topics} are not those that were decided: "
                "retention or compaction has deleted some, or they had a column partition or "
                "eos.timestamp.column, or went to other topics, which eos.destinations could name"
            )
        most *= _WIDER


def withdraw(  # noqa: PLR0913, PLR0917
    register: DecisionRegister,
    token: PlanToken,
    decision: Decision,
    lost: frozenset[int],
    refused: RefusedCompletion,
    deadline: Deadline,
) -> OperatorNeededError:
    """Take the choice back, since the old partitions are still a way out. Returns the error.

    Args:
        token: of the latest record.

    Raises:
        Whatever `DecisionRegister.write` raises: the choice stands, and is tried again.
    """
    if not decision.completed:
        override = replace(decision.override, complete=False)
        register.write(token, replace(decision, override=override), deadline)
    return operator_errors.not_completable(
        token.names, token.position.topic, decision, lost, str(refused)
    )


class _FoundRows(RowDigester):
    def __init__(self, *, topic_varies: bool) -> None:
        super().__init__(topic_varies=topic_varies)
        self.hashes: list[Hashes] = []

    def add(self, rows: Rows) -> Hashes:
        found = super().add(rows)
        self.hashes.append(found)
        return found


def _scan(
    kafka: Kafka,
    topics: Collection[str],
    found: dict[ProducerIdentity, _FoundRows],
    most: int,
    deadline: Deadline,
) -> list[PartitionTail]:
    def add_row(
        producer: ProducerIdentity,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers | None,
    ) -> None:
        found[producer].add_row((value, key, topic, list(headers) if headers else None, None, None))

    tails: list[PartitionTail] = []
    for topic in topics:
        seen = kafka.scan_topic(topic, frozenset(found), most, add_row, deadline)
        unread = next((each.unread for each in seen if each.unread), "it cannot be seen")
        if not seen or any(each.unread for each in seen):
            raise ClusterError(
                f"Topic {topic}, in which a part of a decided batch is visible, could not be read "
                f"back within {deadline.seconds:.0f} s: {unread}. Nothing was written.",
                remedy="Start the query again when the topic can be read, with a larger "
                "eos.step.timeout.ms if it is long.",
                data={"topic": topic},
            )
        tails += seen
    return tails
