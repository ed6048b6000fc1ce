"""Kafka as local processes, each of which can be killed, paused and started again."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from eos_sink.deadline import Deadline
from eos_sink.testing import ports, probe, properties
from eos_sink.testing.cache import exclusive
from eos_sink.testing.errors import NodeFailedError, TestClusterError
from eos_sink.testing.interface import KafkaCluster
from eos_sink.testing.jars import DEFAULT_VERSION, KafkaFiles, ensure_kafka
from eos_sink.testing.java import Java, find_java
from eos_sink.testing.owner import Owner
from eos_sink.testing.process import NodeProcess
from eos_sink.testing.progress import Progress, to_stderr

_START_TIMEOUT_S = 120.0
_TRIES_AT_PORTS = 4
_TAKEN = ("Address already in use", "BindException")

# Two thirds of a test broker's life is its start: only the quick compiler, the simplest collector.
_JVM_OPTIONS = (
    *("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Xlog:disable", "-Xlog:all=error:stderr", "-XX:+ExitOnOutOfMemoryError"),
    "-Djava.awt.headless=true",
)


class LocalCluster(KafkaCluster):
    """Kafka processes on 127.0.0.1; they and their data end with the process that made them.

    Args:
        brokers: 1 for one node that is broker and controller, more for that many brokers and
            three controllers beside them.
        version: of Kafka; downloaded on first use.
        properties: extra ones for every node; they win over the cluster's own.
        data_dir: where the nodes keep configuration, data and logs. By default a temporary
            directory that is removed at the end; a given one stays, and a cluster that is started
            on it again finds its data.
        progress: takes lines that say what goes on.
        log_level: of the nodes' own logs: "warn", "info", "debug" or "trace".

    Raises:
        JavaNotFoundError: no Java 17 or newer.
        DownloadError: Kafka's jars cannot be brought.
        NodeFailedError: a node ended while starting; the message has its last words.
        NotReadyError: the brokers were not all registered within two minutes.
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = DEFAULT_VERSION,
        properties: Mapping[str, object] | None = None,
        data_dir: str | Path | None = None,
        progress: Progress = to_stderr,
        log_level: str = "warn",
    ) -> None:
        java = find_java()
        files = ensure_kafka(version, java, progress)
        _ensure_class_archive(files, java, progress)
        self._launch(
            files,
            brokers,
            properties or {},
            None if data_dir is None else Path(data_dir).absolute(),
            [
                *(str(java.executable), *_JVM_OPTIONS),
                *(f"-XX:SharedArchiveFile={files.class_archive(java)}",),
                f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}",
            ],
        )

    @classmethod
    def _bare(cls, files: KafkaFiles, jvm: Sequence[str]) -> LocalCluster:
        """One node with these JVM options, for making the class archive."""
        cluster = cls.__new__(cls)
        cluster._launch(files, 1, {}, None, jvm)
        return cluster

    def _launch(
        self,
        files: KafkaFiles,
        brokers: int,
        extra: Mapping[str, object],
        data_dir: Path | None,
        jvm: Sequence[str],
    ) -> None:
        self.version = files.version
        self._keeps_data = data_dir is not None
        self._closed = False
        if data_dir is None:
            self.directory = Path(tempfile.mkdtemp(prefix="eos-kafka-"))
        else:
            self.directory = data_dir
            self.directory.mkdir(parents=True, exist_ok=True)
        self.nodes: tuple[NodeProcess, ...] = ()
        self._owner = Owner(remove=None if self._keeps_data else self.directory)
        command = [
            *(
                *jvm,
                f"-Deos.guard={self._owner.token}",
                "-Dorg.slf4j.simpleLogger.showDateTime=true",
            ),
            *("-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS", "-cp", files.classpath),
            "kafka.Kafka",
        ]
        try:
            self._start(files, brokers, extra, command, Deadline(_START_TIMEOUT_S))
        except BaseException:
            self.close()
            raise

    def _start(
        self,
        files: KafkaFiles,
        brokers: int,
        extra: Mapping[str, object],
        command: Sequence[str],
        deadline: Deadline,
    ) -> None:
        """Start every node and wait for them; with other ports if somebody took one of ours."""
        for attempt in range(_TRIES_AT_PORTS):
            self.nodes = self._prepare(files, brokers, extra, command)
            self.bootstrap_servers = ",".join(node.address for node in self.brokers)
            try:
                for node in self.nodes:
                    node.start()
                self.wait_ready(deadline.left)
                return
            except NodeFailedError as error:
                lost_a_port = any(word in line for line in error.log_tail for word in _TAKEN)
                if not lost_a_port or attempt == _TRIES_AT_PORTS - 1:
                    raise
                for node in self.nodes:
                    node.kill()

    def _prepare(
        self,
        files: KafkaFiles,
        brokers: int,
        extra: Mapping[str, object],
        command: Sequence[str],
    ) -> tuple[NodeProcess, ...]:
        plans = properties.plan_nodes(brokers)
        endpoints = _endpoints(plans)
        cluster_id = self._known_cluster_id() or _new_cluster_id()
        nodes = []
        for plan in plans:
            home = self.directory / f"node-{plan.id}"
            data = home / "data"
            _format(data, plan.id, cluster_id, files.bootstrap_records)
            config = home / "server.properties"
            config.write_text(
                properties.render(
                    properties.node_properties(plan, endpoints, brokers, str(data), extra)
                ),
                encoding="utf-8",
            )
            own = endpoints[plan.id]
            nodes.append(
                NodeProcess(
                    plan.id,
                    plan.role,
                    str(own.client or own.controller),
                    [*command, str(config)],
                    home / "node.log",
                    partial(self._node_answers, plan.id),
                )
            )
        return tuple(nodes)

    def close(self) -> None:
        """End every node and, unless it was given, remove the data directory."""
        if self._closed or not self._owner.is_this_process:
            return
        self._closed = True
        try:
            for node in self.nodes:  # brokers first: they want their controllers to leave in order
                if self._keeps_data and node.alive:
                    _stop_or_kill(node)
                else:
                    node.kill()
        finally:
            if not self._keeps_data:
                shutil.rmtree(self.directory, ignore_errors=True)
            self._owner.release()

    def _knows(self, address: str, expected: frozenset[int], deadline: Deadline) -> bool:
        for node in self.nodes:
            node.raise_if_failed()
        return super()._knows(address, expected, deadline)

    def _node_answers(self, node_id: int, deadline: Deadline) -> bool:
        """Whether a node that was started again is back: for a broker, known to itself."""
        node = self.node(node_id)
        if not node.role.serves_clients:
            return probe.port_answers(node.address)
        return super()._knows(node.address, frozenset({node_id}), deadline)

    def _known_cluster_id(self) -> str | None:
        for meta in sorted(self.directory.glob("node-*/data/meta.properties")):
            return properties.parse(meta.read_text(encoding="utf-8")).get("cluster.id")
        return None


