"""What a run is asked for and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.kinds import Master
from chaos.recovery import Split
from chaos.schedule import Fault, Step
from chaos.watch import Second
from eos_sink.testing.topic_audit import Audit


@dataclass(frozen=True)
class Settings:
    """What a run is asked for.

    Attributes:
        home: where all of its files go.
        seed: of the schedule.
        seconds: how long faults are brought about; what has begun is brought to its end.
        rate: rows a second.
        masters: what drivers run on, in turns.
        most: faults at most, None for no such bound.
    """

    home: Path
    seed: int
    seconds: float
    rate: int
    masters: tuple[Master, ...]
    most: int | None = None


@dataclass(frozen=True)
class OnDisk:
    """The transactions in the brokers' files, beside what the reader was given.

    Attributes:
        committed, aborted: how many, each counted once for each partition that it wrote to.
        wrong: records given although aborted, or withheld although committed.
    """

    committed: int
    aborted: int
    wrong: int


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


@dataclass
class Result:
    """What a run came to.

    Attributes:
        settings: what was asked for.
        began, ended: seconds since the epoch.
        kafka: its version.
        rows: fed.
        outcomes: of each step.
        seconds: what the reader saw.
        lives: how many drivers there were.
        events: the journal.
        flaws: what else must not be: stops for a person, a reader that could not go on.
        audit: the verdict; None if it could not be had.
        on_disk: what the partitions' leaders have; None likewise.
    """

    settings: Settings
    began: float
    ended: float
    kafka: str
    rows: int
    outcomes: list[Outcome]
    seconds: list[Second]
    lives: int
    events: list[dict[str, Any]]
    flaws: list[str] = field(default_factory=list)
    audit: Audit | None = None
    on_disk: OnDisk | None = None

    @property
    def good(self) -> bool:
        """Nothing lost, doubled, foreign, out of order, withdrawn or held up, and no flaw."""
        survived = all(outcome.survived for outcome in self.outcomes)
        perfect = self.audit is not None and self.audit.perfect
        return survived and perfect and not self.flaws and not (self.on_disk and self.on_disk.wrong)


def told(step: Step) -> str:
    """A step in a line."""
    faults = (
        fault.kind.value + (f" at {fault.point.value}" if fault.point else "")
        for fault in step.faults
    )
    return " + ".join(faults)


def became(outcome: Outcome) -> str:
    """An outcome in a line."""
    if outcome.held_up:
        return f"NOT RECOVERED: {outcome.held_up}"
    assert outcome.at is not None
    text = f"recovered in {(outcome.caught_up or 0) - outcome.at:.1f} s"
    if outcome.visible is not None:
        text += f", first row after {outcome.visible - outcome.at:.1f} s"
    if outcome.split is not None:
        text += f" of which ours {outcome.split.ours_s:.2f} s"
    return text
