"""Re-reads suspect ranges and confirms duplicates by identity, so that a hash collision is never
reported; finds the places of the duplicates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from eos_sink_lab.testing.topic_scan import Row, Span
from eos_sink_lab.verify.count_rows import Repeats
from eos_sink_lab.verify.read_rows import Meter, Timeline, read_again
from eos_sink_lab.verify.row_columns import Chunk, Numbers, SourceFile
from eos_sink_lab.verify.row_identity import RowIdentifier
from eos_sink_lab.verify.verify_model import VerifyOptions

_PLACES = 4


@dataclass
class Seen:
    """An identity's number of rows, and the partition and offset of the first ones."""

    times: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.times += 1
        if len(self.places) < _PLACES:
            self.places.append((row.partition(), row.offset()))

    def __str__(self) -> str:
        found = ", ".join(f"{partition}@{offset}" for partition, offset in sorted(self.places))
        more = self.times - len(self.places)
        return f"{found} and {more:,} more" if more else found


@dataclass
class Confirmed:
    """The result of reading suspects again.

    Attributes:
        doubled: identities that came too often, by identity and group as the record has them.
        rows: rows beyond the expected number of each identity.
        chance: identities that only share their hash with another one.
        at: when the rows beyond the first were written.
        foreign: some identities that are not in the source.
        groups: names of groups by their hash.
    """

    doubled: dict[tuple[bytes, bytes], Seen] = field(default_factory=dict)
    rows: int = 0
    chance: int = 0
    at: Timeline = field(default_factory=Timeline)
    foreign: dict[bytes, Seen] = field(default_factory=dict)
    groups: dict[int, bytes] = field(default_factory=dict)


def confirm_duplicates(
    options: VerifyOptions,
    chunks: Sequence[Chunk],
    found: Repeats,
    groups: set[int],
    meter: Meter,
) -> Confirmed:
    """Read the chunks again that hold suspects.

    Args:
        options: as for the first reading.
        chunks: all rows.
        found: the suspects.
        groups: hashes of groups whose names are wanted.
        meter: shows the progress.

    Raises:
        ReaderError: they cannot be read any more.
    """
    confirmed = Confirmed()
    wanted = np.concatenate([found.suspects, found.foreign_some])
    rounds = find_rounds(chunks, wanted, groups)
    if not rounds:
        return confirmed
    suspects, foreign = set(found.suspects.tolist()), set(found.foreign_some.tolist())
    identifier = RowIdentifier(options)
    for row in read_again(options, rounds, meter, "reading suspects again", committed=True):
        numbered = identifier.number(row)
        if numbered is None:
            continue
        number, group = numbered
        if group in groups:
            confirmed.groups.setdefault(group, identifier.group(row))
        if number in suspects:
            name = (identifier.text(row), identifier.group(row))
            seen = confirmed.doubled.setdefault(name, Seen())
            seen.add(row)
            if seen.times > 1:
                confirmed.at.add(row.timestamp()[1])
        if number in foreign:
            confirmed.foreign.setdefault(identifier.text(row), Seen()).add(row)
    due: dict[bytes, int] = {}
    if options.expected_from is not None:
        source = SourceFile(options.expected_from, numbered=options.numbered)
        due = source.count_lines(suspects)
    for name, seen in list(confirmed.doubled.items()):
        beyond = seen.times - due.get(name[0], 1)
        if beyond > 0:
            confirmed.rows += beyond
        else:
            del confirmed.doubled[name]
            confirmed.chance += not options.numbered
    return confirmed


def find_rounds(
    chunks: Sequence[Chunk], wanted: Numbers, groups: Collection[int] = ()
) -> list[list[Span]]:
    """The spans that hold these numbers and groups, one of each partition in a round; neighbouring
    chunks are one span."""
    unnamed = np.array(sorted(groups), np.int64)
    ranges: dict[int, list[Span]] = {}
    previous = -1  # The partition of the previous chunk, if that is read too.
    for chunk in sorted(chunks, key=lambda each: (each.partition, each.first)):
        hit = bool(np.isin(chunk.values, wanted).any())
        if not hit and chunk.groups is not None and len(unnamed):
            hit = bool(np.isin(chunk.groups, unnamed).any())
            unnamed = np.setdiff1d(unnamed, chunk.groups)
        if hit:
            spans = ranges.setdefault(chunk.partition, [])
            first = spans.pop().start if previous == chunk.partition else chunk.first
            spans.append(Span(chunk.partition, first, chunk.last + 1))
        previous = chunk.partition if hit else -1
    rounds = max(map(len, ranges.values()), default=0)
    return [[spans[n] for spans in ranges.values() if n < len(spans)] for n in range(rounds)]
