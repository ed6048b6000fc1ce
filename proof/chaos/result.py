"""The settings of a run, the outcome of each step, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eos_sink_lab.testing.topic_audit import Audit
from proof.chaos.kinds import Input, Master, Way
from proof.chaos.recovery import Split
from proof.chaos.schedule import Fault, Step
from proof.chaos.watch import Second


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Attributes:
        home: the directory for all files.
        seed: of the schedule.
        seconds: how long faults are injected; a step that has begun is completed.
        rate: rows per second.
        masters: where drivers run, in turns.
        most: stop after so many steps; None: no limit.
        source: what the query reads.
        standbys: drivers that are ready to start the query when one has died.
        way: how the query writes.
    """

    home: Path
    seed: int
    seconds: float
    rate: int
    masters: tuple[Master, ...]
    most: int | None = None
    source: Input = Input.FILES
    standbys: int = 0
    way: Way = Way.FORMAT


@dataclass(frozen=True)
class OnDisk:
    """The transactions in the brokers' files, compared with what the reader got.

    Attributes:
        committed, aborted: how many, each counted once for each partition that it wrote to.
        wrong: aborted records that the reader got, and committed ones that it did not get.
    """

    committed: int
    aborted: int
    wrong: int


@dataclass
class Outcome:
    """The outcome of a step. Times are seconds since the epoch.

    Attributes:
        step: the planned step.
        life: the number of the driver that was hit.
        struck: the injected faults; a driver may not reach a fault point in time.
        at: when the first fault was injected; None: none was.
        healed: when the last fault ended.
        visible: when the first new row became visible, after a kill one of the next driver.
        caught_up: when all rows fed before `healed` and a later one were visible, and no reader
            waited for an open transaction.
        held_up: what readers waited for at the deadline; empty: nothing.
        silence_s: the longest time without a new visible row between `at` and `caught_up`.
        split: the parts of the recovery time, if only a driver was killed.
        facts: more facts for the report.
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
        """Whether the run recovered in time."""
        return not self.held_up


@dataclass
class Result:
    """The result of a run.

    Attributes:
        settings: the settings.
        began, ended: seconds since the epoch.
        kafka: the version of Kafka.
        rows: number of rows in the input.
        outcomes: the outcome of each step.
        seconds: what the reader saw, by second.
        lives: number of drivers.
        events: the journal.
        flaws: other errors: a driver that needs an operator, a reader that failed.
        audit: the row check; None if the topic could not be read.
        on_disk: the transactions on the disks of the leaders; None if they could not be read.
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


def describe_step(step: Step) -> str:
    """A step in one line."""
    faults = (
        fault.kind.value + (f" at {fault.point.value}" if fault.point else "")
        for fault in step.faults
    )
    return " + ".join(faults)


def describe_outcome(outcome: Outcome) -> str:
    """An outcome in one line."""
    if outcome.held_up:
        return f"NOT RECOVERED: {outcome.held_up}"
    assert outcome.at is not None
    text = f"recovered in {(outcome.caught_up or 0) - outcome.at:.1f} s"
    if outcome.visible is not None:
        text += f", first row after {outcome.visible - outcome.at:.1f} s"
    if outcome.split is not None:
        text += f" of which ours {outcome.split.ours_s:.2f} s"
    return text
