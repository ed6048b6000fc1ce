"""The one place that says how a test cluster is set up.

Local processes, containers, docker-compose.yml and conf/kafka/*.properties all get their
properties from here; tests hold the files against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_sink.testing.interface import Role
from eos_sink.testing.text import to_text

_FIRST_CONTROLLER_ID = 101
_CONTROLLERS = 3
_COPIES = 3

CLIENT_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
OUTSIDE_LISTENER = "OUTSIDE"


@dataclass(frozen=True)
class NodePlan:
    """A node before it exists: who it is and which listeners it needs."""

    id: int
    role: Role

    @property
    def process_roles(self) -> str:
        return "broker,controller" if self.role is Role.COMBINED else self.role.value

    @property
    def serves_clients(self) -> bool:
        return self.role.serves_clients

    @property
    def is_voter(self) -> bool:
        return self.role is not Role.BROKER


@dataclass(frozen=True)
class Endpoint:
    """Where a listener is reached and where it binds; without links both are the same here."""

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
    """A node's listeners; a plain broker has no controller one and the other way round.

    Attributes:
        client: for clients and other brokers.
        controller: for the nodes' own talk.
        outside: for clients that know the broker under another address than the brokers do.
        secured: for clients who have to say who they are; by security protocol.
    """

    client: Endpoint | None
    controller: Endpoint | None
    outside: Endpoint | None = None
    secured: Mapping[str, Endpoint] = field(default_factory=dict)

    def named(self, *, with_controller: bool) -> list[tuple[str, Endpoint]]:
        """The listeners that the node has, each with its name."""
        named = [
            (CLIENT_LISTENER, self.client),
            (OUTSIDE_LISTENER, self.outside),
            *self.secured.items(),
        ]
        if with_controller:
            named.append((CONTROLLER_LISTENER, self.controller))
        return [(name, endpoint) for name, endpoint in named if endpoint is not None]

    @property
    def public(self) -> Endpoint:
        """The client listener if there is one, else the controller's."""
        chosen = self.client or self.controller
        assert chosen is not None
        return chosen


@dataclass(frozen=True)
class Surroundings:
    """What a node's properties depend on beside its own plan.

    Attributes:
        endpoints: the listeners of every node of the cluster, by id.
        brokers: how many the cluster has.
        log_dir: the node's directory for data.
    """

    endpoints: Mapping[int, Endpoints]
    brokers: int
    log_dir: str


def plan_nodes(brokers: int) -> tuple[NodePlan, ...]:
    """One combined node, or that many brokers and three controllers beside them.

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
    """What every node of a cluster with so many brokers has in common."""
    copies = str(min(_COPIES, brokers))
    min_in_sync = "2" if brokers >= _COPIES else "1"
    return {
        # A topic that is misspelt must be an error, not a new topic.
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": min_in_sync,
        # 50 partitions each by default: creating those takes longer than many a test. Six leave
        # every one of three brokers a coordinator of something.
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
        # Nine seconds by default. A killed broker's leaders move, and the broker can come back,
        # only after it. Alone, a broker has nobody whose stalls it has to allow for.
        "broker.session.timeout.ms": "3000" if brokers == 1 else "6000",
        "broker.heartbeat.interval.ms": "500" if brokers == 1 else "1000",
        # One second by default, at random up to two: a lone controller that was the leader before
        # a restart waits as long for rivals that it does not have.
        "controller.quorum.election.timeout.ms": "200" if brokers == 1 else "1000",
        # 128 MB of the heap by default, taken at the start.
        "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
        "num.network.threads": "2",
        "num.io.threads": "4",
    }


def node_properties(
    node: NodePlan, around: Surroundings, extra: Mapping[str, object] | None = None
) -> dict[str, str]:
    """All properties of one node.

    Args:
        node: which one.
        around: the cluster that it belongs to.
        extra: the user's own properties; they win.

    Returns:
        name and value, in the order in which a reader looks for them.
    """
    own = around.endpoints[node.id]
    properties = {
        "process.roles": node.process_roles,
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(
            f"{number}@{ends.controller}"
            for number, ends in sorted(around.endpoints.items())
            if ends.controller is not None
        ),
        "listeners": ",".join(
            f"{name}://{end.bind}" for name, end in own.named(with_controller=True)
        ),
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": ",".join(
            [
                *(f"{n}:PLAINTEXT" for n in (CONTROLLER_LISTENER, CLIENT_LISTENER)),
                f"{OUTSIDE_LISTENER}:PLAINTEXT",
                *(f"{protocol}:{protocol}" for protocol in own.secured),
            ]
        ),
    }
    if own.client is not None:
        properties["advertised.listeners"] = ",".join(
            f"{name}://{end}" for name, end in own.named(with_controller=False)
        )
        properties["inter.broker.listener.name"] = CLIENT_LISTENER
    properties["log.dirs"] = around.log_dir
    properties.update(cluster_properties(around.brokers))
    properties.update({name: to_text(value) for name, value in (extra or {}).items()})
    return properties
