"""Finds the transactions that read_committed readers of a topic wait for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eos_sink.kafka.admin_interface import Admin, BlockingTransaction, PartitionOffsets
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import TransactionState

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
    transaction: BlockingTransaction
    state: TransactionState | None

    @property
    def hangs(self) -> bool:
        """Its coordinator has ended it."""
        return self.state is not None and self.state.has_ended

    def is_late(self, now_ms: int) -> bool:
        return self.state is not None and is_late(self.state, now_ms)


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
    found = admin.blocking_transactions(topic, stable, deadline)
    ids = {each.transactional_id for each in found.values()} - {None}
    states = admin.describe_transactions(sorted(filter(None, ids)), deadline) if ids else {}
    # Asked again after the coordinators: one that has ended since holds up no reader.
    still = admin.blocking_transactions(topic, stable, deadline) if found else {}
    return [
        Holder(topic, number, stable[number], each, states.get(each.transactional_id or ""))
        for number, each in sorted(found.items())
        if still.get(number) == each
    ]
