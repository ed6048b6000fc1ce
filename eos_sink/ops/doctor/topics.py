"""Checks of the query's topics and of those that Kafka keeps for its coordinators."""

from __future__ import annotations

from collections.abc import Mapping

from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka_config import translate
from eos_sink.ops.doctor.brokers import ID_EXPIRATION, format_hours
from eos_sink.ops.doctor.facts import INTERNAL, OFFSETS, TRANSACTIONS, Facts
from eos_sink.ops.doctor.findings import Check, Commands, Findings, collect, shorten

MIN_IN_SYNC = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"
_ID_EXPIRATION_DEFAULT_MS = 7 * 24 * 3600 * 1000
_PARTITIONS = 6
_REPLICATION_FACTOR = {
    TRANSACTIONS: "transaction.state.log.replication.factor",
    OFFSETS: "offsets.topic.replication.factor",
}


def check_topics(facts: Facts) -> Findings:
    if not facts.named:
        why = Unseen("name it with --topic, or the query with --query or --options")
        yield Check.TOPIC.unseen("where the rows go", why)
    for name in facts.named:
        yield from collect(_check_topic(name, facts))


def _check_topic(name: str, facts: Facts) -> Findings:
    topic = Check.TOPIC.require(facts.topics[name], name)
    if topic is None:
        copies = max(1, min(3, len(facts.brokers)))
        settings = {MIN_IN_SYNC: 2} if copies == 3 else {}
        yield Check.TOPIC.failure(
            f"{name} does not exist",
            "The query is refused at its start; a row for it in column topic fails its batch.",
            facts.commands.create_topic(name, _PARTITIONS, copies, settings),
        )
        return
    found = [*check_copies(Check.TOPIC, topic, facts), *_check_records(topic, facts)]
    yield from found or [Check.TOPIC.ok(_describe(topic))]
    unreliable = list(collect(_check_read_back(topic, facts)))
    yield from unreliable or [Check.WITNESS.ok(f"{name} keeps its records for long enough")]


def check_internal_topics(facts: Facts) -> Findings:
    for name in INTERNAL:
        yield from collect(_check_internal_topic(name, facts))


def _check_internal_topic(name: str, facts: Facts) -> Findings:
    topic = Check.INTERNAL.require(facts.topics[name], name)
    if topic is not None:
        found = list(check_copies(Check.INTERNAL, topic, facts))
        yield from found or [Check.INTERNAL.ok(_describe(topic))]
        return
    setting, brokers = _REPLICATION_FACTOR[name], len(facts.brokers)
    values = facts.setting(setting)
    wanted = 0 if isinstance(values, Unseen) else max(int(each.value) for each in values.values())
    if wanted > brokers:
        yield Check.INTERNAL.failure(
            f"{name} is not there yet and wants {wanted} copies; there are {brokers} brokers",
            "It cannot be created, so no transaction can begin.",
            f"Start {wanted} brokers, or: "
            + facts.commands.set_brokers(setting, brokers, restart=True),
        )
    else:
        what = f"{name} is not there yet; Kafka creates it when it is first needed"
        yield Check.INTERNAL.ok(what)


