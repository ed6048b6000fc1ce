"""Requests to a test cluster: what one broker knows, and moves and removals."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import MemberToRemove
from kafka.errors import KafkaError
from kafka.protocol.producer.transaction import InitProducerIdRequest

from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.wire import Wire
from eos_sink.protocol.values import ProducerIdentity
from eos_sink_lab.testing.cluster_errors import NotReadyError, TestClusterError
from eos_sink_lab.testing.node_properties import property_text
from eos_sink_lab.testing.waiting import wait_until

TRANSACTIONS = "__transaction_state"
GROUPS = "__consumer_offsets"
LAST_EPOCH = 32_766
"""Handed out last; 32,767 is reserved for fencing. After it comes a new producer id."""

# A paused broker never answers; the next one is asked then.
_REQUEST_S = 5.0
_REQUEST_MS = int(_REQUEST_S * 1000)
_PREFERRED = 0
_ALL_RECORDS = -1
# InitProducerId requests in flight. The broker answers them one by one: this saves round trips.
_INITS_AT_ONCE = 500
_TRANSACTION_TIMEOUT_MS = 60_000

_SILENT = logging.getLogger("eos_sink_lab.testing.client")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def port_answers(address: str, timeout_s: float = 0.5) -> bool:
    """True if something accepts a TCP connection at "host:port"."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout_s):
        return True
    return False


def read_metadata(
    addresses: str, deadline: Deadline, topic: str | None = None
) -> ClusterMetadata | None:
    """The metadata that the broker at this address has; None if it does not answer.

    librdkafka asks the bootstrap server, the only broker that a new client is connected to.
    kafka-python's admin client would ask any broker.
    """
    if "," not in addresses and not port_answers(addresses):
        return None  # cheaper than a client
    timeout_s = max(0.1, deadline.within(_REQUEST_S).left)
    try:
        return _confluent_admin(addresses).list_topics(topic, timeout=timeout_s)
    except KafkaException:
        return None


def _confluent_admin(addresses: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": addresses,
            "socket.connection.setup.timeout.ms": 2000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        },
        logger=_SILENT,
    )


@contextlib.contextmanager
def admin_client(addresses: str) -> Iterator[KafkaAdminClient]:
    """A new client for each step: what it remembers would be wrong after the next fault.

    Raises:
        TestClusterError: no broker answers, or Kafka refuses a request.
    """
    try:
        client = KafkaAdminClient(
            bootstrap_servers=addresses.split(","),
            request_timeout_ms=_REQUEST_MS,
            bootstrap_timeout_ms=_REQUEST_MS,
        )
        try:
            yield client
        finally:
            client.close()
    except KafkaError as error:
        raise TestClusterError(f"Kafka refused the request: {error}") from error


@dataclass(frozen=True)
class Replicas:
    """The leader of a partition (-1: none), its replicas, and those in sync."""

    leader: int
    assigned: tuple[int, ...]
    in_sync: tuple[int, ...]

    def next_leader(self) -> int | None:
        """The in-sync replica after the leader, in the order of the list."""
        start = self.assigned.index(self.leader) + 1 if self.leader in self.assigned else 0
        for node in (*self.assigned[start:], *self.assigned[:start]):
            if node in self.in_sync and node != self.leader:
                return node
        return None


def coordinator_partition(name: str, partitions: int) -> int:
    """The partition of a coordinators' topic that a transactional id or a group belongs to."""
    return abs(java_hash(name)) % partitions


def java_hash(text: str) -> int:
    """Java's `String.hashCode`."""
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


