"""Rows come at their rate whatever the query does; only files wait for it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.waiting import wait_until
from proof.chaos.feeder import Feeder
from proof.chaos.inbox import FileInbox


def rows_of(directory: Path) -> list[int]:
    return [
        json.loads(line)["row"]
        for file in sorted(directory.iterdir())
        for line in file.read_text().splitlines()
    ]


def test_files_hold_every_row_once_in_order(tmp_path: Path) -> None:
    inbox = FileInbox(tmp_path / "in", tmp_path / "hidden")
    feeder = Feeder(inbox, 1000, 0.1, lambda: feeder.rows)
    feeder.start()
    files = tmp_path / "in"
    wait_until(lambda: len(list(files.iterdir())) > 2, Deadline(30), "rows are in several files")
    feeder.stop()
    assert rows_of(files) == list(range(feeder.rows))


def test_a_query_that_is_behind_finds_one_file_and_later_all_rows(tmp_path: Path) -> None:
    visible = 0
    inbox = FileInbox(tmp_path / "in", tmp_path / "hidden")
    feeder = Feeder(inbox, 1000, 0.05, lambda: visible)
    began = time.time()
    feeder.start()
    wait_until(lambda: time.time() - began > 1, Deadline(30), "a second is over")
    assert len(list((tmp_path / "in").iterdir())) == 1
    visible = feeder.rows
    wait_until(lambda: feeder.rows > 900, Deadline(30), "what was due is fed")
    feeder.stop()
    assert rows_of(tmp_path / "in") == list(range(feeder.rows))
