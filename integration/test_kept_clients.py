"""A process that Spark keeps for many queries holds no client that it does not need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StructField, StructType

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.options import parse_options
from eos_sink.spark import data_source, writers
from eos_sink.spark.client_cache import ClientCache
from eos_sink.spark.data_source import KafkaEosDataSource
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.in_process import Run
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic

SCHEMA = StructType([StructField("value", BinaryType())])


class Frame:
    """Stands for the TaskContext of a write inside foreachBatch."""

    def __init__(self, batch: int) -> None:
        self._properties = {
            "sql.streaming.queryId": "5e4e4a6e-0000-4000-8000-000000000001",
            "spark.jobGroup.id": "5e4e4a6e-0000-4000-8000-000000000002",
            "streaming.sql.batchId": str(batch),
        }

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
        return self._properties.get(name)

    def attemptNumber(self) -> int:  # noqa: N802 - Spark's name
        return 0

    def partitionId(self) -> int:  # noqa: N802 - Spark's name
        return 0


def threads_and_files() -> tuple[int, int]:
    """Of this process, librdkafka's threads included."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def names_of_threads() -> list[str]:
    """Names of this process's threads; librdkafka names its own."""
    return sorted(name.read_text().strip() for name in Path("/proc/self/task").glob("*/comm"))


def await_at_most(threads: int, files: int) -> None:
    """Clients end their threads in the background."""
    deadline = Deadline(30)
    while True:
        now = threads_and_files()
        if now[0] <= threads and now[1] <= files:
            return
        assert not deadline.passed, (
            f"{now} threads and files, more than {(threads, files)}: {names_of_threads()}"
        )


@pytest.fixture(scope="module")
def other() -> Iterator[KafkaCluster]:
    with start_own_kafka() as cluster:
        yield cluster


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that keeps nothing of other tests, and leaves nothing to them."""
    planners: ClientCache[Planner] = ClientCache()
    committers: ClientCache[Committer] = ClientCache()
    monkeypatch.setattr(data_source, "_planners", planners)
    monkeypatch.setattr(writers, "_committers", committers)
    yield
    for kept in (planners, committers):
        for entry in kept._entries.values():
            entry.close()


@pytest.mark.usefixtures("process")
def test_batches_that_write_one_topic_on_two_clusters_leave_no_clients_behind(
    kafka: KafkaCluster, other: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a foreachBatch does that copies its rows: both writes have one identity and one group."""
    topic = new_topic(kafka, "copied", partitions=1)
    other.create_topic(topic, partitions=1)

    def write(batch: int) -> None:
        monkeypatch.setattr(TaskContext, "get", lambda: Frame(batch))
        for cluster in (kafka, other):
            servers = cluster.bootstrap_servers
            options = {"kafka.bootstrap.servers": servers, "topic": topic, "eos.id": topic}
            writer = KafkaEosDataSource(options).writer(SCHEMA, overwrite=False)
            rows = [pa.RecordBatch.from_pydict({"value": [b"%d" % batch]})]
            writer.commit([writer.write(iter(rows))])

    write(0)
    write(1)
    threads, files = threads_and_files()
    batches = 8
    for batch in range(2, 2 + batches):
        write(batch)
    # One client that is kept of each batch would be more.
    await_at_most(threads + batches // 2, files + batches)
    for cluster in (kafka, other):
        rows = read_topic(cluster.bootstrap_servers, topic)
        assert rows.values() == [str(batch) for batch in range(2 + batches)]


def test_a_planner_and_a_committer_that_are_closed_leave_nothing_behind(
    kafka: KafkaCluster,
) -> None:
    """kafka-python's thread would look for an ended broker, and log that, for ever."""
    topic = new_topic(kafka, "closed", partitions=1)
    threads, files = threads_and_files()
    query = Run(kafka, {"topic": topic})
    query.write(value=[b"row"])
    query.close()
    await_at_most(threads, files)


def test_a_planner_that_is_closed_after_its_broker_has_gone_leaves_nothing_behind() -> None:
    threads, _ = threads_and_files()
    with start_own_kafka() as gone:
        query = Run(gone, {"topic": new_topic(gone, "gone", partitions=1)})
        query.plan()
    query.close()
    # The errors that pytest has captured hold sockets that could not connect.
    await_at_most(threads, sys.maxsize)


def test_a_client_that_is_made_while_another_thread_closes_them_is_closed_too(
    kafka: KafkaCluster,
) -> None:
    """`closed_clients` fails the file if it stays."""
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": "any", "eos.id": "any"}
    clients = SharedClients(parse_options(given).cluster)
    clients.close()
    with pytest.raises(RuntimeError, match="closed"):
        clients.control()
