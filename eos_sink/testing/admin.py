"""What a test does to a running cluster through Kafka's own requests: moves, removals, questions.

Public form and documentation: `eos_sink.testing.interventions`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import MemberToRemove
from kafka.errors import KafkaError

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import probe
from eos_sink.testing.errors import TestClusterError
from eos_sink.testing.waiting import wait_until

TRANSACTIONS = "__transaction_state"
GROUPS = "__consumer_offsets"

# A broker that is paused never answers; the next one is asked then.
_REQUEST_MS = 5_000
_PREFERRED = 0
_ALL_OF_IT = -1


@dataclass(frozen=True)
class Copies:
    """Where a partition is: its leader (-1: none), every replica, and those in sync."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    def next_leader(self) -> int | None:
        """The in-sync replica after the leader, in the order of the list."""
        start = self.replicas.index(self.leader) + 1 if self.leader in self.replicas else 0
        for node in (*self.replicas[start:], *self.replicas[:start]):
            if node in self.in_sync and node != self.leader:
                return node
        return None


def java_hash(text: str) -> int:
    """Java's `String.hashCode`."""
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def coordinator_partition(name: str, partitions: int) -> int:
    """The partition of the coordinators' topic that a transactional id or a group belongs to."""
    return abs(java_hash(name)) % partitions


class Admin:
    """Asks the brokers at these addresses."""

    def __init__(self, addresses: str) -> None:
        self._addresses = addresses

    def copies(self, topic: str, partition: int) -> Copies:
        """Where a partition is.

        Raises:
            TestClusterError: there is no such partition.
        """
        for found in self._partitions(topic):
            if found["partition_index"] == partition:
                return Copies(
                    found["leader_id"], tuple(found["replica_nodes"]), tuple(found["isr_nodes"])
                )
        raise TestClusterError(f"Topic {topic} has no partition {partition}.")

    def home(self, topic: str, name: str) -> int:
        """The partition of a coordinators' topic that `name` belongs to.

        Raises:
            TestClusterError: the topic is not there, since nothing has needed it yet.
        """
        return coordinator_partition(name, len(self._partitions(topic)))

    def move(self, topic: str, partition: int, to: int | None, deadline: Deadline) -> int:
        """Let another replica lead, and wait until every broker of the addresses knows."""
        copies = self.copies(topic, partition)
        target = copies.next_leader() if to is None else to
        if target not in copies.replicas:
            raise TestClusterError(
                f"{topic}[{partition}] cannot be led by {target}: it has {copies}."
            )
        order = [target, *(node for node in copies.replicas if node != target)]
        place = TopicPartition(topic, partition)

        def moved() -> bool:
            with contextlib.suppress(TestClusterError), self._client() as client:
                # The same replicas in another order, of which the first one is preferred.
                client.alter_partition_reassignments({place: order}, timeout_ms=_REQUEST_MS)
                client.elect_leaders(
                    _PREFERRED, {topic: [partition]}, timeout_ms=_REQUEST_MS, raise_errors=False
                )
            return self.copies(topic, partition).leader == target

        wait_until(moved, deadline, f"{target} leads {topic}[{partition}]")
        for address in self._addresses.split(","):
            wait_until(
                lambda address=address: (
                    target  # type: ignore[misc]
                    == probe.leader_of(address, topic, partition, deadline)
                ),
                deadline,
                f"{address} knows that {target} leads {topic}[{partition}]",
            )
        return target

    def active_controller(self) -> int:
        """The controller that leads the quorum."""
        with self._client() as client:
            return int(client.describe_metadata_quorum()["topics"][0]["partitions"][0]["leader_id"])

    def in_sync(self) -> bool:
        """Whether all copies of all partitions are; False too if no broker answers."""
        with contextlib.suppress(TestClusterError), self._client() as client:
            partitions = [
                part for topic in client.describe_topics() for part in topic["partitions"]
            ]
            return all(
                part["leader_id"] >= 0 and set(part["isr_nodes"]) == set(part["replica_nodes"])
                for part in partitions
            )
        return False

    def remove_member(self, group: str, instance_id: str) -> None:
        with self._client() as client:
            removed = client.remove_group_members(
                group, [MemberToRemove(group_instance_id=instance_id)]
            )
        for error in removed.values():
            if error.errno:
                raise TestClusterError(
                    f"Member {instance_id} was not removed from group {group}: {error.__name__}."
                )

    def delete_records(self, topic: str) -> None:
        places = {
            TopicPartition(topic, found["partition_index"]): _ALL_OF_IT
            for found in self._partitions(topic)
        }
        with self._client() as client:
            client.delete_records(places, timeout_ms=_REQUEST_MS)

    def _partitions(self, topic: str) -> list[dict[str, Any]]:
        with self._client() as client:
            (found,) = client.describe_topics([topic])
        if found["error_code"]:
            raise TestClusterError(f"Topic {topic} cannot be seen: it may not be there yet.")
        partitions: list[dict[str, Any]] = found["partitions"]
        return partitions

    @contextlib.contextmanager
    def _client(self) -> Iterator[KafkaAdminClient]:
        """A client for a moment: what it remembers would be wrong after the next fault."""
        try:
            client = KafkaAdminClient(
                bootstrap_servers=self._addresses.split(","),
                request_timeout_ms=_REQUEST_MS,
                bootstrap_timeout_ms=_REQUEST_MS,
            )
            try:
                yield client
            finally:
                client.close()
        except KafkaError as error:
            raise TestClusterError(f"Kafka did not do it: {error}") from error
