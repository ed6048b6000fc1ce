"""What a test cluster and its nodes can do, whatever runs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import probe
from eos_sink.testing.access import Access
from eos_sink.testing.errors import NodeControlError, NotReadyError, TestClusterError
from eos_sink.testing.interventions import Interventions
from eos_sink.testing.links import Link
from eos_sink.testing.waiting import wait_until

if TYPE_CHECKING:
    from typing_extensions import Self


class Role(str, Enum):
    """What a node does in KRaft mode (Kafka's `process.roles`)."""

    BROKER = "broker"
    CONTROLLER = "controller"
    COMBINED = "combined"

    @property
    def serves_clients(self) -> bool:
        return self is not Role.CONTROLLER

    def __str__(self) -> str:
        return self.value


class KafkaNode(ABC):
    """One Kafka process. Its methods may be called from any thread.

    Attributes:
        id: Kafka's `node.id`.
        role: `broker`, `controller` or `combined`.
        address: "host:port" for clients, or for other nodes if it is a controller. No link leads
            through it.
    """

    _link: Link | None = None

    def __init__(self, node_id: int, role: Role, address: str) -> None:
        self.id = node_id
        self.role = role
        self.address = address

    def __repr__(self) -> str:
        return f"<{self.role} {self.id} at {self.address}>"

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether its process exists; a paused one does."""

    @property
    @abstractmethod
    def paused(self) -> bool:
        """Whether `pause` was the last thing that happened to it."""

    @property
    def link(self) -> Link:
        """The way of the clients to this broker, to be cut, slowed down and healed.

        Raises:
            NodeControlError: it is a controller, or the cluster was not started `proxied`.
        """
        if self._link is None:
            raise NodeControlError(
                f"{self!r} has no link: it takes a broker of start_kafka(..., proxied=True)."
            )
        return self._link

    @abstractmethod
    def kill(self) -> None:
        """End it at once (SIGKILL), also when it is paused. Without effect if it is dead."""

    @abstractmethod
    def stop(self, timeout_s: float = 60) -> None:
        """End it in good order (SIGTERM) and wait for that. Without effect if it is dead.

        Raises:
            NotReadyError: it was still there after `timeout_s` seconds.
        """

    @abstractmethod
    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open, nothing answers.

        Raises:
            NodeControlError: it is dead.
        """

    @abstractmethod
    def resume(self) -> None:
        """Let a paused node go on (SIGCONT). Does not wait until it answers.

        Raises:
            NodeControlError: it is dead.
        """

    @abstractmethod
    def restart(self, timeout_s: float = 60) -> None:
        """Start it again with the same port and data, and wait until it answers.

        A node that is still alive is stopped first.

        Raises:
            NodeFailedError: it ended while starting.
            NotReadyError: it did not answer within `timeout_s` seconds.
        """


class KafkaCluster(Interventions):
    """A running Kafka cluster; as a context manager it is closed at the end of the block.

    Attributes:
        bootstrap_servers: "host:port[,host:port...]" of every broker, for clients.
        cluster_id: Kafka's own id of it.
        version: Kafka's version, such as "4.3.0"; "unknown" for a given cluster.
        nodes: every node, brokers first; empty for a given cluster.
    """

    bootstrap_servers: str
    cluster_id: str
    version: str
    nodes: tuple[KafkaNode, ...]
    _access: Access | None = None

    @property
    def access(self) -> Access:
        """Users, certificates and permissions of a secured cluster.

        Raises:
            NodeControlError: the cluster is not secured.
        """
        if self._access is None:
            raise NodeControlError("Nobody logs in here: it takes start_kafka(security=...).")
        return self._access

    @abstractmethod
    def close(self) -> None:
        """End every node and remove what the cluster left behind. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def brokers(self) -> tuple[KafkaNode, ...]:
        """The nodes that serve clients."""
        return tuple(node for node in self.nodes if node.role.serves_clients)

    @property
    def controllers(self) -> tuple[KafkaNode, ...]:
        """The nodes that keep the cluster's metadata."""
        return tuple(node for node in self.nodes if node.role is not Role.BROKER)

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

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Wait until every broker that is alive and not paused knows all of these as registered.

        Raises:
            NotReadyError: not within `timeout_s` seconds.
            NodeFailedError: a node ended while it was waited for.
        """
        awake = [node for node in self.brokers if node.alive and not node.paused]
        self._wait_for(awake, self._addresses(), Deadline(timeout_s))

    def repair(self, timeout_s: float = 180) -> None:
        """Undo every fault: heal all links, wake and restart all nodes, wait for all copies.

        Raises:
            NotReadyError: not within `timeout_s` seconds.
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
            replication: copies of each partition; by default what the cluster is set to (3 with
                three brokers, 1 with one).
            config: the topic's own properties, such as `{"cleanup.policy": "compact"}`.
            timeout_s: for both steps together, in seconds.

        Raises:
            TestClusterError: Kafka refused, for instance because the topic exists.
            NotReadyError: not within `timeout_s` seconds.
        """
        deadline = Deadline(timeout_s)
        topic = probe.Topic(name, partitions, replication, config or {})
        probe.create_topic(",".join(self._addresses()), topic, deadline)
        for address in self._addresses():
            wait_until(
                partial(probe.has_leaders, address, topic, deadline),
                deadline,
                f"{address} knows a leader for each partition of {name}",
            )

    def _addresses(self) -> Sequence[str]:
        """Where to ask: every broker that can answer."""
        awake = [node.address for node in self.brokers if node.alive and not node.paused]
        if self.nodes and not awake:
            raise NotReadyError("No broker is alive and awake: restart or resume one first.")
        return awake or [self.bootstrap_servers]

    def _wait_for(
        self, brokers: Sequence[KafkaNode], addresses: Sequence[str], deadline: Deadline
    ) -> None:
        """Wait until the broker at each address knows all of these brokers."""
        expected = frozenset(node.id for node in brokers)
        for address in addresses:
            wait_until(
                partial(self._knows, address, expected, deadline),
                deadline,
                f"{address} answers and knows the brokers {sorted(expected)}",
            )

    def _knows(self, address: str, expected: frozenset[int], deadline: Deadline) -> bool:
        """Whether a broker of this cluster answers there and sees all expected ones."""
        view = probe.view_of(address, deadline)
        return (
            view is not None
            # A port that is asked too early may be somebody else's Kafka.
            and view.cluster_id == self.cluster_id
            and expected <= view.brokers
        )
