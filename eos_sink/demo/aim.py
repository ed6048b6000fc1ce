"""Finding the moment of a strike: freeze the driver, look at Kafka, then strike or let it go on.

A batch is written in some tenths of a second and committed in some hundredths. Who looks first
and kills then comes too late; who has frozen the driver can look at leisure.
"""

from __future__ import annotations

from pathlib import Path

from eos_sink.demo.run_watch import Watch
from eos_sink.demo.strikes import Kind, Strike
from eos_sink.testing.process_tree import ProcessTree

# A thaw and a freeze let the driver run for about 5 ms; its last rows and its decision take it
# 20 to 200 ms.
_STEPS_AT_MOST = 150
_STEP_LOOK_S = 0.015
# So many batches are tried for the middle of a commit, then for any moment of it, then for any
# moment of the batch.
TRIES_FOR_THE_MIDDLE = 3
TRIES_FOR_A_COMMIT = 5


class Aim:
    """Waits for the moment of one strike.

    Args:
        strike: what is planned.
        watch: readers of the run.
        batches: rows of each batch.
        commits: Spark's commit log in the checkpoint, a file for each batch that is done.
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

    def take(self, driver: ProcessTree) -> str | None:
        """Freeze the driver if the moment seems right.

        Returns:
            What was found, with the driver frozen; None if it is not the moment, and it runs.
        """
        batch = self._watch.current_batch()
        if batch is None or batch < self.strike.batch or batch <= self._tried:
            return None
        # Batches gone by count as missed whether they were tried or over too soon to try.
        self._missed = batch - self.strike.batch
        if not self._seems_right(batch):
            return None
        self._tried = batch
        driver.pause()
        if self.in_commit:
            self._step_to_the_decision(driver, batch)
        self._watch.drain()
        found = self._found(batch)
        if found is None:
            driver.resume()
        return found

    def _seems_right(self, batch: int) -> bool:
        # A batch that was missed was written faster than expected: aim earlier at the next.
        wanted = self.strike.part * self._batches[batch] / 2**self._missed
        if self._watch.written(batch) < wanted or self._spark_knows(batch):
            return False
        return self.in_commit or not self._watch.whole(batch)

    @property
    def in_commit(self) -> bool:
        """Whether the middle of a commit is wanted, and not given up."""
        wanted = self.strike.kind is Kind.WHILE_COMMITTING
        return wanted and self._missed < TRIES_FOR_A_COMMIT

    def _step_to_the_decision(self, driver: ProcessTree, batch: int) -> None:
        """Let the frozen driver go on, some milliseconds at a time, until it has decided."""
        for _ in range(_STEPS_AT_MOST):
            self._watch.look(_STEP_LOOK_S)
            if self._watch.decided(batch) or self._spark_knows(batch):
                return
            driver.resume()
            driver.pause()

    def _found(self, batch: int) -> str | None:
        """What the frozen driver was at, None if that is not what is planned."""
        if self.in_commit:
            return self._found_committing(batch)
        if self._watch.whole(batch):
            return None
        rows = self._batches[batch]
        return f"batch {batch}, {self._watch.written(batch):,} of its {rows:,} rows written"

    def _found_committing(self, batch: int) -> str | None:
        if self._spark_knows(batch) or not self._watch.decided(batch):
            return None
        if not self._watch.decides:
            return f"batch {batch}, all rows written, Spark not told that it is done"
        rows, visible = self._batches[batch], self._watch.visible(batch)
        if visible == rows and self._missed + 1 < TRIES_FOR_THE_MIDDLE:
            return None
        return f"batch {batch}, decided, {visible:,} of its {rows:,} rows visible"

    def _spark_knows(self, batch: int) -> bool:
        return (self._commits / str(batch)).exists()
