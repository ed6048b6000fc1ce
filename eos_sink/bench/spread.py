"""Many samples in a few numbers. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """What a series of samples comes to, in the unit of the samples.

    Attributes:
        n: how many samples there are, at least one.
        median: half of them are at most this.
        p5: a twentieth of them is at most this.
        p95: all but a twentieth of them are at most this.
    """

    n: int
    median: float
    p5: float
    p95: float


def spread(samples: Iterable[float]) -> Spread:
    """The spread of samples in any order; between two samples it is interpolated.

    Raises:
        ValueError: there are none.
    """
    ordered = sorted(samples)
    if not ordered:
        raise ValueError("no samples, no spread")
    return Spread(len(ordered), statistics.median(ordered), _at(ordered, 0.05), _at(ordered, 0.95))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """The spread of ours / theirs, of two series that were measured in turns.

    Each sample is set against the one of the other series that was measured beside it, so that
    what the machine did meanwhile is in both. Samples of the longer series that have no partner
    are left out.

    Raises:
        ValueError: a series is empty.
        ZeroDivisionError: one of theirs is 0.
    """
    return spread(our / their for our, their in zip(ours, theirs, strict=False))


def _at(ordered: Sequence[float], part: float) -> float:
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