def check_copies(check: Check, topic: TopicDescription, facts: Facts) -> Findings:
    """Find out whether the topic accepts acks=all, now and after the failure of a broker."""
    name, copies = topic.name, topic.replicas
    describe = f"Bring the missing brokers back: {facts.commands.describe_topic(name)}"
    settings = {} if isinstance(topic.settings, Unseen) else topic.settings
    if isinstance(topic.settings, Unseen):
        yield check.unseen(f"{MIN_IN_SYNC} of {name}", topic.settings)
        needed = 0
    else:
        needed = int(settings.get(MIN_IN_SYNC, "1"))
    has = f"{name} has {count_copies(copies)} and {MIN_IN_SYNC}={needed}"

    leaderless = [n for n, part in topic.partitions.items() if part.leader < 0]
    short = {n: part.in_sync for n, part in topic.partitions.items() if part.in_sync < needed}
    behind = [n for n, part in topic.partitions.items() if part.in_sync < part.replicas]
    if leaderless:
        yield check.failure(
            f"{name} has no leader in partition {shorten(sorted(leaderless))}",
            "That partition can be neither written nor read.",
            f"{describe} --unavailable-partitions",
        )
    if needed > copies:
        yield check.failure(
            has,
            "It rejects every row with acks=all, which transactions need: every batch fails.",
            facts.commands.set_topic(name, MIN_IN_SYNC, max(1, copies - 1)),
        )
    elif short:
        yield check.failure(
            f"{name} has {count_copies(min(short.values()))} in sync in partition "
            f"{shorten(sorted(short))}, and {MIN_IN_SYNC}={needed}",
            "It rejects every row with acks=all there: a batch waits, then fails.",
            f"{describe} --under-min-isr-partitions",
        )
    elif behind:
        yield check.warning(
            f"{name} has copies out of sync in partition {shorten(sorted(behind))}",
            "Rows are accepted, but fewer brokers may fail than the number of copies suggests.",
            f"{describe} --under-replicated-partitions",
        )
    if 0 < needed <= copies:
        yield from _check_broker_failure(check, has, topic, needed, facts)
    if settings.get(_UNCLEAN) == "true":
        meaning = "A copy that is behind may become the leader: committed rows are lost then."
        yield check.warning(*fix_setting(topic, _UNCLEAN, "false", meaning, facts.commands))


def _check_broker_failure(
    check: Check, has: str, topic: TopicDescription, needed: int, facts: Facts
) -> Findings:
    name, copies = topic.name, topic.replicas
    reassign = "Give it three copies: kafka-reassign-partitions, three brokers."
    if copies == 1:
        reason = ", as there is one broker" if len(facts.brokers) == 1 else ""
        meaning = "Its rows are lost with that broker."
        yield check.warning(f"{name} has one copy{reason}", meaning, reassign)
    elif needed == 1 and copies >= 3:
        meaning = "A row that only one broker has counts as written, and is lost with that broker."
        yield check.warning(has, meaning, facts.commands.set_topic(name, MIN_IN_SYNC, 2))
    elif needed == copies:
        meaning = "It rejects rows while one of its brokers is down."
        remedy = facts.commands.set_topic(name, MIN_IN_SYNC, copies - 1)
        yield check.warning(has, meaning, remedy)
    elif copies == 2:
        meaning = "While one of its brokers is down, a row that only the other has is written."
        yield check.warning(has, meaning, reassign)


def _check_records(topic: TopicDescription, facts: Facts) -> Findings:
    options, commands = facts.subject.options, facts.commands
    ranges = options.destinations.ranges.get(topic.name, ()) if options.destinations else ()
    needed = max((part.stop for part in ranges), default=0)
    if needed > len(topic.partitions):
        yield Check.TOPIC.failure(
            f"{topic.name} has {len(topic.partitions)} partitions, and eos.destinations declares "
            f"partition {needed - 1}",
            "The query is refused at its start.",
            commands.add_partitions(topic.name, needed),
        )
    if isinstance(topic.settings, Unseen):
        return
    name = "max.message.bytes"
    largest = int(translate(options.kafka).settings.get("message.max.bytes", "1000000"))
    if topic.name == options.dead_letter_topic:
        yield from _check_dead_letter_topic(topic, topic.settings, facts)
    elif options.dead_letter_topic is None and int(topic.settings.get(name, largest)) < largest:
        meaning = (
            "The query's client sends more at once: a row or a batch of rows that is too large "
            "fails its micro-batch each time."
        )
        yield Check.TOPIC.warning(*fix_setting(topic, name, largest, meaning, commands))
    name = "message.timestamp.type"
    if options.timestamp_column and topic.settings.get(name) == "LogAppendTime":
        meaning = "Records get the time of the append instead of that of eos.timestamp.column."
        yield Check.TOPIC.warning(*fix_setting(topic, name, "CreateTime", meaning, commands))


