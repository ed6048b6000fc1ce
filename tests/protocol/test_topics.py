"""What an operator is asked for can be seen."""

from __future__ import annotations

import pytest

from eos_sink.driver.topics import await_readers, read_bounds
from eos_sink.errors import ClusterError, EosSinkError, OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Resource
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeKafka
from tests.fakes.log import Txn

SOON_S = 0.05


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create_topic("out", partitions=2)
    return cluster


def ask(cluster: FakeCluster, *topics: str) -> EosSinkError | None:
    try:
        await_readers(FakeKafka(cluster), topics, Deadline(SOON_S))
    except EosSinkError as error:
        return error
    return None


def test_readers_have_all_rows_of_topics_that_hold_none_open(cluster: FakeCluster) -> None:
    assert ask(cluster, "out", "gone") is None


def test_rows_behind_an_open_transaction_are_not_there_yet(cluster: FakeCluster) -> None:
    cluster.topics["out"].partitions[1].append(Txn("other", 1, 0), None, b"a", (), 0)
    error = ask(cluster, "out")
    assert isinstance(error, OutcomeUnknownError)
    assert "out[1]" in str(error)


def test_a_partition_that_nobody_can_read_is_not_taken_for_read(cluster: FakeCluster) -> None:
    cluster.topics["out"].partitions[1].has_leader = False
    error = ask(cluster, "out")
    assert isinstance(error, ClusterError)
    assert "Topic out cannot be seen" in str(error)
    with pytest.raises(ClusterError, match="Topic out cannot be seen"):
        read_bounds(FakeKafka(cluster), [("out", 0), ("out", 1)], Deadline(SOON_S))


def test_a_topic_that_may_not_be_seen_is_not_taken_for_read(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = Unseen("denied", (Acl("Describe", Resource.TOPIC, "out"),))

    def describe(kafka: FakeKafka, name: str) -> TopicDescription | Unseen | None:
        return hidden

    monkeypatch.setattr(FakeKafka, "describe", describe)
    error = ask(cluster, "out")
    assert isinstance(error, ClusterError)
    assert "Write" in str(error)
