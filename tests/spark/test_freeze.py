"""Garbage collection of a worker does not go through loaded modules again after each task."""

from __future__ import annotations

import gc

from eos_sink.spark.writers import freeze_modules


def test_what_is_loaded_is_frozen_once() -> None:
    freeze_modules.cache_clear()
    try:
        freeze_modules()
        frozen = gc.get_freeze_count()
        assert frozen > 10_000
        made: list[list[int]] = [[] for _ in range(1_000)]
        freeze_modules()
        assert gc.get_freeze_count() <= frozen
        assert len(made) == 1_000
    finally:
        gc.unfreeze()
