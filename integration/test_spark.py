"""The sink in real Spark on a real Kafka, with real crashes; a read_committed reader judges."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import eos_sink
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint, Strike
from integration.spark_apps import PATIENCE_S, Applications
from integration.spark_query import BOTH_WAYS, ROWS, TASKS, SparkQuery

pytestmark = pytest.mark.sampled(4, of="Spark")

# A driver takes ten seconds to start on a small machine, and some tests need three.


@pytest.fixture
def query(spark_query: SparkQuery) -> SparkQuery:
    return spark_query


@pytest.mark.long
def test_queries_of_one_session_write_side_by_side(
    kafka: KafkaCluster, spark: SparkSession, applications: Applications, tmp_path: Path
) -> None:
    queries = []
    for name in ("one", "two"):
        (home := tmp_path / name).mkdir()
        queries.append(query := SparkQuery(kafka, spark, applications, home))
        for _ in range(4):
            query.add_batch(rows=7)
    # They plan at the same time, so Spark has two planners, and each serves both from then on.
    for started in [query.start() for query in queries]:
        assert started.awaitTermination(300)
    for query in queries:
        query.assert_exactly_once()
        query.close()


@BOTH_WAYS
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


@BOTH_WAYS
@pytest.mark.long
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


@BOTH_WAYS
@pytest.mark.long
@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.PLANNER_JOIN_AFTER,
        FaultPoint.TASK_PRODUCE_AMID,
        FaultPoint.TASK_FLUSH_AFTER,
        FaultPoint.TASK_PREPARED_AFTER,
        FaultPoint.COMMITTER_VOTE_BEFORE,
        FaultPoint.COMMITTER_WRITE_BEFORE,
        FaultPoint.COMMITTER_WRITE_AFTER,
        FaultPoint.COMMITTER_SETTLE_AMID,
        FaultPoint.COMMITTER_SETTLE_AFTER,
    ],
    ids=lambda point: point.value,
)
def test_a_machine_lost_at(point: FaultPoint, query: SparkQuery) -> None:
    query.add_batch()
    query.add_batch()
    query.crash(point)
    query.finish()
    query.assert_exactly_once()


@BOTH_WAYS
@pytest.mark.long
def test_a_trigger_that_runs_once_writes_all_files_as_one_batch(query: SparkQuery) -> None:
    query.add_batch()
    query.add_batch()
    for _ in range(2):
        query.finish({"once": True})
    query.replay(0)
    query.finish({"once": True})
    query.assert_exactly_once()


@pytest.mark.long
@pytest.mark.kafka("3.9.1")
def test_a_driver_lost_after_the_decision(query: SparkQuery) -> None:
    """Its Python processes live on, which only the format has below the JVM."""
    query.add_batch()
    query.crash(FaultPoint.COMMITTER_WRITE_AFTER, Strike.KILL_JVM)
    query.finish()
    query.assert_exactly_once()


@BOTH_WAYS
@pytest.mark.long
def test_a_crash_during_recovery(query: SparkQuery) -> None:
    query.add_batch()
    query.crash(FaultPoint.COMMITTER_WRITE_BEFORE)
    query.crash(FaultPoint.PLANNER_ABORT_AMID)
    query.finish()
    query.assert_exactly_once()


@pytest.mark.long
def test_a_crash_during_the_abort_of_a_failed_batch(query: SparkQuery) -> None:
    query.add_batch()
    for point in (FaultPoint.COMMITTER_VOTE_BEFORE, FaultPoint.COMMITTER_ABORT_AMID):
        query.faults.arm(point, Strike.KILL_PROCESS)
    query.program().stopped()
    assert query.faults.fired(FaultPoint.COMMITTER_VOTE_BEFORE)
    assert query.faults.fired(FaultPoint.COMMITTER_ABORT_AMID)
    query.finish()
    query.assert_exactly_once()


@pytest.mark.long
def test_a_committer_killed_after_the_decision_is_not_undone_by_sparks_abort(
    query: SparkQuery,
) -> None:
    query.add_batch()
    query.faults.arm(FaultPoint.COMMITTER_WRITE_AFTER, Strike.KILL_PROCESS)
    query.program().stopped()
    query.assert_exactly_once()
    query.finish()
    query.assert_exactly_once()


@BOTH_WAYS
def test_a_batch_that_spark_replays_is_not_written_again(query: SparkQuery) -> None:
    query.add_batch()
    query.finish()
    query.replay(0)
    query.add_batch()
    query.finish()
    query.assert_exactly_once()


def test_the_status_of_a_query_is_read_with_the_options_in_its_plan(query: SparkQuery) -> None:
    query.add_batch()
    started = query.start()
    assert started.awaitTermination(int(PATIENCE_S))
    found = eos_sink.status(started)
    assert (found.query, found.id) == (query.sink.names.query, started.id)
    assert (found.batch, found.outcome, found.rows, found.transactions) == (
        0,
        "committed",
        ROWS,
        TASKS,
    )
    assert (found.committed, found.behind, found.alerts, found.error) == (0, False, (), None)
    query.options["topic"] = "not-there"
    query.add_batch()
    failed = query.start()
    with pytest.raises(PySparkException):
        failed.awaitTermination(int(PATIENCE_S))
    assert str(eos_sink.status(failed).error).startswith("ClusterError: Topic 'not-there'")


@BOTH_WAYS
@pytest.mark.long
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


@pytest.mark.long
def test_a_checkpoint_that_was_moved_goes_on_or_says_why_not(query: SparkQuery) -> None:
    query.add_batch()
    query.finish()
    query.move_checkpoint(query.home / "moved")
    query.add_batch()
    query.finish()
    query.assert_exactly_once()
    # Now with a batch that Spark does not know to be done.
    query.replay(1)
    query.move_checkpoint(query.home / "moved-again")
    assert "moved" in query.fail()
    query.assert_exactly_once()
    query.move_checkpoint(query.home / "moved")
    query.finish()
    query.assert_exactly_once()


@BOTH_WAYS
@pytest.mark.long
@pytest.mark.parametrize(
    ("point", "action"),
    [
        (FaultPoint.TASK_INIT_BEFORE, Strike.PAUSE),
        (FaultPoint.COMMITTER_WRITE_BEFORE, Strike.PAUSE_ALL),
        (FaultPoint.TASK_PREPARED_AFTER, Strike.PAUSE_ALL),
        (FaultPoint.COMMITTER_VOTE_BEFORE, Strike.PAUSE_ALL),
    ],
)
def test_a_stale_driver_is_refused(point: FaultPoint, action: Strike, query: SparkQuery) -> None:
    if action is Strike.PAUSE:
        # Another task that is late could take an id of the next driver, which would start again.
        query.tasks = 1
    query.add_batch()
    error = query.zombie(point, action)
    assert re.search("newer driver|has taken over|no longer open|goes on: process", error)
    query.assert_exactly_once()


@pytest.mark.long
def test_a_driver_whose_jvm_wakes_up_after_its_batch_was_settled(query: SparkQuery) -> None:
    """Spark's own half of the driver slept while the sink's went on."""
    query.add_batch()
    query.faults.arm(FaultPoint.COMMITTER_VOTE_BEFORE, Strike.PAUSE_JVM)
    run = query.program()
    query.wait_fired(FaultPoint.COMMITTER_VOTE_BEFORE, run)
    query.wait_decided(0)
    query.finish()
    query.add_batch()
    query.finish()
    query.assert_exactly_once()
    query.faults.resume(FaultPoint.COMMITTER_VOTE_BEFORE)
    run.ended()
    query.assert_exactly_once()


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(FaultPoint.PLANNER_STABLE_BEFORE, id="planner"),
        pytest.param(FaultPoint.COMMITTER_VOTE_BEFORE, id="committer"),
        pytest.param(FaultPoint.TASK_FLUSH_AFTER, id="task"),
    ],
)
def test_a_python_process_killed_during_a_batch(point: FaultPoint, query: SparkQuery) -> None:
    """Spark stops the query, which goes on when it is started again in the same session."""
    query.add_batch()
    query.faults.arm(point, Strike.KILL_PROCESS)
    run = query.program()
    run.stopped()
    assert query.faults.fired(point)
    if point is not FaultPoint.TASK_FLUSH_AFTER:
        # If Spark kills the other task before it has reported, its abort() knows no plan, and the
        # next plan aborts them.
        query.assert_nothing_held_up()
    query.program(application=run.application).finished()
    query.assert_exactly_once()


@BOTH_WAYS
@pytest.mark.long
def test_a_killed_task_is_tried_again(query: SparkQuery) -> None:
    application = query.applications.another("local[2,3]")
    query.add_batch()
    for point in (FaultPoint.TASK_PRODUCE_AMID, FaultPoint.TASK_PREPARED_AFTER):
        query.faults.arm(point, Strike.KILL_PROCESS)
    query.program(application=application).finished()
    assert query.faults.fired(FaultPoint.TASK_PRODUCE_AMID)
    assert query.faults.fired(FaultPoint.TASK_PREPARED_AFTER)
    application.kill()
    query.assert_exactly_once()


@pytest.mark.long
def test_worker_processes_killed_between_batches(query: SparkQuery) -> None:
    query.add_batch()
    run = query.program({"processingTime": "0 seconds"})
    for batch in range(3):
        query.wait_committed(batch, run)
        workers = run.application.workers()
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        if batch < 2:
            query.add_batch()
    run.application.kill()
    query.assert_exactly_once()


@BOTH_WAYS
def test_an_empty_partition_opens_no_transaction_and_an_empty_batch_decides_nothing(
    query: SparkQuery,
) -> None:
    query.add_batch(rows=1)
    query.finish()
    names = query.sink.names
    ids = [names.task(0, partition) for partition in range(TASKS)]
    states = query.clients().control().describe(ids, Deadline(30)).values()
    missing = [state for state in states if state.status is TransactionStatus.MISSING]
    assert len(missing) == TASKS - 1
    before = query.decision()
    query.write_file(1, [])
    query.finish()
    assert query.decision() == before
    query.assert_exactly_once()


@pytest.mark.long
def test_another_number_of_tasks_after_a_crash(query: SparkQuery) -> None:
    query.add_batch()
    query.faults.arm(FaultPoint.COMMITTER_VOTE_BEFORE, Strike.KILL_PROCESS)
    query.program().stopped()
    query.tasks = TASKS + 1
    query.finish()
    query.assert_exactly_once()
    query.replay(0)
    query.tasks = TASKS + 2
    query.finish()
    query.assert_exactly_once()


def test_input_that_is_not_the_same_when_repeated_is_refused(query: SparkQuery) -> None:
    query.columns = ["concat(value, rand()) AS value"]
    query.add_batch()
    query.finish()
    visible = query.seen()
    query.replay(0)
    error = query.fail()
    assert re.search(rf"batch 0 .*{ROWS} rows .*non-deterministic", error, re.DOTALL)
    assert query.seen() == visible


@pytest.mark.long
def test_two_hundred_tasks(query: SparkQuery) -> None:
    query.tasks = 200
    query.add_batch(rows=1000)
    query.add_batch(rows=1000)
    query.finish()
    query.assert_exactly_once()


@pytest.mark.long
def test_of_two_applications_with_one_checkpoint_the_older_one_is_stopped(
    query: SparkQuery,
) -> None:
    query.add_batch()
    older = query.program({"processingTime": "0 seconds"})
    query.wait_committed(0, older)
    # Or Spark's own logs would stop either of the two, whichever comes second.
    older.application.processes.pause()
    query.add_batch()
    query.finish()
    older.application.processes.resume()
    assert re.search("has taken over|Multiple streaming jobs", older.stopped())
    query.add_batch()
    query.finish()
    query.assert_exactly_once()


@pytest.mark.long
@pytest.mark.parametrize("sockets", [True, False], ids=["Unix domain sockets", "TCP"])
def test_a_run_over_tcp_logs_the_setting_that_makes_it_faster_once(
    sockets: bool, query: SparkQuery
) -> None:
    name = "spark.python.unix.domain.socket.enabled"
    application = query.applications.another(conf={name: str(sockets).lower()})
    query.add_batch()
    query.add_batch()
    query.program(application=application).finished()
    application.kill()
    assert application.processes.log.read_text().count(f"{name}=true") == (0 if sockets else 1)
    query.assert_exactly_once()


@pytest.mark.long
def test_of_two_applications_with_one_query_name_the_older_one_is_stopped(
    query: SparkQuery, kafka: KafkaCluster, spark: SparkSession, tmp_path: Path
) -> None:
    """Each has its own checkpoints and input."""
    (tmp_path / "other").mkdir()
    other = SparkQuery(kafka, spark, query.applications, tmp_path / "other")
    for each in (query, other):
        del each.options["checkpointLocation"]
        each.options["queryName"] = query.topic
    default = {"spark.sql.streaming.checkpointLocation": str(tmp_path)}
    application = query.applications.another(conf=default)
    query.checkpoint = tmp_path / query.topic
    query.add_batch()
    older = query.program({"processingTime": "0 seconds"}, application)
    query.wait_committed(0, older)
    other.add_batch()
    other.finish()
    query.add_batch()
    assert "has taken over" in older.stopped()
    assert "has followed it under this identity" in query.program(application=application).stopped()
    application.kill()
    other.assert_exactly_once()
    other.close()


@pytest.mark.long
def test_speculation_is_refused(query: SparkQuery) -> None:
    application = query.applications.another(conf={"spark.speculation": "true"})
    query.add_batch()
    assert "spark.speculation=false" in query.program(application=application).stopped()
    application.kill()
    assert query.seen() == ()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("topic", "missing", "Topic 'missing' does not exist"),
        ("eos.transction.timeout.ms", "1000", "Did you mean 'eos.transaction.timeout.ms'?"),
    ],
    ids=["found by Kafka", "found before"],
)
def test_bad_input_stops_the_query_at_its_start(
    query: SparkQuery, option: str, value: str, message: str
) -> None:
    query.add_batch()
    query.options[option] = value
    assert message in query.fail()
    assert query.seen() == ()
