"""What a query does with a batch that Spark runs again: recognise it, repair it, or stop."""

from __future__ import annotations

from typing import Any

import pytest

from eos_sink.errors import ConfigurationError, OperatorNeededError, UnfinishedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from eos_sink_lab.testing.topic_scan import Offsets, Source
from integration.checker import assert_each_once, read_topic
from integration.query import (
    PARTITIONS,
    ROWS,
    VERSIONS,
    Query,
    flat,
    rows_of,
    spread_over,
)
from integration.topics import new_topic


def the_operators_error(query: Query) -> dict[str, Any]:
    data: dict[str, Any] = query.run().stopped(OperatorNeededError)["data"]
    return data


@VERSIONS
def test_a_visible_batch_is_counted_and_not_written_again(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    assert query.finish().written(1) == []
    query.check()


@VERSIONS
def test_only_the_lost_partition_of_a_decided_batch_is_written_again(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    assert query.finish().written(1) == [1]
    query.check()


def test_a_partition_is_lost_between_the_decision_and_its_commit(query: Query) -> None:
    process = query.run_paused_at(FaultPoint.COMMITTER_SETTLE_BEFORE)
    query.take_id(query.slot(), 2)
    process.wake()
    assert process.stopped(UnfinishedError)["data"] == {"batch": 1, "partitions": [2]}
    assert query.finish().written(1) == [2]
    query.check()


@pytest.mark.long
def test_a_partition_that_is_lost_twice_is_written_again_twice(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 0)
    assert query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER).written(1) == [0]
    query.take_id(query.slot(), 0)
    assert query.finish().written(1) == [0]
    query.check()


@VERSIONS
def test_a_committed_batch_whose_ids_are_taken_is_known_by_its_witnesses(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    assert query.finish().written(1) == []
    query.check()


@VERSIONS
def test_without_witnesses_an_operator_decides(query: Query, kafka: KafkaCluster) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    kafka.delete_records(query.topic)
    assert the_operators_error(query) == {
        "batch": 1,
        "partitions": [0, 1, 2],
        "rows": PARTITIONS * ROWS,
    }


def test_a_replay_with_other_rows_needs_an_operator(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.replan(rows_of(1, [ROWS, ROWS, ROWS + 1]))
    assert the_operators_error(query) == {"batch": 1, "partitions": [2], "rows": PARTITIONS * ROWS}
    query.check(batches=2)


def test_a_replay_may_have_the_same_rows_in_other_partitions(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.replan([[], *rows_of(1)[::-1], []])
    assert query.finish().written(1) == []
    query.check()


def test_a_lost_partition_is_not_repaired_with_the_rows_of_others(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    first, second, third = rows_of(1)
    query.replan([first, third, second])
    assert query.run().stopped(UnfinishedError)["data"]["partitions"] == [1]
    # It is completed by row.
    assert query.finish().written(1) == [PARTITIONS + 2]
    query.check()


@VERSIONS
@pytest.mark.parametrize(
    "count", [5, pytest.param(2, marks=pytest.mark.long)], ids=["more", "fewer"]
)
def test_a_batch_that_is_lost_as_a_whole_may_have_other_partitions(
    query: Query, count: int
) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_all_ids()
    query.replan(spread_over(count, rows_of(1)))
    # Some of its new transactions are lost, too: it is completed by row.
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER, partition=0)
    query.take_id(query.slot(), count - 1)
    query.replan(rows_of(1))
    assert query.run().stopped(UnfinishedError)["data"]["decided_partitions"] == count
    query.finish()
    assert_each_once(query.visible(), [row for batch in range(3) for row in flat(rows_of(batch))])


def test_a_batch_that_is_visible_in_part_goes_on_with_its_old_partitions(query: Query) -> None:
    """A start with other ones has decided to complete it by row."""
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    query.replan(spread_over(5, rows_of(1)))
    query.run().stopped(UnfinishedError)
    query.replan(rows_of(1))
    assert query.finish().written(1) == [PARTITIONS + 1]
    query.check()


@pytest.mark.long
def test_a_checkpoint_restored_one_batch_back_reads_a_larger_range(query: Query) -> None:
    query.finish()
    query.restore_checkpoint(2)
    query.batches[2] = rows_of(2, [2 * ROWS] * PARTITIONS)
    assert the_operators_error(query)["batch"] == 2
    query.batches[2] = rows_of(2)
    query.check()


def test_a_checkpoint_restored_further_back_is_refused(query: Query) -> None:
    query.finish()
    query.restore_checkpoint(1)
    assert the_operators_error(query) == {
        "batch": 1,
        "partitions": [0, 1, 2],
        "rows": PARTITIONS * ROWS,
        "decided": 2,
    }
    query.check()


def test_an_empty_batch_writes_no_record_and_opens_no_transaction(
    query: Query, kafka: KafkaCluster
) -> None:
    query.batches = [rows_of(0), [[], [], []], [[], [], []]]
    query.batches, later = query.batches[:1], query.batches[1:]
    query.finish()
    ends, before = end_offsets_of(kafka, query), states(query)
    decided = query.log()
    query.batches += later
    query.finish()
    # A start fences once; the batches add nothing.
    assert query.log().seq == decided.seq + 1
    assert query.log().decision == decided.decision
    assert end_offsets_of(kafka, query) == ends
    # A partition that had rows before may have inited its id, which opens nothing.
    after = states(query)
    assert {after[name] for name in after if after[name] != before[name]} <= {
        TransactionStatus.EMPTY
    }
    query.check()


def test_an_empty_partition_opens_no_transaction(query: Query) -> None:
    query.batches = [rows_of(0, [ROWS, 0, ROWS])]
    assert query.finish().written(0) == [0, 2]
    assert states(query)[query.options.names.task(0, 1)] is TransactionStatus.MISSING
    query.check()


def test_a_deleted_checkpoint_starts_a_new_stream_and_frees_readers(query: Query) -> None:
    query.batches = query.batches[:2]
    query.run_killed_at(FaultPoint.COMMITTER_VOTE_BEFORE)
    query.restore_checkpoint(0)
    query.stream = "after the checkpoint was deleted"
    query.batches = [rows_of(7), rows_of(8)]
    query.finish()
    query.batches.insert(0, rows_of(0))
    query.check()


def states(query: Query) -> dict[str, TransactionStatus]:
    names = query.options.names
    ids = [names.task(slot, partition) for slot in (0, 1) for partition in range(PARTITIONS)]
    found = query.kafka.control().describe(ids, Deadline(30))
    return {name: state.status for name, state in found.items()}


def end_offsets_of(kafka: KafkaCluster, query: Query) -> dict[int, int]:
    return Offsets(Source(kafka.bootstrap_servers, query.topic)).find_high()


def test_the_rest_of_a_batch_is_not_written_to_another_topic(
    query: Query, kafka: KafkaCluster
) -> None:
    """A part of it is visible in the former one."""
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AMID)
    query.take_all_ids()
    former, other = query.topic, new_topic(kafka, "other")
    query.change({"topic": other})
    error = query.run().stopped(ConfigurationError)
    assert f"topic={former}" in error["text"]
    assert len(read_topic(kafka.bootstrap_servers, other)) == 0
    query.change({"topic": former})
    query.finish()
    query.check()


def test_a_batch_of_which_nothing_is_visible_may_go_to_another_topic(
    query: Query, kafka: KafkaCluster
) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_all_ids()
    other = new_topic(kafka, "other")
    query.change({"topic": other})
    query.finish()
    query.check(batches=1)
    left = [row for batch in query.batches[1:] for part in batch for row in part]
    assert_each_once(read_topic(kafka.bootstrap_servers, other), left)