def _endpoints(plans: Sequence[properties.NodePlan]) -> dict[int, properties.Endpoints]:
    """A free port for each listener of each node."""
    free = iter(ports.free_ports(2 * len(plans)))
    return {
        plan.id: properties.Endpoints(
            client=properties.Endpoint(ports.HOST, next(free)) if plan.serves_clients else None,
            controller=properties.Endpoint(ports.HOST, next(free)) if plan.is_voter else None,
        )
        for plan in plans
    }


def _new_cluster_id() -> str:
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _format(data: Path, node_id: int, cluster_id: str, bootstrap_records: Path) -> None:
    """What `kafka-storage format` does, without a JVM; a formatted directory stays as it is."""
    if (data / "meta.properties").exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(bootstrap_records, data / bootstrap_records.name)
    (data / "meta.properties").write_text(
        f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n", encoding="utf-8"
    )


def _stop_or_kill(node: NodeProcess) -> None:
    try:
        node.stop(timeout_s=30)
    except TestClusterError:
        node.kill()


def _ensure_class_archive(files: KafkaFiles, java: Java, progress: Progress) -> None:
    """Let a node run once and keep its parsed classes (JEP 350).

    Measured on two cores: one node answers after 1.1 s with it and 2.0 s without. It is only an
    accelerator: whatever goes wrong here, nodes start without it.
    """
    archive = files.class_archive(java)
    if archive.exists():
        return
    with exclusive(files.lock, Deadline(_START_TIMEOUT_S), lambda: None):
        if archive.exists():
            return
        progress(f"Kafka {files.version}: preparing fast starts (once) ...")
        draft = archive.with_suffix(".part")
        jvm = [str(java.executable), *_JVM_OPTIONS, f"-XX:ArchiveClassesAtExit={draft}"]
        try:
            with LocalCluster._bare(files, jvm) as cluster:
                cluster.nodes[0].stop()
            draft.rename(archive)
        except (TestClusterError, OSError) as error:
            progress(f"Kafka {files.version}: starts stay slow, without class archive: {error}")
