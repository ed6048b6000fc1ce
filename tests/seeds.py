"""The seeds of this run: they come from the clock, and from EOS_SEED if it is set.

The report's header shows the first one, and so does the end of a report with failures.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest


def chance(*names: object) -> Random:
    """What this run draws for something with these names."""
    return Random(" ".join(map(str, (_first(), *names))))


def drawn(count: int = 1) -> list[Any]:
    """Seeds as parameters of a test of `make test-long`."""
    return [
        pytest.param(_first() + number, id=f"drawn-{number}", marks=pytest.mark.long)
        for number in range(count)
    ]


def _first() -> int:
    return int(os.environ["EOS_SEED"])
