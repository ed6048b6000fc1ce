"""What brokers forget, give up or refuse: timeouts, expired ids, used-up epochs, deleted records,
ended sessions, too few copies, a full disk.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from eos_sink.errors import (
    BatchFailedError,
    ClusterError,
    OperatorNeededError,
    OutcomeUnknownError,
    SupersededError,
    UnfinishedError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import Numbering
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from eos_sink_lab.testing.waiting import wait_until
from integration.cluster_query import SITES, ClusterQuery, Site
from integration.conftest import MakeQuery
from integration.in_process import Run
from integration.operator_commands import NOT_SEEN, run_command
from integration.own_kafka import start_own_kafka
from integration.query import PATIENCE_S, Process, flat, rows_of
from integration.topics import copies_in_sync, new_topic, set_config

# How long it is looked at that nothing happens.
NOTHING_S = 1.0
# Short enough to wait for; the longer ones are for a machine that cannot write a batch meanwhile.
TIME_OUTS_S = (6, 20, 40)

R = TypeVar("R")


# Transactions time out.


@pytest.fixture
def query(cluster_query: ClusterQuery) -> ClusterQuery:
    return cluster_query


@pytest.fixture
def alone(kafka: KafkaCluster, tmp_path: Path) -> Iterator[ClusterQuery]:
    """A query on a single broker."""
    with closing(ClusterQuery(kafka, tmp_path)) as query:
        yield query


def before_time_out(query: ClusterQuery, reach: Callable[[ClusterQuery], R]) -> R:
    """What `reach` comes to, with the shortest timeout that lets it."""
    for seconds in TIME_OUTS_S:
        query.change({"eos.transaction.timeout.ms": str(seconds * 1000)})
        try:
            return reach(query)
        except AssertionError:
            if seconds == TIME_OUTS_S[-1]:
                raise
    raise AssertionError("unreachable")


def killed_after_decision(query: ClusterQuery) -> Process:
    return query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)


@pytest.mark.long
def test_a_batch_whose_transactions_time_out_before_the_vote_fails(query: ClusterQuery) -> None:
    process = before_time_out(query, SITES["prepared"].reach)
    query.wait_timed_out()
    process.wake()
    process.stopped(BatchFailedError)
    query.check(batches=1)
    query.finish()
    query.check()


@pytest.mark.long
@pytest.mark.parametrize(
    ("site", "lost"),
    [("decided", [0, 1, 2]), ("settling", [1, 2])],
)
def test_what_times_out_after_the_decision_is_written_again(
    query: ClusterQuery, site: str, lost: list[int]
) -> None:
    process = before_time_out(query, SITES[site].reach)
    query.wait_timed_out()
    process.wake()
    assert process.stopped(UnfinishedError)["data"]["partitions"] == lost
    assert query.finish().written(1) == lost
    query.check()


@pytest.mark.long
def test_what_times_out_while_the_driver_is_down_is_written_again(query: ClusterQuery) -> None:
    before_time_out(query, killed_after_decision)
    query.wait_timed_out()
    assert query.finish().written(1) == [0, 1, 2]
    query.check()


# There is no coordinator.


@pytest.mark.long
def test_a_start_without_a_coordinator_says_what_its_topic_needs() -> None:
    """One broker cannot create the topic of the coordinators with three replicas."""
    properties = {"transaction.state.log.replication.factor": 3}
    with start_own_kafka(properties=properties) as alone:
        options = {"topic": new_topic(alone, "out"), "eos.step.timeout.ms": "5000"}
        with closing(Run(alone, options)) as run, pytest.raises(OutcomeUnknownError) as told:
            run.plan()
    assert "COORDINATOR_NOT_AVAILABLE" in told.value.message
    assert "transaction.state.log.replication.factor" in told.value.remedy


# Brokers forget ids.


@pytest.fixture
def forgotten(forgetful: KafkaCluster, tmp_path: Path) -> Iterator[ClusterQuery]:
    with closing(ClusterQuery(forgetful, tmp_path)) as query:
        yield query


@pytest.mark.long
def test_the_witness_proves_that_a_batch_was_lost_when_its_ids_are_forgotten(
    forgotten: ClusterQuery,
) -> None:
    before_time_out(forgotten, killed_after_decision)
    forgotten.wait_forgotten(*forgotten.task_ids(1))
    assert forgotten.finish().written(1) == [0, 1, 2]
    forgotten.check()


@pytest.mark.long
def test_without_ids_and_records_the_batch_is_in_doubt(forgotten: ClusterQuery) -> None:
    forgotten.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    forgotten.wait_forgotten(*forgotten.task_ids(1))
    forgotten.cluster.delete_records(forgotten.topic)
    error = forgotten.run().stopped(OperatorNeededError)
    assert error["data"]["batch"] == 1
    assert error["data"]["partitions"] == [0, 1, 2]


@pytest.mark.long
@pytest.mark.parametrize(
    "numbering",
    [
        Numbering.STREAM,
        Numbering.VERSION,
        Numbering.ONCE,
        Numbering.FOREACH,
    ],
)
def test_a_query_that_runs_once_a_week_needs_no_operator(
    forgetful: KafkaCluster, query_on: MakeQuery, numbering: Numbering
) -> None:
    query = query_on(forgetful, stream=f"{numbering.value}weekly")
    for week in range(3):
        query.batches = [rows_of(batch) for batch in range(week + 1)]
        query.run().finished()
        expected = [row for part in rows_of(week) for row in part]
        assert sorted(query.visible().values()) == sorted(expected)
        # A week passes: retention has removed the rows, too.
        query.wait_forgotten(*query.task_ids(0, 1))
        forgetful.delete_records(query.topic)


# Epochs are used up.


@pytest.mark.long
def test_an_id_at_the_end_of_its_epochs_goes_on_under_a_new_producer_id(
    kafka: KafkaCluster, alone: ClusterQuery
) -> None:
    alone.batches = [rows_of(batch) for batch in range(4)]
    before = kafka.exhaust_epoch(alone.task_id, left=1)
    # Batch 1 has the last epoch, and is decided when a late attempt takes the next one.
    alone.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    alone.take_id(1, 1)
    rolled = alone.kafka.control().describe([alone.task_id], Deadline(PATIENCE_S))
    after = rolled[alone.task_id].transaction
    assert after.producer_id != before.producer_id
    assert alone.finish().written(1) == [1]
    alone.check()


@pytest.mark.long
def test_the_drivers_id_goes_on_under_a_new_producer_id(
    kafka: KafkaCluster, alone: ClusterQuery
) -> None:
    process = SITES["prepared"].reach(alone)
    kafka.exhaust_epoch(alone.options.names.driver)
    process.wake()
    process.finished()
    alone.check()


# Records are deleted.


@pytest.mark.sampled(1)
@pytest.mark.parametrize("site", ["decided", "writing", "prepared", "settling", "recovering"])
def test_deleting_records_takes_no_others_with_it(alone: ClusterQuery, site: str) -> None:
    """UNKNOWN_PRODUCER_ID came of this in older brokers (KIP-360)."""
    process = SITES[site].reach(alone)
    alone.cluster.delete_records(alone.topic)
    process.wake()
    process.finished()
    later = set(flat(alone.batches[2])) | set(alone.batches[1][2] if site == "writing" else ())
    counted = Counter(alone.visible().values())
    assert later <= counted.keys() <= {row for batch in alone.batches for row in flat(batch)}
    assert set(counted.values()) == {1}


@pytest.mark.long
def test_a_lost_partition_whose_records_are_deleted_is_in_doubt(
    alone: ClusterQuery,
) -> None:
    alone.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    alone.take_id(alone.slot(), 1)
    alone.cluster.delete_records(alone.topic)
    error = alone.run().stopped(OperatorNeededError)
    assert (error["data"]["batch"], error["data"]["partitions"]) == (1, [1])


# The driver's session ends.


@pytest.mark.sampled(1)
@pytest.mark.parametrize("point", [FaultPoint.TASK_PRODUCE_AMID, FaultPoint.TASK_PREPARED_AFTER])
def test_a_batch_that_outlives_the_drivers_session_is_repeated(
    alone: ClusterQuery, point: FaultPoint
) -> None:
    process = Site(point).reach(alone)
    alone.cluster.end_session(alone.options.names.group, alone.options.names.driver)
    process.wake()
    # What it does first when it is awake is to join again, which looks like a newer run.
    process.stopped(BatchFailedError, SupersededError)
    # Nor may it fence and abort: the next start ends what it left open.
    assert alone.decided() == 0
    alone.finish()
    alone.check()


# Copies are missing.


@pytest.mark.long
def test_a_log_without_a_leader_stops_the_query_until_it_is_back(
    cluster: KafkaCluster, query: ClusterQuery
) -> None:
    query.change({"eos.log.topic": f"log-of-{query.topic}", "eos.log.replication.factor": "1"})
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    home = query.log().position
    leader = cluster.node(cluster.leader_of(home.topic, home.partition))
    leader.kill()
    query.change({"eos.step.timeout.ms": "10000"})
    text = query.run().stopped(OutcomeUnknownError, ClusterError)["text"]
    assert "start the query again" in text
    words = ["--bootstrap-server", cluster.bootstrap_servers, "--log-topic", home.topic]
    assert home.topic in run_command("status", *words, expect=NOT_SEEN).said
    leader.restart()
    query.finish()
    query.check()


@pytest.mark.long
@pytest.mark.parametrize("which", ["output", "log"])
def test_too_few_copies_in_sync_delay_a_batch_until_there_are_enough(
    cluster: KafkaCluster, query: ClusterQuery, which: str
) -> None:
    """Two of three are enough everywhere but in this one topic."""
    log = f"log-of-{query.topic}"
    query.change({"eos.log.topic": log})
    process = SITES["writing" if which == "output" else "prepared"].reach(query)
    log_partition = query.log_home().partition
    topic, partition = (query.topic, 0) if which == "output" else (log, log_partition)
    set_config(cluster.direct_servers, topic, "min.insync.replicas", "3")
    others = {1, 2, 3} - {cluster.leader_of(topic, partition)}
    dead = cluster.node(min(others))
    dead.kill()
    wait_until(
        lambda: copies_in_sync(cluster.direct_servers, topic)[partition] == 2,
        Deadline(PATIENCE_S),
        "two copies are in sync",
    )
    process.wake()
    assert not process.ends_within(NOTHING_S), "it went on with too few copies"
    dead.restart()
    query.survive(process)
    query.check()


# A disk is full.


@pytest.mark.long
def test_a_broker_whose_disk_is_full_is_one_that_has_died(tmp_path: Path) -> None:
    data = tmp_path / "data"
    small = data / "node-2"
    small.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(small)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be made here that is full soon: {mounted.stderr.strip()}")
    try:
        with start_own_kafka(brokers=3, data_dir=data) as cluster:
            query = ClusterQuery(cluster, tmp_path)
            process = SITES["writing"].reach(query)
            subprocess.run(
                ["dd", "if=/dev/zero", f"of={small / 'filler'}", "bs=1M"],
                check=False,
                capture_output=True,
            )
            process.wake()
            query.survive(process)
            query.check()
            query.close()
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)
