"""A topic that is deleted while rows are on their way: no batch is decided without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from confluent_kafka import Producer

from eos_sink.errors import (
    ClusterError,
    CommitFailedError,
    EosSinkError,
    FailureKind,
    OperatorNeededError,
    ProduceFailedError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import assert_each_once, read_topic
from integration.conftest import MakeRun
from integration.operator_commands import Operator
from integration.query import PARTITIONS, Query
from integration.topics import delete_topic, make_again, new_topic

pytestmark = pytest.mark.sampled(3, of="deleted topics")

GIVES_UP_MS = 5_000


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("kafka_topic_metadata_propagation_max_ms", ClusterError),
        ("kafka_message_timeout_ms", ProduceFailedError),
    ],
    ids=["unknown", "timed out"],
)
def test_rows_that_the_client_gives_up_by_itself_fail_the_batch(
    kafka: KafkaCluster, run: MakeRun, setting: str, error: type[EosSinkError]
) -> None:
    """librdkafka reports them only when it commits, and tasks do not commit."""
    kept, gone = new_topic(kafka, "kept", 1), new_topic(kafka, "gone", 1)
    query = run(kafka, eos_id=kept, **{setting: str(GIVES_UP_MS)})

    def write(batch: int) -> None:
        query.write(topic=[kept, gone, kept], value=[f"{batch}-{row}" for row in range(3)])

    write(0)
    delete_topic(kafka.bootstrap_servers, gone)
    with pytest.raises(error) as caught:
        write(1)
    assert gone in str(caught.value)
    if isinstance(caught.value, ProduceFailedError):
        assert caught.value.kind is FailureKind.DELIVERY_FAILED
    kafka.create_topic(gone)
    write(1)
    assert_each_once(read_topic(kafka.bootstrap_servers, kept), ["0-0", "0-2", "1-0", "1-2"])
    assert_each_once(read_topic(kafka.bootstrap_servers, gone), ["1-1"])


@pytest.mark.parametrize(
    "point",
    [FaultPoint.TASK_INIT_BEFORE, FaultPoint.PLANNER_READ_BEFORE, FaultPoint.TASK_OFFSET_BEFORE],
    ids=lambda point: point.value,
)
def test_a_query_whose_topic_is_deleted_stops_and_names_it(
    query: Query, kafka: KafkaCluster, point: FaultPoint
) -> None:
    query._given["kafka.topic.metadata.propagation.max.ms"] = str(GIVES_UP_MS)
    partition = -1 if point.value.startswith("planner") else 0
    process = query.run_paused_at(point, partition=partition)
    delete_topic(kafka.bootstrap_servers, query.topic)
    process.wake()
    assert query.topic in process.stopped(ClusterError, ProduceFailedError)["text"]
    assert query.topic in query.run().stopped(ClusterError)["text"]
    kafka.create_topic(query.topic, partitions=3)
    query.finish()
    left = [row for batch in query.batches[1:] for part in batch for row in part]
    assert_each_once(query.visible(), left)


def write_foreign_rows(kafka: KafkaCluster, topic: str, rows: int = 50) -> None:
    """Another program's, at all offsets where a batch may have had its own."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(rows):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"foreign-%d" % number, partition=partition)
    assert producer.flush(30) == 0


def test_another_record_in_a_topic_that_was_made_again_proves_no_commit(
    query: Query, kafka: KafkaCluster
) -> None:
    """It stands at the offset where the decision has its witness."""
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    make_again(kafka, query.topic)
    write_foreign_rows(kafka, query.topic)
    error = query.run().stopped(OperatorNeededError)
    assert "deleted and created again" in error["text"]
    assert "--lost" in error["text"]
    Operator(query).chooses("lost")
    query.finish()
    left = [row for batch in query.batches[1:] for part in batch for row in part]
    rows = [row for row in query.visible().values() if not row.startswith("foreign")]
    assert sorted(rows) == sorted(left)


def test_a_decided_batch_goes_to_the_topic_that_was_made_again_before_it_was_visible(
    query: Query, kafka: KafkaCluster
) -> None:
    """Its transactions are open: to commit them would make nothing visible."""
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    make_again(kafka, query.topic)
    query.finish()
    left = [row for batch in query.batches[1:] for part in batch for row in part]
    assert_each_once(query.visible(), left)


@pytest.mark.parametrize("inline", ["0", "65536"], ids=["by tasks", "by the driver"])
def test_rows_in_a_topic_that_is_made_again_before_the_decision_are_written_again(
    kafka: KafkaCluster, run: MakeRun, inline: str
) -> None:
    """Kafka would commit the transaction, and not tell that it has dropped its markers."""
    topic = new_topic(kafka, "again")
    query = run(kafka, topic=topic, eos_id=topic, eos_inline_bytes=inline)
    asked = query.kafka.topic_ids

    def ask(topics: Collection[str], deadline: Deadline) -> Mapping[str, str]:
        """All rows are there, and then the topic is made again."""
        make_again(kafka, topic)
        return asked(topics, deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query.kafka, "topic_ids", ask)
        with pytest.raises(CommitFailedError, match=topic):
            query.write(value=["a", "b"])
    query.write(value=["a", "b"])
    assert_each_once(read_topic(kafka.bootstrap_servers, topic), ["a", "b"])
