"""Checks of the query's topics and of those that Kafka keeps for its coordinators."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.ops.doctor.brokers import ID_EXPIRATION, format_hours
from eos_sink.ops.doctor.facts import INTERNAL, OFFSETS, TRANSACTIONS, Facts
from eos_sink.ops.doctor.findings import Finding, Level, Problems, Verdict, judge, require, shorten

MIN_IN_SYNC = "min.insync.replicas"
_POLICY, _SIZE = "cleanup.policy", "max.message.bytes"
_UNCLEAN = "unclean.leader.election.enable"
_ID_EXPIRATION_DEFAULT_MS = 7 * 24 * 3600 * 1000
_PARTITIONS = 6
_REPLICATION_FACTOR = {
    TRANSACTIONS: "transaction.state.log.replication.factor",
    OFFSETS: "offsets.topic.replication.factor",
}


def check_topics(facts: Facts) -> Problems:
    if not facts.named:
        why = Unseen("name it with --topic, or the query with --query or --options")
        yield Finding.unseen("where the rows go", why)
    yield from judge(*(_check_topic(name, facts) for name in facts.named))


def _check_topic(name: str, facts: Facts) -> Verdict:
    topic = require(facts.topics[name], name)
    if topic is None:
        copies = max(1, min(3, len(facts.brokers)))
        settings = {MIN_IN_SYNC: 2} if copies == 3 else {}
        yield Finding.failure(
            f"{name} does not exist",
            "The query is refused at its start; a row for it in column topic fails its batch.",
            facts.commands.create_topic(name, _PARTITIONS, copies, settings),
        )
        return ""
    yield from check_copies(topic, facts)
    yield from _check_records(topic, facts)
    return _describe(topic)


def check_internal_topics(facts: Facts) -> Problems:
    yield from judge(*(_check_internal_topic(name, facts) for name in INTERNAL))


def _check_internal_topic(name: str, facts: Facts) -> Verdict:
    topic = require(facts.topics[name], name)
    if topic is not None:
        yield from check_copies(topic, facts)
        return _describe(topic)
    setting, brokers = _REPLICATION_FACTOR[name], len(facts.brokers)
    values = facts.setting(setting)
    wanted = 0 if isinstance(values, Unseen) else max(int(each.value) for each in values.values())
    if wanted > brokers:
        yield Finding.failure(
            f"{name} is not there yet and wants {wanted} copies; there are {brokers} brokers",
            "It cannot be created, so no transaction can begin.",
            f"Start {wanted} brokers, or: "
            + facts.commands.set_brokers(setting, brokers, restart=True),
        )
    return f"{name} is not there yet; Kafka creates it when it is first needed"


def check_copies(topic: TopicDescription, facts: Facts) -> Problems:
    """Find out whether the topic accepts acks=all, now and after the failure of a broker."""
    name, copies = topic.name, topic.replicas
    describe = f"Bring the missing brokers back: {facts.commands.describe_topic(name)}"
    settings = {} if isinstance(topic.settings, Unseen) else topic.settings
    if isinstance(topic.settings, Unseen):
        yield Finding.unseen(f"{MIN_IN_SYNC} of {name}", topic.settings)
        needed = 0
    else:
        needed = int(settings.get(MIN_IN_SYNC, "1"))
    has = f"{name} has {count_copies(copies)} and {MIN_IN_SYNC}={needed}"

    short = {n: part.in_sync for n, part in topic.partitions.items() if part.in_sync < needed}
    behind = [n for n, part in topic.partitions.items() if part.in_sync < part.replicas]
    if topic.leaderless:
        yield Finding.failure(
            f"{name} has no leader in partition {shorten(topic.leaderless)}",
            "That partition can be neither written nor read.",
            f"{describe} --unavailable-partitions",
        )
    if needed > copies:
        yield Finding.failure(
            has,
            "It rejects every row with acks=all, which transactions need: every batch fails.",
            facts.commands.set_topic(name, MIN_IN_SYNC, max(1, copies - 1)),
        )
    elif short:
        yield Finding.failure(
            f"{name} has {count_copies(min(short.values()))} in sync in partition "
            f"{shorten(sorted(short))}, and {MIN_IN_SYNC}={needed}",
            "It rejects every row with acks=all there: a batch waits, then fails.",
            f"{describe} --under-min-isr-partitions",
        )
    elif behind:
        yield Finding.warning(
            f"{name} has copies out of sync in partition {shorten(sorted(behind))}",
            "Rows are accepted, but fewer brokers may fail than the number of copies suggests.",
            f"{describe} --under-replicated-partitions",
        )
    if 0 < needed <= copies:
        yield from _check_broker_failure(has, topic, needed, facts)
    if settings.get(_UNCLEAN) == "true":
        meaning = "A copy that is behind may become the leader: committed rows are lost then."
        yield wrong_setting(facts, topic, _UNCLEAN, "false", meaning)


def _check_broker_failure(has: str, topic: TopicDescription, needed: int, facts: Facts) -> Problems:
    name, copies = topic.name, topic.replicas
    reassign = "Give it three copies: kafka-reassign-partitions, three brokers."
    if copies == 1:
        reason = ", as there is one broker" if len(facts.brokers) == 1 else ""
        meaning = "Its rows are lost with that broker."
        yield Finding.warning(f"{name} has one copy{reason}", meaning, reassign)
    elif needed == 1 and copies >= 3:
        meaning = "A row that only one broker has counts as written, and is lost with that broker."
        yield Finding.warning(has, meaning, facts.commands.set_topic(name, MIN_IN_SYNC, 2))
    elif needed == copies:
        meaning = "It rejects rows while one of its brokers is down."
        remedy = facts.commands.set_topic(name, MIN_IN_SYNC, copies - 1)
        yield Finding.warning(has, meaning, remedy)
    elif copies == 2:
        meaning = "While one of its brokers is down, a row that only the other has is written."
        yield Finding.warning(has, meaning, reassign)


def _check_records(topic: TopicDescription, facts: Facts) -> Problems:
    subject = facts.subject
    ranges = subject.destinations.ranges.get(topic.name, ()) if subject.destinations else ()
    needed = max((part.stop for part in ranges), default=0)
    if needed > len(topic.partitions):
        yield Finding.failure(
            f"{topic.name} has {len(topic.partitions)} partitions, and eos.destinations declares "
            f"partition {needed - 1}",
            "The query is refused at its start.",
            facts.commands.add_partitions(topic.name, needed),
        )
    if isinstance(topic.settings, Unseen):
        return
    largest = int(subject.cluster.client.settings.get("message.max.bytes", "1000000"))
    if topic.name == subject.dead_letter_topic:
        yield from _check_dead_letter_topic(topic, facts)
    elif subject.dead_letter_topic is None and _size(topic, largest) < largest:
        meaning = (
            "The query's client sends more at once: a row or a batch of rows that is too large "
            "fails its micro-batch each time."
        )
        yield wrong_setting(facts, topic, _SIZE, largest, meaning)
    name = "message.timestamp.type"
    if subject.timestamp_column and topic.setting(name) == "LogAppendTime":
        meaning = "Records get the time of the append instead of that of eos.timestamp.column."
        yield wrong_setting(facts, topic, name, "CreateTime", meaning)


def _check_dead_letter_topic(topic: TopicDescription, facts: Facts) -> Problems:
    """Find out whether it takes the rows that the other topics do not."""
    if "compact" in (topic.setting(_POLICY) or ""):
        meaning = "It refuses rows without a key: the query is refused at its start."
        found = wrong_setting(facts, topic, _POLICY, "delete", meaning)
        yield replace(found, level=Level.FAILURE)
    others = (facts.topics[other] for other in facts.named if other != topic.name)
    limits = [_size(other, 0) for other in others if isinstance(other, TopicDescription)]
    largest = max(limits, default=0)
    if largest and _size(topic, 0) <= largest:
        meaning = (
            "A row that is too large for its own topic does not fit into this one either, where it "
            "has more headers: such a row stops the query."
        )
        yield wrong_setting(facts, topic, _SIZE, 10 * largest, meaning)


def _size(topic: TopicDescription, default: int) -> int:
    return int(topic.setting(_SIZE) or default)


def check_read_back(facts: Facts) -> Problems:
    yield from judge(
        *(
            _check_read_back(topic, facts)
            for name in facts.named
            if isinstance(topic := facts.topics[name], TopicDescription)
        )
    )


def _check_read_back(topic: TopicDescription, facts: Facts) -> Verdict:
    """Where a crash leaves the outcome of a transaction open, the query looks for one of its
    records, for as long as a coordinator would know its id."""
    name = topic.name
    settings = require(topic.settings, f"cleanup.policy and retention of {name}")
    policy = settings.get(_POLICY, "delete")
    if "compact" in policy:
        found = wrong_setting(
            facts,
            topic,
            _POLICY,
            "delete",
            "A missing record may have been compacted away, so if a crash leaves an outcome open, "
            "an operator has to decide (docs/resolve.md).",
        )
        yield replace(found, remedy=(f"If the topic need not be compacted: {found.remedy[0]}",))
    if "delete" in policy:
        meaning = (
            "After a longer downtime the record that shows the outcome of a crashed batch may be "
            "deleted: an operator has to decide (docs/resolve.md)."
        )
        values = facts.setting(ID_EXPIRATION)
        needed_ms = _ID_EXPIRATION_DEFAULT_MS
        if not isinstance(values, Unseen):
            needed_ms = max(int(each.value) for each in values.values())
        kept_ms = int(settings.get("retention.ms", "-1"))
        if 0 <= kept_ms < needed_ms:
            yield Finding.warning(
                f"{name} keeps records for {format_hours(kept_ms)}, coordinators ids for "
                f"{format_hours(needed_ms)} ({ID_EXPIRATION})",
                meaning,
                facts.commands.set_topic(name, "retention.ms", needed_ms),
            )
        if int(settings.get("retention.bytes", "-1")) >= 0:
            yield wrong_setting(facts, topic, "retention.bytes", -1, meaning)
    return f"{name} keeps its records for long enough"


def check_readers(facts: Facts) -> Verdict:
    by_topic = require(facts.holders, "what holds readers up")
    for name, holders in by_topic.items():
        if isinstance(holders, Unseen):
            yield Finding.unseen(f"what holds readers of {name} up", holders)
    under_way = []
    for each in chain.from_iterable(h for h in by_topic.values() if not isinstance(h, Unseen)):
        where = f"{each.topic}[{each.partition}]"
        if each.state is None:
            why = Unseen("no coordinator names its transaction, or this principal may not see it")
            where = f"{where} from offset {each.offset} on"
            yield Finding.unseen(f"{each.transaction}, which holds readers up at {where}", why)
        elif each.hangs:
            yield Finding.warning(
                f"{where}: transaction {each.transaction} has ended, and is open there from offset "
                f"{each.offset} on",
                "Kafka has forgotten to end it there, because the partition had no leader "
                "(KAFKA-20734). It holds read_committed readers up, and no timeout ends it.",
                "Start the query, which ends it as it was ended elsewhere (docs/leaderless.md).",
            )
        elif each.is_late(facts.now_ms):
            yield Finding.warning(
                f"{where}: transaction {each.transaction} has been open for most of its timeout",
                "It holds read_committed readers up until it ends.",
                "If it is a query's, start that; else see docs/runbook.md#readers-stuck.",
            )
        else:
            under_way.append(where)
    if under_way:
        return f"readers of {shorten(under_way)} wait for transactions that are under way"
    return "nothing holds readers up" if facts.named else ""


def wrong_setting(
    facts: Facts, topic: TopicDescription, name: str, wanted: object, meaning: str
) -> Finding:
    """Return the finding about a setting that should have another value."""
    what = f"{topic.name} has {name}={topic.setting(name)} instead of {wanted}"
    return Finding.warning(what, meaning, facts.commands.set_topic(topic.name, name, wanted))


def count_copies(copies: int) -> str:
    return "1 copy" if copies == 1 else f"{copies} copies"


def _describe(topic: TopicDescription) -> str:
    needed = "" if isinstance(topic.settings, Unseen) else topic.settings.get(MIN_IN_SYNC, "")
    count = len(topic.partitions)
    return (
        f"{topic.name}: {count} partition{'' if count == 1 else 's'}, "
        f"{count_copies(topic.replicas)}, all in sync, {MIN_IN_SYNC}={needed or 'not seen'}"
    )
