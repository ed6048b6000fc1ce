"""A cluster as an operator looks at it: all queries at once, cheaply again and again.

Nothing here changes anything, and nothing waits for open transactions. Errors are those of
`eos_sink.kafka.interfaces`; one of a missing permission has its name in `data["missing"]`, so that
a caller shows what it got from the other calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Inspection, LogPosition, TransactionState


@dataclass(frozen=True)
class LogLine:
    """One committed record of the decision log, as it lies there.

    Attributes:
        key: the query that wrote it, if the sink did.
        at_ms: the record's time, milliseconds since the epoch, by the clock of who wrote it.
        value: empty for a tombstone.
    """

    key: str
    position: LogPosition
    at_ms: int
    value: bytes


@dataclass(frozen=True)
class LogPage:
    """What the log has from some offsets on.

    Attributes:
        lines: oldest first, those of one partition by offset.
        ends: where to read on, by partition.
        anew: the log is another one than before (deleted and made again): the offsets that were
            given were not heeded, and what was read before is void.
    """

    lines: tuple[LogLine, ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)
    anew: bool = False


@dataclass(frozen=True)
class PartitionEnds:
    """Offsets of a partition.

    Attributes:
        start: the first one that is kept.
        stable: the last stable one: how far a read_committed reader gets.
        end: the high watermark.
    """

    partition: int
    start: int
    stable: int
    end: int


class Observation(Inspection, Protocol):
    """Implemented by `eos_sink.kafka.admin.observation` and, for tests, by the fake."""

    def log_lines(self, since: Mapping[int, int], deadline: Deadline) -> LogPage | None:
        """All that compaction has left of the decision log, up to each partition's first open
        transaction, which is not waited for. None: there is no such topic, and none is made.

        Args:
            since: the offset to begin at, by partition; a partition that is not named is read from
                its start. `LogPage.ends` of the call before reads what has come since.
        """

    def transactions(
        self, prefix: str, deadline: Deadline, *, ended: bool = False
    ) -> list[TransactionState]:
        """Open transactions, cluster-wide, of ids that start with `prefix`, sorted by id.

        Args:
            ended: every id that a coordinator knows, whatever its state.
        """

    def described(self, ids: Iterable[str], deadline: Deadline) -> Mapping[str, TransactionState]:
        """The coordinator's state of each id; MISSING for an unknown one."""

    def ends(
        self, topics: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[PartitionEnds, ...] | EosSinkError]:
        """Of each topic's partitions, by number; empty if there is no such topic, or why it cannot
        be seen."""

    def hosts(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[str, ...] | EosSinkError]:
        """Where the members of each group are, or why it cannot be seen. A member that died stays
        one until its session ends."""
