"""The rows of a topic that the sink has written to a dead letter topic instead.

Such a row must be there once, and not in the topic too. Those that share a number or a hash are
read again, so that a hash collision is never reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np

from eos_sink_lab.testing.topic_scan import Row
from eos_sink_lab.verify.confirm_duplicates import Seen, find_rounds
from eos_sink_lab.verify.count_rows import Repeats, compare_with_source, find_repeats
from eos_sink_lab.verify.read_rows import Meter, TopicReader, read_again
from eos_sink_lab.verify.row_columns import NO_NUMBERS, Chunk, Numbers, SourceFile
from eos_sink_lab.verify.row_identity import RowIdentifier, escape_text, headers_of
from eos_sink_lab.verify.verify_model import VerifyOptions

_TOPIC = "__connect.errors.topic"


@dataclass(frozen=True)
class Letters:
    """The topic's rows in the dead letter topic.

    Attributes:
        chunks: their numbers.
        unidentified: how many more have no identity.
        behind: offsets of the dead letter topic that readers wait for.
        interrupted: Ctrl-C ended the reading.
    """

    chunks: Sequence[Chunk] = ()
    unidentified: int = 0
    behind: int = 0
    interrupted: bool = False

    @property
    def rows(self) -> int:
        """The number of rows that have an identity."""
        return sum(len(each.values) for each in self.chunks)

    def between(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The letters whose number is not outside of those in the topic, see `find_gaps`.

        Another one, such as an old letter, proves nothing about the rows between.
        """
        low = min((int(each.values.min()) for each in chunks), default=0)
        high = max((int(each.values.max()) for each in chunks), default=-1)
        inside = ((each, (each.values >= low) & (each.values <= high)) for each in self.chunks)
        return [_select(each, mask) for each, mask in inside if mask.any()]


@dataclass
class Astray:
    """Rows that are in both topics, or in the dead letter topic several times.

    Attributes:
        rows: how many are beyond the expected number.
        examples: the identity and the places of some.
    """

    rows: int = 0
    examples: list[str] = field(default_factory=list)


def read_letters(options: VerifyOptions, meter: Meter) -> Letters:
    """Read the dead letters of the topic.

    Raises:
        ReaderError: the dead letter topic cannot be read.
    """
    own = _own_options(options)
    wanted = _LetterOf(options.source.topic)
    with closing(TopicReader(replace(own, order=None), meter, wanted)) as reader:
        reader.read(0)
        behind = sum(each.behind for each in reader.partitions)
        return Letters(reader.columns.chunks(), reader.unidentified, behind, reader.interrupted)


def find_astray(
    chunks: Sequence[Chunk], letters: Sequence[Chunk], due: Sequence[Chunk] | None
) -> Repeats:
    """Find the numbers of letters that are also in the topic, or several times among the letters.

    Args:
        chunks: the topic's rows.
        letters: the topic's rows in the dead letter topic.
        due: the rows of the source; a row that it does not have is expected once. None: each once.

    Returns:
        `doubled` counts rows beyond the expected number that the topic alone does not have.
    """
    if not letters:
        return Repeats()
    numbers = np.unique(np.concatenate([each.values for each in letters]))
    near = _among(chunks, numbers)
    if due is None:
        found, alone = find_repeats([*near, *letters]), find_repeats(near)
    else:
        due = _among(due, numbers)
        known = np.concatenate([NO_NUMBERS, *(each.values for each in due)])
        other = np.setdiff1d(numbers, known)
        due = [*due, Chunk(0, 0, 0, other)] if len(other) else due
        found, alone = compare_with_source([*near, *letters], due), compare_with_source(near, due)
    return replace(found, doubled=found.doubled - alone.doubled)


def confirm_astray(
    options: VerifyOptions,
    chunks: Sequence[Chunk],
    letters: Sequence[Chunk],
    found: Repeats,
    meter: Meter,
) -> Astray:
    """Read the suspects again in both topics, and compare their identities.

    Args:
        options: as for the first reading.
        chunks, letters: all rows of the topic, and its dead letters.
        found: the suspects.
        meter: shows the progress.

    Raises:
        ReaderError: they cannot be read any more.
    """
    suspects = set(found.suspects.tolist())
    if not found.doubled:
        return Astray()
    own, is_letter = _own_options(options), _LetterOf(options.source.topic)
    rows = _read_suspects(options, chunks, found, meter)
    kept = _read_suspects(own, letters, found, meter, is_letter)
    due: Counter[bytes] = Counter()
    if options.expected_from is not None:
        due = SourceFile(options.expected_from, numbered=options.numbered).count_lines(suspects)
    astray = Astray()
    for name, seen in kept.items():
        in_topic = rows.get(name, Seen())
        wanted = max(1, due[name[0]])
        alone = max(0, in_topic.times - wanted)
        beyond = max(0, in_topic.times + seen.times - wanted) - alone
        if beyond:
            astray.rows += beyond
            there = f", and {in_topic} of the topic" if in_topic.times else ""
            group = f"{escape_text(name[1])}, " if name[1] else ""
            astray.examples.append(f"{group}{escape_text(name[0])}: {seen}{there}")
    return astray


class _LetterOf:
    """Says whether a record of the dead letter topic is a row of this topic."""

    def __init__(self, topic: str) -> None:
        self._topic = topic.encode()

    def __call__(self, row: Row) -> bool:
        # A letter that was written again may have the header twice; the last one is the sink's.
        return dict(headers_of(row)).get(_TOPIC) == self._topic


def _own_options(options: VerifyOptions) -> VerifyOptions:
    """The options to read the dead letter topic with."""
    assert options.dead_letters is not None
    return replace(options, source=options.dead_letters, partitions=frozenset(), last=None)


def _read_suspects(
    options: VerifyOptions,
    chunks: Sequence[Chunk],
    found: Repeats,
    meter: Meter,
    wanted: _LetterOf | None = None,
) -> dict[tuple[bytes, bytes], Seen]:
    """The rows of each suspect, by identity and group."""
    suspects, identifier = set(found.suspects.tolist()), RowIdentifier(options)
    seen: dict[tuple[bytes, bytes], Seen] = {}
    rounds = find_rounds(chunks, found.suspects)
    for row in read_again(options, rounds, meter, "reading dead letters again", committed=True):
        if wanted is not None and not wanted(row):
            continue
        numbered = identifier.number(row)
        if numbered is not None and numbered[0] in suspects:
            name = (identifier.text(row), identifier.group(row))
            seen.setdefault(name, Seen()).add(row)
    return seen


def _among(chunks: Sequence[Chunk], numbers: Numbers) -> list[Chunk]:
    """Select the rows that have one of these numbers."""
    masks = ((each, np.isin(each.values, numbers)) for each in chunks)
    return [_select(each, mask) for each, mask in masks if mask.any()]


def _select(chunk: Chunk, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Chunk:
    groups = None if chunk.groups is None else chunk.groups[mask]
    return replace(chunk, values=chunk.values[mask], groups=groups)
