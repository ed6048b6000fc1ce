"""What Kafka's proposals and its article on exactly once promise, as the sink keeps it.

docs/internals/kips.md names these tests beside what they show.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaAdminClient
from kafka.admin import UpdateFeatureType
from kafka.protocol.consumer.fetch import FetchRequest

from eos_sink.errors import (
    BatchFailedError,
    CommitFailedError,
    FailureKind,
    OutcomeUnknownError,
    ProduceFailedError,
)
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.fetch import Fetched, fetch
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.cluster_config import ClusterConfig, Translation
from eos_sink.protocol.values import Hanging, Position
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from eos_sink_lab.testing.topic_scan import Offsets, Source
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.conftest import MakeQuery
from integration.own_kafka import start_own_kafka
from integration.query import PATIENCE_S, Query
from integration.query_state import open_transaction
from integration.topics import unique

pytestmark = pytest.mark.sampled(4, of="KIPs")

STEP_MS = 15_000
RECORDS, RESETS = 3_000, 6


# KIP-691


@pytest.mark.long
def test_a_commit_whose_answer_comes_late_is_sent_once(
    linked: KafkaCluster, query_on: MakeQuery
) -> None:
    query = query_on(linked)
    process = query.run_paused_at(FaultPoint.COMMITTER_WRITE_BEFORE)
    link = linked.nodes[0].link
    link.cut(answers_only=True)
    process.wake()
    time.sleep(1)  # the fault's length, not a wait for something
    link.heal()
    process.finished()
    # The start's fence, and one record per batch.
    assert query.log().seq == 1 + len(query.batches)
    query.check()


@pytest.mark.long
def test_a_commit_without_an_answer_is_read_back_and_never_aborted_blindly(
    linked: KafkaCluster, query_on: MakeQuery
) -> None:
    query = query_on(linked, eos_step_timeout_ms=str(STEP_MS))
    process = query.run_paused_at(FaultPoint.COMMITTER_WRITE_BEFORE)
    link = linked.nodes[0].link
    link.cut(answers_only=True)
    process.wake()
    process.stopped(OutcomeUnknownError)
    link.heal()
    # The request had arrived: the batch is decided, and an abort now would lose it.
    assert query.decided() == 1
    query.finish()
    query.check()


def test_a_record_that_is_too_large_is_a_rejected_message(
    kafka: KafkaCluster, query_on: MakeQuery
) -> None:
    query = query_on(kafka, kafka_max_request_size="4000000")
    query.batches[1][1][3] = "1-1-" + "9" * 2_000_000
    error = query.run().stopped(ProduceFailedError)
    assert error["data"] == {"kind": FailureKind.MESSAGE_REJECTED.value}
    assert "max.message.bytes" in error["text"]
    query.check(batches=1)


def test_a_task_whose_id_is_taken_has_a_failed_transaction(query: Query) -> None:
    process = query.run_paused_at(FaultPoint.TASK_FLUSH_BEFORE, partition=1)
    query.take_id(1 - query.slot(), 1)
    process.wake()
    error = process.stopped(ProduceFailedError)
    assert error["data"] == {"kind": FailureKind.TRANSACTION_FAILED.value}
    query.check(batches=1)
    query.finish()
    query.check()


def test_a_batch_that_is_voted_down_is_a_failed_commit(query: Query) -> None:
    process = query.run_paused_at(FaultPoint.COMMITTER_VOTE_BEFORE)
    # The log cannot be read here: it ends in the open transaction of this decision.
    query.take_id(slot=1, partition=0)
    process.wake()
    process.stopped(CommitFailedError)
    query.check(batches=1)


# KIP-360


def test_a_producer_that_the_broker_has_forgotten_starts_again_and_the_query_continues(
    forgetful: KafkaCluster, query_on: MakeQuery
) -> None:
    """The driver keeps its producer between batches, here for longer than its id lives."""
    query = query_on(forgetful)
    process = query.run_paused_at(FaultPoint.TASK_INIT_BEFORE, partition=0)
    query.wait_forgotten(query.options.names.driver)
    process.wake()
    process.finished()
    query.check()


def test_a_query_that_starts_after_its_ids_expired_knows_its_batch_by_the_witnesses(
    forgetful: KafkaCluster, query_on: MakeQuery
) -> None:
    query = query_on(forgetful)
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.wait_forgotten(*query.task_ids(query.slot()))
    assert query.finish().written(1) == []
    query.check()


# KIP-447, KIP-890


CHANGES = pytest.mark.parametrize(
    ("before", "after"), [(1, 2), (2, 1)], ids=["upgrade", "downgrade"]
)


@pytest.fixture
def feature_admin(kafka: KafkaCluster) -> Iterator[KafkaAdminClient]:
    """For a test that changes the transaction version, which is 2 again afterwards."""
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        yield admin
        set_transaction_version(admin, 2)


@CHANGES
def test_the_transaction_version_changes_under_a_prepared_batch(
    query: Query, feature_admin: KafkaAdminClient, before: int, after: int
) -> None:
    set_transaction_version(feature_admin, before)
    process = query.run_paused_at(FaultPoint.COMMITTER_VOTE_BEFORE)
    set_transaction_version(feature_admin, after)
    process.wake()
    if not process.ends_within(PATIENCE_S) or process.end:
        process.stopped(BatchFailedError)
    query.finish()
    query.check()


@CHANGES
def test_the_transaction_version_changes_under_a_decided_batch(
    query: Query, feature_admin: KafkaAdminClient, before: int, after: int
) -> None:
    set_transaction_version(feature_admin, before)
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AMID)
    set_transaction_version(feature_admin, after)
    assert query.finish().written(1) == []
    query.check()


def set_transaction_version(admin: KafkaAdminClient, version: int) -> None:
    now = transaction_version(admin)
    if now == version:
        return
    way = UpdateFeatureType.UPGRADE if version > now else UpdateFeatureType.SAFE_DOWNGRADE
    answer = admin.update_features({"transaction.version": (way, version)})
    assert answer == {"transaction.version": "OK"}, answer
    wait_until(
        lambda: transaction_version(admin) == version,
        Deadline(PATIENCE_S),
        f"transaction.version is {version}",
    )


def transaction_version(admin: KafkaAdminClient) -> int:
    version: int = admin.describe_features()["transaction.version"]["finalized"][1]
    return version


# The article's idempotent producer


@pytest.mark.long
def test_a_batch_that_is_sent_again_after_a_broken_connection_is_written_once(
    linked: KafkaCluster, query_on: MakeQuery
) -> None:
    query = query_on(linked)
    kafka = ConfluentKafka(query.options.cluster)
    producer = kafka.producer(query.options.names.task(0, 0), 60_000)
    producer.init(Deadline(PATIENCE_S))
    producer.begin()
    for number in range(RECORDS):
        producer.produce(query.topic, b"%d" % number, partition=0)
        if number % (RECORDS // RESETS) == 0:
            linked.nodes[0].link.reset()
            linked.nodes[0].link.heal()
    producer.flush(Deadline(PATIENCE_S))
    ends = Offsets(Source(linked.direct_servers, query.topic)).find_high()
    assert ends[0] == RECORDS, "records were written again, or lost"
    assert not Offsets(Source(linked.direct_servers, query.topic)).find_stable()[0]
    producer.commit(Deadline(PATIENCE_S))
    producer.close()
    rows = read_topic(linked.direct_servers, query.topic).of(0)
    assert rows == [str(number) for number in range(RECORDS)]


# KIP-392


@pytest.mark.long
def test_the_leader_answers_where_brokers_send_readers_to_a_replica_near_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such an answer has no records and looks like an empty log."""
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    properties = {"replica.selector.class": selector}
    with start_own_kafka(brokers=3, data_dir=tmp_path, properties=properties) as kafka:
        kafka.create_topic("rows")
        leader = kafka.leader_of("rows", 0)
        for node in kafka.brokers:
            rack = "rack-of-the-leader" if node.id == leader else "rack-of-a-follower"
            config = tmp_path / f"node-{node.id}" / "server.properties"
            node.stop()
            config.write_text(f"{config.read_text()}broker.rack={rack}\n")
            node.restart()
        kafka.wait_in_sync()
        kafka.move_leader("rows", 0, leader)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("rows", b"row")
        producer.flush(30)
        wire = Wire({"bootstrap_servers": kafka.bootstrap_servers.split(",")}, Deadline(30))

        async def read() -> Fetched | KafkaError:
            return await fetch(wire, ("rows", 0), 0, Deadline(30), committed=True)

        # As a client near one of the followers asks.
        make = partialmethod(FetchRequest.__init__, rack_id="rack-of-a-follower")
        monkeypatch.setattr(FetchRequest, "__init__", make)

        def is_read() -> bool:
            found = wire.run(read)
            return isinstance(found, Fetched) and found.next > 0

        wait_until(is_read, Deadline(30), "the record, or what is passed over, is read")
        found = wire.run(read)
        wire.close()
    assert isinstance(found, Fetched)
    assert [record.value for record in found.records()] == [b"row"]


def test_the_first_marker_behind_rows_ends_them_however_far_its_epoch_is(
    kafka: KafkaCluster,
) -> None:
    """Kafka 4.0.0 moves the epoch by two when it aborts (KAFKA-19367)."""
    topic = unique("marker")
    kafka.create_topic(topic)
    settings = Translation({"bootstrap.servers": kafka.bootstrap_servers})
    client = ConfluentKafka(ClusterConfig(settings))
    name, deadline = unique("task"), Deadline(PATIENCE_S)
    with closing(client):
        producer = open_transaction(client, name, topic)
        state = client.control().describe([name], deadline)[name]
        rows = state.transaction
        marker = replace(rows, epoch=rows.epoch + 2)
        hanging = Hanging(marker, topic, 0, 0, -1, state)
        assert client.control().end_hanging(hanging, False, deadline)
        witness = Position(topic, 0, 0)
        assert client.read_back().markers({witness: rows}, deadline) == {witness: False}
        producer.close()
