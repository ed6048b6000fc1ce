"""Batch writes in real Spark on a real Kafka: df.write, frames of foreachBatch, and crashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import Numbering
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint, Strike
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.conftest import MakeQuery
from integration.query import Query
from integration.spark_apps import Applications
from integration.spark_program import ERRORS, FUNCTION, SOURCE
from integration.spark_program import append as append_frame
from integration.spark_query import BOTH_WAYS, TASKS, SparkQuery

NUMBERED = [f"{Numbering.VERSION.value}daily-load", f"{Numbering.FOREACH.value}query"]
Append = Callable[..., str | None]


@pytest.fixture
def query(spark_query: SparkQuery) -> SparkQuery:
    return spark_query


@pytest.fixture
def two_topics(query: SparkQuery) -> SparkQuery:
    """A query whose foreachBatch writes each batch to two topics."""
    other = f"{query.topic}-other"
    query.kafka.create_topic(other, partitions=1)
    query.frames = [query.frame(each, **{"eos.id": each}) for each in (query.topic, other)]
    return query


def assert_in_both(query: SparkQuery) -> None:
    for frame in query.frames:
        query.assert_exactly_once(frame["topic"])


# --- df.write


@pytest.fixture
def append(query: SparkQuery) -> Append:
    """Write a frame, with options as `name=value`; the error's text."""

    def written(frame: DataFrame, **options: str) -> str | None:
        try:
            append_frame(frame, query.frame(query.topic, **options), query.way)
        except ERRORS as error:
            return f"{type(error).__name__}: {error}"
        return None

    return written


def query_rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(20).selectExpr("CAST(id AS STRING) AS value").limit(count)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", [SOURCE, FUNCTION])
def test_a_frame_is_appended_and_a_version_of_it_once(
    query: SparkQuery, spark: SparkSession, append: Append
) -> None:
    frame = spark.range(20, numPartitions=2).selectExpr("CAST(id AS STRING) AS value")
    rows = [str(number) for number in range(20)]
    assert append(frame) is None
    assert Counter(query.seen().values()) == Counter(rows)
    other = frame.limit(3)
    for version in ("5", "5", "4", "5"):
        assert append(frame, txnAppId="load", txnVersion=version) is None
    assert "higher txnVersion" in str(append(other, txnAppId="load", txnVersion="4"))
    assert Counter(query.seen().values()) == Counter(3 * rows)
    for _ in range(2):
        assert append(other, **{"eos.write.id": "7"}) is None
    assert Counter(query.seen().values()) == Counter(3 * rows + rows[:3])


