"""Complete a decided batch of which a part is lost, by a replay in other partitions.

An operator has chosen it (`eos-sink resolve --complete`). The planner reads back the visible rows;
tasks write the rows that are not among them. The digests prove that nothing is lost or doubled.

The rows that the driver has written are visible with the decision. One epoch of the driver has many
transactions, so these rows are found by their digest: as many of the driver's rows as the decision
says, one after the other in time.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.driver_id import describe_driver
from eos_sink.errors import ClusterError, OperatorNeededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.fingerprint import Hashes, RowDigester
from eos_sink.kafka.interfaces import Kafka
from eos_sink.kafka.rows import Row, Rows
from eos_sink.kafka.topic_traces import ANY_EPOCH, PartitionTail
from eos_sink.protocol import operator_errors
from eos_sink.protocol.model import Decision, PlanToken, RowDigest
from eos_sink.protocol.values import ProducerIdentity
from eos_sink.sink_options import SinkOptions

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
    topics = sorted({*decision.topics, *options.declared_topics})
    varies, most = options.topic is None, _TAIL
    number = describe_driver(kafka, options.names, deadline).transaction.producer_id
    driver = ProducerIdentity(number, ANY_EPOCH)
    inlined = None if decision.inlined else np.zeros(0, np.uint64)
    while True:
        found = {each: _FoundRows(topic_varies=varies) for each in wanted}
        by_driver = _DriversRows(topic_varies=varies)
        every = {**found, driver: by_driver} if inlined is None else found
        tails = _scan(kafka, topics, every, most, deadline)
        wrong = [each.partition for who, each in wanted.items() if found[who].digest != each.digest]
        if inlined is None:
            inlined = by_driver.select(decision.inlined_total)
        if inlined is None:
            wrong += [each.partition for each in decision.inlined]
        elif not wrong:
            visible = [inlined, *(part for rows in found.values() for part in rows.hashes)]
            return np.unique(np.concatenate(visible)).astype("<u8").tobytes()
        if all(tail.read_from == tail.start for tail in tails):
            partitions = sorted(wrong)
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
        The errors of `DecisionRegister.write`: the choice stands, and is tried again.
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

    def note_time(self, at_ms: int) -> None:
        """Of the row that was added last."""


class _DriversRows(_FoundRows):
    """All rows of the driver, of any batch, committed or not."""

    def __init__(self, *, topic_varies: bool) -> None:
        super().__init__(topic_varies=topic_varies)
        self._times = array("q")

    def note_time(self, at_ms: int) -> None:
        self._times.append(at_ms)
        if len(self._times) > MOST_ROWS:
            raise RefusedCompletion(
                f"the driver has written more than {MOST_ROWS} rows, and its rows of this batch "
                "were not found among them"
            )

    def select(self, wanted: RowDigest) -> Hashes | None:
        """The hashes of successive rows that together have this digest; None: there are none."""
        if self.digest.rows < wanted.rows:
            return None
        in_time = np.argsort(np.frombuffer(self._times, np.int64), kind="stable")
        hashes = np.concatenate(self.hashes)[in_time]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        windows = sums[wanted.rows :] - sums[: -wanted.rows]
        first = np.flatnonzero(windows == np.uint64(wanted.fingerprint))
        return hashes[first[-1] : first[-1] + wanted.rows] if len(first) else None


def _scan(
    kafka: Kafka,
    topics: Collection[str],
    found: Mapping[ProducerIdentity, _FoundRows],
    most: int,
    deadline: Deadline,
) -> list[PartitionTail]:
    def add_row(producer: ProducerIdentity, row: Row, at_ms: int) -> None:
        found[producer].add_row(row)
        found[producer].note_time(at_ms)

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
