"""Kafka as containers of the official image, through testcontainers.

The containers use the host's network: clients and nodes reach each other under the same addresses,
with the properties that local processes have. Docker Desktop needs "host networking" enabled.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing.cluster_errors import (
    BackendUnavailableError,
    NodeControlError,
    NodeFailedError,
)
from eos_sink.testing.network_links import Carrier
from eos_sink.testing.node_properties import Endpoints, Layout, NodePlan, node_properties
from eos_sink.testing.owned_cluster import ClusterSpec, OwnedCluster, OwnedNode, new_cluster_id
from eos_sink.testing.waiting import wait_until

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

IMAGE = "apache/kafka"

_PING_TIMEOUT_S = 5
_START_TIMEOUT_S = 180.0
_DIES_WITHIN_S = 30.0
_TAIL_LINES = 25
_HEAP = "-Xms64m -Xmx384m"
_DATA = "/var/lib/kafka/data"


def why_no_engine() -> str | None:
    """None where containers can be run; else what is missing, in a few words."""
    try:
        import docker
        import testcontainers.core.container  # noqa: F401 - only whether it is there
    except ImportError as error:
        return f"{error.name or 'testcontainers'} is not installed"
    try:
        client = docker.from_env(timeout=_PING_TIMEOUT_S)
        try:
            client.ping()
        finally:
            client.close()
    except (docker.errors.DockerException, OSError):
        return "no Docker engine answers"
    return None


def to_environment(properties: Mapping[str, str], cluster_id: str) -> dict[str, str]:
    """The environment from which the official image makes these properties (its README)."""
    variables = {"CLUSTER_ID": cluster_id, "KAFKA_HEAP_OPTS": _HEAP}
    for name, value in properties.items():
        escaped = name.replace("_", "__").replace("-", "___").replace(".", "_")
        variables[f"KAFKA_{escaped.upper()}"] = value
    return variables


class ContainerNode(OwnedNode):
    """See `KafkaNode`.

    Args:
        plan: its id and role.
        address: "host:port" where it is reached.
        container: not yet started.
    """

    def __init__(self, plan: NodePlan, address: str, container: DockerContainer) -> None:
        super().__init__(plan.id, plan.role, address)
        self._container = container
        self._started: Any = None  # docker's own object, once there is one
        self._ended_by_us = False
        self._lock = threading.RLock()

    @property
    def alive(self) -> bool:
        return self._status() in {"running", "paused"}

    @property
    def paused(self) -> bool:
        return self._status() == "paused"

    def start(self) -> None:
        with self._lock, self._clear_errors():
            if self._started is None:
                self._container.start()
                self._started = self._container.get_wrapped_container()
            else:
                self._started.start()
            self._ended_by_us = False

    def kill(self) -> None:
        with self._lock, self._clear_errors():
            if self.alive:
                self._ended_by_us = True
                self._started.kill()
                self._wait(_DIES_WITHIN_S)

    def stop(self, timeout_s: float = 60) -> None:
        with self._lock, self._clear_errors():
            if self.paused:
                self.resume()
            if self.alive:
                self._ended_by_us = True
                self._started.kill(signal="SIGTERM")
                self._wait(timeout_s)

    def pause(self) -> None:
        with self._lock, self._clear_errors():
            self._require_alive()
            if not self.paused:
                self._started.pause()

    def resume(self) -> None:
        with self._lock, self._clear_errors():
            self._require_alive()
            if self.paused:
                self._started.unpause()

    def remove(self) -> None:
        """End it and remove it with its data."""
        with self._lock, self._clear_errors():
            if self._started is not None:
                self._container.stop(force=True, delete_volume=True)

    def raise_if_failed(self) -> None:
        if self._status() in {"exited", "dead"} and not self._ended_by_us:
            code = self._started.attrs["State"].get("ExitCode")
            raise NodeFailedError(repr(self), code, self._log_tail())

    def _status(self) -> str:
        """Docker's word for it: created, running, paused, exited, ..."""
        if self._started is None:
            return "created"
        with self._clear_errors():
            self._started.reload()
        return str(self._started.status)

    def _log_tail(self) -> list[str]:
        text: bytes = self._started.logs(tail=_TAIL_LINES)
        return text.decode(errors="replace").splitlines()

    def _wait(self, timeout_s: float) -> None:
        wait_until(lambda: not self.alive, Deadline(timeout_s), f"{self!r} has ended")

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        from docker.errors import DockerException

        try:
            yield
        except DockerException as error:
            raise NodeControlError(f"Docker did not do it to {self!r}: {error}") from error


class ContainerCluster(OwnedCluster):
    """Kafka in containers. If this process dies, testcontainers' own Ryuk removes them.

    Args:
        spec: what it should be like.
        image: other than the official one, with its tag.

    Raises:
        BackendUnavailableError: testcontainers is missing, or no engine answers.
        ValueError: a data directory was asked for.
    """

    nodes: Sequence[ContainerNode] = ()

    def __init__(self, spec: ClusterSpec, image: str | None = None) -> None:
        if spec.data_dir is not None:
            raise ValueError("data_dir is for local processes; containers keep their own data.")
        missing = why_no_engine()
        if missing is not None:
            raise BackendUnavailableError(
                f"Kafka cannot run in containers here: {missing}. Start a Docker engine and "
                "pip install testcontainers, or let Kafka run as local processes: EOS_KAFKA=local."
            )
        self.version = spec.version
        self.cluster_id = new_cluster_id()
        self._spec = spec
        self._image = image or f"{IMAGE}:{spec.version}"
        spec.progress(f"Kafka {spec.version}: starting containers of {self._image} ...")
        try:
            if spec.proxied:
                self._carrier = Carrier()
            self._start(spec.brokers, Deadline(_START_TIMEOUT_S))
        except BaseException:
            self.close()
            raise

    def _make_node(self, plan: NodePlan, endpoints: Mapping[int, Endpoints]) -> ContainerNode:
        from testcontainers.core.container import DockerContainer

        layout = Layout(endpoints, self._spec.brokers, _DATA)
        wanted = node_properties(plan, layout, self._spec.properties)
        container = DockerContainer(self._image).with_kwargs(network_mode="host")
        for name, value in to_environment(wanted, self.cluster_id).items():
            container.with_env(name, value)
        return ContainerNode(plan, endpoints[plan.id].address, container)

    def _end_nodes(self) -> None:
        for node in self.nodes:
            node.remove()

    def close(self) -> None:
        """Remove the containers and their data."""
        try:
            self._end_nodes()
            self.nodes = ()
        finally:
            self._close_links()
