"""The properties of a test cluster's nodes.

Local processes, containers, docker-compose.yml and conf/kafka/*.properties all get them from here;
tests compare the files with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from eos_sink.kafka_config.properties_file import format_property

CLIENT_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
OUTSIDE_LISTENER = "OUTSIDE"

_FIRST_CONTROLLER_ID = 101
_CONTROLLERS = 3
_COPIES = 3


class Role(str, Enum):
    """The role of a node in KRaft mode (Kafka's `process.roles`)."""

    BROKER = "broker"
    CONTROLLER = "controller"
    COMBINED = "combined"

    @property
    def serves_clients(self) -> bool:
        return self is not Role.CONTROLLER

    @property
    def votes(self) -> bool:
        """True if it is a voter of the controllers' quorum."""
        return self is not Role.BROKER

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class NodePlan:
    """A node before it exists: Kafka's `node.id`, and its role."""

    id: int
    role: Role


@dataclass(frozen=True)
class Endpoint:
    """The address of a listener for clients, and the one it binds to; by default at the same
    address."""

    host: str
    port: int
    bind_host: str | None = None
    bind_port: int | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def bind(self) -> str:
        host = self.host if self.bind_host is None else self.bind_host
        return f"{host}:{self.port if self.bind_port is None else self.bind_port}"


@dataclass(frozen=True)
class Endpoints:
    """The listeners of a node.

    Attributes:
        client: for clients and other brokers; None for a controller.
        controller: for the nodes among themselves; None for a broker that is no controller.
        outside: for clients that know the broker under another address than the brokers do.
        secured: for clients that log in, by security protocol.
    """

    client: Endpoint | None
    controller: Endpoint | None
    outside: Endpoint | None = None
    secured: Mapping[str, Endpoint] = field(default_factory=dict)

    @property
    def for_clients(self) -> dict[str, Endpoint]:
        """The listeners that a broker advertises, by name."""
        named = {CLIENT_LISTENER: self.client, OUTSIDE_LISTENER: self.outside, **self.secured}
        return {name: endpoint for name, endpoint in named.items() if endpoint is not None}

    @property
    def address(self) -> str:
        """Address of the client listener if there is one, else of the controller's."""
        return str(self.client or self.controller)


@dataclass(frozen=True)
class Layout:
    """The values that a node's properties depend on beside its own plan.

    Attributes:
        endpoints: the listeners of every node of the cluster, by id.
        brokers: how many the cluster has.
        log_dir: the node's data directory.
    """

    endpoints: Mapping[int, Endpoints]
    brokers: int
    log_dir: str


def plan_nodes(brokers: int) -> tuple[NodePlan, ...]:
    """One combined node, or that many brokers and three controllers.

    Raises:
        ValueError: fewer than one broker.
    """
    if brokers < 1:
        raise ValueError(f"A cluster needs at least one broker, not {brokers}.")
    if brokers == 1:
        return (NodePlan(1, Role.COMBINED),)
    return (
        *(NodePlan(number, Role.BROKER) for number in range(1, brokers + 1)),
        *(
            NodePlan(number, Role.CONTROLLER)
            for number in range(_FIRST_CONTROLLER_ID, _FIRST_CONTROLLER_ID + _CONTROLLERS)
        ),
    )


def cluster_properties(brokers: int) -> dict[str, str]:
    """The properties that all nodes of a cluster of this size have in common."""
    copies = str(min(_COPIES, brokers))
    min_in_sync = "2" if brokers >= _COPIES else "1"
    return {
        # A topic that is misspelt must be an error, not a new topic.
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": min_in_sync,
        # 50 partitions each by default: creating those takes longer than many tests. With six,
        # each of three brokers still coordinates something.
        "offsets.topic.num.partitions": "6",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.num.partitions": "6",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": min_in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": min_in_sync,
        # Three seconds by default, to gather a group's members: tests have few.
        "group.initial.rebalance.delay.ms": "0",
        # Nine seconds by default. Only after it do a killed broker's leaders move, and can the
        # broker come back. A lone broker has no other brokers whose stalls it must allow for.
        "broker.session.timeout.ms": "3000" if brokers == 1 else "6000",
        "broker.heartbeat.interval.ms": "500" if brokers == 1 else "1000",
        # One to two seconds by default, at random: a lone controller would wait for rivals that
        # it does not have after each restart.
        "controller.quorum.election.timeout.ms": "200" if brokers == 1 else "1000",
        # 128 MB of the heap by default, taken at the start.
        "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
        "num.network.threads": "2",
        "num.io.threads": "4",
    }


def node_properties(
    node: NodePlan, layout: Layout, extra: Mapping[str, object] | None = None
) -> dict[str, str]:
    """All properties of one node, in the order in which a reader looks for them.

    Args:
        node: which one.
        layout: the cluster that it belongs to.
        extra: the user's own properties; they win.
    """
    own = layout.endpoints[node.id]
    listeners = dict(own.for_clients)
    if own.controller is not None:
        listeners[CONTROLLER_LISTENER] = own.controller
    plain = (CONTROLLER_LISTENER, CLIENT_LISTENER, OUTSIDE_LISTENER)
    protocols = {**dict.fromkeys(plain, "PLAINTEXT"), **{name: name for name in own.secured}}
    properties = {
        "process.roles": "broker,controller" if node.role is Role.COMBINED else node.role.value,
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(
            f"{number}@{ends.controller}"
            for number, ends in sorted(layout.endpoints.items())
            if ends.controller is not None
        ),
        "listeners": ",".join(f"{name}://{end.bind}" for name, end in listeners.items()),
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
    }
    if own.client is not None:
        properties["advertised.listeners"] = ",".join(
            f"{name}://{end}" for name, end in own.for_clients.items()
        )
        properties["inter.broker.listener.name"] = CLIENT_LISTENER
    properties["log.dirs"] = layout.log_dir
    properties.update(cluster_properties(layout.brokers))
    properties.update({name: property_text(value) for name, value in (extra or {}).items()})
    return properties


def property_text(value: object) -> str:
    """A property's value as Kafka writes it: booleans in lower case, lists with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(property_text, value))
    return str(value)


def properties_text(properties: Mapping[str, str]) -> str:
    """The text of a .properties file."""
    return "".join(f"{format_property(*entry)}\n" for entry in properties.items())
