"""The sink on a Spark cluster whose executors and machines are killed and paused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import FaultPoint, Strike
from eos_sink_lab.testing.waiting import wait_until
from integration.event_log import EventLog
from integration.spark_apps import PATIENCE_S, Application, Applications
from integration.spark_query import SparkQuery
from integration.standalone import StandaloneCluster

pytestmark = pytest.mark.long

# A batch's input comes from both executors, so that the loss of either takes input away.
SPREAD_INPUT = {
    "spark.sql.files.maxPartitionBytes": "100",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "4",
}
# Each executor has a part of the input, which is lost with it: the first task waits until both are
# there, and none reads the other's files, which are on the same disk only here.
LOST_WITH_EXECUTOR = {
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}
# A silent executor is given up after so long.
IMPATIENT = {
    "spark.network.timeout": "15s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "2s",
}


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Two machines and a master."""
    with closing(StandaloneCluster(tmp_path_factory.mktemp("standalone"))) as cluster:
        yield cluster


class Shared:
    """An application on the machines, which survives what happens to its executors."""

    def __init__(self, machines: StandaloneCluster, applications: Applications) -> None:
        self._applications = applications
        self._url = machines.url
        self._conf = {**machines.conf, **SPREAD_INPUT}
        self._application: Application | None = None

    @property
    def application(self) -> Application:
        if self._application is None or not self._application.alive:
            self._application = self._applications.another(self._url, self._conf)
        return self._application


@pytest.fixture(scope="module")
def shared(machines: StandaloneCluster, applications: Applications) -> Shared:
    return Shared(machines, applications)


@pytest.fixture
def query(spark_query: SparkQuery) -> SparkQuery:
    return spark_query


@pytest.mark.parametrize("point", [FaultPoint.TASK_PREPARED_AFTER, FaultPoint.TASK_PRODUCE_AMID])
def test_an_executor_killed_at(point: FaultPoint, query: SparkQuery, shared: Shared) -> None:
    query.add_batch()
    query.add_batch()
    query.faults.arm(point, Strike.KILL_JVM)
    query.program(application=shared.application).finished()
    assert query.faults.fired(point)
    query.assert_exactly_once()


def test_all_executors_killed_between_prepared_and_decided(
    query: SparkQuery, shared: Shared, machines: StandaloneCluster
) -> None:
    point = FaultPoint.COMMITTER_VOTE_BEFORE
    query.add_batch()
    query.add_batch()
    query.faults.arm(point, Strike.PAUSE)
    run = query.program(application=shared.application)
    query.wait_fired(point, run)
    for worker in machines.workers:
        worker.kill_executor()
    query.faults.resume(point)
    run.finished()
    query.assert_exactly_once()


def test_a_machine_lost_during_its_task(
    query: SparkQuery, shared: Shared, machines: StandaloneCluster
) -> None:
    point = FaultPoint.TASK_FLUSH_AFTER
    query.add_batch()
    query.faults.arm(point, Strike.KILL_ALL)
    query.program(application=shared.application).finished()
    assert query.faults.fired(point)
    query.assert_exactly_once()
    for worker in machines.workers:
        if not worker.alive:
            worker.start()
    machines.wait_workers(2)


def test_a_stage_that_is_run_again_for_lost_input(
    query: SparkQuery, applications: Applications, machines: StandaloneCluster
) -> None:
    log = EventLog(query.home / "events")
    conf = {**machines.conf, **SPREAD_INPUT, **LOST_WITH_EXECUTOR, **log.conf}
    application = applications.another(machines.url, conf)
    point = FaultPoint.TASK_PREPARED_BEFORE
    query.tasks = 4
    query.add_batch()
    query.faults.arm(point, Strike.KILL_JVM)
    query.program(application=application).finished()
    assert query.faults.fired(point)
    attempts = log.attempts()
    assert any("FetchFailed" in attempt.failed for attempt in attempts)
    assert any(attempt.stage_attempt > 0 for attempt in attempts)
    query.assert_exactly_once()
    application.kill()


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.TASK_INIT_BEFORE,
        FaultPoint.TASK_OFFSET_BEFORE,
        FaultPoint.TASK_FLUSH_AFTER,
    ],
)
def test_a_machine_that_wakes_up_after_its_tasks_were_done_elsewhere(
    point: FaultPoint,
    query: SparkQuery,
    applications: Applications,
    machines: StandaloneCluster,
) -> None:
    application = applications.another(machines.url, {**machines.conf, **IMPATIENT})
    query.add_batch()
    query.faults.arm(point, Strike.PAUSE_ALL)
    run = query.program({"processingTime": "0 seconds"}, application)
    zombie = query.wait_fired(point, run)
    query.wait_committed(0, run)
    query.add_batch()
    query.wait_committed(1, run)
    query.faults.resume(point)
    wait_until(
        lambda: not psutil.pid_exists(zombie),
        Deadline(PATIENCE_S),
        "the executor has found out that it is given up",
    )
    # What it opened before it found out holds readers up until the batch that takes its id.
    query.add_batch()
    query.wait_committed(2, run)
    query.assert_exactly_once()
    application.kill()
    machines.wait_workers(2)
