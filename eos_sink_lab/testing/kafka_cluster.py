"""What every test cluster can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import ProducerIdentity
from eos_sink_lab.testing.access import Access
from eos_sink_lab.testing.cluster_admin import (
    GROUPS,
    LAST_EPOCH,
    TRANSACTIONS,
    ClusterAdmin,
    read_metadata,
)
from eos_sink_lab.testing.cluster_errors import (
    BackendUnavailableError,
    NodeControlError,
    NotReadyError,
    TestClusterError,
)
from eos_sink_lab.testing.kafka_node import KafkaNode
from eos_sink_lab.testing.waiting import wait_until

if TYPE_CHECKING:
    from typing_extensions import Self

# For a move and a removal; generous, since other faults may be under way.
_USUALLY_S = 60.0
_EXTERNAL_ANSWERS_WITHIN_S = 15.0


class KafkaCluster(ABC):
    """A running Kafka cluster; as a context manager it is closed at the end of the block.

    Requests go to brokers that are alive and not paused, past the links of a proxied cluster.
    Every method blocks until its effect is there. Methods that send a request raise
    TestClusterError if no broker answers or Kafka refuses, and NotReadyError if the effect was
    not there within `timeout_s` seconds.

    Attributes:
        bootstrap_servers: "host:port[,host:port...]" of every broker, for clients.
        cluster_id: Kafka's own id of it.
        version: Kafka's version, such as "4.3.0"; "unknown" for an external cluster.
        nodes: every node, brokers first; empty for an external cluster.
    """

    bootstrap_servers: str
    cluster_id: str
    version: str
    nodes: Sequence[KafkaNode] = ()
    _access: Access | None = None

    @abstractmethod
    def close(self) -> None:
        """End every node and remove what the cluster left behind. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def access(self) -> Access:
        """Users, certificates and permissions of a secured cluster.

        Raises:
            NodeControlError: the cluster is not secured.
        """
        if self._access is None:
            raise NodeControlError("This cluster has no logins: use start_kafka(security=...).")
        return self._access

    @property
    def brokers(self) -> tuple[KafkaNode, ...]:
        """The nodes that serve clients."""
        return tuple(node for node in self.nodes if node.role.serves_clients)

    @property
    def controllers(self) -> tuple[KafkaNode, ...]:
        """The nodes that keep the cluster's metadata."""
        return tuple(node for node in self.nodes if node.role.votes)

    @property
    def direct_servers(self) -> str:
        """As `bootstrap_servers`, past the links of a proxied cluster: for a test's own clients."""
        return ",".join(node.address for node in self.brokers) or self.bootstrap_servers

    def node(self, node_id: int) -> KafkaNode:
        """The node with this id.

        Raises:
            TestClusterError: there is none.
        """
        for node in self.nodes:
            if node.id == node_id:
                return node
        known = ", ".join(str(node.id) for node in self.nodes) or "none"
        raise TestClusterError(f"No node has the id {node_id}; known: {known}.")

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication: int | None = None,
        config: Mapping[str, object] | None = None,
        timeout_s: float = 30,
    ) -> None:
        """Create a topic and wait until every broker knows a leader for each partition.

        Args:
            name: the topic.
            partitions: how many.
            replication: replicas of each partition; by default the cluster's setting (3 with
                three brokers, 1 with one).
            config: the topic's own properties, such as `{"cleanup.policy": "compact"}`.
            timeout_s: for both steps together, in seconds.
        """
        admin = self._admin()
        admin.create_topic(name, partitions, replication, config or {}, Deadline(timeout_s))

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Wait until every broker that is alive and not paused knows all of these as registered.

        Raises:
            NodeFailedError: a node ended while it was waited for.
        """
        awake = [node for node in self.brokers if node.alive and not node.paused]
        self._wait_registered(awake, self._addresses(), Deadline(timeout_s))

    def wait_in_sync(self, timeout_s: float = 120) -> None:
        """Wait until every replica of every partition is in sync: the next fault may come."""
        what = "every replica of every partition is in sync"
        wait_until(self._admin().all_in_sync, Deadline(timeout_s), what)

    def repair(self, timeout_s: float = 180) -> None:
        """Undo every fault: heal all links, wake and restart all nodes, wait for all replicas.

        Raises:
            NodeFailedError: a node ended while starting.
        """
        deadline = Deadline(timeout_s)
        for node in (*self.controllers, *self.brokers):
            if node._link is not None:
                node._link.heal()
            if node.paused:
                node.resume()
            if not node.alive:
                node.restart(deadline.left)
        self.wait_ready(deadline.left)
        self.wait_in_sync(deadline.left)

    def leader_of(self, topic: str, partition: int) -> int:
        """The id of the broker that leads a partition, -1 if none does."""
        return self._admin().replicas(topic, partition).leader

    def active_controller(self) -> int:
        """The id of the controller that leads the others."""
        return self._admin().active_controller()

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The id of the broker that coordinates this id's transactions, -1 if none does.

        Raises:
            TestClusterError: the cluster has had no transaction yet.
        """
        return self._coordinator(TRANSACTIONS, transactional_id)

    def group_coordinator(self, group: str) -> int:
        """The id of the broker that coordinates this consumer group, -1 if none does.

        Raises:
            TestClusterError: the cluster has had no group yet.
        """
        return self._coordinator(GROUPS, group)

    def move_leader(
        self, topic: str, partition: int, to: int | None = None, *, timeout_s: float = _USUALLY_S
    ) -> int:
        """Let another broker lead a partition; return its id when every broker knows it.

        Args:
            topic: the topic.
            partition: its partition.
            to: the id of the new leader, which has a replica; by default the next one in sync.
            timeout_s: how long to try, in seconds.

        Raises:
            TestClusterError: there is no such partition, or that broker has no replica.
        """
        return self._admin().move_leader(topic, partition, to, Deadline(timeout_s))

    def move_transaction_coordinator(
        self, transactional_id: str, to: int | None = None, *, timeout_s: float = _USUALLY_S
    ) -> int:
        """Let another broker coordinate this id's transactions; otherwise as `move_leader`.

        The new coordinator may still be loading its state; clients wait for that.
        """
        return self._move_coordinator(TRANSACTIONS, transactional_id, to, timeout_s)

    def move_group_coordinator(
        self, group: str, to: int | None = None, *, timeout_s: float = _USUALLY_S
    ) -> int:
        """Let another broker coordinate this consumer group; as `move_transaction_coordinator`."""
        return self._move_coordinator(GROUPS, group, to, timeout_s)

    def end_session(self, group: str, instance_id: str) -> None:
        """Remove a static member from its group, as the end of its session does."""
        self._admin().remove_member(group, instance_id)

    def delete_records(self, topic: str) -> None:
        """Delete every record of a topic, also those of open transactions, as retention does."""
        self._admin().delete_records(topic)

    def exhaust_epoch(
        self, transactional_id: str, *, left: int = 0, timeout_s: float = 600
    ) -> ProducerIdentity:
        """Bring a transactional id to its last epoch: its next init gets a new producer id.

        It aborts an open transaction of the id. It takes tens of thousands of requests, answered
        one by one: eight seconds with one broker, two minutes with three.

        Args:
            transactional_id: the id.
            left: how many epochs are not used up.
            timeout_s: how long to go on, in seconds.

        Returns:
            Its producer id and epoch, 32,766 if none is left.
        """
        return self._admin().exhaust_epoch(transactional_id, LAST_EPOCH - left, Deadline(timeout_s))

    def _coordinator(self, topic: str, name: str) -> int:
        admin = self._admin()
        return admin.replicas(topic, admin.coordinator_partition(topic, name)).leader

    def _move_coordinator(self, topic: str, name: str, to: int | None, timeout_s: float) -> int:
        partition = self._admin().coordinator_partition(topic, name)
        return self.move_leader(topic, partition, to, timeout_s=timeout_s)

    def _admin(self) -> ClusterAdmin:
        return ClusterAdmin(self._addresses())

    def _addresses(self) -> Sequence[str]:
        """The address of every broker that can answer."""
        awake = [node.address for node in self.brokers if node.alive and not node.paused]
        if self.nodes and not awake:
            raise NotReadyError("No broker is alive and awake: restart or resume one first.")
        return awake or [self.bootstrap_servers]

    def _wait_registered(
        self, brokers: Sequence[KafkaNode], addresses: Sequence[str], deadline: Deadline
    ) -> None:
        """Wait until the broker at each address knows all of these brokers."""
        expected = {node.id for node in brokers}
        for address in addresses:

            def registered(address: str = address) -> bool:
                for node in self.nodes:
                    node.raise_if_failed()
                metadata = read_metadata(address, deadline)
                # A port that is asked too early may be that of another Kafka.
                return (
                    metadata is not None
                    and str(metadata.cluster_id) == self.cluster_id
                    and expected <= metadata.brokers.keys()
                )

            what = f"{address} answers and knows the brokers {sorted(expected)}"
            wait_until(registered, deadline, what)


