"""Reads a topic, looks again where something is suspected, and says what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eos_sink.testing.topic_scan import ReaderError, Scan, Span
from eos_sink.verify import checks
from eos_sink.verify.confirm_duplicates import Confirmed, confirm_duplicates
from eos_sink.verify.count_rows import (
    Gaps,
    Repeats,
    compare_with_source,
    find_gaps,
    find_outside,
    find_repeats,
)
from eos_sink.verify.notes import write_notes
from eos_sink.verify.question import Question
from eos_sink.verify.read_rows import Gathering, Meter
from eos_sink.verify.row_columns import Chunk
from eos_sink.verify.row_identity import escape_text
from eos_sink.verify.scope import Reading, Scope, find_scope, limit_to_seen
from eos_sink.verify.source_file import SourceFile
from eos_sink.verify.verify_result import Check, Result, Stretch

Holders = Callable[[Mapping[int, int]], Mapping[int, str]]
"""From the last stable offset of partitions to who holds their readers up, as far as known."""


def examine(question: Question, meter: Meter, holders: Holders) -> Result:
    """Read and judge. Ctrl-C while it reads ends the reading, and what was read is judged.

    Raises:
        PlaceError: there is no such place in a record.
        SourceFileError: the file of the source cannot be used.
        ReaderError: the topic cannot be read.
    """
    began = time.monotonic()
    file = question.expected_from
    source = SourceFile(file, numbered=question.numbered) if file is not None else None
    due = source.chunks() if source else None
    gathered = Gathering(question, meter)
    try:
        gathered.read()
        count = _count(question, gathered, due)
        if count.gaps.missing and question.expected is None and gathered.grows():
            # What is written side by side need not become visible in the order of its numbers.
            seen = limit_to_seen(count.scope, count.chunks)
            gathered.read_on()
            count = _count(question, gathered, due, seen)
        aborted = _aborted(question, gathered, meter)
        again, why_not = _again(question, gathered, count, meter)
    finally:
        gathered.close()
    stretches = _stretches(gathered, aborted, holders)
    return Result(
        topic=question.source.topic,
        identity=question.identity,
        checks=(
            *_checks(question, gathered, count, again, why_not, source),
            checks.check_held_up(question, stretches, interrupted=gathered.interrupted),
        ),
        stretches=stretches,
        notes=tuple(write_notes(question, stretches, again.chance if again else 0)),
        rows_at=gathered.timeline.bins(),
        doubled_at=again.at.bins() if again else {},
        bin_ms=gathered.timeline.width_ms,
        seconds=time.monotonic() - began,
        interrupted=gathered.interrupted,
    )


@dataclass(frozen=True)
class _Count:
    """What the rows amount to, before anything is looked at again."""

    chunks: Sequence[Chunk]
    repeats: Repeats
    scope: Scope
    gaps: Gaps


def _count(
    question: Question,
    gathered: Gathering,
    due: Sequence[Chunk] | None,
    place: Scope | None = None,
) -> _Count:
    """Args:
    place: where gaps are looked for, if that was found before.
    """
    chunks = gathered.columns.chunks()
    place = place or find_scope(question, _reading(gathered), chunks)
    found = find_repeats(chunks) if due is None else compare_with_source(chunks, due)
    missing = Gaps()
    if due is None and place.bounds is not None:
        missing = find_gaps(chunks, place.bounds)
    return _Count(chunks, found, place, missing)


def _reading(gathered: Gathering) -> Reading:
    cut = {partition for partition, start in gathered.starts.items() if start > 0}
    return Reading(frozenset(cut), frozenset(gathered.behind), gathered.interrupted)


def _again(
    question: Question, gathered: Gathering, count: _Count, meter: Meter
) -> tuple[Confirmed | None, str]:
    """A second look at what is suspected; or why there was none."""
    if gathered.interrupted:
        return None, "it was interrupted before they were looked at again"
    groups = {each.group for each in count.gaps.some} if question.group else set()
    try:
        return confirm_duplicates(question, count.chunks, count.repeats, groups, meter), ""
    except ReaderError as error:
        return None, f"they could not be looked at again: {error}"
    except KeyboardInterrupt:
        gathered.interrupted = True
        return None, "it was interrupted while they were looked at again"


def _aborted(question: Question, gathered: Gathering, meter: Meter) -> dict[int, int]:
    """How many records no reader is given, by partition: read once more with them."""
    if not question.count_aborted or gathered.interrupted:
        return {}
    spans = [
        Span(partition, start, gathered.positions[partition])
        for partition, start in gathered.starts.items()
    ]
    meter.step("counting aborted rows", sum(span.stop - span.start for span in spans))
    scan = Scan(question.source, committed=False, stall_s=question.stall_s)
    seen = dict.fromkeys(gathered.starts, 0)
    try:
        for rows in scan.read(spans):
            for row in rows:
                seen[row.partition()] += 1
            meter.at(sum(scan.position[s.partition] - s.start for s in spans), sum(seen.values()))
    except KeyboardInterrupt:
        gathered.interrupted = True
        return {}
    finally:
        scan.close()
    return {partition: number - gathered.rows[partition] for partition, number in seen.items()}


def _checks(  # noqa: PLR0913, PLR0917
    question: Question,
    gathered: Gathering,
    count: _Count,
    again: Confirmed | None,
    why_not: str,
    source: SourceFile | None,
) -> tuple[Check, ...]:
    found, reading = count.repeats, _reading(gathered)
    if source is not None:
        missing, examples = found.lost, _lines(source, found)
        strange, strangers = found.foreign, checks.format_places(again.foreign) if again else []
    else:
        missing = count.gaps.missing
        examples = checks.format_ranges(count.gaps, again.groups if again else {})
        strange, strangers = _outside(question, count.chunks)
    return (
        checks.check_lost(question, count.scope, missing, examples, reading),
        checks.check_doubled(question, found, again, why_not),
        checks.check_foreign(question, strange, strangers),
        checks.check_order(question, gathered.order),
        checks.check_identities(question, gathered.nameless, gathered.nameless_some),
    )


def _lines(source: SourceFile, found: Repeats) -> list[str]:
    return [escape_text(line) for line in source.lines_of(set(found.lost_some.tolist()))]


def _outside(question: Question, chunks: Sequence[Chunk]) -> tuple[int, list[str]]:
    if question.expected is None:
        return 0, []
    number, some = find_outside(chunks, question.expected - 1)
    return number, [str(each) for each in some.tolist()]


def _stretches(
    gathered: Gathering, aborted: Mapping[int, int], holders: Holders
) -> tuple[Stretch, ...]:
    waiting = {} if gathered.interrupted else gathered.behind
    stable = {partition: gathered.positions[partition] for partition in waiting}
    names = holders(stable) if stable else {}
    return tuple(
        Stretch(
            partition=partition,
            kept=gathered.kept[partition],
            start=start,
            stop=gathered.positions[partition],
            end=gathered.ends[partition],
            rows=gathered.rows[partition],
            aborted=aborted.get(partition),
            holder=names.get(partition, ""),
        )
        for partition, start in gathered.starts.items()
    )
