"""A batch of which a part is lost, completed by a replay in other partitions, on a real Kafka."""

from __future__ import annotations

import pytest

from eos_sink.errors import UnfinishedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import Rows, assert_each_once, read_topic
from integration.query import (
    INLINE_BYTES,
    PARTITIONS,
    ROWS,
    VERSIONS,
    Query,
    flat,
    rows_of,
    spread_over,
)

SHORT_MS = 10_000


@pytest.fixture
def impatient(query: Query) -> Query:
    query.change({"eos.transaction.timeout.ms": str(SHORT_MS)})
    return query


def stops_for_partitions(query: Query, count: int, decided: int = PARTITIONS) -> None:
    data = query.run().stopped(UnfinishedError)["data"]
    assert (data["decided_partitions"], data["replay_partitions"]) == (decided, count)


def check(query: Query) -> None:
    expected = [row for batch in range(len(query.batches)) for row in flat(rows_of(batch))]
    assert_each_once(query.visible(), expected)


@VERSIONS
@pytest.mark.sampled(1)
@pytest.mark.parametrize("count", [1, 5])
def test_a_replay_in_other_partitions_writes_what_is_not_visible(query: Query, count: int) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    # The others are committed.
    query.replan(spread_over(count, rows_of(1)))
    stops_for_partitions(query, count)
    # Spark brings the rows of each former partition to all tasks.
    written = query.finish().written(1)
    assert written == [PARTITIONS + task for task in range(count)]
    check(query)


@pytest.mark.long
@VERSIONS
def test_rows_that_the_driver_has_written_are_read_back(query: Query) -> None:
    """Among those of its other batches, and of epochs that its restarts have ended."""
    query.change({"eos.inline.bytes": str(INLINE_BYTES)})
    query.batches = [rows_of(batch, (ROWS,) * PARTITIONS + (1, 1)) for batch in range(3)]
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    query.replan(spread_over(2, query.batches[1]))
    stops_for_partitions(query, 2, PARTITIONS + 2)
    decision = query.log().decision
    assert decision is not None
    assert [each.partition for each in decision.inlined] == [PARTITIONS, PARTITIONS + 1]
    query.finish()
    assert_each_once(query.visible(), [row for batch in query.batches for row in flat(batch)])


@pytest.mark.long
def test_rows_in_several_topics_are_read_back_in_all_of_them(
    kafka: KafkaCluster, query: Query
) -> None:
    query.spread()
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    first, second, third = rows_of(1)
    query.replan([third, second, [], first])
    stops_for_partitions(query, 4)
    query.finish()
    found = [row for topic in query.topics for row in read_topic(kafka.bootstrap_servers, topic)]
    assert_each_once(Rows(found), [row for batch in range(3) for row in flat(rows_of(batch))])


@pytest.mark.long
@VERSIONS
def test_transactions_that_have_really_expired(impatient: Query) -> None:
    query = impatient
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AMID)
    wait_until_expired(query)
    query.replan(spread_over(4, rows_of(1)))
    stops_for_partitions(query, 4)
    # And again, in the completion.
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AMID, partition=-1)
    wait_until_expired(query)
    query.replan(spread_over(2, rows_of(1)))
    assert query.finish().written(1) == [PARTITIONS + 4, PARTITIONS + 5]
    check(query)


def wait_until_expired(query: Query) -> None:
    """Each decided transaction is committed or, after its timeout, aborted."""
    decision = query.log().decision
    assert decision is not None
    ids = [each.transactional_id for each in decision.transactions(query.options.names)]

    def ended() -> bool:
        states = query.kafka.control().describe(ids, Deadline(30)).values()
        return TransactionStatus.ONGOING not in {state.status for state in states}

    wait_until(ended, Deadline(60), "the decided transactions have expired")


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.PLANNER_STABLE_AFTER,
        FaultPoint.TASK_PREPARED_AFTER,
        FaultPoint.COMMITTER_VOTE_AFTER,
        FaultPoint.COMMITTER_WRITE_AFTER,
        FaultPoint.COMMITTER_SETTLE_AMID,
    ],
)
@pytest.mark.long
def test_a_completion_that_is_killed_is_finished_by_the_next_start(
    query: Query, point: FaultPoint
) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    query.replan(spread_over(2, rows_of(1)))
    stops_for_partitions(query, 2)
    query.run_killed_at(point, partition=-1)
    query.replan(spread_over(4, rows_of(1)))
    query.finish()
    check(query)
