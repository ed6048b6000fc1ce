"""`eos_sink.foreach_batch` and `eos_sink.write` where they differ from the data source: the planner
and the committer live in the user's own driver. What both promise is in test_spark and test_batch.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import eos_sink
from eos_sink import ConfigurationError
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.waiting import wait_until
from integration.spark_apps import PATIENCE_S
from integration.spark_program import FUNCTION, SOURCE
from integration.spark_query import ROWS, SparkQuery

pytestmark = pytest.mark.sampled(5, of="foreachBatch")

Write = Callable[[DataFrame, int], None]


@pytest.fixture
def way() -> str:
    return FUNCTION


@pytest.fixture
def query(spark_query: SparkQuery) -> SparkQuery:
    return spark_query


def run(spark: SparkSession, query: SparkQuery, write: Write, mode: str = "append") -> None:
    """Run the query's files through a function of foreachBatch, each file as a batch."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1)
    rows = lines.load(str(query.home / "input"))
    if mode != "append":
        rows = rows.groupBy("value").count().selectExpr("concat(value, ':', count) AS value")
    each = rows.writeStream.foreachBatch(write).outputMode(mode)
    each = each.option("checkpointLocation", str(query.checkpoint))
    assert each.trigger(availableNow=True).start().awaitTermination(int(PATIENCE_S))


def test_code_behind_the_write_that_fails_makes_spark_repeat_a_batch_that_is_there(
    query: SparkQuery, spark: SparkSession
) -> None:
    query.add_batch()
    run_and_fail_behind(spark, query)
    query.assert_exactly_once()
    query.add_batch()
    run(spark, query, eos_sink.foreach_batch(query.options))
    query.assert_exactly_once()


def run_and_fail_behind(spark: SparkSession, query: SparkQuery) -> None:
    write = eos_sink.foreach_batch(query.options)

    def then_fail(frame: DataFrame, number: int) -> None:
        write(frame, number)
        raise ValueError("behind the write")

    with pytest.raises(PySparkException, match="behind the write"):
        run(spark, query, then_fail)


def test_from_format_to_the_function_and_back_during_a_batch(
    query: SparkQuery, spark: SparkSession
) -> None:
    """No row is there twice."""
    function = query.options.pop("eos.id")
    query.way = SOURCE
    query.add_batch()
    query.finish()
    query.add_batch()
    query.options["eos.id"] = function
    run_and_fail_behind(spark, query)
    del query.options["eos.id"]
    assert "gone on under another identity" in query.fail()
    query.assert_exactly_once()
    query.add_batch()
    query.way, query.options["eos.id"] = FUNCTION, function
    run(spark, query, eos_sink.foreach_batch(query.options))
    query.assert_exactly_once()


def test_update_mode_works_which_spark_refuses_to_data_sources_in_python(
    query: SparkQuery, spark: SparkSession
) -> None:
    write = eos_sink.foreach_batch(query.options)
    query.write_file(0, ["a", "a", "b"])
    run(spark, query, write, "update")
    query.write_file(1, ["a"])
    run(spark, query, write, "update")
    query.replay(1)
    run(spark, query, write, "update")
    assert Counter(query.seen().values()) == Counter(["a:2", "b:1", "a:3"])


def test_a_frame_is_computed_once(query: SparkQuery, spark: SparkSession) -> None:
    computed = spark.sparkContext.accumulator(0)

    def count(rows: Iterable[object]) -> Iterator[object]:
        for row in rows:
            computed.add(1)
            yield row

    frame = spark.range(10, numPartitions=3).rdd.mapPartitions(count).toDF("id LONG")
    eos_sink.write(frame.selectExpr("CAST(id AS STRING) AS value", "id AS other"), query.options)
    assert computed.value == 10
    assert Counter(query.seen().values()) == Counter(map(str, range(10)))


def test_a_frame_without_partitions_is_written(query: SparkQuery, spark: SparkSession) -> None:
    frame = spark.createDataFrame(spark.sparkContext.emptyRDD(), "value STRING")
    known_to_be_empty = spark.range(3).selectExpr("CAST(id AS STRING) AS value").limit(0)
    for each in (frame, known_to_be_empty):
        assert each.rdd.getNumPartitions() == 0
        eos_sink.write(each, query.options)
    assert query.seen() == ()


