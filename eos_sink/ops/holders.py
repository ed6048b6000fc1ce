"""Finds the transactions that read_committed readers of a topic wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import PartitionOffsets, TopicDescription, Unseen
from eos_sink.protocol.values import Transaction, TransactionState

NEAR = 0.8
"""The part of a transaction's time after which an operator hears of it."""


def is_late(state: TransactionState, now_ms: int) -> bool:
    """True if most of an open transaction's time has passed."""
    return now_ms - state.started_ms > NEAR * state.timeout_ms


@dataclass(frozen=True)
class Holder:
    """The transaction behind which readers of a partition wait.

    Attributes:
        offset: its first one there.
        state: of its transactional id; None: no coordinator names that.
    """

    topic: str
    partition: int
    offset: int
    transaction: Transaction
    state: TransactionState | None

    @property
    def hangs(self) -> bool:
        """Its coordinator has ended it."""
        return self.state is not None and self.state.has_ended

    def is_late(self, now_ms: int) -> bool:
        return self.state is not None and is_late(self.state, now_ms)


def read_ends(
    admin: Admin, topics: Mapping[str, TopicDescription | Unseen | None], deadline: Deadline
) -> dict[str, tuple[PartitionOffsets, ...] | Unseen]:
    """The offsets of each topic's partitions, by number; none if there is no such topic."""
    found: dict[str, tuple[PartitionOffsets, ...] | Unseen] = {
        name: view if isinstance(view, Unseen) else () for name, view in topics.items()
    }
    shown = [each for each in topics.values() if isinstance(each, TopicDescription)]
    places = [(topic.name, number) for topic in shown for number in topic.partitions]
    for (name, _), part in sorted(admin.list_offsets(places, deadline).items()):
        known = found[name]
        if isinstance(part, Unseen):
            found[name] = part
        elif isinstance(known, tuple):
            found[name] = (*known, part)
    return found


def find_holders(
    admin: Admin, topic: str, partitions: Iterable[PartitionOffsets], deadline: Deadline
) -> list[Holder]:
    """Find who holds up readers of a topic.

    Raises:
        EosSinkError: a broker does not answer, or a permission is missing.
    """
    stable = {each.partition: each.stable for each in partitions if each.stable < each.end}
    if not stable:
        return []

    def find() -> dict[int, Transaction]:
        found = admin.control().find_holders([(topic, each) for each in stable], deadline)
        if silent := sorted(f"{topic}[{n}]" for (_, n), first in found.items() if first is None):
            why = "no leader has told its open transactions"
            unseen = Unseen(why, remedy="Look again when the partitions have leaders that answer.")
            raise unseen.error(f"What holds readers of {', '.join(silent)} cannot be seen")
        first = {n: each for (_, n), each in found.items() if each is not None}
        return {n: each.transaction for n, each in first.items() if each.start == stable[n]}

    found = find()
    ids = {each.transactional_id for each in found.values()} - {""}
    states = admin.control().describe(sorted(ids), deadline) if ids else {}
    # Asked again after the coordinators: one that has ended since holds up no reader.
    still = find() if found else {}
    return [
        Holder(topic, number, stable[number], each, states.get(each.transactional_id))
        for number, each in sorted(found.items())
        if still.get(number) == each
    ]
