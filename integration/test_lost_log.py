"""A deleted decision log, on a real Kafka: no batch is silently written twice."""

from __future__ import annotations

from typing import Any

import pytest

from eos_sink.errors import ClusterError, OperatorNeededError
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.operator_commands import WAITING, run_command
from integration.query import VERSIONS, Query


@pytest.fixture
def query(query: Query) -> Query:
    """With its own log, to be deleted."""
    query.stand_apart()
    return query


def stopped(query: Query) -> dict[str, Any]:
    data: dict[str, Any] = query.run().stopped(OperatorNeededError)["data"]
    return data


@VERSIONS
def test_an_operator_sees_that_the_log_was_deleted(query: Query) -> None:
    query.finish()
    query.delete_log()
    seen = run_command("status", *query.reach, "--json", expect=WAITING).document
    assert [each["kind"] for each in seen["alerts"]] == ["decision log gone"]


@VERSIONS
def test_a_decided_batch_is_not_written_again_when_the_log_was_deleted(
    query: Query, kafka: KafkaCluster
) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.delete_log()
    for _ in range(2):
        data = stopped(query)
        assert data["transactions"] == [*query.task_ids(0, 1), query.options.names.driver]
        assert data["partitions"] == [0, 1, 2]
        assert (data["batch"], data["rows"]) == (None, None)
        assert data["log"] == query.options.log_topic
    query.check(batches=2)


@pytest.mark.long
def test_a_log_that_is_deleted_under_a_running_query_takes_no_decision(
    query: Query, kafka: KafkaCluster
) -> None:
    # Before it opens the log: a record that is on its way would wait half a minute for its topic.
    process = query.run_paused_at(FaultPoint.COMMITTER_OPEN_BEFORE, batch=0)
    query.delete_log()
    process.wake()
    assert "is gone" in process.stopped(ClusterError)["text"]
    # The record of the start was committed: without the log, it may have been a decision.
    assert stopped(query)["transactions"] == [query.options.names.driver]


@pytest.mark.long
def test_a_log_that_is_made_again_under_a_running_query_is_noticed(
    query: Query, kafka: KafkaCluster
) -> None:
    """The decision was on its way to the old topic, so that nothing is decided in the new one."""
    process = query.run_paused_at(FaultPoint.COMMITTER_VOTE_BEFORE, batch=1)
    query.delete_log()
    assert query.log().seq == 0
    process.wake()
    data = process.stopped(OperatorNeededError)["data"]
    assert data["seq"] < data["known"]
    # The transactions of batch 0 tell each start that there was another log.
    assert query.options.names.driver in stopped(query)["transactions"]
    query.check(batches=2)
