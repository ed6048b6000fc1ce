"""Asynchronous progress tracking on real Spark, which writes the offsets beside the batch."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.faults import FaultPoint, Strike
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import HeldUpError
from integration.spark_apps import PATIENCE_S
from integration.spark_query import SparkQuery
from tests.seeds import chance

WITHOUT_END = {"processingTime": "0 seconds"}
KILLS = 6
BATCHES = 3


@pytest.fixture
def query(spark_query: SparkQuery) -> SparkQuery:
    spark_query.options |= {
        "asyncProgressTrackingEnabled": "true",
        "asyncProgressTrackingCheckpointIntervalMs": "0",
        "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
    }
    return spark_query


def go_on(query: SparkQuery, batch: int) -> None:
    """Run the query until Spark has noted the batch."""
    run = query.program(WITHOUT_END)
    query.wait_committed(batch, run)
    run.application.kill()


def wait_seen(query: SparkQuery, rows: int) -> None:
    """Spark's file source has a log of its own: a kill before a batch's offsets are written makes
    one batch of two files. What a killed driver has left holds readers up until the next plan."""

    def are_seen() -> bool:
        with suppress(HeldUpError):
            return len(query.seen()) >= rows
        return False

    wait_until(are_seen, Deadline(PATIENCE_S), f"{rows} rows are seen")


def test_a_batch_whose_offsets_cannot_be_written_is_not_decided(query: SparkQuery) -> None:
    query.options["eos.step.timeout.ms"] = "15000"
    query.add_batch()
    run = query.program(WITHOUT_END)
    query.wait_committed(0, run)
    offsets, aside = query.checkpoint / "offsets", query.checkpoint / "aside"
    offsets.rename(aside)
    offsets.write_text("no directory")
    query.add_batch()
    error = run.stopped()
    assert f"{offsets}/1 cannot be read: " in error
    assert query.decision().batch.batch == 0
    offsets.unlink()
    aside.rename(offsets)
    go_on(query, batch=1)
    query.assert_exactly_once()


@pytest.mark.long
@pytest.mark.parametrize(
    "point", [FaultPoint.TASK_PREPARED_AFTER, FaultPoint.COMMITTER_WRITE_AFTER]
)
def test_a_driver_lost_during_a_batch(point: FaultPoint, query: SparkQuery) -> None:
    query.add_batch()
    query.faults.arm(point, Strike.KILL_ALL)
    run = query.program(WITHOUT_END)
    query.wait_fired(point, run)
    run.application.killed()
    query.applications.warm_up()
    query.add_batch()
    go_on(query, batch=1)
    query.assert_exactly_once()


@pytest.mark.long
@pytest.mark.parametrize("inline", ["0", "65536"])
def test_drivers_killed_at_random(inline: str, query: SparkQuery) -> None:
    drawn = chance("asynchronous", inline)
    query.options["eos.inline.bytes"] = inline
    for _ in range(KILLS):
        before = max(1, len(query.expected))
        for _ in range(BATCHES):
            query.add_batch()
        run = query.program(WITHOUT_END)
        wait_seen(query, before)
        # From the middle of the batches that are left to soon after them.
        time.sleep(drawn.uniform(0, 2))
        run.application.kill()
    run = query.program(WITHOUT_END)
    wait_seen(query, len(query.expected))
    run.application.kill()
    query.assert_exactly_once()
