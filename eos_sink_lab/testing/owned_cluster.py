"""What clusters that are started here have in common, in processes or containers."""

from __future__ import annotations

from abc import abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cluster_errors import BackendUnavailableError, NodeFailedError
from eos_sink_lab.testing.kafka_cluster import KafkaCluster
from eos_sink_lab.testing.kafka_files import DEFAULT_VERSION
from eos_sink_lab.testing.kafka_node import KafkaNode
from eos_sink_lab.testing.network_links import HOST, Carrier, free_ports
from eos_sink_lab.testing.node_properties import Endpoint, Endpoints, NodePlan, plan_nodes
from eos_sink_lab.testing.security import Security
from eos_sink_lab.testing.waiting import Progress, to_stderr

_PORT_ATTEMPTS = 4
_PORT_TAKEN = ("Address already in use", "BindException")


@dataclass(frozen=True)
class ClusterSpec:
    """The arguments of `start_kafka`; see there.

    Attributes:
        log_level: of the nodes' own logs (local only): "warn", "info", "debug" or "trace".
        jvm: options of the nodes' JVM, which win over the cluster's own (local only).
    """

    brokers: int = 1
    version: str = DEFAULT_VERSION
    port: int | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    data_dir: Path | None = None
    progress: Progress = to_stderr
    log_level: str = "warn"
    proxied: bool = False
    security: Security | None = None
    jvm: tuple[str, ...] = ()


class OwnedCluster(KafkaCluster):
    """A cluster that is started here."""

    _spec: ClusterSpec
    _carrier: Carrier | None = None
    _protocols: tuple[str, ...] = ()

    @abstractmethod
    def _make_node(self, plan: NodePlan, endpoints: Mapping[int, Endpoints]) -> KafkaNode:
        """A node of the cluster `cluster_id`, not yet started; `endpoints` are those of all."""

    def _start(self, brokers: int, deadline: Deadline) -> None:
        """Start every node and wait for them; with other ports if one of ours was taken."""
        plans = plan_nodes(brokers)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._make_nodes(plans)
            try:
                for node in self.nodes:
                    node.start()
                self._wait_registered(self.brokers, self.direct_servers.split(","), deadline)
                return
            except NodeFailedError as error:
                port_taken = any(sign in line for line in error.log_tail for sign in _PORT_TAKEN)
                if port_taken and self._spec.port is not None:
                    raise BackendUnavailableError(
                        f"Port {self._spec.port} of this machine or one behind it is in use, "
                        "perhaps by another Kafka. Give another port."
                    ) from error
                if not port_taken or attempt == _PORT_ATTEMPTS:
                    raise
                self._end_nodes()

    def _make_nodes(self, plans: Sequence[NodePlan]) -> None:
        ports = iter(free_ports((3 + len(self._protocols)) * len(plans)))
        first = self._spec.port
        fixed = iter(()) if first is None else iter(range(first, first + len(plans)))
        endpoints, links = {}, {}
        for plan in plans:
            client = plan.role.serves_clients
            endpoints[plan.id] = Endpoints(
                client=Endpoint(HOST, next(fixed, None) or next(ports)) if client else None,
                controller=Endpoint(HOST, next(ports)) if plan.role.votes else None,
                secured={name: Endpoint(HOST, next(ports)) for name in self._protocols if client},
            )
            if self._carrier is not None and client:
                behind = next(ports)
                link = links[plan.id] = self._carrier.lead(plan.id, behind)
                outside = Endpoint(HOST, link.port, bind_host=HOST, bind_port=behind)
                endpoints[plan.id] = replace(endpoints[plan.id], outside=outside)
        self.nodes = tuple(self._make_node(plan, endpoints) for plan in plans)
        for node in self.nodes:
            node._link = links.get(node.id)
        self.bootstrap_servers = (
            ",".join(link.address for link in links.values()) or self.direct_servers
        )
        self._secured_servers = {
            name: ",".join(str(ends.secured[name]) for ends in endpoints.values() if ends.secured)
            for name in self._protocols
        }

    def _end_nodes(self) -> None:
        for node in self.nodes:
            node.kill()

    def _close_links(self) -> None:
        if self._carrier is not None:
            self._carrier.close()


def new_cluster_id() -> str:
    """A random id in Kafka's form: 16 bytes in URL-safe base 64."""
    return urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
