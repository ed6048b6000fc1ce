"""Checks what a read_committed application sees in a topic; independent of the sink.

A checker reads along while the writer runs, in bounded memory: a bit for each row and each offset.
At the end `audit` reads everything again:

    checker = Checker(Source(bootstrap, "orders"), json_field("row"))
    while ...:
        for row in checker.look(wait_s=0.1):
            ...
    print(audit(checker, expected=1_000_000, timeout_s=300))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.row_check import Count, Identify, RowCheck, json_field
from eos_sink_lab.testing.topic_scan import Offsets, ReaderError, Row, Scan, Source, read_whole

__all__ = ["Audit", "Checker", "Count", "ReaderError", "Source", "audit", "json_field"]


class Checker:
    """A read_committed reader of one topic, from its beginning, which checks the rows.

    `look` and `read_to` raise ReaderError if the reader cannot go on.

    Args:
        source: the topic.
        identify: finds a record's row.

    Attributes:
        check: of what was read so far.
    """

    def __init__(self, source: Source, identify: Identify) -> None:
        self.source = source
        self.identify = identify
        self.check = RowCheck()
        self._scan = Scan(source, committed=True)

    def look(self, wait_s: float) -> list[Row]:
        """Read what comes within `wait_s` seconds; return the first record of each row."""
        return [row for row in self._scan.follow(wait_s) if self.check.add(row, self.identify(row))]

    def read_to(self, ends: Mapping[int, int]) -> None:
        """Read everything before these offsets."""
        for row in self._scan.read_to(ends):
            self.check.add(row, self.identify(row))

    def close(self) -> None:
        """Close the consumer. The check stays."""
        self._scan.close()


@dataclass(frozen=True)
class Audit:
    """The rows that new readers see, compared with those that the checker saw while it read along.

    Attributes:
        count: of a new read_committed reader, from the beginning.
        withdrawn: records that the checker saw and a new reader does not: they were visible
            although their transaction was aborted.
        overlooked: records that a new reader sees and the checker did not.
        aborted: records in the log that no read_committed reader sees.
        held_up: partitions whose readers wait at an open transaction: where, and the end.
    """

    count: Count
    withdrawn: int
    overlooked: int
    aborted: int
    held_up: Mapping[int, tuple[int, int]]

    @property
    def perfect(self) -> bool:
        """Every row once and in order, for every reader at any time, and no reader waits."""
        return self.count.perfect and not (self.withdrawn or self.overlooked or self.held_up)


def audit(checker: Checker, expected: int, timeout_s: float) -> Audit:
    """Read the whole topic twice more: read_committed, as applications do, and uncommitted.

    Args:
        checker: has read along; it reads to the end first.
        expected: rows that the input has.
        timeout_s: for readers that wait, and for a reader that makes no progress, in seconds.

    Raises:
        ReaderError: a reader did not get to its end.
    """
    offsets, patience = Offsets(checker.source), Deadline(timeout_s)
    high = offsets.wait_high(patience)
    held_up = offsets.wait_readers(high, patience)
    reach = {partition: held_up.get(partition, (end, end))[0] for partition, end in high.items()}
    checker.read_to(reach)
    fresh = RowCheck()
    for row in read_whole(checker.source, reach, committed=True, stall_s=timeout_s):
        fresh.add(row, checker.identify(row))
    count = fresh.count(expected)
    everything = read_whole(checker.source, high, committed=False, stall_s=timeout_s)
    return Audit(
        count=count,
        withdrawn=checker.check.beyond(fresh),
        overlooked=fresh.beyond(checker.check),
        aborted=sum(1 for _ in everything) - count.records,
        held_up=held_up,
    )
