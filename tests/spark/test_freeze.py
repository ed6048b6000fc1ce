"""Garbage collection of a worker does not go through loaded modules again after each task."""

from __future__ import annotations

import gc
from itertools import count

import pytest

from eos_sink.spark import sink_writer


def test_the_first_two_uses_freeze_what_is_loaded_and_no_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sink_writer, "_uses", count(1))
    try:
        sink_writer.spare_collections()
        first = gc.get_freeze_count()
        assert first > 10_000
        loaded: list[list[int]] = [[] for _ in range(10_000)]
        sink_writer.spare_collections()
        second = gc.get_freeze_count()
        assert second >= first + len(loaded)
        made: list[list[int]] = [[] for _ in range(10_000)]
        sink_writer.spare_collections()
        assert gc.get_freeze_count() < second + len(made)
    finally:
        gc.unfreeze()
