"""What was found in a topic, and what was not looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Status(Enum):
    """How a check came out."""

    GOOD = "good"
    WRONG = "wrong"
    UNPROVEN = "no proof"
    """Something is strange, and there is an innocent reason that cannot be ruled out."""
    UNCHECKED = "not checked"


@dataclass(frozen=True)
class Check:
    """One thing that may be wrong with a topic.

    Attributes:
        name: "lost", "doubled", ...
        status: how it came out.
        found: how many rows or partitions are concerned; 0 where it was not checked.
        told: what was compared with what, or why it was not.
        examples: some of them, made harmless for a terminal.
    """

    name: str
    status: Status
    found: int
    told: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stretch:
    """What was read of a partition.

    Attributes:
        kept: the first offset that the brokers keep.
        start, stop: what was read; `stop` is where readers got to.
        end: the high watermark.
        rows: records that a reader was given.
        aborted: records from `start` to `stop` that no reader is given; None: not counted.
        holder: who holds readers up, as far as it is known.
    """

    partition: int
    kept: int
    start: int
    stop: int
    end: int
    rows: int
    aborted: int | None = None
    holder: str = ""

    @property
    def behind(self) -> int:
        """Offsets that readers wait for."""
        return max(0, self.end - self.stop)

    @property
    def without_row(self) -> int:
        """Offsets that were read and gave no row: markers, aborted or compacted rows."""
        return max(0, self.stop - self.start - self.rows)


@dataclass(frozen=True)
class Result:
    """All of it.

    Attributes:
        topic: its name.
        identity: the place in a record that tells rows apart.
        checks: each thing that may be wrong, always the same ones.
        stretches: what was read, by partition.
        notes: what has to be known to read the checks.
        rows_at, doubled_at: how many at what time (milliseconds), by the records' timestamps.
        bin_ms: width of those bins.
        seconds: that it took.
        interrupted: a person has ended it: nothing holds for what was not read.
    """

    topic: str
    identity: str
    checks: tuple[Check, ...]
    stretches: tuple[Stretch, ...]
    notes: tuple[str, ...] = ()
    rows_at: Mapping[int, int] = field(default_factory=dict)
    doubled_at: Mapping[int, int] = field(default_factory=dict)
    bin_ms: int = 1_000
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def rows(self) -> int:
        return sum(stretch.rows for stretch in self.stretches)

    @property
    def good(self) -> bool:
        """Nothing is wrong in what was checked."""
        return all(check.status is not Status.WRONG for check in self.checks)

    def document(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            "topic": self.topic,
            "identity": self.identity,
            "good": self.good,
            "interrupted": self.interrupted,
            "rows": self.rows,
            "seconds": round(self.seconds, 1),
            "checks": [
                {
                    "name": check.name,
                    "status": check.status.value,
                    "found": check.found,
                    "told": check.told,
                    "examples": list(check.examples),
                }
                for check in self.checks
            ],
            "partitions": [
                {
                    "partition": stretch.partition,
                    "kept_from": stretch.kept,
                    "read_from": stretch.start,
                    "read_to": stretch.stop,
                    "end": stretch.end,
                    "rows": stretch.rows,
                    "aborted": stretch.aborted,
                    "behind": stretch.behind,
                    "held_up_by": stretch.holder or None,
                }
                for stretch in self.stretches
            ],
            "notes": list(self.notes),
        }
