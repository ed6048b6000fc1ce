"""What has to be known to read the checks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eos_sink.verify.question import Question
from eos_sink.verify.verify_result import Stretch

_SOME = 3


def write_notes(question: Question, stretches: Sequence[Stretch], chance: int) -> Iterator[str]:
    """Sentences.

    Args:
        question: what was asked.
        stretches: what was read.
        chance: identities that were suspected for their hash alone.
    """
    if not sum(stretch.rows for stretch in stretches):
        yield "There is no row that a reader is given."
    if question.limited:
        places = [f"{s.partition} from {s.start:,}" for s in stretches[:_SOME]]
        more = " ..." if len(stretches) > _SOME else ""
        yield f"Only a part of the topic was read: partitions {', '.join(places)}{more}."
    begun = [stretch for stretch in stretches if stretch.kept > 0]
    if begun:
        places = [f"{s.partition} at {s.kept:,}" for s in begun[:_SOME]]
        more = " ..." if len(begun) > _SOME else ""
        yield (
            f"{len(begun)} of {len(stretches)} partitions do not begin at offset 0 (partition "
            f"{', '.join(places)}{more}): what was before is deleted, and nothing is said of it."
        )
    if question.compacted:
        yield "The topic is compacted: rows that a later one of their key replaces may be missing."
    elif question.compacted is None:
        yield "Whether the topic is compacted may not be seen (DescribeConfigs on the topic)."
    hidden = sum(stretch.without_row for stretch in stretches)
    if hidden:
        aborted = [stretch.aborted for stretch in stretches if stretch.aborted is not None]
        what = (
            f"{sum(aborted):,} aborted rows, the others markers of transactions"
            if aborted
            else "markers of transactions, and aborted rows"
        )
        if question.compacted is not False:
            what += " or rows that were compacted away"
        yield f"{hidden:,} offsets gave no row: {what}."
    if chance:
        yield (
            f"{chance:,} identities shared a 64-bit hash with another one by chance; they were "
            "read again, and differ."
        )
