"""Whether the query's names are its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eos_sink.identity import SLOTS, QueryNames
from eos_sink.kafka.admin_interface import MemberDescription
from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.facts import TRANSACTIONS, Facts, LogFacts, Subject
from eos_sink.ops.doctor.finding import Check, Finding, Findings, ok, unseen, warning
from eos_sink.ops.history import Written

_SOME = 5


def judge_names(subject: Subject, facts: Facts, commands: Commands) -> Findings:
    log = facts.log
    if isinstance(log, Unseen):
        yield unseen(Check.NAMES, "which names are queries'", log, commands)
        return
    records = log.records if isinstance(log, LogFacts) else {}
    known = {*log.names(subject.prefix).values()} if isinstance(log, LogFacts) else set()
    known |= {QueryNames(subject.prefix, subject.query)} if subject.query else set()
    found = [
        *_twins(records),
        *_ids(subject, facts, known),
        *_members(facts),
        *_groups(subject, facts, known),
    ]
    hidden: list[tuple[str, Unseen]] = []
    # A cluster without transactions yet has no ids that clash.
    if isinstance(facts.transactions, Unseen) and facts.topics[TRANSACTIONS] is not None:
        hidden.append((f"transactional ids that start with {subject.start}", facts.transactions))
    if isinstance(facts.groups, Unseen):
        hidden.append((f"groups that start with {subject.prefix}", facts.groups))
    hidden += [
        (f"the members of group {group}", members)
        for group, members in facts.members.items()
        if isinstance(members, Unseen)
    ]
    yield from found
    for what, why in hidden:
        yield unseen(Check.NAMES, what, why, commands)
    if not found and not hidden:
        yield ok(Check.NAMES, f"what starts with {subject.start} belongs to queries of the log")


def _twins(records: Mapping[str, Written]) -> Iterator[Finding]:
    """Two queries that have decided batches of one stream for the same topic."""
    decided = {n: w.record.decision for n, w in records.items() if w.record.decision is not None}
    for name, decision in sorted(decided.items()):
        for other, its in sorted(decided.items()):
            same = {*decision.topics} & {*its.topics}
            if other > name and same and its.batch.stream in decision.batch.namesakes:
                yield warning(
                    Check.NAMES,
                    f"{name} and {other} have both written stream {decision.batch.stream} to "
                    f"{', '.join(sorted(same))}",
                    "A checkpoint was moved or copied, or eos.id was changed: if both run, rows "
                    "are there twice.",
                    "Run one of them only; whoever has decided the later batch is the current one: "
                    f"batch {decision.batch.batch} of {name}, {its.batch.batch} of {other}.",
                )


def _ids(subject: Subject, facts: Facts, known: set[QueryNames]) -> Iterator[Finding]:
    if isinstance(facts.transactions, Unseen):
        return
    ids = [state.transaction.transactional_id for state in facts.transactions]
    drivers = {names.driver for names in known}
    starts = {f"{names.group}-{slot}-" for names in known for slot in SLOTS}
    rest = [i for i in ids if i not in drivers and i.rpartition("-")[0] + "-" not in starts]
    strange = sorted(name for name in rest if not _could_be_a_query_s(name))
    gone = sorted(set(rest) - set(strange))
    if strange:
        yield warning(
            Check.NAMES,
            f"transactional ids start with {subject.prefix} and are none of the sink's: "
            f"{_some(strange)}",
            "Another application uses the prefix: whoever has one permission for both can end the "
            "other's transactions.",
            "Give the queries a prefix of their own: eos.transactional.id.prefix.",
        )
    if gone:
        yield warning(
            Check.NAMES,
            f"transactional ids of queries that the decision log does not know: {_some(gone)}",
            "They are of queries that use another decision log, or never came to a decision; or "
            "the log has lost records, which a start of such a query tells.",
            "If they use another log: let the prefix differ too (eos.transactional.id.prefix). "
            "Kafka forgets ids that nobody uses.",
        )


def _could_be_a_query_s(name: str) -> bool:
    """By the end of it: `-driver`, or a slot and a partition."""
    head, _, tail = name.rpartition("-")
    if tail == "driver":
        return bool(head)
    return tail.isdecimal() and head.rpartition("-")[2] in {str(slot) for slot in SLOTS}


def _members(facts: Facts) -> Iterator[Finding]:
    for group, members in sorted(facts.members.items()):
        if isinstance(members, Unseen):
            continue
        strangers = [each for each in members if each.instance != f"{group}-driver"]
        if strangers:
            yield warning(
                Check.NAMES,
                f"group {group} has members that are no driver: {_some(map(_named, strangers))}",
                "A consumer uses the query's group: it takes part in its rebalances, and the "
                "driver may be refused.",
                "Give that consumer a group.id of its own.",
            )


def _groups(subject: Subject, facts: Facts, known: set[QueryNames]) -> Iterator[Finding]:
    if isinstance(facts.groups, Unseen):
        return
    own = {names.group for names in known}
    rest = sorted(group for group in facts.groups if group not in own)
    if rest and not subject.query:
        yield warning(
            Check.NAMES,
            f"groups start with {subject.prefix} and are of no query of the log: {_some(rest)}",
            "They are of queries that use another decision log, or never came to a decision, or of "
            "another application.",
            "If they are in nobody's use, Kafka forgets them by itself; else let the prefix differ "
            "(eos.transactional.id.prefix).",
        )


def _named(member: MemberDescription) -> str:
    return f"{member.instance or member.client} on {member.host.lstrip('/')}"


def _some(names: Iterator[str] | list[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SOME} more" if len(every) > _SOME else ""
    return ", ".join(every[:_SOME]) + more
