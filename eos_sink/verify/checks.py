"""What may be said of a topic, from what was counted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eos_sink.testing.row_check import KeyOrder
from eos_sink.verify.confirm_duplicates import Confirmed, Seen
from eos_sink.verify.count_rows import MOST_SUSPECTS, Gaps, Range, Repeats
from eos_sink.verify.question import Question
from eos_sink.verify.read_rows import MOST_KEYS
from eos_sink.verify.row_identity import escape_text
from eos_sink.verify.scope import Reading, Scope
from eos_sink.verify.verify_result import Check, Status, Stretch

_EXAMPLES = 5


def check_lost(
    question: Question,
    place: Scope,
    missing: int,
    examples: Sequence[str],
    reading: Reading,
) -> Check:
    """Rows that should be there."""
    if place.bounds is None:
        return Check("lost", Status.UNCHECKED, 0, place.why)
    if question.expected_from is not None:
        told = f"compared with {question.expected_from.name}"
    elif question.expected is not None:
        told = f"numbers 0 to {question.expected - 1:,}"
    else:
        told = f"numbers {place.told or 'between the least and the greatest'}"
    if question.group is not None:
        told += ", in each group"
    if not missing:
        return Check("lost", Status.GOOD, 0, told)
    if question.compacted:
        told += "; the topic is compacted, so that this proves no loss"
        return Check("lost", Status.UNPROVEN, missing, told, tuple(examples[:_EXAMPLES]))
    if question.compacted is None:
        told += "; whether the topic is compacted may not be seen"
    if reading.waiting and (question.expected or question.expected_from):
        told += "; some may be among what readers wait for"
    if reading.cut and (question.expected or question.expected_from):
        told += "; what retention has deleted counts as lost"
    return Check("lost", Status.WRONG, missing, told, tuple(examples[:_EXAMPLES]))


def check_doubled(
    question: Question, found: Repeats, again: Confirmed | None, why_not: str
) -> Check:
    """Rows that came more often than they should."""
    told = "each identity once" if question.expected_from is None else "as often as in the source"
    if not found.doubled:
        return Check("doubled", Status.GOOD, 0, told)
    if again is None:
        # Numbers are what they are, and hashes are only likely to be.
        status = Status.WRONG if question.numbered else Status.UNPROVEN
        sure = "" if question.numbered else ", told by 64-bit hashes alone"
        return Check("doubled", status, found.doubled, f"{told}{sure}; {why_not}")
    number = again.rows
    if found.suspected > MOST_SUSPECTS:
        told += f"; where they are was looked up for {MOST_SUSPECTS:,} of {found.suspected:,}"
        number = max(again.rows, found.doubled)
    if question.compacted and question.identity == "key":
        told += "; a compacted topic may have a key many times"
    if not number:
        return Check("doubled", Status.GOOD, 0, told)
    examples = [
        f"{_name(name)}: {_where(seen)}" for name, seen in list(again.doubled.items())[:_EXAMPLES]
    ]
    return Check("doubled", Status.WRONG, number, told, tuple(examples))


def check_foreign(question: Question, number: int, examples: Sequence[str]) -> Check:
    """Rows that the source does not know."""
    if question.expected_from is not None:
        told = f"compared with {question.expected_from.name}"
    elif question.expected is not None:
        told = f"numbers outside of 0 to {question.expected - 1:,}"
    else:
        return Check("foreign", Status.UNCHECKED, 0, "needs --expected or --expected-from")
    status = Status.WRONG if number else Status.GOOD
    return Check("foreign", status, number, told, tuple(examples[:_EXAMPLES]))


def check_order(question: Question, order: KeyOrder) -> Check:
    """Rows that are older than an earlier one of their key."""
    if question.order is None:
        return Check("out of order", Status.UNCHECKED, 0, "needs --order")
    told = f"{question.order} along each key, within each partition"
    if order.silent:
        told += f"; {order.silent:,} rows have nothing to compare there"
    if order.unfollowed:
        told += f"; {order.unfollowed:,} rows of keys beyond {MOST_KEYS:,} were left out"
    if split := order.find_split_keys():
        told += f"; {len(split):,} keys are in more than one partition"
    examples = tuple(
        f"{escape_text(key)}: {partition}@{offset} has {escape_text(str(place))} "
        f"after {escape_text(str(before))}"
        for partition, offset, key, place, before in order.examples[:_EXAMPLES]
    )
    unsure = order.silent or order.unfollowed
    status = Status.WRONG if order.wrong else Status.UNPROVEN if unsure else Status.GOOD
    return Check("out of order", status, order.wrong, told, examples)


def check_identities(question: Question, number: int, places: Sequence[tuple[int, int]]) -> Check:
    """Rows of which nothing can be told."""
    told = f"rows that have {'a whole number' if question.numbered else 'something'} at "
    told += " and ".join(filter(None, (question.identity, question.group)))
    examples = tuple(f"{partition}@{offset}" for partition, offset in places[:_EXAMPLES])
    return Check(
        "without identity", Status.WRONG if number else Status.GOOD, number, told, examples
    )


def check_held_up(question: Question, stretches: Sequence[Stretch], *, interrupted: bool) -> Check:
    """Partitions whose readers wait at a transaction that is open."""
    if interrupted:
        return Check("held up", Status.UNCHECKED, 0, "it was interrupted")
    waiting = [stretch for stretch in stretches if stretch.behind]
    told = f"readers that wait more than {question.wait_s:g} s for an open transaction"
    examples = tuple(_waiting(stretch) for stretch in waiting[:_EXAMPLES])
    return Check("held up", Status.WRONG if waiting else Status.GOOD, len(waiting), told, examples)


def format_ranges(found: Gaps, groups: Mapping[int, bytes]) -> list[str]:
    """Missing numbers for people."""
    return [_range(each, groups) for each in found.some]


def format_places(seen: Mapping[bytes, Seen]) -> list[str]:
    """Identities and where they are, for people."""
    return [f"{escape_text(name)}: {_where(each)}" for name, each in seen.items()]


def _range(each: Range, groups: Mapping[int, bytes]) -> str:
    name = groups.get(each.group)
    return str(each) if name is None else f"{escape_text(name)}: {each}"


def _name(name: tuple[bytes, bytes]) -> str:
    identity, group = name
    return f"{escape_text(group)}, {escape_text(identity)}" if group else escape_text(identity)


def _where(seen: Seen) -> str:
    found = ", ".join(f"{partition}@{offset}" for partition, offset in sorted(seen.places))
    more = seen.times - len(seen.places)
    return f"{found} and {more:,} more" if more else found


def _waiting(stretch: Stretch) -> str:
    place = f"{stretch.partition}@{stretch.stop}"
    holder = f" at a transaction of {escape_text(stretch.holder)}" if stretch.holder else ""
    return f"{place}{holder}, {stretch.behind:,} offsets before the end"
