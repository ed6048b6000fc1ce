"""Kafka as local processes, each of which can be killed, paused and started again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import node_home, properties
from eos_sink.testing.access import Access
from eos_sink.testing.cache import exclusive
from eos_sink.testing.certificates import Authority
from eos_sink.testing.errors import TestClusterError
from eos_sink.testing.ivy import Workbench
from eos_sink.testing.jvm import Java, find_java
from eos_sink.testing.kafka_files import KafkaFiles, ensure_kafka
from eos_sink.testing.links import Carrier
from eos_sink.testing.node_process import NodeProcess
from eos_sink.testing.owned import OwnedCluster
from eos_sink.testing.progress import Progress
from eos_sink.testing.security import (
    SASL_LISTENER,
    TLS_LISTENER,
    security_properties,
)
from eos_sink.testing.spec import ClusterSpec
from eos_sink.testing.watchdog import Watchdog

_START_TIMEOUT_S = 120.0

# Most of a test broker's life is its start: only the quick compiler, the simplest collector.
_JVM_OPTIONS = (
    *("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Xlog:disable", "-Xlog:all=error:stderr", "-XX:+ExitOnOutOfMemoryError"),
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


def start_local(spec: ClusterSpec) -> LocalCluster:
    """Bring Kafka into the cache if it is missing there, and start it.

    Raises:
        JavaNotFoundError: no Java 17 or newer.
        DownloadError: Kafka's jars cannot be brought.
        NodeFailedError: a node ended while starting; the message has the end of its log.
        NotReadyError: the brokers were not all registered within two minutes.
    """
    java = find_java()
    files = ensure_kafka(spec.version, Workbench(java, spec.progress, os.environ))
    _ensure_class_archive(files, java, spec.progress)
    jvm = [
        *(str(java.executable), *_JVM_OPTIONS, *spec.jvm),
        f"-XX:SharedArchiveFile={files.class_archive(java)}",
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={spec.log_level}",
    ]
    return LocalCluster(spec, files, jvm)


class LocalCluster(OwnedCluster):
    """Kafka processes on 127.0.0.1; they and their data end with the process that made them.

    Args:
        spec: what it should be like.
        files: the Kafka to run.
        jvm: the Java executable and its options.

    Attributes:
        directory: one directory a node, with server.properties, data and node.log.
    """

    nodes: tuple[NodeProcess, ...] = ()

    def __init__(self, spec: ClusterSpec, files: KafkaFiles, jvm: Sequence[str]) -> None:
        self.version = files.version
        self._spec = spec
        self._files = files
        self._closed = False
        if spec.data_dir is None:
            self.directory = Path(tempfile.mkdtemp(prefix="eos-kafka-"))
        else:
            self.directory = spec.data_dir.absolute()
            self.directory.mkdir(parents=True, exist_ok=True)
        self.cluster_id = node_home.known_cluster_id(self.directory) or node_home.new_cluster_id()
        self._watchdog = Watchdog(remove=self.directory if spec.data_dir is None else None)
        self._environ = {**os.environ, **self._watchdog.environ}
        self._command = (*jvm, "-cp", files.classpath, "kafka.Kafka")
        self._common: dict[str, object] = dict(spec.properties)
        try:
            if spec.proxied:
                self._carrier = Carrier(self._environ)
            if spec.security is not None:
                authority = Authority(self.directory / "security")
                self._protocols = (SASL_LISTENER, TLS_LISTENER)
                secured = security_properties(spec.security, authority)
                self._common = {**secured, **self._common}
            self._start(spec.brokers, Deadline(_START_TIMEOUT_S))
            if spec.security is not None:
                users = spec.security.users
                self._access = Access(self.direct_servers, self._doors, authority, users)
        except BaseException:
            self.close()
            raise

    def _prepare(
        self,
        plans: Sequence[properties.NodePlan],
        endpoints: dict[int, properties.Endpoints],
    ) -> tuple[NodeProcess, ...]:
        nodes = []
        for plan in plans:
            home = node_home.NodeHome(self.directory / f"node-{plan.id}")
            home.format(plan.id, self.cluster_id, self._files.bootstrap_records)
            around = properties.Surroundings(endpoints, self._spec.brokers, str(home.data))
            home.configure(properties.node_properties(plan, around, self._common))
            home.log.unlink(missing_ok=True)
            address, command = str(endpoints[plan.id].public), (*self._command, str(home.config))
            nodes.append(NodeProcess(plan, address, command, self._environ, home.log))
        return tuple(nodes)

    def close(self) -> None:
        """End every node and, unless it was given, remove the data directory."""
        if self._closed or not self._watchdog.is_own:
            return
        self._closed = True
        keeps_data = self._spec.data_dir is not None
        try:
            for node in self.nodes:  # brokers first: to leave in order they need their controllers
                if keeps_data and node.alive:
                    _stop_or_kill(node)
                else:
                    node.kill()
        finally:
            self._close_links()
            if not keeps_data:
                shutil.rmtree(self.directory, ignore_errors=True)
            self._watchdog.close()


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
            with LocalCluster(ClusterSpec(version=files.version), files, jvm) as cluster:
                cluster.nodes[0].stop()
            draft.rename(archive)
        except (TestClusterError, OSError) as error:
            progress(f"Kafka {files.version}: starts stay slow, without class archive: {error}")
