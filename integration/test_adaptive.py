"""A decided batch whose transactions were lost, and a replay that adaptive execution splits in
another way (docs/errors.md, Other partitions)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from eos_sink_lab.testing.faults import FaultPoint
from integration.spark_apps import Applications
from integration.spark_query import SparkQuery

pytestmark = pytest.mark.long

ADAPTIVE = "spark.sql.adaptive.streaming.stateless.enabled"
SPLIT = {
    "spark.sql.shuffle.partitions": "6",
    # Else so few rows become one partition.
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1b",
}


@pytest.fixture
def query(spark_query: SparkQuery, spark: SparkSession) -> Iterator[SparkQuery]:
    """One whose rows go through a shuffle, which only an application of its own adapts."""
    before = {name: spark.conf.get(name, None) for name in (*SPLIT, ADAPTIVE)}
    for name, value in {**SPLIT, ADAPTIVE: "false"}.items():
        spark.conf.set(name, value)
    spark_query.tasks = "value"
    yield spark_query
    for name, former in before.items():
        if former is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, former)


def lose(query: SparkQuery, applications: Applications, many: int | None) -> None:
    """Decide a batch under adaptive execution, and lose the transactions of its first tasks."""
    query.add_batch(rows=60)
    adaptive = applications.another(conf={**SPLIT, ADAPTIVE: "true"})
    query.crash(FaultPoint.COMMITTER_WRITE_AFTER, application=adaptive)
    decision = query.decision()
    assert decision.partitions < int(SPLIT["spark.sql.shuffle.partitions"])
    for entry in decision.prepared[:many]:
        query.take_id(decision.slot, entry.partition)


def test_a_batch_that_is_lost_as_a_whole_is_written_in_the_new_partitions(
    query: SparkQuery, applications: Applications
) -> None:
    lose(query, applications, None)
    query.finish()
    assert query.decision().partitions == int(SPLIT["spark.sql.shuffle.partitions"])
    query.assert_exactly_once()


def test_a_batch_that_is_lost_in_part_is_completed_in_the_new_partitions(
    query: SparkQuery, applications: Applications
) -> None:
    lose(query, applications, 1)
    with pytest.raises(StreamingQueryException, match="UnfinishedError"):
        query.finish()
    query.finish()
    query.assert_exactly_once()
