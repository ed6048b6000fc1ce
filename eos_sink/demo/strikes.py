"""When the driver is struck, and how: drawn from a seed before anything runs, so that a run can
be repeated and both sinks suffer alike."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum

# From here on the driver is led to its commit step by step.
_LATE = 0.85


class Kind(Enum):
    """What is done to the driver: its Python, its JVM and its workers, all at once."""

    WHILE_WRITING = "killed while writing"
    """SIGKILL with part of a batch's rows on the brokers."""
    WHILE_COMMITTING = "killed in mid-commit"
    """SIGKILL with all rows written and Spark not yet told that the batch is done."""
    ZOMBIE = "frozen while writing"
    """SIGSTOP; a successor takes over; SIGCONT while that one is at work."""


@dataclass(frozen=True)
class Strike:
    """One strike.

    Attributes:
        kind: what is done.
        batch: in which batch, counted from 0; if the moment is missed, in a later one.
        part: the share of the batch's rows that has to be on the brokers first.
    """

    kind: Kind
    batch: int
    part: float


def plan_strikes(batches: int, kills: int, zombies: int, seed: int) -> tuple[Strike, ...]:
    """Spread `kills` and `zombies` over the run, each in its own stretch of it.

    The second kill is the one in mid-commit, the first if there is no second. Zombies come last.
    The last batch is left out: after it, a zombie would have no successor at work.

    Args:
        batches: how many the input has.
        kills: SIGKILLs.
        zombies: drivers that are frozen and woken.
        seed: what the moments are drawn from.

    Raises:
        ValueError: there are fewer batches than strikes need.
    """
    total = kills + zombies
    if total == 0:
        return ()
    if batches - 1 < total:
        raise ValueError(f"{total} strikes need {total + 1} batches, and there are {batches}.")
    draw = random.Random(seed)
    kinds = [Kind.WHILE_WRITING] * kills + [Kind.ZOMBIE] * zombies
    if kills:
        kinds[min(1, kills - 1)] = Kind.WHILE_COMMITTING
    strikes = []
    for index, kind in enumerate(kinds):
        first = index * (batches - 1) // total
        last = (index + 1) * (batches - 1) // total - 1
        part = _LATE if kind is Kind.WHILE_COMMITTING else draw.uniform(0.05, 0.6)
        strikes.append(Strike(kind, draw.randint(first, last), part))
    return tuple(strikes)
