"""Reads a topic, reads suspects again, and returns the result of all checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeVar

from eos_sink_lab.testing.topic_scan import ReaderError
from eos_sink_lab.verify import checks
from eos_sink_lab.verify.confirm_duplicates import Confirmed, confirm_duplicates
from eos_sink_lab.verify.count_rows import (
    Gaps,
    Repeats,
    compare_with_source,
    find_gaps,
    find_outside,
    find_repeats,
)
from eos_sink_lab.verify.dead_letter_rows import (
    Astray,
    Letters,
    confirm_astray,
    find_astray,
    read_letters,
)
from eos_sink_lab.verify.gap_scope import GapScope, find_scope, limit_to_seen
from eos_sink_lab.verify.read_rows import Meter, TopicReader
from eos_sink_lab.verify.row_columns import Chunk, SourceFile
from eos_sink_lab.verify.row_identity import escape_text
from eos_sink_lab.verify.verify_model import Check, VerifyOptions, VerifyResult

_T = TypeVar("_T")

FindHolders = Callable[[Mapping[int, int]], Mapping[int, str]]
"""From the last stable offset of partitions to the transactions that hold up their readers, as far
as they are known."""


@dataclass(frozen=True)
class _Count:
    """`letters` are the topic's rows in the dead letter topic, and `astray` are those of them that
    are in the topic too, or are there twice."""

    chunks: Sequence[Chunk]
    repeats: Repeats
    scope: GapScope
    gaps: Gaps
    letters: Letters
    astray: Repeats


def verify_topic(options: VerifyOptions, meter: Meter, find_holders: FindHolders) -> VerifyResult:
    """Read and check a topic. Ctrl-C ends the reading, and what was read is checked.

    Raises:
        PlaceError: an option names no place in a record.
        SourceFileError: the file of the source cannot be used.
        ReaderError: the topic cannot be read.
    """
    began = time.monotonic()
    file = options.expected_from
    source = SourceFile(file, numbered=options.numbered) if file is not None else None
    due = source.chunks() if source else None
    with closing(TopicReader(options, meter)) as reader:
        reader.read(options.follow_s)
        count = _count(options, reader, due, meter)
        if count.gaps.missing and options.expected is None and reader.grows():
            # Rows of concurrent writers need not become visible in the order of their numbers.
            scope = limit_to_seen(count.scope, count.chunks)
            reader.read(options.wait_s)
            count = _count(options, reader, due, meter, scope)
        count_aborted = options.count_aborted and not reader.interrupted
        aborted = reader.count_aborted() if count_aborted else {}
        confirmed, why_not = _confirm(options, reader, count, meter)
        astray, why_no_letters = _confirm_letters(options, reader, count, meter)
    read = reader.partitions
    waiting = {p.partition: p.read_to for p in read if p.behind and not reader.interrupted}
    holders = find_holders(waiting) if waiting else {}
    partitions = tuple(
        replace(p, aborted=aborted.get(p.partition), held_up_by=holders.get(p.partition) or None)
        for p in read
    )
    lost, foreign = _check_rows(options, reader, count, confirmed, source)
    return VerifyResult(
        topic=options.source.topic,
        identity=options.identity,
        checks=(
            lost,
            checks.check_doubled(options, count.repeats, confirmed, why_not),
            foreign,
            checks.check_order(options, reader.order, reader.rows.total()),
            checks.check_identities(
                options, reader.unidentified, reader.unidentified_at, count.letters.unidentified
            ),
            checks.check_held_up(options, partitions, interrupted=reader.interrupted),
            *checks.check_dead_letters(
                options, count.letters, count.astray, astray, why_no_letters
            ),
        ),
        partitions=partitions,
        notes=tuple(checks.write_notes(options, partitions, confirmed.chance if confirmed else 0)),
        rows_at=reader.timeline.bins(),
        doubled_at=confirmed.at.bins() if confirmed else {},
        bin_ms=reader.timeline.width_ms,
        seconds=time.monotonic() - began,
        interrupted=reader.interrupted,
    )


def _count(
    options: VerifyOptions,
    reader: TopicReader,
    due: Sequence[Chunk] | None,
    meter: Meter,
    scope: GapScope | None = None,
) -> _Count:
    chunks = reader.columns.chunks()
    letters = Letters(interrupted=reader.interrupted)
    if options.dead_letters is not None and not reader.interrupted:
        letters = read_letters(options, meter)
        reader.interrupted = letters.interrupted
    if scope is None:
        interrupted = reader.interrupted
        scope = find_scope(options, reader.partitions, chunks, interrupted=interrupted)
    if due is not None and not due:
        scope = GapScope(None, "the source has no row")
    gaps = Gaps()
    if due is not None:
        repeats = compare_with_source(chunks, due)
        if letters.chunks:
            every = compare_with_source([*chunks, *letters.chunks], due)
            repeats = replace(repeats, lost=every.lost, lost_some=every.lost_some)
    else:
        repeats = find_repeats(chunks)
        if scope.bounds is not None:
            unlimited = options.expected is not None or options.group is not None
            there = letters.chunks if unlimited else letters.between(chunks)
            gaps = find_gaps([*chunks, *there], scope.bounds)
    astray = find_astray(chunks, letters.chunks, due)
    return _Count(chunks, repeats, scope, gaps, letters, astray)


def _confirm(
    options: VerifyOptions, reader: TopicReader, count: _Count, meter: Meter
) -> tuple[Confirmed | None, str]:
    groups = {gap.group for gap in count.gaps.some} if options.group else set()
    return _try_again(
        reader,
        lambda: confirm_duplicates(options, count.chunks, count.repeats, groups, meter),
    )


def _confirm_letters(
    options: VerifyOptions, reader: TopicReader, count: _Count, meter: Meter
) -> tuple[Astray | None, str]:
    """As `_confirm`, for dead letters."""
    return _try_again(
        reader,
        lambda: confirm_astray(options, count.chunks, count.letters.chunks, count.astray, meter),
    )


def _try_again(reader: TopicReader, confirm: Callable[[], _T]) -> tuple[_T | None, str]:
    if reader.interrupted:
        return None, "it was interrupted before they were read again"
    try:
        return confirm(), ""
    except ReaderError as error:
        return None, f"they could not be read again: {error}"
    except KeyboardInterrupt:
        reader.interrupted = True
        return None, "it was interrupted while they were read again"


def _check_rows(
    options: VerifyOptions,
    reader: TopicReader,
    count: _Count,
    confirmed: Confirmed | None,
    source: SourceFile | None,
) -> tuple[Check, Check]:
    """Check which rows are lost and which are foreign."""
    foreign, foreign_rows = 0, []
    if source is not None:
        missing, foreign = count.repeats.lost, count.repeats.foreign
        lines = source.count_lines(set(count.repeats.lost_some.tolist()))
        examples = [escape_text(line) for line in lines]
        if confirmed is not None:
            found = confirmed.foreign.items()
            foreign_rows = [f"{escape_text(name)}: {seen}" for name, seen in found]
    else:
        missing = count.gaps.missing
        names = confirmed.groups if confirmed is not None else {}
        examples = [
            f"{escape_text(names[gap.group])}: {gap}" if gap.group in names else f"{gap}"
            for gap in count.gaps.some
        ]
        if options.expected is not None:
            foreign, numbers = find_outside(count.chunks, options.expected - 1)
            foreign_rows = [f"{number}" for number in numbers.tolist()]
    return (
        checks.check_lost(options, count.scope, missing, examples, reader.partitions),
        checks.check_foreign(options, foreign, foreign_rows),
    )
