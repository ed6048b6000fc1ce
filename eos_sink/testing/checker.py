"""Counts what a read_committed application is given, row by row, and knows nothing of the sink.

The rows of the input are numbered 0, 1, 2, ..., whatever batches they end up in, and a function of
yours finds the number in a record. A checker reads along while the writer is at work, in bounded
memory: a bit for each row and each offset. At the end `audit` reads everything afresh:

    checker = Checker(Source(bootstrap, "orders"), json_field("row"))
    while ...:
        for record in checker.look(wait_s=0.1):
            ...
    print(audit(checker, expected=1_000_000, timeout_s=300))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.deadline import Deadline
from eos_sink.testing.account import Account, Count, Identify, Record, json_field
from eos_sink.testing.tails import Ends, ReaderError, Source, Tail, whole

__all__ = [
    "Account",
    "Audit",
    "Checker",
    "Count",
    "Ends",
    "Identify",
    "ReaderError",
    "Record",
    "Source",
    "audit",
    "json_field",
]


class Checker:
    """A read_committed reader of one topic, from its beginning, with its account.

    Args:
        source: the topic.
        identify: finds a record's row.

    Attributes:
        account: what was read so far.
    """

    def __init__(self, source: Source, identify: Identify) -> None:
        self.source = source
        self.identify = identify
        self.account = Account()
        self._tail = Tail(source, committed=True)

    def look(self, wait_s: float) -> list[Record]:
        """Take in what has come; waits for it up to `wait_s` seconds.

        Returns:
            The records that are the first of their row.

        Raises:
            ReaderError: the reader cannot go on.
        """
        records = self._tail.read(wait_s)
        return [record for record in records if self.account.add(record, self.identify(record))]

    def read_to(self, ends: Mapping[int, int], deadline: Deadline) -> None:
        """Take in everything before these offsets.

        Raises:
            ReaderError: not in time, or the reader cannot go on.
        """
        for record in self._tail.read_to(ends, deadline):
            self.account.add(record, self.identify(record))

    def close(self) -> None:
        """Leave. The account stays."""
        self._tail.close()


@dataclass(frozen=True)
class Audit:
    """What fresh readers find, beside what the checker was given while it read along.

    Attributes:
        count: of a fresh read_committed reader, from the beginning.
        withdrawn: records that were given to the checker and are not given to a fresh reader:
            they were visible although their transaction was aborted.
        overlooked: the opposite: the checker has passed them by.
        aborted: records in the log that no read_committed reader is given.
        held_up: partitions whose readers wait at an open transaction: where, and the end.
    """

    count: Count
    withdrawn: int
    overlooked: int
    aborted: int
    held_up: Mapping[int, tuple[int, int]]

    @property
    def perfect(self) -> bool:
        """Every row once and in order, for every reader at any time, and nobody waits."""
        return self.count.perfect and not (self.withdrawn or self.overlooked or self.held_up)


def audit(checker: Checker, expected: int, timeout_s: float) -> Audit:
    """Read all of the topic twice more, as applications do and uncommitted.

    Args:
        checker: has read along; it is led to the end first.
        expected: rows that the input has.
        timeout_s: for readers that wait, and again for reading, in seconds.

    Raises:
        ReaderError: a reader did not get to its end in time.
    """
    ends, patience = Ends(checker.source), Deadline(timeout_s)
    high = ends.settled_high(patience)
    held_up = ends.held_up(high, patience)
    deadline = Deadline(timeout_s)
    reach = {partition: held_up.get(partition, (end, end))[0] for partition, end in high.items()}
    checker.read_to(reach, deadline)
    fresh, everything = Account(), Account()
    for account, to, committed in ((fresh, reach, True), (everything, high, False)):
        for record in whole(checker.source, to, deadline, committed=committed):
            account.add(record, checker.identify(record))
    return Audit(
        count=fresh.count(expected),
        withdrawn=checker.account.beyond(fresh),
        overlooked=fresh.beyond(checker.account),
        aborted=everything.beyond(fresh),
        held_up=held_up,
    )
