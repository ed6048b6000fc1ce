"""The checks of a topic and the notes below them, from what was counted. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eos_sink_lab.testing.row_check import KeyOrder
from eos_sink_lab.verify.confirm_duplicates import Confirmed
from eos_sink_lab.verify.count_rows import MOST_SUSPECTS, Repeats
from eos_sink_lab.verify.dead_letter_rows import Astray, Letters
from eos_sink_lab.verify.gap_scope import GapScope
from eos_sink_lab.verify.read_rows import MOST_KEYS
from eos_sink_lab.verify.row_identity import escape_text
from eos_sink_lab.verify.verify_model import Check, PartitionRead, Status, VerifyOptions

_EXAMPLES = 5
_PARTITIONS = 3


def check_lost(
    options: VerifyOptions,
    scope: GapScope,
    missing: int,
    examples: Sequence[str],
    partitions: Sequence[PartitionRead],
) -> Check:
    """Rows that should be in the topic and are not."""
    sourced = options.expected is not None or options.expected_from is not None
    required = (sourced or options.numbered) and not options.partial
    if scope.bounds is None:
        return Check("lost", Status.UNCHECKED, 0, scope.why, required=required)
    if options.expected_from is not None:
        told = f"compared with {options.expected_from.name}"
    elif options.expected is not None:
        told = f"numbers 0 to {options.expected - 1:,}"
    else:
        told = f"numbers {scope.range_text or 'between the lowest and the highest'}"
    if options.group is not None:
        told += ", in each group"
    if not missing and not scope.covers:
        told = f"no gap in {told}; other numbers were read and cannot be checked"
        return Check("lost", Status.UNCHECKED, 0, told, required=required)
    if missing and options.compacted:
        told += "; the topic is compacted, so this does not prove a loss"
        return Check("lost", Status.UNPROVEN, missing, told, tuple(examples[:_EXAMPLES]))
    if missing and options.compacted is None:
        told += "; it is unknown whether the topic is compacted"
    if missing and sourced and any(each.behind for each in partitions):
        told += "; readers wait for some rows, which may be among them"
    if missing and sourced and any(each.read_from for each in partitions):
        told += "; rows that retention has deleted count as lost"
    return _check("lost", missing, told, examples)


def check_doubled(
    options: VerifyOptions, found: Repeats, confirmed: Confirmed | None, why_not: str
) -> Check:
    """Rows that came more often than they should.

    Args:
        options: they say what tells rows apart.
        found: from the first reading, by number or hash.
        confirmed: from the second reading, by identity.
        why_not: the reason why there was no second reading.
    """
    told = "each identity once" if options.expected_from is None else "as often as in the source"
    if not found.doubled:
        return Check("doubled", Status.GOOD, 0, told)
    if confirmed is None:
        if options.numbered:
            return Check("doubled", Status.WRONG, found.doubled, f"{told}; {why_not}")
        told += f", by 64-bit hashes only; {why_not}"
        return Check("doubled", Status.UNPROVEN, found.doubled, told)
    count = confirmed.rows
    if found.suspected > MOST_SUSPECTS:
        told += f"; only {MOST_SUSPECTS:,} of {found.suspected:,} were read again"
        count = max(confirmed.rows, found.doubled)
    if options.compacted and options.identity == "key":
        told += "; a compacted topic may have many rows of one key"
    examples = []
    for (identity, group), seen in confirmed.doubled.items():
        prefix = f"{escape_text(group)}, " if group else ""
        examples.append(f"{prefix}{escape_text(identity)}: {seen}")
    return _check("doubled", count, told, examples)


def check_foreign(options: VerifyOptions, count: int, examples: Sequence[str]) -> Check:
    """Rows that are not in the source."""
    if options.expected_from is not None:
        return _check("foreign", count, f"compared with {options.expected_from.name}", examples)
    if options.expected is not None:
        told = f"numbers other than 0 to {options.expected - 1:,}"
        return _check("foreign", count, told, examples)
    return Check("foreign", Status.UNCHECKED, 0, "needs --expected or --expected-from")


def check_order(options: VerifyOptions, order: KeyOrder, rows: int) -> Check:
    """Rows that are older than an earlier row of their key."""
    name = "out of order"
    if options.order is None:
        return Check(name, Status.UNCHECKED, 0, "needs --order")
    if not rows:
        required = not options.partial
        return Check(name, Status.UNCHECKED, 0, "no row was read", required=required)
    told = f"{options.order} along each key, within each partition"
    if order.silent:
        told += f"; {order.silent:,} rows have nothing to compare there"
    if order.unfollowed:
        told += f"; {order.unfollowed:,} rows of keys beyond {MOST_KEYS:,} were left out"
    if split := order.find_split_keys():
        told += f"; {len(split):,} keys are in more than one partition"
    if not order.wrong and (order.silent or order.unfollowed):
        return Check(name, Status.UNPROVEN, 0, told)
    examples = [
        f"{escape_text(key)}: {partition}@{offset} has {escape_text(str(place))} "
        f"after {escape_text(str(before))}"
        for partition, offset, key, place, before in order.examples
    ]
    return _check(name, order.wrong, told, examples)


def check_identities(
    options: VerifyOptions, count: int, places: Sequence[tuple[int, int]], letters: int = 0
) -> Check:
    """Rows without an identity, `letters` of them in the dead letter topic."""
    told = f"rows that have {'a whole number' if options.numbered else 'something'} at "
    told += " and ".join(filter(None, (options.identity, options.group)))
    examples = [f"{partition}@{offset}" for partition, offset in places]
    if letters:
        told += f"; {letters:,} others are dead letters"
    return _check("without identity", count + letters, told, examples)


def check_held_up(
    options: VerifyOptions, partitions: Sequence[PartitionRead], *, interrupted: bool
) -> Check:
    """Partitions whose readers wait for an open transaction."""
    if interrupted:
        return Check("held up", Status.UNCHECKED, 0, "it was interrupted")
    waiting = [each for each in partitions if each.behind]
    told = f"readers that wait more than {options.wait_s:g} s for an open transaction"
    examples = []
    for each in waiting:
        by = f" at a transaction of {escape_text(each.held_up_by)}" if each.held_up_by else ""
        examples.append(
            f"{each.partition}@{each.read_to}{by}, {each.behind:,} offsets before the end"
        )
    return _check("held up", len(waiting), told, examples)


def check_dead_letters(
    options: VerifyOptions, letters: Letters, found: Repeats, astray: Astray | None, why_not: str
) -> Iterator[Check]:
    """Rows in a dead letter topic that are elsewhere too; no check without such a topic.

    Args:
        options: the options.
        letters: the topic's rows in the dead letter topic.
        found: from the first reading, by number or hash.
        astray: from the second reading, by identity.
        why_not: the reason why there was no second reading.
    """
    if options.dead_letters is None:
        return
    name, topic = "dead letters", options.dead_letters.topic
    told = f"{letters.rows:,} rows in {topic} count as there, each once in both topics"
    count, examples = found.doubled, []
    if astray is not None:
        count, examples = astray.rows, astray.examples
        if found.suspected > MOST_SUSPECTS:
            told += f"; only {MOST_SUSPECTS:,} of {found.suspected:,} were read again"
            count = max(count, found.doubled)
    elif count:
        # A collision of 64-bit hashes is so unlikely that this must not pass.
        told += f"; {why_not}"
    if not count and (letters.behind or letters.interrupted):
        why = "it was interrupted" if letters.interrupted else f"readers of {topic} are held up"
        yield Check(name, Status.UNCHECKED, 0, why, required=not options.partial)
    else:
        yield _check(name, count, told, examples)


def write_notes(
    options: VerifyOptions, partitions: Sequence[PartitionRead], chance: int
) -> Iterator[str]:
    """Write what a person needs to know to read the checks.

    Args:
        options: the options.
        partitions: what was read.
        chance: identities that only share their hash with another one.
    """
    if not any(each.rows for each in partitions):
        yield "The topic has no row that a reader gets."
    if options.limited:
        first = _list_some([f"{each.partition} from {each.read_from:,}" for each in partitions])
        yield f"Only a part of the topic was read: partitions {first}."
    begun = [f"{each.partition} at {each.kept_from:,}" for each in partitions if each.kept_from]
    if begun:
        yield (
            f"{len(begun)} of {len(partitions)} partitions do not begin at offset 0 (partition "
            f"{_list_some(begun)}): earlier rows are deleted and are not checked."
        )
    if options.compacted:
        yield "The topic is compacted: rows that a later row of their key replaces may be missing."
    elif options.compacted is None:
        yield (
            "It is unknown whether the topic is compacted: DescribeConfigs on the topic is needed."
        )
    hidden = sum(each.without_row for each in partitions)
    if hidden:
        aborted = [each.aborted for each in partitions if each.aborted is not None]
        what = "transaction markers and aborted rows"
        if aborted:
            what = f"{sum(aborted):,} aborted rows, the others transaction markers"
        if options.compacted is not False:
            what += " or compacted rows"
        yield f"{hidden:,} offsets gave no row: {what}."
    if chance:
        yield (
            f"{chance:,} identities share a 64-bit hash with another one by chance; they were read "
            "again and differ."
        )


def _check(name: str, count: int, told: str, examples: Sequence[str]) -> Check:
    if not count:
        return Check(name, Status.GOOD, 0, told)
    return Check(name, Status.WRONG, count, told, tuple(examples[:_EXAMPLES]))


def _list_some(places: Sequence[str]) -> str:
    return ", ".join(places[:_PARTITIONS]) + " ..." * (len(places) > _PARTITIONS)
