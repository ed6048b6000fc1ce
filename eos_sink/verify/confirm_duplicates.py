"""Reads the places again where a number accuses, so that a hash never does; and says where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eos_sink.testing.topic_scan import Row, Scan, Span
from eos_sink.verify.count_rows import Repeats
from eos_sink.verify.question import Lens, Question
from eos_sink.verify.read_rows import Meter
from eos_sink.verify.row_columns import Chunk, Numbers
from eos_sink.verify.source_file import SourceFile
from eos_sink.verify.time_bins import Timeline

_PLACES = 4
Place = tuple[int, int]


@dataclass
class Seen:
    """One identity, and where it came from.

    Attributes:
        times: how often it was seen.
        places: partition and offset of the first ones.
    """

    times: int = 0
    places: list[Place] = field(default_factory=list)


@dataclass
class Confirmed:
    """What a second look has shown.

    Attributes:
        doubled: identities that came more often than they should, by what stands in the record.
        rows: rows beyond what was due of them.
        chance: identities that only had the same hash as another one.
        at: when the rows beyond the first were written.
        foreign: some of those that the source does not know.
        groups: the names of some groups, by their hash.
    """

    doubled: dict[tuple[bytes, bytes], Seen] = field(default_factory=dict)
    rows: int = 0
    chance: int = 0
    at: Timeline = field(default_factory=Timeline)
    foreign: dict[bytes, Seen] = field(default_factory=dict)
    groups: dict[int, bytes] = field(default_factory=dict)


def confirm_duplicates(
    question: Question, chunks: Sequence[Chunk], found: Repeats, groups: set[int], meter: Meter
) -> Confirmed:
    """Read the chunks that hold what is suspected.

    Args:
        question: as it was read before.
        chunks: of all rows.
        found: says what is suspected.
        groups: hashes of groups whose names are wanted.
        meter: shows the progress.

    Raises:
        ReaderError: they cannot be read any more.
    """
    confirmed = Confirmed()
    spans = _spans(chunks, found, groups)
    if not spans:
        return confirmed
    meter.step("reading suspects again", sum(s.stop - s.start for some in spans for s in some))
    scan = Scan(question.source, committed=True, stall_s=question.stall_s)
    look = _Look(Lens(question), found, groups, confirmed)
    done = 0
    try:
        for some in spans:
            for rows in scan.read(some):
                for row in rows:
                    look.take(row)
                meter.at(done + sum(scan.position[s.partition] - s.start for s in some), look.rows)
            done += sum(span.stop - span.start for span in some)
    finally:
        scan.close()
    due: dict[bytes, int] = {}
    if question.expected_from is not None:
        file = SourceFile(question.expected_from, numbered=question.numbered)
        due = file.lines_of(set(found.suspects.tolist()))
    _judge(confirmed, due, hashed=not question.numbered)
    return confirmed


class _Look:
    def __init__(self, lens: Lens, found: Repeats, groups: set[int], confirmed: Confirmed) -> None:
        self._lens, self._groups, self._confirmed = lens, groups, confirmed
        self._suspects = set(found.suspects.tolist())
        self._foreign = set(found.foreign_some.tolist())
        self.rows = 0

    def take(self, row: Row) -> None:
        self.rows += 1
        numbered = self._lens.number(row)
        if numbered is None:
            return
        number, group = numbered
        if group in self._groups:
            self._confirmed.groups.setdefault(group, self._lens.group(row))
        if number in self._suspects:
            name = (self._lens.text(row), self._lens.group(row))
            seen = self._confirmed.doubled.setdefault(name, Seen())
            self._note(seen, row)
            if seen.times > 1:
                self._confirmed.at.add(row.timestamp()[1])
        if number in self._foreign:
            self._note(self._confirmed.foreign.setdefault(self._lens.text(row), Seen()), row)

    @staticmethod
    def _note(seen: Seen, row: Row) -> None:
        seen.times += 1
        if len(seen.places) < _PLACES:
            seen.places.append((row.partition(), row.offset()))


def _judge(confirmed: Confirmed, due: dict[bytes, int], *, hashed: bool) -> None:
    """Leave those that really came too often."""
    kept = {}
    for name, seen in confirmed.doubled.items():
        beyond = seen.times - due.get(name[0], 1)
        if beyond > 0:
            kept[name] = seen
            confirmed.rows += beyond
        else:
            confirmed.chance += hashed
    confirmed.doubled = kept


def _spans(chunks: Sequence[Chunk], found: Repeats, groups: set[int]) -> list[list[Span]]:
    """Rounds of ranges to read, one of each partition in a round; neighbours are one range."""
    wanted = np.concatenate([found.suspects, found.foreign_some])
    unnamed = np.array(sorted(groups), np.int64)
    ranges: dict[int, list[Span]] = {}
    joins = -1  # The partition of the chunk before, if that is read too.
    for chunk in sorted(chunks, key=lambda each: (each.partition, each.first)):
        hit = _has(chunk.values, wanted)
        if not hit and chunk.groups is not None and len(unnamed):
            hit = _has(chunk.groups, unnamed)
            unnamed = np.setdiff1d(unnamed, chunk.groups)
        if hit:
            mine = ranges.setdefault(chunk.partition, [])
            first = mine.pop().start if joins == chunk.partition else chunk.first
            mine.append(Span(chunk.partition, first, chunk.last + 1))
        joins = chunk.partition if hit else -1
    rounds = max(map(len, ranges.values()), default=0)
    return [[spans[n] for spans in ranges.values() if n < len(spans)] for n in range(rounds)]


def _has(values: Numbers, wanted: Numbers) -> bool:
    return len(wanted) > 0 and bool(np.isin(values, wanted).any())
