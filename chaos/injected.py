"""A fault that has struck."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def nothing() -> None:
    """For faults that are over at once."""


@dataclass
class Injected:
    """A fault that has struck.

    Attributes:
        at: when, seconds since the epoch.
        heal: ends it.
        facts: for the report.
        lasts_s: how long it lasts at least, whatever its schedule says.
    """

    at: float
    heal: Callable[[], None] = nothing
    facts: dict[str, object] | None = None
    lasts_s: float = 0.0
