"""The memory of a task's worker: a slow broker holds the task, and batches leave nothing behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.memory_worker import MB, Case, OneTask, Worker, audited
from eos_sink_lab.testing import KafkaCluster
from integration.own_kafka import start_own_kafka

# Rows that have been taken when the broker stops to answer, and how many there may be more: those
# of the bound, and what is in the worker's hands.
CUT_AT, HELD_BELOW = 10_000, 20_000
STILL = 30
"""Looks in a row that find the task where it was: it waits."""
GROWTH = 80 * MB


@pytest.fixture
def slow() -> Iterator[KafkaCluster]:
    with start_own_kafka(proxied=True) as cluster:
        yield cluster


@pytest.mark.long
def test_a_broker_that_does_not_answer_holds_the_task_in_bounded_memory(
    slow: KafkaCluster, tmp_path: Path
) -> None:
    case = Case(rows=60_000, size=2_000, buffer_mb=8, arrow_rows=1_000)
    query = OneTask(slow, case, tmp_path)
    worker = Worker.start(case, query.given, tmp_path)
    (broker,) = slow.brokers
    seen: list[int] = []
    cut = False
    for told in worker.write(query.plan()):
        seen.append(told["rows"])
        if not cut and told["rows"] >= CUT_AT:
            broker.link.cut()
            cut = True
        elif cut and seen[-STILL:] == seen[-1:] * STILL:
            assert told["rows"] < HELD_BELOW
            broker.link.heal()
    query.commit()
    query.close()
    worker.close()
    assert cut
    assert worker.told[-1]["peak"] - worker.base["rss"] < GROWTH
    assert audited(slow, query.topic, case.rows).perfect


@pytest.mark.long
@pytest.mark.parametrize(("size", "most"), [(100_000, 80 * MB), (2_000, 128 * MB)])
def test_rows_that_are_all_rejected_take_about_their_batch_once_more(
    kafka: KafkaCluster, tmp_path: Path, size: int, most: int
) -> None:
    """Compared with the same rows in their own topic: with Arrow batches of 64 MB, and a dead
    letter topic that takes almost a gigabyte. Small rows have 1 KB of headers each in the queue.
    """
    more = []
    for rejected in (False, True):
        (tmp_path / str(rejected)).mkdir()
        case = Case(192 * MB // size, size, arrow_rows=100_000, rejected=rejected)
        query = OneTask(kafka, case, tmp_path / str(rejected))
        worker = Worker.start(case, query.given, tmp_path / str(rejected))
        for _ in worker.write(query.plan()):
            pass
        query.commit()
        query.close()
        worker.close()
        found = audited(kafka, query.letters if rejected else query.topic, case.rows)
        assert found.perfect
        more.append(worker.told[-1]["peak"] - worker.base["rss"])
    print(json.dumps({"size": size, "taken": more[0], "rejected": more[1]}))
    assert more[1] - more[0] < most


@pytest.mark.long
def test_hundreds_of_batches_leave_nothing_behind_in_a_worker(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    case = Case(rows=1_000, size=100)
    query = OneTask(kafka, case, tmp_path)
    worker = Worker.start(case, query.given, tmp_path)
    ends: list[dict[str, Any]] = []
    for _ in range(500):
        *_, end = worker.write(query.plan())
        query.commit()
        ends.append(end)
    query.close()
    worker.close()
    # The first batches fill what Python and librdkafka keep.
    early, late = ends[100:150], ends[450:]
    for what, more in (("threads", 3), ("files", 3), ("rss", 10 * MB)):
        assert min(end[what] for end in late) <= min(end[what] for end in early) + more, what
