"""With how many copies the decision log is created. Kafka is played."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError
from eos_sink.kafka import admin_requests
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import PartitionState, TopicDescription
from eos_sink.kafka.log_topic import LOG_CONFIGURATION, LOG_PARTITIONS, LogTopic
from eos_sink.kafka_config.acls import Permissions

LOG = "log"
ALONE = {"cleanup.policy": "compact"}


def with_in_sync(copies: int) -> dict[str, str]:
    return {**LOG_CONFIGURATION, "min.insync.replicas": str(copies)}


class Cluster:
    """Some brokers are live. Those that have been there before may get copies.

    Attributes:
        refuses: a code for the settings other than the policy; 0: it takes them.
        asked: with how many copies and which settings a log was to be created.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, live: int, registered: int) -> None:
        self._live, self._registered = live, registered
        self.refuses = 0
        self.asked: list[tuple[int, dict[str, str]]] = []
        self._log: TopicDescription | None = None
        for played in (self.create_topic, self.list_brokers, self.describe_usable_topic):
            monkeypatch.setattr(admin_requests, played.__name__, played)

    def create_topic(
        self, _: Any, name: str, count: int, copies: int, settings: Mapping[str, str], *__: Any
    ) -> KafkaError | None:
        self.asked.append((copies, dict(settings)))
        # As Kafka does: settings, then copies, then what a policy says of them.
        refused = self.refuses and settings != ALONE
        if refused and self.refuses == KafkaError.INVALID_CONFIG:
            return KafkaError(self.refuses)
        if copies > self._registered:
            return KafkaError(KafkaError.INVALID_REPLICATION_FACTOR)
        if refused:
            return KafkaError(self.refuses)
        partitions = {number: PartitionState(1, copies, copies) for number in range(count)}
        self._log = TopicDescription(name, partitions, settings)
        return None

    def list_brokers(self, *_: Any) -> list[int]:
        return list(range(self._live))

    def describe_usable_topic(self, *_: Any, **__: Any) -> TopicDescription | KafkaError:
        return self._log or KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)

    def ensure(self, wanted: int) -> None:
        clients: Any = SimpleNamespace(
            control=lambda: SimpleNamespace(wire=None),
            config=SimpleNamespace(log_topic=LOG, log_replication=wanted),
            permissions=Permissions("eos-sink-", LOG),
        )
        LogTopic(clients).ensure(Deadline(5))
        assert self._log is not None
        assert len(self._log.partitions) == LOG_PARTITIONS


@pytest.mark.parametrize(
    ("live", "registered", "wanted", "in_sync"), [(3, 3, 3, 2), (2, 3, 3, 2), (1, 1, 1, 1)]
)
def test_the_log_gets_the_copies_that_are_wanted(
    live: int,
    registered: int,
    wanted: int,
    in_sync: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster(monkeypatch, live, registered)
    cluster.ensure(wanted)
    assert cluster.asked == [(wanted, with_in_sync(in_sync))]
    assert caplog.records == []


@pytest.mark.parametrize("brokers", [1, 2])
def test_fewer_copies_are_told(
    brokers: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(monkeypatch, brokers, brokers)
    cluster.ensure(3)
    assert cluster.asked == [(3, with_in_sync(2)), (brokers, with_in_sync(1))]
    (told,) = caplog.records
    assert told.levelno == logging.WARNING
    assert f"replication factor {brokers} instead of 3" in told.getMessage()
    assert "kafka-reassign-partitions.sh" in told.getMessage()
    assert f"set eos.log.replication.factor to {brokers}" in told.getMessage()


@pytest.mark.parametrize("code", [KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION])
def test_a_small_cluster_may_refuse_settings_too(
    code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(monkeypatch, 1, 1)
    cluster.refuses = code
    cluster.ensure(3)
    assert cluster.asked[-1] == (1, ALONE)
    assert len(cluster.asked) == 3
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "cleanup.policy alone" in told
    assert "replication factor 1 instead of 3" in told
    assert len(caplog.records) == 2


def test_a_refusal_for_another_cause_than_few_brokers_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(monkeypatch, 3, 0)
    with pytest.raises(ClusterError, match="could not be created"):
        cluster.ensure(3)
    assert len(cluster.asked) == 1
