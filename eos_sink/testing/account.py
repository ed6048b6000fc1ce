"""The account of a reader: records come in, numbers come out. No Kafka here.

The rows of the input are numbered 0, 1, 2, ...; memory is a bit for each row and each offset.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

_EXAMPLES = 5


class Record(NamedTuple):
    """One record as a reader is given it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


Identify = Callable[[Record], int | None]
"""Finds the number of the row in a record; None if it has none."""


def json_field(name: str) -> Identify:
    """The number is a field of the JSON object in the value."""

    def identify(record: Record) -> int | None:
        try:
            number = json.loads(record.value or b"")[name]
        except (ValueError, KeyError, TypeError):
            return None
        return number if isinstance(number, int) else None

    return identify


class Bits:
    """A set of whole numbers from 0 on, at a bit each."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, number: int) -> bool:
        """Whether it was new."""
        place, bit = number >> 3, 1 << (number & 7)
        if place >= len(self._bytes):
            self._bytes.extend(bytes(place + 1 - len(self._bytes) + len(self._bytes) // 4))
        new = not self._bytes[place] & bit
        self._bytes[place] |= bit
        return new

    def __contains__(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._bytes) and bool(self._bytes[place] & 1 << (number & 7))

    def __len__(self) -> int:
        return self._number().bit_count()

    def __sub__(self, other: Bits) -> int:
        """How many are here and not there."""
        return (self._number() & ~other._number()).bit_count()

    def missing(self, below: int) -> Iterator[int]:
        """The numbers below a bound that are not here."""
        return (number for number in range(below) if number not in self)

    def _number(self) -> int:
        return int.from_bytes(self._bytes, "little")


@dataclass(frozen=True)
class Count:
    """What the records amount to.

    Attributes:
        expected: rows that the input has.
        records: records that the reader was given.
        lost: rows that never came.
        doubled: records beyond the first of their row.
        foreign: records of no row of the input.
        out_of_order: records older than an earlier one of the same key, or in another partition.
        examples: the first records or rows of each flaw, for people.
    """

    expected: int
    records: int
    lost: int
    doubled: int
    foreign: int
    out_of_order: int
    examples: Mapping[str, tuple[str, ...]]

    @property
    def perfect(self) -> bool:
        """Every row once, and along each key in the order of the input."""
        return not (self.lost or self.doubled or self.foreign or self.out_of_order)


class Account:
    """One reader's account. Records of a partition have to come in the order of their offsets.

    The order that is checked is that of each key, over the whole run: where all rows of a key go
    through one task into one partition, their numbers never fall.
    """

    def __init__(self) -> None:
        self._rows = Bits()
        self.offsets: dict[int, Bits] = {}
        self._latest: dict[bytes | None, tuple[int, int]] = {}
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self._highest = -1
        self._whole = 0

    def add(self, record: Record, row: int | None) -> bool:
        """Take one record into account.

        Returns:
            Whether it is the first one of its row.
        """
        self._counts["records"] += 1
        self.offsets.setdefault(record.partition, Bits()).add(record.offset)
        if row is None or row < 0:
            self._note("foreign", record, row)
            return False
        new = self._rows.add(row)
        if not new:
            self._note("doubled", record, row)
        self._highest = max(self._highest, row)
        partition, before = self._latest.get(record.key, (record.partition, row))
        if partition == record.partition and row >= before:
            self._latest[record.key] = (partition, row)
        else:
            self._note("out_of_order", record, row)
        return new

    def count(self, expected: int) -> Count:
        """The account so far, of an input of so many rows."""
        beyond = self._highest + 1 - expected
        strange = sum(row in self._rows for row in range(expected, expected + max(0, beyond)))
        lost = expected - (len(self._rows) - strange)
        examples = {flaw: tuple(found) for flaw, found in self._examples.items()}
        if lost:
            missing = islice(self._rows.missing(expected), _EXAMPLES)
            examples["lost"] = tuple(f"row {row}" for row in missing)
        return Count(
            expected=expected,
            records=self._counts["records"],
            lost=lost,
            doubled=self._counts["doubled"],
            foreign=self._counts["foreign"] + strange,
            out_of_order=self._counts["out_of_order"],
            examples=examples,
        )

    def whole(self) -> int:
        """All rows below this number were seen."""
        while self._whole in self._rows:
            self._whole += 1
        return self._whole

    def beyond(self, other: Account) -> int:
        """How many records are in this account and not in the other, told by their offsets."""
        return sum(
            offsets - other.offsets.get(partition, Bits())
            for partition, offsets in self.offsets.items()
        )

    def _note(self, flaw: str, record: Record, row: int | None) -> None:
        self._counts[flaw] += 1
        examples = self._examples.setdefault(flaw, [])
        if len(examples) < _EXAMPLES:
            examples.append(f"row {row} at {record.partition}:{record.offset}")
