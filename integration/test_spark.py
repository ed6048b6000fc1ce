"""The sink in real Spark on a real Kafka, with real crashes; a read_committed reader judges."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eos_sink.deadline import Deadline
from eos_sink.ports import TransactionStatus
from eos_sink.testing import KafkaCluster
from eos_sink.testing.faults import Action, FaultPoint
from integration.spark_program import spark_session
from integration.spark_query import TASKS, SparkQuery

# A driver takes ten seconds to start on a small machine, and some tests need three.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """For runs that are not killed; the others are programs of their own."""
    session = spark_session()
    default = str(tmp_path_factory.mktemp("checkpoints"))
    session.conf.set("spark.sql.streaming.checkpointLocation", default)
    yield session
    session.stop()


@pytest.fixture
def query(kafka: KafkaCluster, spark: SparkSession, tmp_path: Path) -> Iterator[SparkQuery]:
    query = SparkQuery(kafka, spark, tmp_path)
    yield query
    query.close()


@pytest.mark.kafka("4.3.0", "3.9.1")
def test_every_column_reaches_kafka_and_a_restart_goes_on(query: SparkQuery) -> None:
    query.columns = [
        "IF(value LIKE '%-3', NULL, value) AS value",
        "CAST(split(value, '-')[1] AS BINARY) AS key",
        "array(named_struct('key', 'row', 'value', CAST(value AS BINARY))) AS headers",
        "IF(value LIKE '%-1', 2, NULL) AS partition",
        "'ignored' AS another",
    ]
    query.add_batch()
    query.finish()
    query.add_batch()
    query.finish()
    texts = []
    for record in query.seen():
        ((name, header),) = record.headers
        assert name == "row"
        assert header is not None
        text = header.decode()
        texts.append(text)
        assert record.value == (None if text.endswith("-3") else header)
        assert record.key == text.split("-")[1].encode()
        assert record.partition == 2 or not text.endswith("-1")
    assert Counter(texts) == Counter(query.expected)


def test_the_topic_column_spreads_rows_over_topics(query: SparkQuery) -> None:
    other = f"{query.topic}-other"
    query.kafka.create_topic(other, partitions=1)
    del query.options["topic"]
    query.columns = ["value", f"IF(value LIKE '%5', '{other}', '{query.topic}') AS topic"]
    query.add_batch()
    query.finish()
    elsewhere = query.seen(other).values()
    assert {text[-1] for text in elsewhere} == {"5"}
    assert Counter(query.seen().values() + elsewhere) == Counter(query.expected)


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.TASK_FLUSH_AFTER,
        FaultPoint.COMMITTER_WRITE_BEFORE,
        FaultPoint.COMMITTER_WRITE_AFTER,
        FaultPoint.COMMITTER_SETTLE_AMID,
    ],
    ids=lambda point: point.value,
)
def test_a_machine_lost_at(point: FaultPoint, query: SparkQuery) -> None:
    query.add_batch()
    query.add_batch()
    query.crash(point)
    query.finish()
    query.assert_exactly_once()


@pytest.mark.kafka("3.9.1")
def test_a_driver_lost_after_the_decision(query: SparkQuery) -> None:
    query.add_batch()
    query.crash(FaultPoint.COMMITTER_WRITE_AFTER, Action.KILL_JVM)
    query.finish()
    query.assert_exactly_once()


def test_a_crash_amid_recovery(query: SparkQuery) -> None:
    query.add_batch()
    query.crash(FaultPoint.COMMITTER_WRITE_BEFORE)
    query.crash(FaultPoint.PLANNER_ABORT_AMID)
    query.finish()
    query.assert_exactly_once()


def test_a_crash_amid_the_abort_of_a_failed_batch(query: SparkQuery) -> None:
    query.add_batch()
    query.faults.arm(FaultPoint.COMMITTER_VOTE_BEFORE, Action.KILL_PROCESS)
    query.crash(FaultPoint.COMMITTER_ABORT_AMID)
    assert query.faults.fired(FaultPoint.COMMITTER_VOTE_BEFORE)
    query.finish()
    query.assert_exactly_once()


def test_a_committer_killed_after_the_decision_is_not_undone_by_sparks_abort(
    query: SparkQuery,
) -> None:
    query.add_batch()
    query.faults.arm(FaultPoint.COMMITTER_WRITE_AFTER, Action.KILL_PROCESS)
    query.program().stopped()
    query.assert_exactly_once()
    query.finish()
    query.assert_exactly_once()


def test_a_batch_that_spark_replays_is_not_written_again(query: SparkQuery) -> None:
    query.add_batch()
    query.finish()
    for name in ("0", ".0.crc"):
        (query.checkpoint / "commits" / name).unlink()
    query.add_batch()
    query.finish()
    query.assert_exactly_once()


def test_a_lost_transaction_is_written_again(query: SparkQuery) -> None:
    query.add_batch()
    query.crash(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(slot=0, partition=1)
    query.finish()
    query.assert_exactly_once()


def test_a_committed_transaction_that_answers_fenced_is_known_by_its_witness(
    query: SparkQuery,
) -> None:
    query.add_batch()
    query.crash(FaultPoint.COMMITTER_SETTLE_AFTER)
    for partition in range(TASKS):
        query.take_id(slot=0, partition=partition)
    query.finish()
    query.assert_exactly_once()


def test_an_older_copy_of_the_checkpoint_is_refused(query: SparkQuery) -> None:
    query.add_batch()
    query.finish()
    copy = query.home / "copy"
    shutil.copytree(query.checkpoint, copy)
    for _ in range(2):
        query.add_batch()
    query.finish()
    shutil.rmtree(query.checkpoint)
    copy.rename(query.checkpoint)
    assert "old copy of the checkpoint" in query.fail()
    query.assert_exactly_once()


def test_a_checkpoint_restored_one_batch_back_is_refused(query: SparkQuery) -> None:
    query.add_batch()
    query.finish()
    copy = query.home / "copy"
    shutil.copytree(query.checkpoint, copy)
    query.add_batch()
    query.finish()
    shutil.rmtree(query.checkpoint)
    copy.rename(query.checkpoint)
    # Now the batch that was decided is made of other input.
    query.write_file(1, ["1-0-other"])
    assert "replays it with other rows" in query.fail()
    query.assert_exactly_once()


@pytest.mark.parametrize("point", [FaultPoint.TASK_INIT_BEFORE, FaultPoint.COMMITTER_WRITE_BEFORE])
def test_a_stale_driver_is_refused(point: FaultPoint, query: SparkQuery) -> None:
    query.add_batch()
    error = query.zombie(point)
    assert "newer driver" in error or "another run of the query has taken over" in error
    query.assert_exactly_once()


def test_worker_processes_killed_between_batches(query: SparkQuery) -> None:
    query.add_batch()
    run = query.program({"processingTime": "0 seconds"})
    for batch in range(3):
        query.wait_committed(batch, run)
        workers = run.workers()
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        if batch < 2:
            query.add_batch()
    run.end()
    query.assert_exactly_once()


def test_an_empty_partition_opens_no_transaction_and_an_empty_batch_writes_no_record(
    query: SparkQuery,
) -> None:
    query.add_batch(rows=1)
    query.finish()
    names = query.sink.names
    ids = [names.task(0, partition) for partition in range(TASKS)]
    states = query.clients().control().describe(ids, Deadline(30)).values()
    missing = [state for state in states if state.status is TransactionStatus.MISSING]
    assert len(missing) == TASKS - 1
    before = query.log_record()
    query.write_file(1, [])
    query.finish()
    assert query.log_record() == before
    query.assert_exactly_once()


BAD_INPUT: dict[str, tuple[dict[str, str | None], str | None, str]] = {
    # Spark's session has a default checkpoint location, which no sink can see.
    "no identity": ({"checkpointLocation": None}, None, "The query has no identity"),
    "no topic": ({"topic": None}, None, "neither option topic nor a column 'topic'"),
    "no such topic": ({"topic": "missing"}, None, "Topic 'missing' does not exist"),
    "no broker": (
        {"kafka.bootstrap.servers": "127.0.0.1:1", "eos.step.timeout.ms": "3000"},
        None,
        "No broker of 127.0.0.1:1 answers",
    ),
    "wrong type": ({}, "length(value) AS value", "Column 'value' has type int"),
    "time-out too long": (
        {"eos.transaction.timeout.ms": "9000000"},
        None,
        "above the brokers' transaction.max.timeout.ms",
    ),
    "misspelt": (
        {"eos.transction.timeout.ms": "1000"},
        None,
        "Did you mean 'eos.transaction.timeout.ms'?",
    ),
    "unknown Kafka setting": ({"kafka.linger.msec": "5"}, None, "linger.msec"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_stops_the_query_at_its_start(name: str, query: SparkQuery) -> None:
    changed, column, message = BAD_INPUT[name]
    query.add_batch()
    given = {**query.options, **changed}
    query.options = {key: value for key, value in given.items() if value is not None}
    query.columns = [column] if column else query.columns
    assert message in query.fail()
    assert query.seen() == ()
