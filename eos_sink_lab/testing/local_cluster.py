"""Kafka as local processes, each of which can be killed, paused and started again."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.properties_file import read_properties
from eos_sink_lab.testing.access import Access
from eos_sink_lab.testing.cache import exclusive
from eos_sink_lab.testing.cluster_errors import TestClusterError
from eos_sink_lab.testing.java import Java, find_java
from eos_sink_lab.testing.kafka_files import KafkaFiles, ensure_kafka
from eos_sink_lab.testing.kafka_node import KafkaNode
from eos_sink_lab.testing.network_links import Carrier
from eos_sink_lab.testing.node_properties import (
    Endpoints,
    Layout,
    NodePlan,
    node_properties,
    properties_text,
)
from eos_sink_lab.testing.owned_cluster import ClusterSpec, OwnedCluster, new_cluster_id
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.security import (
    SASL_LISTENER,
    TLS_LISTENER,
    Authority,
    security_properties,
)
from eos_sink_lab.testing.waiting import Progress
from eos_sink_lab.testing.watchdog import Watchdog

_START_TIMEOUT_S = 120.0
_TAIL_LINES = 25
_META = "meta.properties"

# Most of a test broker's life is its start: only the quick compiler, the simplest collector.
_JVM_OPTIONS = (
    *("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Xlog:disable", "-Xlog:all=error:stderr", "-XX:+ExitOnOutOfMemoryError"),
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


class LocalRunner:
    """A node's process. Implements `NodeRunner`.

    Args:
        command: starts it, the same each time, so that it comes back with its ports and data.
        environ: of the process, at each start.
        log: takes its output, appended start after start.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self._command, self._environ, self._log = command, environ, log
        self._process: ProcessTree | None = None
        self._paused = False

    @property
    def state(self) -> Literal["running", "paused", "ended"]:
        if self._process is None or not self._process.alive:
            return "ended"
        return "paused" if self._paused else "running"

    @property
    def pid(self) -> int:
        return self._started.pid

    def start(self, environ: Mapping[str, str]) -> None:
        all_ = {**self._environ, **environ}
        self._process = ProcessTree(self._command, self._log, all_, cwd=self._log.parent)
        self._paused = False

    def kill(self) -> None:
        self._started.kill()

    def terminate(self) -> None:
        self._started.signal(signal.SIGTERM)

    def pause(self) -> None:
        self._started.pause()
        self._paused = True

    def resume(self) -> None:
        self._started.resume()
        self._paused = False

    def failure(self) -> tuple[int | None, list[str]]:
        return self._started.exit_code, self._started.read_log()[-_TAIL_LINES:]

    @property
    def _started(self) -> ProcessTree:
        assert self._process is not None, "the node was never started"
        return self._process


class LocalCluster(OwnedCluster):
    """Kafka processes on 127.0.0.1; they and their data end with the process that made them.

    Args:
        spec: what it should be like.
        files: the Kafka to run.
        jvm: the Java executable and its options.

    Attributes:
        directory: has a directory for each node, with server.properties, data and node.log.
    """

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
        self.cluster_id = self._find_cluster_id() or new_cluster_id()
        self._watchdog = Watchdog(remove=self.directory if spec.data_dir is None else None)
        self._environ = {**os.environ, **self._watchdog.environ}
        self._command = (*jvm, "-cp", files.classpath, "kafka.Kafka")
        self._properties: dict[str, object] = dict(spec.properties)
        try:
            if spec.proxied:
                self._carrier = Carrier(self._environ)
            if spec.security is not None:
                authority = Authority(self.directory / "security")
                self._protocols = (SASL_LISTENER, TLS_LISTENER)
                secured = security_properties(spec.security, authority)
                self._properties = {**secured, **self._properties}
            self._start(spec.brokers, Deadline(_START_TIMEOUT_S))
            if spec.security is not None:
                users = spec.security.users
                self._access = Access(self.direct_servers, self._secured_servers, authority, users)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End every node and, unless it was given, remove the data directory."""
        if self._closed or not self._watchdog.is_own:
            return
        self._closed = True
        keeps_data = self._spec.data_dir is not None
        try:
            for node in self.nodes:  # brokers first: to shut down they need their controllers
                if keeps_data and node.alive:
                    try:
                        node.stop(timeout_s=30)
                    except TestClusterError:
                        node.kill()
                else:
                    node.kill()
        finally:
            self._close_links()
            if not keeps_data:
                shutil.rmtree(self.directory, ignore_errors=True)
            self._watchdog.close()

    def _make_node(self, plan: NodePlan, endpoints: Mapping[int, Endpoints]) -> KafkaNode:
        home = self.directory / f"node-{plan.id}"
        config, log, data = home / "server.properties", home / "node.log", home / "data"
        self._format(plan.id, data)
        layout = Layout(endpoints, self._spec.brokers, str(data))
        config.write_text(properties_text(node_properties(plan, layout, self._properties)))
        log.unlink(missing_ok=True)
        command = (*self._command, str(config))
        runner = LocalRunner(command, self._environ, log)
        return KafkaNode(plan, endpoints[plan.id].address, runner)

    def _format(self, node_id: int, data: Path) -> None:
        """Do what `kafka-storage format` does, without a JVM; formatted data stays as it is."""
        if (data / _META).exists():
            return
        data.mkdir(parents=True, exist_ok=True)
        records = self._files.bootstrap_records
        shutil.copyfile(records, data / records.name)
        meta = {"version": "1", "cluster.id": self.cluster_id, "node.id": str(node_id)}
        (data / _META).write_text(properties_text(meta))

    def _find_cluster_id(self) -> str | None:
        """The id of the cluster whose data is in the directory already, if there is one."""
        for meta in self.directory.glob(f"node-*/data/{_META}"):
            for entry in read_properties(meta.read_text()):
                if entry.name == "cluster.id":
                    return entry.value
        return None


def start_local(spec: ClusterSpec) -> LocalCluster:
    """Download Kafka if the cache lacks it, and start it.

    Raises:
        JavaNotFoundError: no Java 17 or newer.
        DownloadError: Kafka's jars cannot be downloaded.
        NodeFailedError: a node ended while starting; the message has the end of its log.
        NotReadyError: the brokers were not all registered within two minutes.
    """
    java = find_java()
    files = ensure_kafka(spec.version, java, spec.progress)
    _ensure_class_archive(files, java, spec.progress)
    jvm = [
        *(str(java.executable), *_JVM_OPTIONS, *spec.jvm),
        f"-XX:SharedArchiveFile={files.class_archive(java)}",
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={spec.log_level}",
    ]
    return LocalCluster(spec, files, jvm)


def _ensure_class_archive(files: KafkaFiles, java: Java, progress: Progress) -> None:
    """Let a node run once and keep its parsed classes (JEP 350).

    Measured on two cores: one node answers after 1.1 s with it and 2.0 s without. If it fails,
    nodes start without the archive.
    """
    archive = files.class_archive(java)
    if archive.exists() or not java.has_class_archive:
        return
    with exclusive(archive.with_suffix(".lock"), Deadline(_START_TIMEOUT_S), lambda: None):
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
