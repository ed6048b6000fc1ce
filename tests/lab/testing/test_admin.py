"""Where coordinators are, and who leads next."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import cluster_admin
from eos_sink_lab.testing.cluster_admin import Replicas, coordinator_partition, java_hash


@pytest.mark.parametrize(
    ("text", "value"),
    # What a JVM answers.
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_names_hash_as_in_java(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_name_belongs_to_one_partition_whatever_its_sign() -> None:
    assert coordinator_partition("polygenelubricants", 50) == 2**31 % 50
    assert {coordinator_partition(f"id-{n}", 6) for n in range(100)} == set(range(6))


@pytest.mark.parametrize(
    ("copies", "follows"),
    [
        (Replicas(1, (1, 2, 3), (1, 2, 3)), 2),
        (Replicas(3, (1, 2, 3), (1, 2, 3)), 1),
        (Replicas(1, (1, 2, 3), (1, 3)), 3),
        (Replicas(1, (1, 2, 3), (1,)), None),
        (Replicas(-1, (1, 2, 3), (2,)), 2),
        (Replicas(1, (1,), (1,)), None),
    ],
)
def test_the_next_leader_is_in_sync(copies: Replicas, follows: int | None) -> None:
    assert copies.next_leader() == follows


def test_the_bootstrap_servers_of_a_given_cluster_are_asked_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of them may be down: the cluster is not ours to wait for."""
    asked: list[str] = []
    topics = {"t": SimpleNamespace(partitions={0: SimpleNamespace(leader=1)})}

    def answer(address: str, *_: object) -> object:
        asked.append(address)
        return SimpleNamespace(topics=topics)

    created: Future[None] = Future()
    created.set_result(None)
    client = SimpleNamespace(create_topics=lambda *_, **__: {"t": created})
    monkeypatch.setattr(cluster_admin, "read_metadata", answer)
    monkeypatch.setattr(cluster_admin, "_confluent_admin", lambda _: client)
    cluster_admin.ClusterAdmin(["a:1,b:2"]).create_topic("t", 1, None, {}, Deadline(5))
    assert asked == ["a:1,b:2"]
