"""A checkpoint is replaced after the stops that a fault explains, and after no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.chaos.checkpoint import PARTS, Checkpoint
from proof.chaos.drivers import End

REFUSED = End(3, "OperatorNeededError", "it begins elsewhere")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    for name in (
        "metadata",
        "offsets/0",
        "offsets/1",
        "offsets/.1.crc",
        "commits/0",
        "sources/0/0",
    ):
        file = tmp_path / "checkpoint" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return Checkpoint(tmp_path)


def test_an_explained_stop_is_answered_once(checkpoint: Checkpoint) -> None:
    assert not checkpoint.replace_after(REFUSED)
    assert checkpoint.path.exists()
    checkpoint.may_stop = True
    assert not checkpoint.replace_after(End(-9, "", ""))
    assert not checkpoint.replace_after(End(3, "ClusterError", "try again"))
    assert checkpoint.replace_after(REFUSED)
    assert not checkpoint.path.exists()
    assert not checkpoint.replace_after(REFUSED)


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_half_of_it_is_deleted_and_half_stays(checkpoint: Checkpoint, part: int) -> None:
    before = set(checkpoint.path.rglob("*"))
    checkpoint.halve(part)
    assert set() < set(checkpoint.path.rglob("*")) < before


def test_an_old_copy_replaces_it_where_it_is_now(checkpoint: Checkpoint) -> None:
    checkpoint.copy()
    (checkpoint.path / "offsets/2").touch()
    checkpoint.move()
    assert (checkpoint.path / "offsets/2").exists()
    checkpoint.restore()
    assert not (checkpoint.path / "offsets/2").exists()
    assert (checkpoint.path / "offsets/1").exists()
