"""A query that changes its identity and changes back, in real Spark: no row is there twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import eos_sink
from eos_sink.spark import foreach_batch
from eos_sink_lab.testing import KafkaCluster
from integration.checker import assert_each_once, read_topic
from integration.topics import new_topic

pytestmark = pytest.mark.timeout(600)
LEFT = "gone on under another identity"


class Lines:
    """A query that reads text files of ten rows, one a batch."""

    def __init__(self, spark: SparkSession, kafka: KafkaCluster, home: Path) -> None:
        self._spark, self._kafka, self._home = spark, kafka, home
        self.topic = new_topic(kafka, "changed")
        self.expected: list[str] = []
        (home / "in").mkdir()

    def add(self) -> None:
        number = len(self.expected) // 10
        rows = [f"{number}-{row}" for row in range(10)]
        (self._home / "in" / f"{number}.txt").write_text("\n".join(rows))
        self.expected += rows

    def options(self, **more: str) -> dict[str, str]:
        servers = self._kafka.bootstrap_servers
        return {"kafka.bootstrap.servers": servers, "topic": self.topic, **more}

    def writes_by_itself(self) -> None:
        options = self.options(checkpointLocation=str(self._home / "checkpoint"))
        writer = self._frame().writeStream.format("kafka-eos").options(**options)
        writer.trigger(availableNow=True).start().awaitTermination(120)

    def writes_in_foreach_batch(self, *, fails: bool) -> None:
        write = eos_sink.foreach_batch(self.options(**{"eos.id": self.topic}))

        def write_and_go_on(frame: DataFrame, number: int) -> None:
            write(frame, number)
            if fails:
                raise ValueError("behind the write")

        writer = self._frame().writeStream.foreachBatch(write_and_go_on)
        writer = writer.option("checkpointLocation", str(self._home / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination(120)

    def assert_each_once(self) -> None:
        assert_each_once(read_topic(self._kafka.bootstrap_servers, self.topic), self.expected)

    def _frame(self) -> DataFrame:
        lines = self._spark.readStream.format("text").option("maxFilesPerTrigger", 1)
        return lines.load(str(self._home / "in"))


@pytest.fixture
def lines(spark: SparkSession, kafka: KafkaCluster, tmp_path: Path) -> Iterator[Lines]:
    query = Lines(spark, kafka, tmp_path)
    for _ in range(3):
        query.add()
    yield query
    for kept in foreach_batch._clients._entries.values():
        kept.close()


def test_from_format_to_foreach_batch_and_back_during_a_batch(lines: Lines) -> None:
    lines.writes_by_itself()
    lines.add()
    with pytest.raises(PySparkException, match="behind the write"):
        lines.writes_in_foreach_batch(fails=True)
    with pytest.raises(PySparkException, match=LEFT):
        lines.writes_by_itself()
    lines.assert_each_once()
    lines.add()
    lines.writes_in_foreach_batch(fails=False)
    lines.assert_each_once()
