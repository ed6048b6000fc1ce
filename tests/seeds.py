"""What this run draws: it comes from the clock, and from EOS_SEED if it is set.

The report's header shows the seed, and so does the end of a report with failures.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def chance(*names: object) -> Random:
    """What this run draws for something with these names."""
    return Random(" ".join(map(str, (os.environ["EOS_SEED"], *names))))


def every(step: int, row: Sequence[T], *names: object) -> Sequence[T]:
    """Every `step`th of a row, the first of which this run draws."""
    return row[chance(*names).randrange(step) :: step]