@pytest.mark.long
def test_without_pinned_threads_a_write_needs_a_version(
    query: SparkQuery, applications: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that plans does not see more of foreachBatch than here."""
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    application = applications.another()
    query.batch = True
    query.add_batch()
    assert "PYSPARK_PIN_THREAD" in query.program(application=application).stopped()
    assert query.seen() == ()
    query.options |= {"txnAppId": "load", "txnVersion": "0"}
    query.program(application=application).finished()
    query.assert_exactly_once()


@BOTH_WAYS
def test_a_frame_of_which_a_task_fails_leaves_nothing_visible_and_nothing_open(
    query: SparkQuery, spark: SparkSession, append: Append
) -> None:
    frame = spark.range(20, numPartitions=2).selectExpr(
        "CAST(IF(id = 19, raise_error('bad row'), id) AS STRING) AS value"
    )
    assert "bad row" in str(append(frame))
    assert query.seen() == (), "and no reader is held up"
    # At once, before its planner hears that the abort has joined.
    assert append(query_rows(spark, 3)) is None
    assert sorted(query.seen().values()) == ["0", "1", "2"]


@BOTH_WAYS
@pytest.mark.long
def test_a_task_that_opens_its_transaction_after_its_job_was_aborted_holds_up_no_reader(
    query: SparkQuery,
) -> None:
    """Spark does not wait for the other tasks of a failed job, and ends their processes later."""
    query.batch, query.tasks = True, 2
    query.options = query.frame(query.topic)
    query.write_file(0, ["0-1-1", "0-3-3"])
    late, aborted = FaultPoint.TASK_INIT_AFTER, FaultPoint.TASK_ABORT_AFTER
    query.faults.arm(late, Strike.PAUSE)
    query.faults.arm(FaultPoint.TASK_PREPARED_BEFORE, Strike.KILL_PROCESS)
    patient = query.applications.another(conf={"spark.python.task.killTimeout": "60s"})
    run = query.program(application=patient)
    query.wait_fired(late, run)
    assert "exited unexpectedly" in run.stopped()
    query.faults.arm(aborted, Strike.PAUSE)
    query.faults.resume(late)
    wait_until(
        lambda: query.faults.fired(aborted) is not None, Deadline(30), "the other task's end"
    )
    assert query.seen() == ()
    query.faults.resume(aborted)


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("overwrite", "mode('append')"),
        (None, "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        ("ignore", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ],
)
def test_another_mode_than_append_is_refused(
    query: SparkQuery, spark: SparkSession, mode: str | None, told: str
) -> None:
    frame = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
    writer = frame.write.format("kafka-eos").options(**query.frame(query.topic))
    with pytest.raises(PySparkException) as refused:
        (writer.mode(mode) if mode else writer).save()
    assert told in str(refused.value)
    assert query.seen() == ()


@BOTH_WAYS
@pytest.mark.long
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize(
    "number", [{"txnAppId": "load", "txnVersion": "1"}, {"eos.write.id": "1"}], ids=str
)
def test_a_job_killed_after_its_decision_is_written_once_under_its_number(
    query: SparkQuery, number: dict[str, str], lost: bool
) -> None:
    query.batch = True
    query.options = query.frame(query.topic, **number)
    query.add_batch()
    query.crash(FaultPoint.COMMITTER_WRITE_AFTER)
    if lost:
        for partition in range(TASKS):
            query.take_id(slot=0, partition=partition)
    query.finish()
    query.finish()
    query.assert_exactly_once()


# --- foreachBatch


@pytest.mark.long
@pytest.mark.parametrize("way", [SOURCE, FUNCTION])
def test_a_query_killed_between_its_two_topics_writes_each_row_once_to_both(
    two_topics: SparkQuery,
) -> None:
    """One topic is decided and not visible, the other one is not begun."""
    two_topics.add_batch()
    two_topics.add_batch()
    two_topics.crash(FaultPoint.COMMITTER_WRITE_AFTER)
    two_topics.finish()
    assert_in_both(two_topics)


@BOTH_WAYS
@pytest.mark.long
def test_a_query_killed_again_in_its_second_topic_writes_each_row_once_to_both(
    two_topics: SparkQuery,
) -> None:
    """The next run replays the first topic, and of the second one half becomes visible."""
    two_topics.add_batch()
    two_topics.crash(FaultPoint.COMMITTER_WRITE_AFTER)
    two_topics.crash(FaultPoint.COMMITTER_SETTLE_AMID)
    two_topics.finish()
    assert_in_both(two_topics)


@BOTH_WAYS
@pytest.mark.long
@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.PLANNER_JOIN_AFTER,
        FaultPoint.TASK_FLUSH_AFTER,
        FaultPoint.COMMITTER_WRITE_BEFORE,
        FaultPoint.COMMITTER_SETTLE_AFTER,
    ],
    ids=lambda point: point.value,
)
def test_a_query_of_two_topics_killed_at(point: FaultPoint, two_topics: SparkQuery) -> None:
    two_topics.add_batch()
    two_topics.crash(point)
    two_topics.add_batch()
    two_topics.finish()
    assert_in_both(two_topics)


# --- without Spark's JVM, so that many crashes take seconds


@pytest.fixture(params=NUMBERED)
def writes(request: pytest.FixtureRequest, kafka: KafkaCluster, query_on: MakeQuery) -> Query:
    return query_on(kafka, stream=request.param)


@pytest.mark.long
@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.COMMITTER_WRITE_AFTER,
        FaultPoint.COMMITTER_SETTLE_AMID,
        FaultPoint.COMMITTER_SETTLE_AFTER,
        FaultPoint.COMMITTER_WRITE_BEFORE,
        FaultPoint.TASK_PREPARED_AFTER,
    ],
    ids=lambda point: point.value,
)
def test_writes_that_are_numbered_are_there_once_when_one_is_killed_at(
    point: FaultPoint, writes: Query
) -> None:
    writes.run_killed_at(point)
    writes.finish()
    writes.check()


@pytest.mark.long
def test_a_numbered_write_mends_what_was_lost_after_its_decision(writes: Query) -> None:
    writes.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    writes.take_id(writes.slot(), 1)
    writes.finish()
    writes.check()


@pytest.mark.long
def test_two_sessions_may_write_to_one_topic_in_turns(
    kafka: KafkaCluster, applications: Applications, spark: SparkSession, tmp_path: Path
) -> None:
    """Each keeps its planner, whose member the other one has replaced meanwhile."""
    (tmp_path / "here").mkdir()
    query = SparkQuery(kafka, spark, applications, tmp_path / "here")
    query.batch = True
    query.options = query.frame(query.topic)
    query.add_batch()
    for _ in range(2):
        query.finish()
        query.program().finished()
    rows = read_topic(kafka.bootstrap_servers, query.topic).values()
    assert Counter(rows) == Counter(4 * query.expected)
    query.close()