def _check_dead_letter_topic(
    topic: TopicDescription, settings: Mapping[str, str], facts: Facts
) -> Findings:
    """Find out whether it takes the rows that the other topics do not."""
    name, commands = "cleanup.policy", facts.commands
    if "compact" in settings.get(name, "delete"):
        meaning = "It refuses rows without a key: the query is refused at its start."
        yield Check.TOPIC.failure(*fix_setting(topic, name, "delete", meaning, commands))
    name = "max.message.bytes"
    others = [facts.topics[other] for other in facts.named if other != topic.name]
    limits = [
        int(limit)
        for other in others
        if isinstance(other, TopicDescription) and (limit := other.setting(name))
    ]
    if limits and int(settings.get(name, 0)) <= max(limits):
        meaning = (
            "A row that is too large for its own topic does not fit into this one either, where it "
            "has more headers: such a row stops the query."
        )
        wanted = 10 * max(limits)
        yield Check.TOPIC.warning(*fix_setting(topic, name, wanted, meaning, commands))


def _check_read_back(topic: TopicDescription, facts: Facts) -> Findings:
    """Where a crash leaves the outcome of a transaction open, the query looks for one of its
    records, for as long as a coordinator would know its id."""
    name, commands = topic.name, facts.commands
    settings = Check.WITNESS.require(topic.settings, f"cleanup.policy and retention of {name}")
    policy = settings.get("cleanup.policy", "delete")
    if "compact" in policy:
        what, meaning, change = fix_setting(
            topic,
            "cleanup.policy",
            "delete",
            "A missing record may have been compacted away, so if a crash leaves an outcome open, "
            "an operator has to decide (docs/resolve.md).",
            commands,
        )
        remedy = f"If the topic need not be compacted: {change}"
        yield Check.WITNESS.warning(what, meaning, remedy)
    if "delete" not in policy:
        return
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
        yield Check.WITNESS.warning(
            f"{name} keeps records for {format_hours(kept_ms)}, coordinators ids for "
            f"{format_hours(needed_ms)} ({ID_EXPIRATION})",
            meaning,
            commands.set_topic(name, "retention.ms", needed_ms),
        )
    if int(settings.get("retention.bytes", "-1")) >= 0:
        yield Check.WITNESS.warning(*fix_setting(topic, "retention.bytes", -1, meaning, commands))


def check_readers(facts: Facts) -> Findings:
    holders = Check.READERS.require(facts.holders, "what holds readers up")
    hanging = [each for each in holders if each.hangs]
    for each in hanging:
        yield Check.READERS.warning(
            f"{each.topic}[{each.partition}]: transaction {each.name} has ended, and is open there "
            f"from offset {each.offset} on",
            "Kafka has forgotten to end it there, because the partition had no leader "
            "(KAFKA-20734). It holds read_committed readers up, and no timeout ends it.",
            "Start the query, which ends it as it was ended elsewhere "
            "(docs/runbook.md#readers-stuck).",
        )
    unidentified = [each for each in holders if each.unidentified]
    for each in unidentified:
        why = Unseen("no coordinator names its transaction, or this principal may not see it")
        where = f"{each.topic}[{each.partition}] from offset {each.offset} on"
        yield Check.READERS.unseen(f"{each.name}, which holds readers up at {where}", why)
    if facts.named and not hanging and not unidentified:
        yield Check.READERS.ok("no transaction of the query that has ended holds readers up")


def fix_setting(
    topic: TopicDescription, name: str, value: object, meaning: str, commands: Commands
) -> tuple[str, str, str]:
    """Return the fact, meaning and remedy of a finding about a setting that should be `value`."""
    assert not isinstance(topic.settings, Unseen)
    what = f"{topic.name} has {name}={topic.settings.get(name)} instead of {value}"
    return what, meaning, commands.set_topic(topic.name, name, value)


def count_copies(copies: int) -> str:
    return "1 copy" if copies == 1 else f"{copies} copies"


def _describe(topic: TopicDescription) -> str:
    needed = "" if isinstance(topic.settings, Unseen) else topic.settings.get(MIN_IN_SYNC, "")
    count = len(topic.partitions)
    return (
        f"{topic.name}: {count} partition{'' if count == 1 else 's'}, "
        f"{count_copies(topic.replicas)}, all in sync, {MIN_IN_SYNC}={needed or 'not seen'}"
    )


CHECKS = (
    check_topics,
    check_readers,
    check_internal_topics,
)
