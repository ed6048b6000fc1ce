"""A worker does not go through loaded modules or Spark's archives again with each task."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
from itertools import count
from pathlib import Path

import pytest

from eos_sink.spark import sink_writer


def is_collected(what: object) -> bool:
    """True if the collector goes through it: the number of frozen ones also falls as some end."""
    return any(each is what for each in gc.get_objects())


def test_the_first_two_uses_freeze_what_is_loaded_and_no_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sink_writer, "_uses", count(1))
    try:
        sink_writer.freeze_garbage_collector()
        assert gc.get_freeze_count() > 10_000
        loaded: list[list[int]] = [[]]
        sink_writer.freeze_garbage_collector()
        assert not is_collected(loaded)
        made: list[list[int]] = [[]]
        sink_writer.freeze_garbage_collector()
        assert is_collected(made)
    finally:
        gc.unfreeze()


def test_importers_of_sparks_own_archives_are_dropped_and_their_modules_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sink_writer, "_uses", count(3))
    archives = [tmp_path / name for name in ("pyspark.zip", "py4j-0.10-src.zip", "mine.zip")]
    for number, archive in enumerate(archives):
        with zipfile.ZipFile(archive, "w") as written:
            for module in (f"early_{number}", f"late_{number}"):
                written.writestr(f"{module}.py", "")
        monkeypatch.syspath_prepend(str(archive))
        importlib.import_module(f"early_{number}")
    sink_writer.freeze_garbage_collector()
    kept = [archive.name for archive in archives if str(archive) in sys.path_importer_cache]
    assert kept == ["mine.zip"], "a user's archive may change"
    importlib.invalidate_caches()
    for number in range(len(archives)):
        importlib.import_module(f"late_{number}")
