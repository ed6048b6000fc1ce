"""Writers that share an `eos.id` or an identity on a real broker: no decided batch comes twice."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import ConfigurationError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import BatchId, Numbering, TaskReport
from eos_sink.sink_options import SinkOptions
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from integration.checker import assert_each_once, read_topic
from integration.topics import new_topic, unique


class Application:
    """The planner and the committer of one application; each batch has one task."""

    def __init__(self, options: SinkOptions) -> None:
        self._kafka = ConfluentKafka(options.cluster)
        self._options = options
        self._planner = Planner(self._kafka, options)
        self._committer = Committer(self._kafka, options)

    def prepare(self, batch: BatchId, row: str, spark_run: str = "") -> TaskReport:
        rows = [pa.RecordBatch.from_pydict({"value": [row]})]
        plan = self._planner.plan()
        return TaskWriter(self._kafka, self._options, plan).write(batch, 0, rows, spark_run)

    def commit(self, report: TaskReport) -> None:
        self._committer.commit([report])

    def write(self, batch: BatchId, row: str, spark_run: str = "") -> None:
        self.commit(self.prepare(batch, row, spark_run))

    def close(self) -> None:
        self._planner.close()


def test_two_prefixes_of_one_id_do_not_overwrite_each_others_decisions(
    kafka: KafkaCluster,
) -> None:
    """The committer of A plans before B decides, and writes its own decision after it."""
    topic, eos_id = new_topic(kafka, "prefixes"), uuid.uuid4().hex

    def start(prefix: str) -> Application:
        return Application(
            parse_options(
                {
                    "kafka.bootstrap.servers": kafka.bootstrap_servers,
                    "topic": topic,
                    "eos.id": eos_id,
                    "eos.transactional.id.prefix": prefix,
                }
            )
        )

    a, b = start("a-"), start("b-")
    of_a, of_b = unique("stream-a"), unique("stream-b")
    a.write(BatchId(of_a, 0), "a0")
    decided_late = a.prepare(BatchId(of_a, 1), "a1")
    b.write(BatchId(of_b, 0), "b0")
    a.commit(decided_late)
    b.close()
    # Spark has not noted B's batch as done, and replays it.
    b = start("b-")
    b.write(BatchId(of_b, 0), "b0")
    for application in (a, b):
        application.close()
    assert_each_once(read_topic(kafka.bootstrap_servers, topic), ["a0", "a1", "b0"])


def test_of_two_queries_that_take_turns_under_one_eos_id_the_first_goes_on_under_its_own(
    kafka: KafkaCluster,
) -> None:
    """Each writes a frame of its `foreachBatch` to one topic; the other one has retired it."""
    topic = new_topic(kafka, "frames")

    def write(name: str, query: str, batch: int, row: str) -> None:
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic, "eos.id": name}
        job = Application(parse_batch_options(given).sink)
        try:
            numbered = BatchId.numbered_by(Numbering.FOREACH, query, batch)
            job.write(numbered, row, spark_run=uuid.uuid4().hex)
        finally:
            job.close()

    shared, own, one, two = map(unique, ("shared", "own", "one", "two"))
    write(shared, one, 0, "one-0")
    write(shared, two, 0, "two-0")
    for batch in (0, 1):
        with pytest.raises(ConfigurationError, match=f"stream {two} has followed it"):
            write(shared, one, batch, f"one-{batch}")
    write(own, one, 1, "one-1")
    write(shared, two, 1, "two-1")
    rows = ["one-0", "one-1", "two-0", "two-1"]
    assert_each_once(read_topic(kafka.bootstrap_servers, topic), rows)
