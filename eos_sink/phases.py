"""The phases of a batch in the driver, as a table.

Nothing leads from DECIDED to ABORTED: that is the sink's promise in one line. VOIDED says that
the log has moved past the batch's plan, so that it can no longer be decided; only then are its
transactions aborted.
"""

from __future__ import annotations

from enum import Enum, auto


class Phase(Enum):
    """Where a batch is between Spark's write and its visibility (two-phase commit, KIP-691)."""

    PREPARED = auto()
    VOTED = auto()
    DECIDED = auto()
    SETTLED = auto()
    VOIDED = auto()
    ABORTED = auto()


NEXT: dict[Phase, frozenset[Phase]] = {
    Phase.PREPARED: frozenset({Phase.VOTED, Phase.VOIDED}),
    Phase.VOTED: frozenset({Phase.DECIDED, Phase.VOIDED}),
    Phase.DECIDED: frozenset({Phase.SETTLED}),
    Phase.SETTLED: frozenset(),
    Phase.VOIDED: frozenset({Phase.ABORTED}),
    Phase.ABORTED: frozenset(),
}


class BatchPhase:
    """The phase of one batch, moved only along the table."""

    def __init__(self) -> None:
        self.now = Phase.PREPARED

    def move(self, to: Phase) -> None:
        """Raises AssertionError for a step that the table does not have: a bug, not an event."""
        if to not in NEXT[self.now]:
            raise AssertionError(f"a batch cannot go from {self.now.name} to {to.name}")
        self.now = to