def test_a_function_that_does_not_see_its_query_is_refused(
    query: SparkQuery, spark: SparkSession
) -> None:
    query.add_batch()
    write = eos_sink.foreach_batch(query.options)
    refused: list[Exception] = []

    def in_a_thread(frame: DataFrame, number: int) -> None:
        def call() -> None:
            try:
                write(frame, number)
            except ConfigurationError as error:
                refused.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    run(spark, query, in_a_thread)
    assert len(refused) == 1
    assert query.seen() == ()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"eos.id": " "}, "eos.id"),
        ({"txnAppId": "load", "txnVersion": "1"}, "txnAppId"),
        ({"eos.unheard": "1"}, "eos.unheard"),
    ],
)
def test_a_wrong_option_is_refused_before_the_query_starts(
    query: SparkQuery, changed: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        eos_sink.foreach_batch({**query.options, **changed})
    assert named in str(refused.value)


def test_defaults_of_the_session_count(query: SparkQuery, spark: SparkSession) -> None:
    name = "spark.datasource.kafka-eos.topic"
    spark.conf.set(name, query.options.pop("topic"))
    try:
        frame = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
        eos_sink.write(frame, query.options)
    finally:
        spark.conf.unset(name)
    assert Counter(query.seen().values()) == Counter("012")


def begin_and_stop(spark: SparkSession, query: SparkQuery) -> None:
    """Stop the query as soon as it has begun to write a batch."""
    begun = threading.Event()
    write = eos_sink.foreach_batch(query.options)

    def tell_and_write(frame: DataFrame, number: int) -> None:
        begun.set()
        write(frame, number)

    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1)
    each = lines.load(str(query.home / "input")).writeStream.foreachBatch(tell_and_write)
    started = each.option("checkpointLocation", str(query.checkpoint)).start()
    assert begun.wait(PATIENCE_S)
    started.stop()


@pytest.mark.long
def test_a_query_that_is_stopped_in_its_commit_and_started_again_at_once(
    query: SparkQuery, spark: SparkSession
) -> None:
    """The callback of the stopped query may still run when the new one has begun."""
    query.options["eos.inline.bytes"] = "65536"
    for _ in range(4):
        for _ in range(3):
            query.add_batch(rows=5)
        begin_and_stop(spark, query)
    query.finish()
    query.assert_exactly_once()


@pytest.mark.long
def test_a_job_that_is_cancelled_leaves_nothing_open(
    query: SparkQuery, spark: SparkSession
) -> None:
    query.add_batch()
    write = eos_sink.foreach_batch(query.options)
    context, tracker = spark.sparkContext, spark.sparkContext.statusTracker()

    def has_running_task(group: str) -> bool:
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)

    def cancel(group: str) -> None:
        running = partial(has_running_task, group)
        wait_until(running, Deadline(PATIENCE_S), "a task of the write runs")
        context.cancelJobGroup(group)

    def cancelled(frame: DataFrame, number: int) -> None:
        group = context.getLocalProperty("spark.jobGroup.id")
        slow = frame.selectExpr("value", "java_method('java.lang.Thread', 'sleep', 1000L) AS key")
        threading.Thread(target=cancel, args=[group]).start()
        write(slow, number)

    with pytest.raises(PySparkException):
        run(spark, query, cancelled)
    assert query.seen() == (), "and no reader is held up"
    run(spark, query, write)
    query.assert_exactly_once()


@pytest.mark.long
def test_a_replay_with_other_values_is_refused(query: SparkQuery) -> None:
    query.columns = ["concat(value, '-', current_timestamp()) AS value"]
    query.add_batch()
    query.finish()
    query.replay(0)
    # Spark keeps the time of a batch in its offset log, so a replay has the same one.
    query.finish()
    assert len(query.seen().values()) == ROWS
    query.columns = ["concat(value, '-', uuid()) AS value"]
    query.replay(0)
    assert "other rows" in query.fail()
    assert len(query.seen().values()) == ROWS
