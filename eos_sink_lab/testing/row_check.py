"""Counts the rows that a reader sees: lost, doubled, foreign, out of order. No Kafka here.

The rows of the input are numbered 0, 1, 2, ...; it takes a bit of memory for each row and each
offset, and the latest row of each key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from eos_sink_lab.testing.topic_scan import Row

_EXAMPLES = 5

Identify = Callable[[Row], "int | None"]
"""Finds the number of the row in a record; None if it has none."""


def json_field(name: str) -> Identify:
    """The number is a field of the JSON object in the value."""

    def identify(row: Row) -> int | None:
        try:
            number = json.loads(row.value() or b"")[name]
        except (ValueError, KeyError, TypeError):
            return None
        return number if isinstance(number, int) else None

    return identify


class Bits:
    """A set of whole numbers from 0 on, at a bit each."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, number: int) -> bool:
        """Return whether it was new."""
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
        """Return the number of those here that are not there."""
        return (self._number() & ~other._number()).bit_count()

    def count(self, first: int, beyond: int) -> int:
        """Return the number of those from `first` to before `beyond`."""
        here = int.from_bytes(self._bytes[first >> 3 : (beyond >> 3) + 1], "little")
        return (here >> (first & 7) & (1 << (beyond - first)) - 1).bit_count()

    def missing(self, below: int) -> Iterator[int]:
        """The numbers below a bound that are not here."""
        return (number for number in range(below) if number not in self)

    def _number(self) -> int:
        return int.from_bytes(self._bytes, "little")


class KeyOrder:
    """Checks that the rows of each key are in order, within each partition.

    Args:
        most_keys: how many keys are remembered at most.

    Attributes:
        wrong: rows that are older than an earlier one of their key.
        silent: rows without a value to order by.
        unfollowed: rows of keys that are not remembered.
        examples: of the wrong rows: partition, offset, key, its value, the value before.
    """

    def __init__(self, most_keys: int | None = None, examples: int = _EXAMPLES) -> None:
        self._most_keys, self._most_examples = most_keys, examples
        self._keys = 0
        self._latest: dict[int, dict[bytes | None, Any]] = {}
        self.wrong = self.silent = self.unfollowed = 0
        self.examples: list[tuple[int, int, bytes | None, Any, Any]] = []

    def add(self, partition: int, offset: int, key: bytes | None, place: Any) -> None:
        """Check a row; `place` is its value to order by."""
        if place is None:
            self.silent += 1
            return
        latest = self._latest.setdefault(partition, {})
        if key not in latest:
            if self._keys == self._most_keys:
                self.unfollowed += 1
            else:
                self._keys += 1
                latest[key] = place
            return
        before = latest[key]
        if isinstance(place, str) is not isinstance(before, str):
            self.silent += 1
        elif place < before:
            self.wrong += 1
            if len(self.examples) < self._most_examples:
                self.examples.append((partition, offset, key, place, before))
        else:
            latest[key] = place

    def find_split_keys(self) -> set[bytes | None]:
        """Keys in more than one partition: there is no order between partitions."""
        seen: set[bytes | None] = set()
        split: set[bytes | None] = set()
        for latest in self._latest.values():
            split |= seen & latest.keys()
            seen |= latest.keys()
        return split


@dataclass(frozen=True)
class Count:
    """The result of a row check.

    Attributes:
        expected: rows of the input.
        records: records that the reader saw.
        lost: rows that never came.
        doubled: records beyond the first of their row.
        foreign: records of no row of the input.
        out_of_order: records older than an earlier one of the same key and partition, and keys in
            more than one partition.
        examples: the first records or rows of each flaw, in words.
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


class RowCheck:
    """Checks one reader's rows. Records of a partition must come in the order of their offsets.

    It checks the order of each key over the whole run: if all rows of a key go through one task
    into one partition, their numbers never decrease.

    Attributes:
        rows: the rows that were seen.
        offsets: the offsets that were seen, by partition.
        records: how many were checked.
        doubled: those beyond the first of their row.
    """

    def __init__(self) -> None:
        self.rows = Bits()
        self.offsets: dict[int, Bits] = {}
        self.records = self.doubled = 0
        self._foreign = self._whole = 0
        self._order = KeyOrder()
        self._examples: dict[str, list[str]] = {}
        self._highest = -1

    def add(self, record: Row, row: int | None) -> bool:
        """Check one record; return whether it is the first one of its row."""
        partition, offset = record.partition(), record.offset()
        self.records += 1
        self.offsets.setdefault(partition, Bits()).add(offset)
        if row is None or row < 0:
            self._foreign += 1
            self._note("foreign", f"row {row} at {partition}:{offset}")
            return False
        new = self.rows.add(row)
        if not new:
            self.doubled += 1
            self._note("doubled", f"row {row} at {partition}:{offset}")
        self._highest = max(self._highest, row)
        self._order.add(partition, offset, record.key(), row)
        return new

    def count(self, expected: int) -> Count:
        """The result so far, for an input of so many rows."""
        strange = self.rows.count(expected, max(expected, self._highest + 1))
        lost = expected - self.rows.count(0, expected)
        split = self._order.find_split_keys()
        examples = {flaw: tuple(found) for flaw, found in self._examples.items()}
        if lost:
            missing = islice(self.rows.missing(expected), _EXAMPLES)
            examples["lost"] = tuple(f"row {row}" for row in missing)
        if self._order.wrong or split:
            examples["out_of_order"] = (
                *(f"row {row} at {p}:{offset}" for p, offset, _, row, _ in self._order.examples),
                *(f"key {key!r} in several partitions" for key in islice(split, _EXAMPLES)),
            )
        return Count(
            expected=expected,
            records=self.records,
            lost=lost,
            doubled=self.doubled,
            foreign=self._foreign + strange,
            out_of_order=self._order.wrong + len(split),
            examples=examples,
        )

    def whole(self) -> int:
        """All rows below this number were seen."""
        while self._whole in self.rows:
            self._whole += 1
        return self._whole

    def beyond(self, other: RowCheck) -> int:
        """Return the number of offsets in this check that are not in the other."""
        return sum(
            offsets - other.offsets.get(partition, Bits())
            for partition, offsets in self.offsets.items()
        )

    def _note(self, flaw: str, text: str) -> None:
        examples = self._examples.setdefault(flaw, [])
        if len(examples) < _EXAMPLES:
            examples.append(text)
