"""What became of a step of the schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.recovery import Split
from chaos.schedule import Fault, Step


@dataclass
class Outcome:
    """What became of a step. Times are seconds since the epoch.

    Attributes:
        step: what was planned.
        life: the driver that was struck.
        struck: which of its faults struck; a driver may not come to a point in time.
        at: when the first fault struck, None if none did.
        healed: when the last one was ended.
        visible: the first newly visible row; after a driver's end, of its successor.
        caught_up: rows fed before `healed` and a later one are visible, and no reader waits at what
            was open.
        held_up: what readers still waited for at the deadline, "" if they did not.
        silence_s: the longest time without a newly visible row from `at` to `caught_up`.
        split: whose time the recovery was, if a driver was killed and nothing else happened.
        facts: what else is known.
    """

    step: Step
    life: int
    struck: list[Fault] = field(default_factory=list)
    at: float | None = None
    healed: float | None = None
    visible: float | None = None
    caught_up: float | None = None
    held_up: str = ""
    silence_s: float | None = None
    split: Split | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def survived(self) -> bool:
        """Whether the run has recovered in time."""
        return not self.held_up
