"""Durations and amounts in the words of a table."""

from __future__ import annotations

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000))


def span(ms: int) -> str:
    """A duration in milliseconds, to be read at a glance: "12 s", "3 min", "2 h"."""
    unit, size = next(((unit, size) for unit, size in _UNITS if abs(ms) >= 2 * size), ("s", 1000))
    return f"{ms / size:.0f} {unit}"
