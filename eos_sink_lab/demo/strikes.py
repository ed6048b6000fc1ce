"""When and how the driver is struck.

The plan is drawn from a seed before anything runs, so that a run can be repeated and both sinks are
struck alike. A batch is written in some tenths of a second and committed in some hundredths, so a
driver is frozen before it is checked whether the moment has come.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from eos_sink_lab.demo.run_watch import Watch
from eos_sink_lab.testing.process_tree import ProcessTree

# With this share of the rows written, the driver is led to its commit step by step.
_LATE = 0.85
# Resuming and freezing lets the driver run for about 5 ms; its last rows and its decision take it
# 20 to 200 ms.
_MAX_STEPS = 150
_STEP_LOOK_S = 0.015
# So many batches are tried for the middle of a commit, then for any moment of it, then for any
# moment of the batch.
TRIES_FOR_THE_MIDDLE = 3
TRIES_FOR_A_COMMIT = 5


class Kind(Enum):
    """A strike against the driver: its Python, its JVM and its workers at once."""

    WHILE_WRITING = "killed while writing"
    """SIGKILL with part of a batch's rows on the brokers."""
    WHILE_COMMITTING = "killed in mid-commit"
    """SIGKILL with all rows written, before Spark knows that the batch is done."""
    ZOMBIE = "frozen while writing"
    """SIGSTOP; a successor takes over; SIGCONT while the successor works."""


@dataclass(frozen=True)
class Strike:
    """A planned strike.

    Attributes:
        batch: in which batch, from 0 on; in a later one if the moment is missed.
        part: the share of the batch's rows that has to be on the brokers.
    """

    kind: Kind
    batch: int
    part: float


def plan_strikes(batches: int, kills: int, zombies: int, seed: int) -> tuple[Strike, ...]:
    """Spread strikes over the run, each in a stretch of its own.

    The second kill is the one in mid-commit, or the only one. Zombies come last. The last batch is
    left out: after it a zombie would have no successor at work.

    Args:
        batches: number of batches of the input.
        kills: number of SIGKILLs.
        zombies: number of drivers that are frozen and woken.
        seed: of the random moments.

    Raises:
        ValueError: there are fewer batches than the strikes need.
    """
    total = kills + zombies
    if total and batches - 1 < total:
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


class Aim:
    """Waits for the moment of one strike.

    Args:
        strike: the plan.
        watch: readers of the run.
        batches: rows of each batch.
        commits: Spark's commit log in the checkpoint, a file for each finished batch.
    """

    def __init__(
        self, strike: Strike, watch: Watch, batches: tuple[int, ...], commits: Path
    ) -> None:
        self.strike = strike
        self._watch = watch
        self._batches = batches
        self._commits = commits
        self._tried = -1
        self._missed = 0

    @property
    def in_commit(self) -> bool:
        """True while still trying to strike during a commit."""
        wanted = self.strike.kind is Kind.WHILE_COMMITTING
        return wanted and self._missed < TRIES_FOR_A_COMMIT

    def take(self, driver: ProcessTree) -> str | None:
        """Freeze the driver if the moment may have come.

        Returns:
            What the driver was doing, with the driver frozen; None if it is not the moment, with
            the driver running.
        """
        batch = self._watch.current_batch()
        if batch is None or batch < self.strike.batch or batch <= self._tried:
            return None
        # A batch that went by counts as missed, even if it was over too soon to be tried.
        self._missed = batch - self.strike.batch
        # It was written faster than expected: aim earlier at the next.
        rows = self.strike.part * self._batches[batch] / 2**self._missed
        if self._watch.written(batch) < rows or self._is_committed(batch):
            return None
        if not self.in_commit and self._watch.whole(batch):
            return None
        self._tried = batch
        driver.pause()
        if self.in_commit:
            self._step_to_the_decision(driver, batch)
        self._watch.drain()
        found = self._describe(batch)
        if found is None:
            driver.resume()
        return found

    def _step_to_the_decision(self, driver: ProcessTree, batch: int) -> None:
        """Let the frozen driver run for some milliseconds at a time until it has decided."""
        for _ in range(_MAX_STEPS):
            self._watch.look(_STEP_LOOK_S)
            if self._watch.decided(batch) or self._is_committed(batch):
                return
            driver.resume()
            driver.pause()

    def _describe(self, batch: int) -> str | None:
        """Return what the frozen driver was doing; None if that is not what is planned."""
        rows, visible = self._batches[batch], self._watch.visible(batch)
        if not self.in_commit:
            if self._watch.whole(batch):
                return None
            return f"batch {batch}, {self._watch.written(batch):,} of its {rows:,} rows written"
        if self._is_committed(batch) or not self._watch.decided(batch):
            return None
        if not self._watch.decides:
            return f"batch {batch}, all rows written, Spark not told that it is done"
        if visible == rows and self._missed + 1 < TRIES_FOR_THE_MIDDLE:
            return None
        return f"batch {batch}, decided, {visible:,} of its {rows:,} rows visible"

    def _is_committed(self, batch: int) -> bool:
        return (self._commits / str(batch)).exists()