class ExternalCluster(KafkaCluster):
    """The cluster at these addresses; closing it changes nothing there.

    Args:
        bootstrap_servers: "host:port[,host:port...]".

    Raises:
        BackendUnavailableError: no address is given.
        NotReadyError: no broker answered within 15 seconds.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        if not bootstrap_servers:
            raise BackendUnavailableError(
                "The external back end needs EOS_BOOTSTRAP=host:port[,host:port...]."
            )
        self.bootstrap_servers = bootstrap_servers
        self.version = "unknown"
        deadline = Deadline(_EXTERNAL_ANSWERS_WITHIN_S)

        def answers() -> bool:
            metadata = read_metadata(bootstrap_servers, deadline)
            if metadata is None:
                return False
            self.cluster_id = str(metadata.cluster_id)
            return True

        wait_until(answers, deadline, f"a broker at EOS_BOOTSTRAP={bootstrap_servers} answers")

    def node(self, node_id: int) -> KafkaNode:
        """Not possible: this process did not start the nodes.

        Raises:
            NodeControlError: always.
        """
        raise NodeControlError(
            f"Node {node_id} of {self.bootstrap_servers} cannot be controlled: the cluster was "
            "given by EOS_BOOTSTRAP. Unset it to get a cluster whose nodes can be killed."
        )

    def close(self) -> None:
        """Nothing to do."""
