"""What a run tells while it works, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from eos_sink.testing.topic_audit import Audit


class Progress(Protocol):
    """Shows what happens. Called from one thread."""

    def say(self, text: str) -> None:
        """Print one line of news."""

    def step(self, what: str, total: int) -> None:
        """Begin a step."""

    def at(self, done: int, rows: int, note: str = "") -> None:
        """Show how far the step is. Called often."""


@dataclass(frozen=True)
class SideResult:
    """One finished run.

    Attributes:
        name: "exactly-once" or "at-least-once".
        sink: what wrote it, in words.
        audit: what fresh readers found at its end.
        kills: SIGKILLs that struck.
        mid_commit: how many of them struck between the batch's last row and its completion.
        zombies: drivers frozen and woken while a successor was at work.
        refused: how many of these ended with an error.
        restarts: drivers started after the first.
        seconds: from the first start to the last row.
    """

    name: str
    sink: str
    audit: Audit
    kills: int
    mid_commit: int
    zombies: int
    refused: int
    restarts: int
    seconds: float

    @property
    def perfect(self) -> bool:
        """Each row once and in order, no reader held up, each zombie refused."""
        return self.audit.perfect and self.refused == self.zombies


@dataclass(frozen=True)
class DemoResult:
    """Both runs; `other` is None where no comparison was wanted.

    Attributes:
        work: where logs and checkpoints are, None if they were removed.
        planned: strikes that each run was to get.
    """

    ours: SideResult
    other: SideResult | None
    planned: int
    work: str | None

    @property
    def perfect(self) -> bool:
        """What the exit code says: the exactly-once side only."""
        return self.ours.perfect
