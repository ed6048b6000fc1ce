"""Checks that the query may use its names, and that it is alone to use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eos_sink.kafka.interfaces import MemberDescription, TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Permissions
from eos_sink.ops.doctor.facts import SOURCE_TOPICS, Facts, LogFacts
from eos_sink.ops.doctor.findings import Finding, Level, Problems, Verdict, judge, require, shorten
from eos_sink.ops.history import Written
from eos_sink.ops.status import parse_group

_OWN_PREFIX = "eos.transactional.id.prefix"


def check_permissions(facts: Facts) -> Verdict:
    """Yield one failure for each resource."""
    subject = facts.subject
    needs = Permissions(subject.prefix, subject.log)
    settings = subject.dead_letter_topic is not None
    yield from judge(
        *(
            _check_topic(facts.topics[name], Permissions.topic(name, settings=settings))
            for name in facts.named
        ),
        _check_topic(facts.topics[subject.log], (needs.log_read, needs.log_write)),
        _check_probe(facts.may_write, needs.transactions),
        _check_probe(facts.may_join, needs.group),
        _check_source(facts),
    )
    topics = ", ".join(facts.named) or "no topic of the query's"
    return f"all that is needed on {topics}, {subject.log}, and what starts with {subject.start}"


def _check_source(facts: Facts) -> Problems:
    if (source := facts.source) is None:
        return
    (group,) = Permissions.source(source.group, ())
    yield from judge(_check_probe(facts.may_commit, group))
    _, *needs = Permissions.source(source.group, require(source.topics, SOURCE_TOPICS))
    why = "it could not commit the source's offsets"
    yield from judge(*(_check_topic(facts.topics[acl.name], (acl,), why) for acl in needs))


def _check_topic(
    topic: TopicDescription | Unseen | None,
    needs: tuple[Acl, ...],
    why: str = "it could not read back the outcome of a crash",
) -> Problems:
    if topic is None:
        return  # The brokers do not show the permissions on a missing topic.
    if isinstance(topic, Unseen) and topic.missing:
        yield _lack(*needs, why=why)  # Each of them implies Describe, so none is granted.
        return
    what = f"whether this principal has {needs[0]}"
    seen = require(topic, what)
    if seen.allowed is None:
        yield Finding.unseen(what, Unseen("the brokers do not show it (KIP-430)"))
    elif lacking := seen.lacking(needs):
        yield _lack(*lacking, why=why)


def _check_probe(allowed: bool | Unseen, acl: Acl) -> Problems:
    if not require(allowed, f"whether this principal has {acl}"):
        yield _lack(acl)


def _lack(*acls: Acl, why: str = "") -> Finding:
    reason = f": {why}" if why and acls[0].operation == "Read" else ""
    what = f"this principal lacks {', '.join(map(str, acls))}"
    meaning = f"The query is refused at its start{reason}."
    return Finding(Level.FAILURE, what, meaning, missing=acls)


def check_names(facts: Facts) -> Verdict:
    yield from judge(
        _check_twins(facts.records),
        _check_ids(facts),
        *(_check_members(group, members) for group, members in sorted(facts.members.items())),
        _check_groups(facts),
    )
    return f"what starts with {facts.subject.start} belongs to queries of the log"


def _known_groups(facts: Facts) -> set[str]:
    """The groups of all queries: of those of the log, which has to be seen whole, and of the one
    that is checked."""
    what = "the names of queries"
    log = require(facts.log, what) or LogFacts()
    for partition, why in log.unread.items():
        require(Unseen(f"partition {partition} of the decision log cannot be read: {why}"), what)
    return {names.group for names in [*log.names, *filter(None, [facts.subject.names])]}


def _check_twins(records: Mapping[str, Written]) -> Problems:
    """Two queries that decided batches of one stream for the same topic."""
    decided = [
        (name, written.record.decision)
        for name, written in sorted(records.items())
        if written.record.decision and not written.record.is_left
    ]
    for index, (name, ours) in enumerate(decided):
        for other, theirs in decided[index + 1 :]:
            topics = {*ours.topics} & {*theirs.topics}
            if topics and theirs.batch.is_moved_from(ours.batch):
                yield Finding.warning(
                    f"{name} and {other} have both written stream {ours.batch.stream} to "
                    f"{', '.join(sorted(topics))}",
                    "A checkpoint was moved or copied, or eos.id was changed: if both run, every "
                    "row is written twice.",
                    "Run only one of them. The current one has decided the later batch: "
                    f"batch {ours.batch.batch} of {name}, {theirs.batch.batch} of {other}.",
                )


def _check_ids(facts: Facts) -> Problems:
    what = f"transactional ids that start with {facts.subject.start}"
    states = require(facts.transactions, what)
    by_group: dict[str | None, list[str]] = {}
    for name in sorted(state.transaction.transactional_id for state in states):
        by_group.setdefault(parse_group(name), []).append(name)
    foreign = by_group.pop(None, [])
    if foreign:
        yield Finding.warning(
            f"transactional ids start with {facts.subject.prefix} and are none of the sink's: "
            f"{shorten(foreign)}",
            "Another application uses the prefix: a principal with a permission for both can end "
            "the other's transactions.",
            f"Give the queries a prefix of their own: {_OWN_PREFIX}.",
        )
    groups = by_group.keys() - _known_groups(facts)
    if unknown := sorted(name for group in groups for name in by_group[group]):
        yield Finding.warning(
            f"transactional ids of queries that the decision log does not know: {shorten(unknown)}",
            "Their queries use another decision log, or never came to a decision; or the log has "
            "lost records, which a start of such a query reports.",
            f"If they use another log, give them another prefix too ({_OWN_PREFIX}). Kafka "
            "removes ids that are not used.",
        )


def _check_members(group: str, members: Sequence[MemberDescription] | Unseen) -> Problems:
    seen = require(members, f"the members of group {group}")
    others = [each for each in seen if each.instance != f"{group}-driver"]
    if others:
        named = (f"{m.instance or m.client} on {m.host.lstrip('/')}" for m in others)
        yield Finding.warning(
            f"group {group} has members that are not the driver: {shorten(named)}",
            "A consumer uses the query's group: it takes part in its rebalances, and the driver "
            "may be refused.",
            "Give that consumer a group.id of its own.",
        )


def _check_groups(facts: Facts) -> Problems:
    prefix = facts.subject.prefix
    groups = require(facts.groups, f"groups that start with {prefix}")
    unknown = sorted({*groups} - _known_groups(facts)) if facts.subject.names is None else []
    if unknown:
        yield Finding.warning(
            f"groups start with {prefix} and belong to no query of the log: {shorten(unknown)}",
            "Their queries use another decision log, or never came to a decision; or another "
            "application uses the prefix.",
            f"Kafka removes unused groups. Otherwise use another prefix ({_OWN_PREFIX}).",
        )