class ClusterAdmin:
    """Sends requests to a cluster.

    Every method raises TestClusterError if no broker answers, or if Kafka refuses.

    Args:
        addresses: of each broker that can answer, or the `bootstrap.servers` of all.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._servers = ",".join(addresses)

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int | None,
        config: Mapping[str, object],
        deadline: Deadline,
    ) -> None:
        """Create a topic, and wait until every broker knows a leader for each partition."""
        new = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=-1 if replication is None else replication,
            config={key: property_text(value) for key, value in config.items()},
        )
        timeout_s = max(deadline.left, 0.1)
        admin = _confluent_admin(self._servers)  # losing it would cancel the request
        answers = admin.create_topics([new], operation_timeout=timeout_s, request_timeout=timeout_s)
        try:
            answers[name].result(timeout=timeout_s + 1)
        except (KafkaException, TimeoutError) as error:
            raise TestClusterError(f"Kafka did not create the topic {name!r}: {error}") from error

        def all_led(metadata: ClusterMetadata) -> bool:
            found = metadata.topics[name].partitions.values()
            return len(found) == partitions and all(each.leader >= 0 for each in found)

        what = f"knows a leader for each partition of {name}"
        self._wait_everywhere(all_led, name, what, deadline)

    def replicas(self, topic: str, partition: int) -> Replicas:
        for found in self._partitions(topic):
            if found["partition_index"] == partition:
                assigned, in_sync = found["replica_nodes"], found["isr_nodes"]
                return Replicas(found["leader_id"], tuple(assigned), tuple(in_sync))
        raise TestClusterError(f"Topic {topic} has no partition {partition}.")

    def coordinator_partition(self, topic: str, name: str) -> int:
        """The partition of a coordinators' topic that a transactional id or a group belongs to."""
        return coordinator_partition(name, len(self._partitions(topic)))

    def move_leader(self, topic: str, partition: int, to: int | None, deadline: Deadline) -> int:
        """Let another replica lead, and wait until every broker knows it."""
        replicas = self.replicas(topic, partition)
        target = replicas.next_leader() if to is None else to
        if target not in replicas.assigned:
            raise TestClusterError(
                f"{topic}[{partition}] cannot be led by {target}: it has {replicas}."
            )
        order = [target, *(node for node in replicas.assigned if node != target)]

        def moved() -> bool:
            with contextlib.suppress(TestClusterError), admin_client(self._servers) as client:
                # The same replicas in another order: the first one is the preferred leader.
                client.alter_partition_reassignments(
                    {TopicPartition(topic, partition): order}, timeout_ms=_REQUEST_MS
                )
                client.elect_leaders(
                    _PREFERRED, {topic: [partition]}, timeout_ms=_REQUEST_MS, raise_errors=False
                )
            return self.replicas(topic, partition).leader == target

        def known(metadata: ClusterMetadata) -> bool:
            found = metadata.topics[topic].partitions.get(partition)
            return found is not None and found.leader == target

        wait_until(moved, deadline, f"{target} leads {topic}[{partition}]")
        what = f"knows that {target} leads {topic}[{partition}]"
        self._wait_everywhere(known, topic, what, deadline)
        return target

    def active_controller(self) -> int:
        with admin_client(self._servers) as client:
            return int(client.describe_metadata_quorum()["topics"][0]["partitions"][0]["leader_id"])

    def all_in_sync(self) -> bool:
        """True if all replicas of all partitions are in sync; False if no broker answers."""
        with contextlib.suppress(TestClusterError), admin_client(self._servers) as client:
            return all(
                part["leader_id"] >= 0 and set(part["isr_nodes"]) == set(part["replica_nodes"])
                for topic in client.describe_topics()
                for part in topic["partitions"]
            )
        return False

    def remove_member(self, group: str, instance_id: str) -> None:
        member = MemberToRemove(group_instance_id=instance_id)
        with admin_client(self._servers) as client:
            removed = client.remove_group_members(group, [member])
        for error in removed.values():
            if error.errno:
                raise TestClusterError(
                    f"Member {instance_id} was not removed from group {group}: {error.__name__}."
                )

    def delete_records(self, topic: str) -> None:
        numbers = [found["partition_index"] for found in self._partitions(topic)]
        places = {TopicPartition(topic, number): _ALL_RECORDS for number in numbers}
        with admin_client(self._servers) as client:
            client.delete_records(places, timeout_ms=_REQUEST_MS)

    def exhaust_epoch(
        self, transactional_id: str, last: int, deadline: Deadline
    ) -> ProducerIdentity:
        """Send InitProducerId until the id has this epoch."""
        try:
            wire = Wire({"bootstrap_servers": self._servers.split(",")}, deadline)
            try:
                latest = _init_producer(wire, transactional_id, 1, deadline)
                while latest is None or latest.epoch < last:
                    if deadline.passed:
                        raise NotReadyError(
                            f"{transactional_id} got to {latest} within {deadline.seconds:g} s, "
                            f"not to epoch {last}."
                        )
                    # A request whose answer was lost may count too, so this is an upper bound.
                    left = 1 if latest is None else min(last - latest.epoch, _INITS_AT_ONCE)
                    latest = _init_producer(wire, transactional_id, left, deadline) or latest
                return latest
            finally:
                wire.close()
        except EosSinkError as error:
            raise TestClusterError(f"Kafka refused the request: {error}") from error

    def _wait_everywhere(
        self,
        condition: Callable[[ClusterMetadata], bool],
        topic: str,
        what: str,
        deadline: Deadline,
    ) -> None:
        """Wait until the metadata of the broker at each address fulfils the condition."""
        for address in self._addresses:

            def fulfilled(address: str = address) -> bool:
                metadata = read_metadata(address, deadline, topic)
                return metadata is not None and condition(metadata)

            wait_until(fulfilled, deadline, f"{address} {what}")

    def _partitions(self, topic: str) -> list[dict[str, Any]]:
        with admin_client(self._servers) as client:
            (found,) = client.describe_topics([topic])
        if found["error_code"]:
            raise TestClusterError(f"Topic {topic} is not visible: it may not exist yet.")
        partitions: list[dict[str, Any]] = found["partitions"]
        return partitions


def _init_producer(
    wire: Wire, name: str, times: int, deadline: Deadline
) -> ProducerIdentity | None:
    """The latest identity after so many requests; None if none succeeded."""

    async def send() -> dict[int, Any]:
        asked = wire.send(wire.find_coordinators_request([name]), None, deadline)
        found = (await wire.gather({0: asked}, deadline))[0]
        if found is None or found.coordinators[0].error_code:
            return {}
        node = found.coordinators[0].node_id
        request = {
            "transactional_id": name,
            "transaction_timeout_ms": _TRANSACTION_TIMEOUT_MS,
            "producer_id": -1,
            "producer_epoch": -1,
            "max_version": 5,
        }
        requests = {
            number: wire.send(InitProducerIdRequest(**request), node, deadline)
            for number in range(times)
        }
        return await wire.gather(requests, deadline)

    answers = [answer for answer in wire.run(send).values() if answer and not answer.error_code]
    if not answers:
        return None
    return ProducerIdentity(answers[-1].producer_id, answers[-1].producer_epoch)
