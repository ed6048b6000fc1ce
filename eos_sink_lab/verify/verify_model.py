"""The options of `eos-sink verify` and its result.

The table, the JSON document and the HTML page show the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from eos_sink_lab.testing.topic_scan import Source


@dataclass(frozen=True)
class VerifyOptions:
    """The topic to read, and the identity of its rows.

    Attributes:
        source: the topic.
        identity, group, order: places in a record, see `row_identity.Places`.
        numbered: identities are whole numbers, so a missing number is noticed.
        expected: rows are numbered from 0 to `expected` - 1.
        expected_from: a file with the identity of each row of the source, one a line.
        partitions: read only these; empty: all.
        last: read only this number of offsets of each partition.
        since_ms: read only newer rows, milliseconds since the epoch.
        follow_s: keep reading new rows for so long.
        wait_s: how long a transaction may be open before it holds readers up.
        count_aborted: read everything again to count aborted rows.
        compacted: whether the topic is compacted; None: unknown, for lack of a permission.
        stall_s: fail after so long without progress.
        dead_letters: a dead letter topic of the sink, whose rows of this topic count as there.
        partial: a check that an option asks for may be left out, or cover a part only.
    """

    source: Source
    identity: str
    group: str | None = None
    order: str | None = None
    numbered: bool = False
    expected: int | None = None
    expected_from: Path | None = None
    partitions: frozenset[int] = frozenset()
    last: int | None = None
    since_ms: int | None = None
    follow_s: float = 0.0
    wait_s: float = 10.0
    count_aborted: bool = False
    compacted: bool | None = False
    stall_s: float = 60.0
    dead_letters: Source | None = None
    partial: bool = False

    @property
    def limited(self) -> bool:
        """Only a part of the topic is read."""
        return bool(self.partitions or self.last is not None or self.since_ms is not None)


class Status(Enum):
    """The outcome of a check."""

    GOOD = "good"
    WRONG = "wrong"
    UNPROVEN = "no proof"
    """Something was found, and a harmless reason for it cannot be ruled out."""
    UNCHECKED = "not checked"


@dataclass(frozen=True)
class Check:
    """One check of a topic; the fields are keys of the JSON document.

    Attributes:
        name: "lost", "doubled", ...
        status: its outcome.
        found: the number of rows or partitions with the flaw; 0 if it was not checked.
        told: what was compared, or why it was not checked.
        examples: some of the flaws, safe to print on a terminal.
        required: an option asks for it, so the result is not good if it was not checked.
    """

    name: str
    status: Status
    found: int
    told: str
    examples: tuple[str, ...] = ()
    required: bool = False

    @property
    def failed(self) -> bool:
        """True if a flaw was found, or a required check was not made."""
        unmade = self.required and self.status is Status.UNCHECKED
        return unmade or self.status is Status.WRONG

    @property
    def shown(self) -> str:
        """The number found, for people; empty if it was not checked."""
        return "" if self.status is Status.UNCHECKED else f"{self.found:,}"


@dataclass(frozen=True)
class PartitionRead:
    """The offsets of one partition; the fields are keys of the JSON document.

    Attributes:
        kept_from: the first offset that the brokers keep.
        read_from, read_to: what was read; readers get no further than `read_to`.
        end: the high watermark.
        rows: records that a reader gets.
        aborted: records between `read_from` and `read_to` that no reader gets; None: not counted.
        held_up_by: the open transaction that holds readers up, if it is known.
    """

    partition: int
    kept_from: int
    read_from: int
    read_to: int
    end: int
    rows: int
    aborted: int | None = None
    held_up_by: str | None = None

    @property
    def behind(self) -> int:
        """Offsets that readers wait for."""
        return max(0, self.end - self.read_to)

    @property
    def without_row(self) -> int:
        """Offsets that gave no row: transaction markers, aborted or compacted rows."""
        return max(0, self.read_to - self.read_from - self.rows)


@dataclass(frozen=True)
class VerifyResult:
    """The result of all checks.

    Attributes:
        topic: its name.
        identity: the place in a record that tells rows apart.
        checks: always the same ones, in the same order.
        partitions: what was read.
        notes: facts that the reader of the checks needs.
        rows_at, doubled_at: number of rows by time (milliseconds), from the records' timestamps.
        bin_ms: width of those bins.
        seconds: how long it took.
        interrupted: Ctrl-C ended the reading, so the checks cover only a part.
    """

    topic: str
    identity: str
    checks: tuple[Check, ...]
    partitions: tuple[PartitionRead, ...]
    notes: tuple[str, ...] = ()
    rows_at: Mapping[int, int] = field(default_factory=dict)
    doubled_at: Mapping[int, int] = field(default_factory=dict)
    bin_ms: int = 1_000
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.partitions)

    @property
    def good(self) -> bool:
        """No check found anything wrong, and every required one was made."""
        return not any(check.failed for check in self.checks)

    def document(self) -> dict[str, Any]:
        """The result as JSON-compatible data."""
        return {
            "topic": self.topic,
            "identity": self.identity,
            "good": self.good,
            "interrupted": self.interrupted,
            "rows": self.rows,
            "seconds": round(self.seconds, 1),
            "checks": [
                {**vars(check), "status": check.status.value, "examples": list(check.examples)}
                for check in self.checks
            ],
            "partitions": [{**vars(each), "behind": each.behind} for each in self.partitions],
            "notes": list(self.notes),
        }
