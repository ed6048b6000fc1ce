"""Kafka as containers of the official image, through testcontainers.

The containers use the host's network: clients and nodes reach each other under the same addresses,
with the properties that local processes have. Docker Desktop needs "host networking" enabled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cluster_errors import BackendUnavailableError, NodeControlError
from eos_sink_lab.testing.kafka_node import KafkaNode
from eos_sink_lab.testing.network_links import Carrier
from eos_sink_lab.testing.node_properties import Endpoints, Layout, NodePlan, node_properties
from eos_sink_lab.testing.owned_cluster import ClusterSpec, OwnedCluster, new_cluster_id
from eos_sink_lab.testing.waiting import wait_until

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


class ContainerRunner:
    """A node's container. Implements `NodeRunner`."""

    def __init__(self, container: DockerContainer) -> None:
        self._container = container
        self._started: Any = None  # docker's own object, once there is one

    @property
    def state(self) -> Literal["running", "paused", "ended"]:
        if self._started is None:
            return "ended"
        with _clear_errors():
            self._started.reload()
        status = str(self._started.status)
        if status in {"exited", "dead", "removing"}:
            return "ended"
        return "paused" if status == "paused" else "running"

    @property
    def pid(self) -> int:
        with _clear_errors():
            self._started.reload()
        return int(self._started.attrs["State"]["Pid"])

    def start(self, environ: Mapping[str, str]) -> None:
        if environ:
            raise NodeControlError("A container keeps the variables that it was made with.")
        with _clear_errors():
            if self._started is None:
                self._container.start()
                self._started = self._container.get_wrapped_container()
            else:
                self._started.start()

    def kill(self) -> None:
        with _clear_errors():
            self._started.kill()
        ended = Deadline(_DIES_WITHIN_S)
        wait_until(lambda: self.state == "ended", ended, f"{self._started.name} has ended")

    def terminate(self) -> None:
        with _clear_errors():
            self._started.kill(signal="SIGTERM")

    def pause(self) -> None:
        with _clear_errors():
            self._started.pause()

    def resume(self) -> None:
        with _clear_errors():
            self._started.unpause()

    def failure(self) -> tuple[int | None, list[str]]:
        text: bytes = self._started.logs(tail=_TAIL_LINES)
        code = self._started.attrs["State"].get("ExitCode")
        return code, text.decode(errors="replace").splitlines()

    def remove(self) -> None:
        """End it and remove it with its data."""
        with _clear_errors():
            if self._started is not None:
                self._container.stop(force=True, delete_volume=True)


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    from docker.errors import DockerException

    try:
        yield
    except DockerException as error:
        raise NodeControlError(f"Docker refused the request: {error}") from error


class ContainerCluster(OwnedCluster):
    """Kafka in containers. If this process dies, testcontainers' own Ryuk removes them.

    Args:
        spec: what it should be like.
        image: other than the official one, with its tag.

    Raises:
        BackendUnavailableError: testcontainers is missing, or no engine answers.
        ValueError: a data directory was asked for.
    """

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
        self._runners: list[ContainerRunner] = []
        self._image = image or f"{IMAGE}:{spec.version}"
        spec.progress(f"Kafka {spec.version}: starting containers of {self._image} ...")
        try:
            if spec.proxied:
                self._carrier = Carrier()
            self._start(spec.brokers, Deadline(_START_TIMEOUT_S))
        except BaseException:
            self.close()
            raise

    def _make_node(self, plan: NodePlan, endpoints: Mapping[int, Endpoints]) -> KafkaNode:
        from testcontainers.core.container import DockerContainer

        layout = Layout(endpoints, self._spec.brokers, _DATA)
        wanted = node_properties(plan, layout, self._spec.properties)
        container = DockerContainer(self._image).with_kwargs(network_mode="host")
        for name, value in to_environment(wanted, self.cluster_id).items():
            container.with_env(name, value)
        runner = ContainerRunner(container)
        self._runners.append(runner)
        return KafkaNode(plan, endpoints[plan.id].address, runner)

    def _end_nodes(self) -> None:
        while self._runners:
            self._runners.pop().remove()

    def close(self) -> None:
        """Remove the containers and their data."""
        try:
            self._end_nodes()
            self.nodes = ()
        finally:
            self._close_links()
