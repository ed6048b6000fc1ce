"""What is common to clusters that are started here, whatever their nodes are made of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import probe, properties
from eos_sink.testing.errors import NodeControlError, NodeFailedError
from eos_sink.testing.interface import KafkaCluster, KafkaNode
from eos_sink.testing.links import Carrier, Link
from eos_sink.testing.ports import HOST, free_ports
from eos_sink.testing.waiting import wait_until

_TRIES_AT_PORTS = 4
_PORT_TAKEN = ("Address already in use", "BindException")


class OwnedNode(KafkaNode):
    """A node that is started here."""

    def lead_through(self, link: Link) -> None:
        """Clients come over this link."""
        self._link = link

    @abstractmethod
    def start(self) -> None:
        """Start it, or start it again, without waiting until it answers."""

    @abstractmethod
    def raise_if_failed(self) -> None:
        """Raise if it ended by itself.

        Raises:
            NodeFailedError: with its exit code and the last lines of its log.
        """

    def restart(self, timeout_s: float = 60) -> None:
        deadline = Deadline(timeout_s)
        if self.alive:
            self.stop(deadline.left)
        self.start()
        wait_until(lambda: self._is_back(deadline), deadline, f"{self!r} answers again")

    def _is_back(self, deadline: Deadline) -> bool:
        """A broker is back when it finds itself among the registered ones."""
        self.raise_if_failed()
        if not self.role.serves_clients:
            return probe.port_answers(self.address)
        view = probe.view_of(self.address, deadline)
        return view is not None and self.id in view.brokers

    def _require_alive(self) -> None:
        if not self.alive:
            raise NodeControlError(f"{self!r} is dead: restart it first.")


class OwnedCluster(KafkaCluster):
    """A cluster that is started here."""

    nodes: tuple[OwnedNode, ...] = ()
    _carrier: Carrier | None = None
    _protocols: tuple[str, ...] = ()

    @abstractmethod
    def _prepare(
        self,
        plans: Sequence[properties.NodePlan],
        endpoints: dict[int, properties.Endpoints],
    ) -> tuple[OwnedNode, ...]:
        """Make the nodes of the cluster `cluster_id`, not yet started, with these listeners."""

    def _start(self, brokers: int, deadline: Deadline) -> None:
        """Start every node and wait for them; with other ports if somebody took one of ours."""
        plans = properties.plan_nodes(brokers)
        for attempt in range(1, _TRIES_AT_PORTS + 1):
            self._make_nodes(plans)
            try:
                for node in self.nodes:
                    node.start()
                self._wait_for(self.brokers, self.direct_servers.split(","), deadline)
                return
            except NodeFailedError as error:
                lost_a_port = any(sign in line for line in error.log_tail for sign in _PORT_TAKEN)
                if not lost_a_port or attempt == _TRIES_AT_PORTS:
                    raise
                self._discard()

    def _make_nodes(self, plans: Sequence[properties.NodePlan]) -> None:
        endpoints = _free_endpoints(plans, self._protocols)
        links: dict[int, Link] = {}
        if self._carrier is not None:
            endpoints, links = _through_links(self._carrier, endpoints)
        self.nodes = self._prepare(plans, endpoints)
        for node in self.nodes:
            if node.id in links:
                node.lead_through(links[node.id])
        addresses = [link.address for link in links.values()]
        self.bootstrap_servers = ",".join(addresses) or self.direct_servers
        self._doors = {
            protocol: ",".join(
                str(ends.secured[protocol]) for ends in endpoints.values() if ends.secured
            )
            for protocol in self._protocols
        }

    def _close_links(self) -> None:
        if self._carrier is not None:
            self._carrier.close()

    def _discard(self) -> None:
        """End the nodes of an attempt that failed."""
        for node in self.nodes:
            node.kill()

    def _knows(self, address: str, expected: frozenset[int], deadline: Deadline) -> bool:
        for node in self.nodes:
            node.raise_if_failed()
        return super()._knows(address, expected, deadline)


def _free_endpoints(
    plans: Sequence[properties.NodePlan], protocols: Sequence[str]
) -> dict[int, properties.Endpoints]:
    """A free port for each listener of each node; one for each of the security protocols too."""
    free = iter(free_ports((2 + len(protocols)) * len(plans)))
    return {
        plan.id: properties.Endpoints(
            client=properties.Endpoint(HOST, next(free)) if plan.serves_clients else None,
            controller=properties.Endpoint(HOST, next(free)) if plan.is_voter else None,
            secured={
                protocol: properties.Endpoint(HOST, next(free))
                for protocol in protocols
                if plan.serves_clients
            },
        )
        for plan in plans
    }


def _through_links(
    carrier: Carrier, endpoints: Mapping[int, properties.Endpoints]
) -> tuple[dict[int, properties.Endpoints], dict[int, Link]]:
    """The same with a listener more for each broker, which clients reach over a link."""
    through, links = dict(endpoints), {}
    brokers = [node_id for node_id, ends in endpoints.items() if ends.client is not None]
    for node_id, port in zip(brokers, free_ports(len(brokers)), strict=True):
        links[node_id] = carrier.lead(node_id, port)
        host, _, link_port = links[node_id].address.rpartition(":")
        outside = properties.Endpoint(host, int(link_port), bind_host=HOST, bind_port=port)
        through[node_id] = replace(endpoints[node_id], outside=outside)
    return through, links
