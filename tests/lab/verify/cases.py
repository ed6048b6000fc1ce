"""What a check is asked, and rows as it reads them."""

from __future__ import annotations

from typing import Any

from eos_sink_lab.testing.topic_scan import Source
from eos_sink_lab.verify.row_columns import Chunk, Columns
from eos_sink_lab.verify.verify_model import VerifyOptions


def chunks(numbers: list[int], groups: list[int] | None = None) -> list[Chunk]:
    made = Columns(grouped=groups is not None)
    for place, number in enumerate(numbers):
        made.add(place % 2, place, number, groups[place] if groups else 0)
    return made.chunks()


def question(identity: str = "key", **more: Any) -> VerifyOptions:
    return VerifyOptions(Source("nowhere:1", "orders"), identity, **more)
