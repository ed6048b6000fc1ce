"""What is asked about a topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eos_sink.testing.topic_scan import Row, Source
from eos_sink.verify.row_identity import Places, as_number, as_order, as_text

Numbered = Callable[[Row], "tuple[int, int] | None"]


@dataclass(frozen=True)
class Question:
    """What is to be read, and how rows are told apart.

    Attributes:
        source: the topic.
        identity, group, order: places in a record (`eos_sink.verify.row_identity`).
        numbered: identities are whole numbers, so that a missing one is noticed.
        expected: rows are numbered from 0 to one less than this.
        expected_from: a file with the identity of each row of the source, one a line.
        partitions: only these; empty: all.
        last: only so many offsets of each partition.
        since_ms: only what is not older, milliseconds since the epoch.
        follow_s: go on reading what comes for so long.
        wait_s: how long a transaction may be open before it holds readers up.
        count_aborted: read everything once more, to count what is hidden from readers.
        compacted: whether the topic is; None: it may not be seen.
        stall_s: give up when nothing comes for so long.
    """

    source: Source
    identity: str
    group: str | None = None
    order: str | None = None
    numbered: bool = False
    expected: int | None = None
    expected_from: Path | None = None
    partitions: frozenset[int] = field(default_factory=frozenset)
    last: int | None = None
    since_ms: int | None = None
    follow_s: float = 0.0
    wait_s: float = 10.0
    count_aborted: bool = False
    compacted: bool | None = False
    stall_s: float = 60.0

    @property
    def limited(self) -> bool:
        """Only a part of the topic is asked about."""
        return bool(self.partitions or self.last is not None or self.since_ms is not None)


class Lens:
    """Looks into records as the question says.

    Raises:
        PlaceError: there is no such place in a record.
    """

    def __init__(self, question: Question) -> None:
        places = Places()
        self._identity = places.find(question.identity)
        self._group = places.find(question.group) if question.group else None
        self._order = places.find(question.order) if question.order else None
        self.ordered = question.order is not None
        self.grouped = question.group is not None
        self.number: Numbered = self._number if question.numbered else self._hash

    def text(self, row: Row) -> bytes:
        """The identity as it stands in the record."""
        return as_text(self._identity(row)) or b""

    def group(self, row: Row) -> bytes:
        return as_text(self._group(row) if self._group else None) or b""

    def order(self, row: Row) -> Any:
        return as_order(self._order(row) if self._order else None)

    def _number(self, row: Row) -> tuple[int, int] | None:
        number = as_number(self._identity(row))
        if number is None or self._group is None:
            return None if number is None else (number, 0)
        group = as_text(self._group(row))
        return None if group is None else (number, hash(group))

    def _hash(self, row: Row) -> tuple[int, int] | None:
        text = as_text(self._identity(row))
        return None if text is None else (hash(text), 0)
