"""Three brokers, one of which is gone, and with it a partition that has no other copy."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from eos_sink.errors import EosSinkError, OutcomeUnknownError, ProduceFailedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.log_topic import home_of
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.options import parse_options
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster, TestClusterError
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.in_process import Died, Run
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic, unique, unique_that

INLINE = "65536"
STEP_MS = "40000"
COPIES = 3


@pytest.fixture
def fragile(cluster: KafkaCluster) -> Iterator[str]:
    """A topic with one copy of each partition, on three brokers."""
    topic = unique("fragile")
    cluster.create_topic(topic, partitions=COPIES, replication=1)
    yield topic
    cluster.repair()


def take_leader(cluster: KafkaCluster, topic: str) -> int:
    """Stop the broker that has the only copy of a partition; the partition."""
    partition = COPIES - 1
    cluster.node(cluster.leader_of(topic, partition)).stop()

    def is_gone() -> bool:
        # The other brokers may still name the one that is stopped, and the client ask that.
        with contextlib.suppress(TestClusterError):
            return cluster.leader_of(topic, partition) == -1
        return False

    wait_until(is_gone, Deadline(30), f"{topic}[{partition}] has no leader")
    return partition


def identity_at(home: int) -> str:
    """Of a query whose records are in this partition of the log."""

    def is_there(found: str) -> bool:
        given = {"kafka.bootstrap.servers": "x:1", "eos.id": found, "topic": "t"}
        return bool(home_of(parse_options(given).names.query) == home)

    return unique_that("q", is_there, f"has its records in partition {home} of the log")


def to_all(value: str) -> dict[str, Any]:
    """A row for each partition."""
    return {"value": [value] * COPIES, "partition": pa.array(range(COPIES), pa.int32())}


@pytest.mark.long
def test_a_query_whose_partition_has_no_leader_keeps_no_other_one_waiting(
    cluster: KafkaCluster, run: MakeRun, fragile: str
) -> None:
    home, topic = 3, new_topic(cluster, "healthy")
    sick = run(
        cluster,
        eos_id=identity_at(home),
        topic=fragile,
        eos_inline_bytes=INLINE,
        eos_step_timeout_ms=STEP_MS,
    )
    healthy = run(cluster, eos_id=identity_at(home), topic=topic, eos_inline_bytes=INLINE)
    sick.write(**to_all("first"))
    healthy.write(value=["0"])
    take_leader(cluster, fragile)
    healthy.write(value=["1"])
    errors: list[EosSinkError] = []
    waiting = threading.Thread(target=lambda: errors.append(failure(sick)))
    waiting.start()
    control, driver = sick.kafka.control(), sick.options.names.driver
    batches, beside = 2, 0
    while waiting.is_alive():
        healthy.write(value=[str(batches)])
        batches += 1
        state = control.describe([driver], Deadline(10))[driver]
        beside += state.status is TransactionStatus.ONGOING
    assert isinstance(errors[0], ProduceFailedError)
    assert fragile in errors[0].message
    seen = read_topic(cluster.bootstrap_servers, topic).values()
    assert sorted(seen, key=int) == [str(number) for number in range(batches)]
    # While the transaction of one batch waits for the partition, another query decides many.
    assert beside > 10


def failure(query: Run) -> EosSinkError:
    with pytest.raises(EosSinkError) as raised:
        query.write(**to_all("second"))
    return raised.value


# --- The driver's transaction is ended while a partition of its rows has no leader.


@pytest.fixture(scope="module")
def older() -> Iterator[KafkaCluster]:
    """Kafka 3.9 keeps the markers for such a partition, and the driver's id, until it has one."""
    with start_own_kafka(version="3.9.1", brokers=3) as cluster:
        yield cluster


def die_in_commit(
    monkeypatch: pytest.MonkeyPatch, cluster: KafkaCluster, topic: str, *, carried_out: bool
) -> None:
    """The broker goes before EndTxn, and the driver behind it."""
    commit = ConfluentProducer.commit

    def struck(producer: ConfluentProducer, deadline: Deadline) -> None:
        monkeypatch.setattr(ConfluentProducer, "commit", commit)
        take_leader(cluster, topic)
        if carried_out:
            commit(producer, deadline)
        raise Died

    monkeypatch.setattr(ConfluentProducer, "commit", struck)


def mixed(value: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A task whose transaction has all partitions but the last, and one row of the driver there."""
    parts = [
        {"value": [f"{value} {number}"], "partition": pa.array([number], pa.int32())}
        for number in range(COPIES)
    ]
    return parts[:-1], parts[-1:]


def read_healthy(cluster: KafkaCluster, topic: str, rows: int) -> list[str]:
    """What a read_committed reader of all partitions but the last one gets."""
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    servers = {"bootstrap.servers": cluster.direct_servers, "group.id": "reader"}
    reader, deadline = Consumer({**servers, **settings}), Deadline(30)
    reader.assign([TopicPartition(topic, number, 0) for number in range(COPIES - 1)])
    seen: list[str] = []
    while len(seen) < rows and not deadline.passed:
        message = reader.poll(0.5)
        if message is not None and message.error() is None:
            seen.append((message.value() or b"").decode())
    reader.close()
    return sorted(seen)


@pytest.mark.long
@pytest.mark.parametrize("carried_out", [True, False], ids=["decided", "not decided"])
def test_a_query_that_waits_for_a_partition_settles_the_others_and_names_it(
    older: KafkaCluster, run: MakeRun, monkeypatch: pytest.MonkeyPatch, carried_out: bool
) -> None:
    topic = unique("fragile")
    older.create_topic(topic, partitions=COPIES, replication=1)
    given = {
        "topic": topic,
        "eos_id": topic,
        "eos_inline_bytes": INLINE,
        "eos_step_timeout_ms": "20000",
        "eos_transaction_timeout_ms": "300000",
    }
    first = run(older, **given)
    first.write_tasks(*mixed("first"))
    die_in_commit(monkeypatch, older, topic, carried_out=carried_out)
    with pytest.raises(Died):
        first.write_tasks(*mixed("second"))
    with pytest.raises(OutcomeUnknownError) as raised:
        run(older, **given).plan()
    assert raised.value.data["partitions"] == [f"{topic}[{COPIES - 1}]"]
    assert raised.value.data["status"] == ("PrepareCommit" if carried_out else "PrepareAbort")
    if carried_out:
        assert read_healthy(older, topic, 4) == ["first 0", "first 1", "second 0", "second 1"]
    older.repair()
    last = run(older, **given)
    last.next = 1
    last.write_tasks(*mixed("second"))
    rows = [f"{batch} {number}" for batch in ("first", "second") for number in range(COPIES)]
    assert sorted(read_topic(older.bootstrap_servers, topic).values()) == rows
