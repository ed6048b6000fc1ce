"""The demo itself, short: real Spark, real Kafka, real SIGKILLs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from eos_sink_lab.demo.demo_result import DemoResult
from eos_sink_lab.demo.run_demo import DemoOptions, run_demo
from eos_sink_lab.progress import Progress
from eos_sink_lab.testing import KafkaCluster

# Twelve batches. The kill in mid-commit is planned for the seventh. It lets two go by if it finds
# them not half visible, more if a loaded machine looks too late; the zombie needs a later batch.
ROWS = 170_000


@pytest.mark.long
def test_flights_are_visible_once_although_the_driver_is_killed_and_a_zombie_wakes_up(
    kafka: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = demo(kafka, kills=2, zombies=1)

    count = result.ours.audit.count
    assert (count.records, count.lost, count.doubled, count.foreign) == (ROWS, 0, 0, 0)
    assert count.out_of_order == 0
    assert result.ours.audit.held_up == {}
    # How many of them are in the middle of a commit is left to the machine: see ROWS.
    assert result.ours.kills == 2
    assert (result.ours.zombies, result.ours.refused) == (1, 1)
    assert result.ours.audit.aborted > 0
    assert result.perfect


def demo(kafka: KafkaCluster, kills: int, zombies: int) -> DemoResult:
    options = DemoOptions(
        rows=ROWS,
        kills=kills,
        zombies=zombies,
        bootstrap=kafka.bootstrap_servers,
        compare=False,
    )
    return run_demo(options, Progress(sys.stdout))
