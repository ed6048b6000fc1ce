"""What the demo reports: its results, or the reason why it cannot go on."""

from __future__ import annotations

from dataclasses import dataclass

from eos_sink_lab.testing.topic_audit import Audit


class DemoError(Exception):
    """The demo cannot go on; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class RunResult:
    """One finished run.

    Attributes:
        name: "exactly-once" or "at-least-once".
        sink: the call that chose the sink.
        audit: what new readers found at the end.
        kills: SIGKILLs of the driver.
        mid_commit: those between the last row of a batch and its completion.
        zombies: drivers that were frozen, replaced, and woken while their successor worked.
        refused: zombies that ended with an error.
        restarts: starts of the driver after the first.
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
        """Each row once and in order, no reader blocked, each zombie refused."""
        return self.audit.perfect and self.refused == self.zombies


@dataclass(frozen=True)
class DemoResult:
    """Both runs; `other` is None without the comparison.

    Attributes:
        work: the directory of logs and checkpoints; None if it was removed.
        planned: strikes that were planned for each run.
    """

    ours: RunResult
    other: RunResult | None
    planned: int
    work: str | None

    @property
    def perfect(self) -> bool:
        """True if the exactly-once run was perfect; the exit code says the same."""
        return self.ours.perfect
