"""A topic that is deleted while rows are on their way: no batch is decided without them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import ClusterError, EosSinkError, FailureKind, ProduceFailedError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import assert_each_once, read_topic
from integration.query import Query
from integration.topics import delete_topic, unique

GIVES_UP_MS = 2_000


def rows(topics: list[str], batch: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"topic": topics, "value": [f"{batch}-{i}" for i, _ in enumerate(topics)]}
    )


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("kafka.topic.metadata.propagation.max.ms", ClusterError),
        pytest.param("kafka.message.timeout.ms", ProduceFailedError, marks=pytest.mark.long),
    ],
    ids=["unknown", "timed out"],
)
def test_rows_that_the_client_gives_up_by_itself_fail_the_batch(
    kafka: KafkaCluster, setting: str, error: type[EosSinkError]
) -> None:
    """librdkafka reports them only when it commits, and tasks do not commit."""
    kept, gone = unique("kept"), unique("gone")
    for topic in (kept, gone):
        kafka.create_topic(topic)
    given = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "eos.id": kept,
        "eos.inline.bytes": "0",
        setting: str(GIVES_UP_MS),
    }
    options = parse_options(given)
    clients = ConfluentKafka(options.cluster)
    planner, committer = Planner(clients, options), Committer(clients, options)

    def write(batch: int) -> TaskReport:
        task = TaskWriter(clients, options, planner.plan())
        return task.write(BatchId("stream", batch), 0, iter([rows([kept, gone, kept], batch)]))

    committer.commit([write(0)])
    delete_topic(kafka.bootstrap_servers, gone)
    with pytest.raises(error) as caught:
        write(1)
    assert gone in str(caught.value)
    if isinstance(caught.value, ProduceFailedError):
        assert caught.value.kind is FailureKind.DELIVERY_FAILED
    kafka.create_topic(gone)
    committer.commit([write(1)])
    assert_each_once(read_topic(kafka.bootstrap_servers, kept), ["0-0", "0-2", "1-0", "1-2"])
    assert_each_once(read_topic(kafka.bootstrap_servers, gone), ["1-1"])
    planner.close()
    clients.close()


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.TASK_INIT_BEFORE,
        pytest.param(FaultPoint.PLANNER_READ_BEFORE, marks=pytest.mark.long),
        pytest.param(FaultPoint.TASK_OFFSET_BEFORE, marks=pytest.mark.long),
    ],
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
