"""What a query does with a batch that Spark runs again: recognise it, repair it, or stop."""

from __future__ import annotations

import pytest

from eos_sink.errors import UnfinishedError
from eos_sink_lab.testing.faults import FaultPoint
from integration.query import (
    VERSIONS,
    Query,
    rows_of,
)

pytestmark = pytest.mark.sampled(8, of="replays and repairs")


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


@VERSIONS
def test_a_committed_batch_whose_ids_are_taken_is_known_by_its_witnesses(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    assert query.finish().written(1) == []
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
