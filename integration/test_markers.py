"""Partitions that have no leader when a transaction ends. Kafka 4 drops their markers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.decision_log import DecisionRegister
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.task.writer import TaskWriter
from eos_sink.testing import KafkaCluster
from eos_sink.testing.cluster_errors import TestClusterError
from eos_sink.testing.waiting import wait_until
from integration.checker import read_topic
from integration.own_kafka import start_own_kafka

pytestmark = pytest.mark.timeout(400)

LONG_S = 120.0
ROWS = [b"a", b"b", b"c"]


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaCluster]:
    with start_own_kafka(brokers=3) as cluster:
        yield cluster


class Batches:
    """A query of one task, in steps. Its topic has one copy, on the broker `home`."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster = cluster
        self.topic = f"single-{uuid.uuid4().hex[:8]}"
        cluster.create_topic(self.topic, replication=1)
        self.home = cluster.node(cluster.leader_of(self.topic, 0))
        given = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "eos.id": self.topic,
            "topic": self.topic,
            "eos.inline.bytes": "0",
        }
        self.options = parse_options(given)
        self.kafka = ConfluentKafka(self.options)
        self.planner = Planner(self.kafka, self.options)
        self.committer = Committer(self.kafka, self.options)
        self.register = DecisionRegister(self.kafka, self.options.names)

    def write(self) -> list[TaskReport]:
        task = TaskWriter(self.kafka, self.options, self.planner.plan())
        rows = [pa.RecordBatch.from_pydict({"value": ROWS})]
        return [task.write(BatchId("stream", 0), 0, rows)]

    def lose_leader(self) -> None:
        self.read_seq()
        self.home.kill()

        def has_none() -> bool:
            try:
                return self.cluster.leader_of(self.topic, 0) == -1
            except TestClusterError:
                return False

        wait_until(has_none, Deadline(LONG_S), f"{self.topic} has no leader")

    def read_seq(self) -> int:
        return self.register.read(Deadline(LONG_S)).seq

    def during(self, step: Callable[..., Any], *given: Any) -> None:
        """Take a step while there is no leader, until it has written to the decision log and for as
        long as a broker needs to start."""
        before = self.read_seq()
        with ThreadPoolExecutor(1) as pool:
            stepped = pool.submit(step, *given)
            wait_until(
                lambda: stepped.done() or self.read_seq() > before,
                Deadline(LONG_S),
                "the log has a new record",
            )
            self.home.restart()
            stepped.result(LONG_S)

    def close(self) -> None:
        self.register.close()
        self.planner.close()
        self.committer.close()


@pytest.fixture
def batches(brokers: KafkaCluster) -> Iterator[Batches]:
    made = Batches(brokers)
    yield made
    made.close()
    brokers.repair()


def test_a_decided_transaction_is_ended_when_its_partitions_have_leaders(batches: Batches) -> None:
    reports = batches.write()
    batches.lose_leader()
    batches.during(batches.committer.commit, reports)
    seen = read_topic(batches.cluster.bootstrap_servers, batches.topic)
    assert [each.value for each in seen] == ROWS


def test_an_aborted_transaction_does_not_come_back_with_the_next_one(batches: Batches) -> None:
    """Its producer id goes on, and what it has left open would end with its next transaction."""
    reports = batches.write()
    batches.lose_leader()
    batches.during(batches.committer.abort, reports)
    batches.committer.commit(batches.write())
    seen = read_topic(batches.cluster.bootstrap_servers, batches.topic)
    assert [each.value for each in seen] == ROWS
